//! `/language`: tells or changes the language of what the gateway itself says to the sender.

use super::command::{Answer, Call, Command};
use crate::{
    ledger::trigger::DecidedPerson,
    model::{Language, PeopleChange, Settings},
};

/// What people write to have the language of their app again.
const AUTO: &str = "auto";

pub(super) const LANGUAGE: Command =
    Command::new("language", &["/language"], 1, "The language in which I tell you something", |call| {
        Box::pin(async { Ok(language(call)) })
    });

/// What may follow the command.
pub(super) fn words(settings: &Settings) -> Vec<String> {
    settings.templates.languages().iter().map(Language::as_str).chain([AUTO]).map(ToOwned::to_owned).collect()
}

fn language(call: &Call<'_>) -> Answer {
    let known = call.settings.templates.languages();
    let names = known.iter().map(Language::as_str).collect::<Vec<_>>().join(", ");
    let of = |template| Answer::filled(template, vec![("languages", names)]);
    match call.turn.event.text.split_whitespace().nth(1) {
        None => of("language"),
        Some(word) if word.eq_ignore_ascii_case(AUTO) => chosen(call, None, "language_auto"),
        Some(word) => match Language::of(word).filter(|language| known.contains(language)) {
            Some(language) => chosen(call, Some(language), "language_changed"),
            None => of("language_unknown"),
        },
    }
}

/// Stores what the sender chose, for all their channels, and answers in that language.
fn chosen(call: &Call<'_>, language: Option<Language>, template: &'static str) -> Answer {
    let seen = vec![call.people.seen()];
    let theirs = call.people.known().all_of(&call.turn.event.identity());
    let changes = theirs.into_iter().map(|identity| PeopleChange::LanguageSet(identity, language)).collect();
    let person = Some(DecidedPerson { changes, operation: None });
    Answer { person, language, seen, ..Answer::of(template) }
}
