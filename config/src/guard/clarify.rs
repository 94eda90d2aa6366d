//! `[guard.clarify.<name>]`: a guided question.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    check::Checks,
    text::{self, is_name},
};

/// A question with choices: buttons where the platform has them, a numbered list elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// What is asked.
    #[serde(deserialize_with = "text::filled")]
    pub question: String,
    /// What can be picked, 2 to 8 of them.
    pub choices: Vec<String>,
    /// Whether anyone in a group may pick, and not only who was asked.
    #[serde(default)]
    pub anyone: bool,
}

impl Question {
    pub(super) fn check(&self, name: &str, checks: &mut Checks<'_>) {
        if !is_name(name) {
            checks.wrong(checks.key(&["clarify", name]), text::NAME_RULE);
        }
        let key = checks.key(&["clarify", name, "choices"]);
        if !(2..=8).contains(&self.choices.len()) {
            checks.wrong(key, format!("must be a list of 2 to 8 texts, not of {}", self.choices.len()));
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, choice) in self.choices.iter().enumerate() {
            if choice.trim().is_empty() {
                checks.wrong(key.index(index), "is empty");
            } else if !seen.insert(choice.trim()) {
                checks.wrong(key.index(index), "is there twice: nobody could tell which was picked");
            }
        }
    }
}
