//! What is said of messages that are too old to be answered, because the gateway or its connection was down: that they are not, or
//! the question whether they are still to be.

use std::time::Duration;

use rejoinder_guard::{Choices, Event, Reply};

use super::command::{Answer, Call, Command, Words};
use crate::{
    events::TurnEvents,
    model::{Backlog, TurnRecord},
    ports::StoreError,
    questions::backlog_question::ASKS,
};

const MOST: u32 = 10_000;

/// How long somebody may take to say whether late messages are to be answered.
const PATIENCE: Duration = Duration::from_hours(24);

pub(crate) const BACKLOG_EXPIRED: Command =
    Command::notice("late_messages", "Tell a chat that its old messages are not answered", |call| {
        Box::pin(expire(call))
    });

pub(crate) const ASKS_ABOUT_BACKLOG: Command =
    Command::notice(ASKS, "Ask a chat whether its old messages are to be answered", |call| Box::pin(ask(call)));

/// Gives up the turns that have waited too long for their first run because the gateway was down. One that waits for other turns
/// is answered, whatever age the platform gives a message that comes now.
async fn expire(call: &Call<'_>) -> Result<Answer, StoreError> {
    let mut backlog = call.store.waiting_turns(call.turn.conversation, MOST).await?;
    let queues = &call.settings.queues;
    let is_backlog = |turn: &TurnRecord| {
        turn.runs == 0 && call.backlog_question.is_left(&turn.event) && queues.is_backlog(&turn.event, call.now)
    };
    backlog.retain(|turn| queues.backlog == Backlog::Expire && is_backlog(turn));
    Ok(Answer { turn_events: each(backlog, &call.cancelled()), ..Answer::of("late_messages") })
}

async fn ask(call: &Call<'_>) -> Result<Answer, StoreError> {
    if call.backlog_question.postponed(call.turn.conversation).await?.is_empty() {
        return Ok(Answer::nothing());
    }
    let say = |template| call.say(template).to_owned();
    let options = vec![say("late_choice_answer"), say("late_choice_leave")];
    let choices = Choices { options, free_text: false, expires: Some(call.now + PATIENCE) };
    Ok(Answer::saying(Words::Own(Reply::question(say("late_asks"), choices))))
}

/// Acts on the late messages of a conversation: whether they are to be answered. `None`: nobody said so in time, and they are not.
pub(super) async fn decide(call: &Call<'_>, picked: Option<bool>) -> Result<Answer, StoreError> {
    let backlog = call.backlog_question.postponed(call.turn.conversation).await?;
    if backlog.is_empty() {
        // They were stopped, or answered together with a newer one.
        return Ok(picked.map_or_else(Answer::nothing, |_| Answer::of("status_idle")));
    }
    let (event, template) = match picked {
        Some(true) => (Event::Continued, "late_answered"),
        Some(false) | None => (call.cancelled(), "late_left"),
    };
    Ok(Answer { turn_events: each(backlog, &event), depends_on_turns: true, ..Answer::of(template) })
}

fn each(turns: Vec<TurnRecord>, event: &Event) -> Vec<TurnEvents> {
    turns.into_iter().map(|turn| TurnEvents { turn, events: vec![event.clone()] }).collect()
}
