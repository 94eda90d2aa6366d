//! The notice that messages are too old to be answered, because the gateway or its connection was down.

use super::command::{Answer, Call, Command};
use crate::{ledger::trigger::TurnEvents, model::queue::Backlog, ports::store::StoreError};

/// How many turns are given up at once.
const MOST: u32 = 10_000;

pub(crate) const LATE: Command = Command {
    name: "late_messages",
    texts: &[],
    arguments: 0,
    description: "Tell a chat that its old messages are not answered",
    is_recorded: true,
    act: |call| Box::pin(expire(call)),
};

/// Gives up the turns that have waited too long for their first run.
async fn expire(call: &Call<'_>) -> Result<Answer, StoreError> {
    let mut late = call.store.waiting_turns(call.turn.conversation, MOST).await?;
    let queues = &call.settings.queues;
    late.retain(|turn| queues.backlog == Backlog::Expire && turn.runs == 0 && queues.is_late(&turn.event, call.now));
    let turn_events = late.into_iter().map(|turn| TurnEvents { turn, events: vec![call.cancelled()] }).collect();
    Ok(Answer { turn_events, ..Answer::of("late_messages") })
}
