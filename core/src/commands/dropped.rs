//! The notice that messages which waited are dropped, because more came than may wait in a conversation.

use rejoinder_guard::Reply;

use super::command::{Answer, Call, Command, Words};
use crate::{
    words::excerpt,
    {ledger::trigger::TurnEvents, ports::store::StoreError},
};

/// How many turns are dropped at once.
const MOST: u32 = 1000;

/// How many characters of a message are told.
const EXCERPT: usize = 60;

pub(crate) const DROPPED: Command = Command {
    name: "dropped",
    texts: &[],
    arguments: 0,
    description: "Tell a chat that its oldest messages are not answered",
    is_recorded: true,
    act: |call| Box::pin(drop_oldest(call)),
};

/// Cancels the turns that have waited the longest, so that as many are left as may wait.
async fn drop_oldest(call: &Call<'_>) -> Result<Answer, StoreError> {
    let cap = call.settings.queues.cap;
    let mut waiting = call.store.waiting_turns(call.turn.conversation, cap.saturating_add(MOST)).await?;
    waiting.retain(|turn| turn.obligation.may_be_merged());
    waiting.sort_unstable_by_key(|turn| turn.seq);
    waiting.truncate(waiting.len().saturating_sub(cap as usize));
    if waiting.is_empty() {
        // There is room again: nothing is said.
        return Ok(Answer::saying(Words::Own(Reply::text(""))));
    }
    let first = waiting.first().map(|turn| excerpt(&turn.event.text, EXCERPT)).unwrap_or_default();
    let count = waiting.len().to_string();
    let turn_events = waiting.into_iter().map(|turn| TurnEvents { turn, events: vec![call.cancelled()] }).collect();
    Ok(Answer { turn_events, ..Answer::filled("dropped", vec![("count", count), ("text", first)]) })
}
