//! `/stop`: cancels the open turns of the conversation, running and waiting; a guest of a group only their own.

use super::{
    asks::name_of,
    command::{Answer, Call, Command},
};
use crate::{
    events::TurnEvents,
    model::{ChatKind, TurnRecord},
    ports::StoreError,
    questions::backlog_question::State,
};

pub(super) const STOP: Command =
    Command::new("stop", &["/stop", "/cancel"], 0, "Stop what is being worked on", |call| Box::pin(stop(call)));

async fn stop(call: &Call<'_>) -> Result<Answer, StoreError> {
    if call.is_guest_of_group() {
        return stop_own(call).await;
    }
    let (stopped, are_any) = stopped(call).await?;
    Ok(Answer { words: told(call, are_any).words, ..stopped })
}

/// The reply about stopped turns. In a group others see it, too.
fn told(call: &Call<'_>, are_any: bool) -> Answer {
    let event = &call.turn.event;
    match (are_any, event.chat) {
        (true, ChatKind::Group) => Answer::filled("cancelled_by", vec![("name", name_of(event, call))]),
        (true, ChatKind::Direct) => Answer::of("cancelled"),
        (false, _) => Answer::of("nothing_to_cancel"),
    }
}

/// Cancels what the sender has asked, and nothing that is answered together with somebody else's question.
async fn stop_own(call: &Call<'_>) -> Result<Answer, StoreError> {
    let (open, mut own) = (call.open_before().await?, Vec::new());
    let are_any = !open.is_empty();
    for turn in open {
        if is_own(call, &turn).await? {
            own.push(TurnEvents { turn, events: vec![call.cancelled()] });
        }
    }
    let answer = if are_any && own.is_empty() { Answer::of("stop_own") } else { told(call, are_any) };
    Ok(Answer { turn_events: own, ..answer })
}

/// Whether a turn, and all that are merged into it, are the sender's.
async fn is_own(call: &Call<'_>, turn: &TurnRecord) -> Result<bool, StoreError> {
    let sender = call.turn.event.identity();
    for merged in turn.obligation.merged_turns() {
        let Ok(id) = merged.turn.parse() else { return Ok(false) };
        let merged = call.store.readable_turn(id).await?;
        if merged.is_none_or(|merged| merged.event.identity() != sender) {
            return Ok(false);
        }
    }
    Ok(turn.event.identity() == sender)
}

/// Cancels what is open in the conversation, and says whether there was anything.
pub(super) async fn stopped(call: &Call<'_>) -> Result<(Answer, bool), StoreError> {
    let conversation = call.turn.conversation;
    let open = call.open_before().await?;
    let are_any = !open.is_empty();
    // The question about late messages ends with them; it may be left of some that were cancelled.
    let may_ask = call.has_open_question || open.iter().any(|turn| turn.obligation.is_postponed());
    let state = if may_ask { call.backlog_question.state(conversation).await? } else { None };
    let question = state.and_then(State::question);
    let closes = question.iter().map(|question| question.id).collect();
    let asks = question.filter(|question| !question.obligation.state().is_final());
    let cancelled = |turn| TurnEvents { turn, events: vec![call.cancelled()] };
    let turn_events = open.into_iter().chain(asks).map(cancelled).collect();
    Ok((Answer { turn_events, closes, depends_on_turns: may_ask, ..Answer::nothing() }, are_any))
}
