//! The instructions before all messages. No I/O.

use rejoinder_core::{AgentTurn, ChatKind, Surface, Timestamp};

use super::{budget, frame, handoff, last_answer};
use crate::piece::PieceName;

/// The operator's prompt, and what the gateway adds, except for the pieces in `leave_out`. Contains no text that a stranger
/// chose.
pub fn of(turn: &AgentTurn, system_prompt: &str, leave_out: &[PieceName]) -> String {
    joined(added(turn), system_prompt, |piece| !leave_out.contains(&piece))
}

/// All of it without what changes: for an agent that reads it once and remembers it.
pub fn of_session(turn: &AgentTurn, system_prompt: &str) -> String {
    joined(added_to_session(turn), system_prompt, |_| true)
}

/// What the gateway adds to the operator's prompt at the beginning of a session, piece by piece.
pub(crate) fn added_to_session(turn: &AgentTurn) -> Vec<(PieceName, String)> {
    let changes = |piece| matches!(piece, PieceName::Date | PieceName::Budget);
    pieces(turn, true).into_iter().filter(|(piece, _)| !changes(*piece)).collect()
}

fn joined(pieces: Vec<(PieceName, String)>, system_prompt: &str, is_wanted: impl Fn(PieceName) -> bool) -> String {
    let pieces = pieces.into_iter().filter(|(piece, _)| is_wanted(*piece));
    let pieces: String = pieces.map(|(_, text)| text).collect();
    let parts = [system_prompt.trim(), pieces.trim_start()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// What the gateway adds to the operator's prompt, piece by piece.
pub(crate) fn added(turn: &AgentTurn) -> Vec<(PieceName, String)> {
    pieces(turn, last_answer::to_model(turn).is_some())
}

/// The same. `hears_of_answers`: whether it may be told what became of an answer.
fn pieces(turn: &AgentTurn, hears_of_answers: bool) -> Vec<(PieceName, String)> {
    let messages = match turn.place.chat {
        ChatKind::Direct => " A message that comes with more than its text ",
        ChatKind::Group => " Each message ",
    };
    let pieces = [
        (PieceName::Place, place(turn)),
        (
            PieceName::Legend,
            format!("{messages}{}{}", frame::LEGEND, if hears_of_answers { last_answer::LEGEND } else { "" }),
        ),
        (PieceName::Program, turn.person.instructions.as_ref().map_or("", |_| frame::PROGRAM).to_owned()),
        (PieceName::Handoff, turn.past.handoff.as_ref().map_or("", |_| handoff::LEGEND).to_owned()),
        (PieceName::Language, language(turn)),
        (PieceName::Date, today(turn.now)),
        (PieceName::Budget, budget::left(turn.rights.budget)),
    ];
    pieces.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Where the conversation takes place.
fn place(turn: &AgentTurn) -> String {
    let chat = match turn.place.chat {
        ChatKind::Direct => "You are in a direct chat with one person",
        ChatKind::Group => "You are in a group chat",
    };
    match &turn.place.surface {
        Surface::Voice => {
            "Your answer is read aloud by a voice assistant: a few plain sentences, no Markdown, no lists, no links."
                .to_owned()
        }
        Surface::Chat(name) => format!("{chat}, on {name}. You may use simple Markdown."),
    }
}

/// The person's language, if it is known. Not in a group: servers cache a prompt as long as it begins the same.
fn language(turn: &AgentTurn) -> String {
    match turn.person.language.filter(|_| turn.place.chat == ChatKind::Direct) {
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
    use rejoinder_core::{BudgetLeft, Cause, Handoff, Language};

    use super::*;
    use crate::tests::turn;

    #[test]
    fn a_piece_that_is_left_out_is_not_in_the_instructions() {
        let turn = turn("Hi").with(|turn| {
            turn.person.language = Language::of("de");
            turn.person.instructions = Some("Talk like a pirate.".to_owned());
            turn.past.handoff = Some(Handoff { cause: Cause::Error, why: String::new(), tried: Vec::new() });
            turn.rights.budget = Some(BudgetLeft { tokens: Some(1200), cost: None });
        });
        let pieces = added(&turn);
        assert_eq!(pieces.len(), 7);
        for (left_out, text) in &pieces {
            let instructions = of(&turn, "Be kind.", &[*left_out]);
            assert!(!instructions.contains(text.trim()), "{instructions}");
            let others = pieces.iter().filter(|(piece, _)| piece != left_out);
            assert!(others.clone().all(|(_, text)| instructions.contains(text.trim())), "{instructions}");
            assert!(instructions.starts_with("Be kind.\n\n") && !instructions.contains("\n\n "), "{instructions}");
            assert_eq!(serde_json::to_value(left_out).expect("a name"), left_out.as_str());
        }
        let all: Vec<_> = pieces.iter().map(|(piece, _)| *piece).collect();
        assert_eq!(of(&turn, "Be kind.", &all), "Be kind.");
    }

    /// Servers cache a prompt as long as it begins the same.
    #[test]
    fn what_is_left_of_the_budget_is_told_last_and_seldom_changes() {
        let with =
            |tokens| turn("Hi").with(|turn| turn.rights.budget = Some(BudgetLeft { tokens: Some(tokens), cost: None }));
        let text = |turn: &AgentTurn| of(turn, "Be kind.", &[]);

        let told = text(&with(480_000));

        assert_eq!(told, format!("{} Left of your budget for today: about 400000 tokens.", text(&turn("Hi"))));
        assert_eq!(told, text(&with(410_000)));
        assert_eq!(of_session(&with(480_000), ""), of_session(&turn("Hi"), ""), "it would be remembered");
    }

    #[test]
    fn the_instructions_say_where_the_model_speaks() {
        let text = |turn: &AgentTurn| of(turn, "Be kind.", &[]);
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
        let group = text(&turn("Hi").with(|turn| turn.place.chat = ChatKind::Group));
        assert!(
            group.contains("in a group chat, on Telegram. You may use simple Markdown. Each message is a JSON object")
        );
        let german = turn("Hi").with(|turn| turn.person.language = Language::of("de-AT"));
        assert!(text(&german).contains(" The person's language: German (de). Today is "), "{}", text(&german));
        let swiss = turn("Hi").with(|turn| turn.person.language = Language::of("gsw"));
        assert!(text(&swiss).contains(" The person's language: gsw. "), "{}", text(&swiss));
        let spoken = turn("Hi").with(|turn| turn.place.surface = Surface::Voice);
        assert!(text(&spoken).contains("read aloud") && !text(&spoken).contains("You may use"));
    }
}
