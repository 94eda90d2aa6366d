//! `/queue`: tells, or chooses, what happens to messages that come while the agent works.

use super::command::{AS_CONFIGURED, Answer, Call, Command};
use crate::{model::QueueMode, ports::StoreError};

pub(super) const QUEUE: Command = Command::new(
    "queue",
    &["/queue"],
    1,
    "What happens to messages that come while I work: followup, collect, steer, interrupt or auto",
    |call| Box::pin(queue(call)),
);

/// What may follow the command.
pub(super) fn words() -> Vec<String> {
    QueueMode::ALL.iter().map(|mode| mode.as_str()).chain([AS_CONFIGURED]).map(ToOwned::to_owned).collect()
}

async fn queue(call: &Call<'_>) -> Result<Answer, StoreError> {
    let asked = call.turn.event.text.split_whitespace().nth(1).map(str::to_ascii_lowercase);
    let configured = || call.settings.queue_mode(&call.turn.event, call.turn.rule.as_deref());
    if asked.is_some() && call.is_guest_of_group() {
        return Ok(Answer::of("session_guest"));
    }
    let (template, mode, chosen) = match asked.as_deref() {
        None => ("queue", call.merges.mode(call.turn).await?, None),
        Some(AS_CONFIGURED) => ("queue_chosen", configured(), Some(None)),
        Some(other) => match other.parse::<QueueMode>() {
            Ok(mode) => ("queue_chosen", mode, Some(Some(mode))),
            Err(_) => ("queue_unknown", call.merges.mode(call.turn).await?, None),
        },
    };
    Ok(Answer { queue: chosen, ..Answer::filled(template, vec![("mode", mode.to_string())]) })
}
