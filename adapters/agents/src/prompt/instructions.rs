//! The instructions before all messages. No I/O.

use rejoinder_core::{AgentTurn, ChatKind, Surface, Timestamp};

use super::{frame, handoff};

/// The name of the piece that changes every day.
const DATE: &str = "date";

/// The operator's prompt, and what the gateway adds. Contains no text that a stranger chose.
pub fn of(turn: &AgentTurn, system_prompt: &str) -> String {
    of_session(turn, system_prompt) + &today(turn.now)
}

/// The same without the date: for an agent that reads it once and remembers it.
pub fn of_session(turn: &AgentTurn, system_prompt: &str) -> String {
    let mut text = system_prompt.trim().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.extend(added(turn).into_iter().filter(|(name, _)| *name != DATE).map(|(_, piece)| piece));
    text
}

/// What the gateway adds to the operator's prompt, piece by piece, each with its name.
pub(crate) fn added(turn: &AgentTurn) -> Vec<(&'static str, String)> {
    let messages = match turn.chat {
        ChatKind::Direct => " A message that comes with more than its text ",
        ChatKind::Group => " Each message ",
    };
    let pieces = [
        ("place", place(turn)),
        ("legend", format!("{messages}{}", frame::LEGEND)),
        ("program", turn.instructions.as_ref().map_or("", |_| frame::PROGRAM).to_owned()),
        ("handoff", turn.handoff.as_ref().map_or("", |_| handoff::LEGEND).to_owned()),
        ("language", language(turn)),
        (DATE, today(turn.now)),
    ];
    pieces.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Where the conversation takes place.
fn place(turn: &AgentTurn) -> String {
    let chat = match turn.chat {
        ChatKind::Direct => "You are in a direct chat with one person",
        ChatKind::Group => "You are in a group chat",
    };
    match &turn.surface {
        Surface::Voice => {
            "Your answer is read aloud by a voice assistant: a few plain sentences, no Markdown, no lists, no links."
                .to_owned()
        }
        Surface::Chat(name) => format!("{chat}, on {name}. You may use simple Markdown."),
    }
}

/// The person's language, if it is known. Not in a group: servers cache a prompt as long as it begins the same.
fn language(turn: &AgentTurn) -> String {
    match turn.language.filter(|_| turn.chat == ChatKind::Direct) {
        None => String::new(),
        Some(language) => match language.english_name() {
            Some(name) => format!(" The person's language: {name} ({language})."),
            None => format!(" The person's language: {language}."),
        },
    }
}

/// The date, and the time to the hour. Servers cache the computation of a prompt as long as it begins the same; with minutes
/// they would compute the whole history again every minute.
fn today(now: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(now.as_millis())
        .map(|now| now.strftime(" Today is %A, %-d %B %Y; it is past %H:00 UTC.").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rejoinder_core::Language;

    use super::*;
    use crate::tests::turn;

    #[test]
    fn the_instructions_say_where_the_model_speaks() {
        let text = |turn: &AgentTurn| of(turn, "Be kind.");
        let direct = turn("Hi");
        assert_eq!(
            text(&direct),
            format!(
                "Be kind.\n\nYou are in a direct chat with one person, on Telegram. You may use simple Markdown. \
                 A message that comes with more than its text {} \
                 Today is Tuesday, 14 November 2023; it is past 22:00 UTC.",
                frame::LEGEND
            )
        );
        let group = text(&AgentTurn { chat: ChatKind::Group, ..turn("Hi") });
        assert!(
            group.contains("in a group chat, on Telegram. You may use simple Markdown. Each message is a JSON object")
        );
        let german = AgentTurn { language: Language::of("de-AT"), ..turn("Hi") };
        assert!(text(&german).contains(" The person's language: German (de). Today is "), "{}", text(&german));
        let swiss = AgentTurn { language: Language::of("gsw"), ..turn("Hi") };
        assert!(text(&swiss).contains(" The person's language: gsw. "), "{}", text(&swiss));
        let spoken = AgentTurn { surface: Surface::Voice, ..turn("Hi") };
        assert!(text(&spoken).contains("read aloud") && !text(&spoken).contains("You may use"));
    }
}
