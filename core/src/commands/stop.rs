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
    let turn_events = stopped(call).await?;
    let template = if turn_events.is_empty() { "nothing_to_cancel" } else { "cancelled" };
    Ok(Answer { turn_events, ..Answer::of(template) })
}

/// Cancels what is open in the conversation.
pub(super) async fn stopped(call: &Call<'_>) -> Result<Vec<TurnEvents>, StoreError> {
    let open = call.open_before().await?.into_iter();
    Ok(open.map(|turn| TurnEvents { turn, events: vec![call.cancelled()] }).collect())
}
