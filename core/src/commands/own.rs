//! The operator's own commands: `/name`, answered with words, or put before the agent as a prompt.

use rejoinder_guard::Reply;

use super::command::{Answer, Call, Words};
use crate::{
    base::words::filled,
    model::CommandAnswer,
    operator::own_commands::{OwnCall, find},
};

/// The answer to a command of the operator's; `None` if there is none of this name any more.
pub(super) fn answer(call: &Call<'_>) -> Option<Answer> {
    let event = &call.turn.event;
    let OwnCall { command, rest, .. } = find(&event.text, &call.settings.commands)?;
    let CommandAnswer::Words(words) = &command.answer else { return None };
    let values = [("text", rest.to_owned()), ("agent", call.agent().to_owned()), ("sender", event.sender.id.clone())];
    Some(Answer::saying(Words::Own(Reply::text(filled(words, &values)))))
}
