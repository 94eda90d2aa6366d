//! A message that an operator has the gateway send: the turn's own text.

use rejoinder_guard::Reply;

use super::{
    backlog::{self, ASKS_ABOUT_BACKLOG},
    command::{Answer, Command, Words},
};
use crate::{model::EventKind, ports::Origin};

pub(crate) const MESSAGE: Command = Command::notice(Origin::MESSAGE, "Send a message of the operator's", |call| {
    Box::pin(async {
        if let EventKind::Expired { turn } = call.turn.event.kind
            && call.store.turn(turn).await?.is_some_and(|asked| asked.handler == ASKS_ABOUT_BACKLOG.handler())
        {
            return backlog::decide(call, None).await;
        }
        let event = &call.turn.event;
        let reply = Reply { attachments: event.attachments.clone(), ..Reply::text(event.text.clone()) };
        Ok(Answer::saying(Words::Own(reply)))
    })
});
