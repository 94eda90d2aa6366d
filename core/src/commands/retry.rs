//! `/retry`: the last question is put before the agent again. `/undo`: it is left out of what the agent is shown.
//!
//! A `/retry` with a question to repeat is an agent's turn (see `intake`): the command only answers when there is none.

use super::command::{Answer, Call, Command};
use crate::{base::words::excerpt, model::SessionChange, ports::StoreError};

/// How many characters of a question are told.
const EXCERPT: usize = 100;

pub(crate) const RETRY: Command =
    Command::new("retry", &["/retry"], 0, "Try the last question again", |call| Box::pin(retry(call)));

pub(super) const UNDO: Command =
    Command::new("undo", &["/undo"], 0, "Forget the last question and its answer", |call| Box::pin(undo(call)));

async fn retry(call: &Call<'_>) -> Result<Answer, StoreError> {
    let event = &call.turn.event;
    let last = call.sessions.last_question(event, call.turn.conversation, call.session_person, true).await?;
    Ok(match last {
        Some(last) if last.is_open() => Answer::filled("retry_running", vec![("text", excerpt(&last.text(), EXCERPT))]),
        Some(last) if last.is_sealed() => Answer::of("retry_sealed"),
        _ => Answer::of("retry_nothing"),
    })
}

async fn undo(call: &Call<'_>) -> Result<Answer, StoreError> {
    let seen = call.sessions.seen(call.turn.conversation, call.session_person).await?;
    let event = &call.turn.event;
    let last = call.sessions.last_question(event, call.turn.conversation, call.session_person, false).await?;
    let Some(last) = last else { return Ok(Answer::of("undo_nothing")) };
    let told = vec![("text", excerpt(&last.text(), EXCERPT))];
    if last.is_open() {
        return Ok(Answer::filled("retry_running", told));
    }
    let sessions = vec![SessionChange::LeaveOut { session: last.session, turns: last.ids() }];
    Ok(Answer { sessions, seen, ..Answer::filled("undone", told) })
}
