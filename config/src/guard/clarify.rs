//! `[guard.clarify.<name>]`: a question with choices.

use std::collections::{BTreeMap, BTreeSet};

use rejoinder_core::{Language, Question, is_blank};
use serde::{Deserialize, Serialize};

use crate::{check::Checks, text};

/// Guided questions by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Questions {
    all: BTreeMap<String, GuidedQuestion>,
    /// Those of them that are built in.
    #[serde(skip)]
    built_in: BTreeMap<String, GuidedQuestion>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct GuidedQuestion {
    #[serde(deserialize_with = "text::filled")]
    question: String,
    choices: Vec<String>,
    #[serde(default)]
    anyone: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    languages: BTreeMap<String, Wording>,
}

/// A question in another language.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Wording {
    #[serde(deserialize_with = "text::filled")]
    question: String,
    choices: Vec<String>,
}

impl Questions {
    /// The names of the questions.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    /// The question `name` as somebody with this language gets it. What the operator wrote without a language comes before a
    /// built-in wording in the language.
    pub fn question(&self, name: &str, language: Language) -> Option<Question> {
        let GuidedQuestion { question, choices, anyone, languages } = self.all.get(name)?;
        let built_in = self.built_in.get(name);
        let is_changed = built_in.is_none_or(|built_in| (&built_in.question, &built_in.choices) != (question, choices));
        let wording = languages.get(language.as_str()).filter(|wording| {
            let is_built_in = built_in.is_some_and(|it| it.languages.get(language.as_str()) == Some(wording));
            !(is_changed && is_built_in)
        });
        let (text, choices) = wording.map_or((question, choices), |wording| (&wording.question, &wording.choices));
        Some(Question { text: text.clone(), choices: choices.clone(), anyone: *anyone })
    }

    /// Tells the built-in questions from those that the operator wrote.
    pub(super) fn know_built_in(&mut self, built_in: &Self) {
        self.built_in.clone_from(&built_in.all);
    }

    pub(super) fn check(&self, checks: &mut Checks<'_>) {
        for (name, question) in &self.all {
            checks.has_name(checks.key(&["clarify", name]), name);
            check_choices(&["clarify", name, "choices"], &question.choices, checks);
            for (language, Wording { choices, .. }) in &question.languages {
                checks.knows_language(checks.key(&["clarify", name, "languages", language]), language.as_str());
                check_choices(&["clarify", name, "languages", language, "choices"], choices, checks);
            }
        }
    }
}

fn check_choices(names: &[&str], choices: &[String], checks: &mut Checks<'_>) {
    let key = checks.key(names);
    if !(2..=8).contains(&choices.len()) {
        checks.wrong(key, format!("must be a list of 2 to 8 texts, not of {}", choices.len()));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, choice) in choices.iter().enumerate() {
        if is_blank(choice) {
            checks.wrong(key.index(index), "is empty");
        } else if !seen.insert(choice.trim()) {
            checks.wrong(key.index(index), "is listed twice: the choices must differ");
        }
    }
}
