//! The notice that messages which waited are dropped, because more came than may wait in a conversation.

use rejoinder_guard::Expectation;

use super::command::{Answer, Call, Command};
use crate::{
    base::words::excerpt,
    events::TurnEvents,
    model::{EventKind, TurnRecord},
    ports::StoreError,
};

const MOST: u32 = 1000;

/// How many characters of a message are told.
const EXCERPT: usize = 60;

pub(crate) const DROPPED: Command =
    Command::notice("dropped", "Tell a chat that its oldest messages are not answered", |call| {
        Box::pin(drop_oldest(call))
    });

/// Cancels turns that wait, so that as many are left as may wait: first the talk to which nobody owes an answer, and of each the oldest.
async fn drop_oldest(call: &Call<'_>) -> Result<Answer, StoreError> {
    let (cap, conversation) = (call.settings.queues.cap, call.turn.conversation);
    let mut waiting = call.store.waiting_turns(conversation, cap.saturating_add(MOST)).await?;
    // What the gateway begins on its own is nobody's message.
    waiting.retain(|turn| turn.obligation.may_be_merged() && turn.event.kind == EventKind::Message);
    if call.store.postponed_in(conversation, 1).await? > 0 {
        waiting.extend(call.backlog_question.postponed(conversation).await?);
    }
    waiting.sort_unstable_by_key(|turn| (is_owed(turn), turn.seq));
    waiting.truncate(waiting.len().saturating_sub(cap as usize));
    let mut owed = waiting.iter().filter(|turn| is_owed(turn)).peekable();
    let first = owed.peek().map(|turn| excerpt(&turn.event.text, EXCERPT));
    let count = owed.count().to_string();
    let turn_events = waiting.into_iter().map(|turn| TurnEvents { turn, events: vec![call.cancelled()] }).collect();
    let answer = match first {
        Some(text) => Answer::filled("dropped", vec![("count", count), ("text", text)]),
        None => Answer::nothing(),
    };
    Ok(Answer { turn_events, ..answer })
}

fn is_owed(turn: &TurnRecord) -> bool {
    turn.obligation.expectation() == Expectation::Answer
}
