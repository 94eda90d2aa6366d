//! `/stop`: cancels the open turns of the conversation, running and waiting.

use super::command::{Answer, Call, Command};
use crate::{ledger::trigger::TurnEvents, ports::store::StoreError};

pub(super) const STOP: Command = Command {
    name: "stop",
    texts: &["/stop", "/cancel"],
    arguments: 0,
    description: "Stop what is being worked on",
    act: |call| Box::pin(stop(call)),
};

async fn stop(call: &Call<'_>) -> Result<Answer, StoreError> {
    let (stopped, are_any) = stopped(call).await?;
    Ok(Answer { words: Answer::of(if are_any { "cancelled" } else { "nothing_to_cancel" }).words, ..stopped })
}

/// Cancels what is open in the conversation, and says whether there was anything.
pub(super) async fn stopped(call: &Call<'_>) -> Result<(Answer, bool), StoreError> {
    let place = call.turn.conversation;
    let held = if call.late.is_in(place) { Some(call.late.deciding().await) } else { None };
    let open = call.open_before().await?;
    let are_any = !open.is_empty();
    // The question about late messages ends with them.
    let question = if held.is_some() { call.late.question(place).await? } else { None };
    let closes = question.iter().map(|question| question.id).collect();
    let asks = question.filter(|question| !question.obligation.state().is_final());
    let cancelled = |turn| TurnEvents { turn, events: vec![call.cancelled()] };
    let turn_events = open.into_iter().chain(asks).map(cancelled).collect();
    Ok((Answer { turn_events, closes, held, ..Answer::nothing() }, are_any))
}
