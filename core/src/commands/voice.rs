//! `/voice`: tells, or chooses, which answers are spoken as well.

use super::command::{AS_CONFIGURED, Answer, Call, Command};
use crate::model::VoiceMode;

pub(super) const VOICE: Command =
    Command::new("voice", &["/voice"], 1, "Which answers I also speak: off, reply, always or auto", |call| {
        Box::pin(async move { Ok(voice(call)) })
    });

/// What may follow the command.
pub(super) fn words() -> Vec<String> {
    VoiceMode::ALL.iter().map(|mode| mode.as_str()).chain([AS_CONFIGURED]).map(ToOwned::to_owned).collect()
}

fn voice(call: &Call<'_>) -> Answer {
    if !call.may_speak() {
        return Answer::of("voice_unavailable");
    }
    let asked = call.turn.event.text.split_whitespace().nth(1).map(str::to_ascii_lowercase);
    if asked.is_some() && call.is_guest_of_group() {
        return Answer::of("session_guest");
    }
    let configured = call.settings.voice_mode(&call.turn.event.conversation.channel);
    let current = call.voice.unwrap_or(configured);
    let (template, mode, chosen) = match asked.as_deref() {
        None => ("voice", current, None),
        Some(AS_CONFIGURED) => ("voice_chosen", configured, Some(None)),
        Some(other) => match other.parse::<VoiceMode>() {
            Ok(mode) => ("voice_chosen", mode, Some(Some(mode))),
            Err(_) => ("voice_unknown", current, None),
        },
    };
    Answer { voice: chosen, ..Answer::filled(template, vec![("mode", mode.to_string())]) }
}
