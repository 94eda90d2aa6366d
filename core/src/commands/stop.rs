//! `/stop`: cancels the open turns of the conversation, running and waiting.

use super::command::{Answer, Call, Command};
use crate::{ledger::trigger::TurnEvents, ports::store::StoreError};

pub(super) const STOP: Command = Command {
    name: "stop",
    texts: &["/stop", "/cancel"],
    arguments: 0,
    description: "Stop what is being worked on",
    is_recorded: true,
    act: |call| Box::pin(stop(call)),
};

async fn stop(call: &Call<'_>) -> Result<Answer, StoreError> {
    let open = call.open_before().await?.into_iter();
    let turn_events: Vec<TurnEvents> = open.map(|turn| TurnEvents { turn, events: vec![call.cancelled()] }).collect();
    let template = if turn_events.is_empty() { "nothing_to_cancel" } else { "cancelled" };
    Ok(Answer { turn_events, ..Answer::of(template) })
}
