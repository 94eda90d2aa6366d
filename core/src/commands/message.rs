//! A message that an operator has the gateway send: the turn's own text.

use super::command::{Answer, Command, Words};
use crate::ports::store::list::Origin;

pub(crate) const MESSAGE: Command = Command {
    name: Origin::MESSAGE,
    texts: &[],
    takes_argument: false,
    description: "Send a message of the operator's",
    act: |call| {
        let words = Words::Own(call.turn.event.text.clone());
        Box::pin(async { Ok(Answer { words, turn_events: Vec::new(), session: None }) })
    },
};
