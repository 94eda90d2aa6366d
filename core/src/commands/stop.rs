//! `/stop`: cancels the open turns of the conversation, running and waiting.

use rejoinder_guard::{CancelledBy, Event};

use super::command::{Answer, Call, Command};
use crate::{ledger::trigger::Step, ports::store::StoreError};

pub(super) const STOP: Command = Command {
    name: "stop",
    texts: &["/stop", "/cancel"],
    takes_a_word: false,
    description: "Stop what is being worked on",
    act: |call| Box::pin(stop(call)),
};

async fn stop(call: &Call<'_>) -> Result<Answer, StoreError> {
    let called_off = || Event::Cancelled { by: CancelledBy::Turn(call.turn.id.to_string()) };
    let open = call.open_before().await?.into_iter();
    let steps: Vec<Step> = open.map(|turn| Step { turn, events: vec![called_off()] }).collect();
    Ok(Answer { words: if steps.is_empty() { "nothing_to_cancel" } else { "cancelled" }, steps, session: None })
}
