//! The instructions before all messages. No I/O.

use std::sync::{Arc, Mutex, PoisonError};

use rejoinder_core::{AgentTurn, ChatKind, Language, Surface, Timestamp};

use super::{budget, frame, handoff, last_answer};
use crate::{piece::PieceName, section::ModelSettings};

const HOUR_MS: i64 = 3_600_000;

/// All that the gateway's pieces depend on.
#[derive(Debug, PartialEq, Eq)]
struct Basis {
    chat: ChatKind,
    surface: Surface,
    /// Whether the agent may be told what became of an answer.
    hears_of_answers: bool,
    has_program: bool,
    is_handed_over: bool,
    /// The person's, if it is known. Not in a group: servers cache a prompt as long as it begins the same.
    language: Option<Language>,
    /// When the hour of the turn began.
    hour: Timestamp,
    budget: String,
}

impl Basis {
    fn of(turn: &AgentTurn, hears_of_answers: bool) -> Self {
        let (chat, now) = (turn.place.chat, turn.now.as_millis());
        Self {
            chat,
            surface: turn.place.surface.clone(),
            hears_of_answers,
            has_program: turn.person.instructions.is_some(),
            is_handed_over: turn.past.handoff.is_some(),
            language: turn.person.language.filter(|_| chat == ChatKind::Direct),
            hour: Timestamp::from_millis(now - now.rem_euclid(HOUR_MS)),
            budget: budget::left(turn.rights.budget),
        }
    }

    fn of_turn(turn: &AgentTurn) -> Self {
        Self::of(turn, last_answer::to_model(turn).is_some())
    }
}

/// The instructions that a model was given last, in JSON. Most turns have the same.
#[derive(Debug, Default)]
pub(crate) struct LastInstructions(Mutex<Option<(Basis, Arc<str>)>>);

impl LastInstructions {
    /// Those of `turn`, in JSON. The settings are the same in each call.
    pub(crate) fn of(&self, turn: &AgentTurn, settings: &ModelSettings<'_>) -> Arc<str> {
        let basis = Basis::of_turn(turn);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, instructions)) = &*last
            && *known == basis
        {
            return Arc::clone(instructions);
        }
        let text = text(&basis, settings.system_prompt, settings.leave_out);
        let instructions: Arc<str> = serde_json::Value::from(text).to_string().into();
        *last = Some((basis, Arc::clone(&instructions)));
        instructions
    }
}

/// The operator's prompt, and what the gateway adds, except for the pieces in `leave_out`. Contains no text that a stranger
/// chose.
fn text(basis: &Basis, system_prompt: &str, leave_out: &[PieceName]) -> String {
    joined(pieces(basis), system_prompt, |piece| !leave_out.contains(&piece))
}

#[cfg(test)]
pub(crate) fn of(turn: &AgentTurn, system_prompt: &str, leave_out: &[PieceName]) -> String {
    text(&Basis::of_turn(turn), system_prompt, leave_out)
}

/// All of it without what changes: for an agent that reads it once and remembers it.
pub fn of_session(turn: &AgentTurn, system_prompt: &str) -> String {
    joined(added_to_session(turn), system_prompt, |_| true)
}

/// What the gateway adds to the operator's prompt at the beginning of a session, piece by piece.
pub(crate) fn added_to_session(turn: &AgentTurn) -> Vec<(PieceName, String)> {
    let changes = |piece| matches!(piece, PieceName::Date | PieceName::Budget);
    pieces(&Basis::of(turn, true)).into_iter().filter(|(piece, _)| !changes(*piece)).collect()
}

fn joined(pieces: Vec<(PieceName, String)>, system_prompt: &str, is_wanted: impl Fn(PieceName) -> bool) -> String {
    let pieces = pieces.into_iter().filter(|(piece, _)| is_wanted(*piece));
    let pieces: String = pieces.map(|(_, text)| text).collect();
    let parts = [system_prompt.trim(), pieces.trim_start()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// What the gateway adds to the operator's prompt, piece by piece.
pub(crate) fn added(turn: &AgentTurn) -> Vec<(PieceName, String)> {
    pieces(&Basis::of_turn(turn))
}

fn pieces(basis: &Basis) -> Vec<(PieceName, String)> {
    let messages = match basis.chat {
        ChatKind::Direct => " A message that comes with more than its text ",
        ChatKind::Group => " Each message ",
    };
    let pieces = [
        (PieceName::Place, place(basis)),
        (
            PieceName::Legend,
            format!("{messages}{}{}", frame::LEGEND, if basis.hears_of_answers { last_answer::LEGEND } else { "" }),
        ),
        (PieceName::Program, if basis.has_program { frame::PROGRAM } else { "" }.to_owned()),
        (PieceName::Handoff, if basis.is_handed_over { handoff::LEGEND } else { "" }.to_owned()),
        (PieceName::Language, language(basis.language)),
        (PieceName::Date, today(basis.hour)),
        (PieceName::Budget, basis.budget.clone()),
    ];
    pieces.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Where the conversation takes place.
fn place(basis: &Basis) -> String {
    let chat = match basis.chat {
        ChatKind::Direct => "You are in a direct chat with one person",
        ChatKind::Group => "You are in a group chat",
    };
    match &basis.surface {
        Surface::Voice => {
            "Your answer is read aloud by a voice assistant: a few plain sentences, no Markdown, no lists, no links."
                .to_owned()
        }
        Surface::Chat(name) => format!("{chat}, on {name}. You may use simple Markdown."),
    }
}

/// The person's language, if it is known.
fn language(language: Option<Language>) -> String {
    match language {
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
    use rejoinder_core::{BudgetLeft, Cause, Handoff};

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

    #[test]
    fn instructions_are_written_again_only_if_they_change() {
        let settings = crate::tests::settings();
        let (settings, last) = (settings.settings(), LastInstructions::default());
        let written = |turn: &AgentTurn| last.of(turn, &settings);
        let first = turn("Hi");
        let changes: [fn(&mut AgentTurn); 7] = [
            |turn| turn.place.chat = ChatKind::Group,
            |turn| turn.place.surface = Surface::Voice,
            |turn| turn.person.language = Language::of("de"),
            |turn| turn.person.instructions = Some("Talk like a pirate.".to_owned()),
            |turn| turn.now = turn.now + std::time::Duration::from_hours(1),
            |turn| turn.rights.budget = Some(BudgetLeft { tokens: Some(1200), cost: None }),
            |turn| turn.past.handoff = Some(Handoff { cause: Cause::Error, why: String::new(), tried: Vec::new() }),
        ];

        let before = written(&first);
        assert!(Arc::ptr_eq(&before, &written(&turn("And you?"))));
        for change in changes {
            let other = turn("Hi").with(change);
            let expected = of(&other, settings.system_prompt, settings.leave_out);
            assert_eq!(serde_json::from_str::<String>(&written(&other)).expect("a text"), expected);
            assert_ne!(written(&other), before);
        }
        assert_eq!(written(&first), before);
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
