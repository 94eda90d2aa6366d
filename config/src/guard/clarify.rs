//! `[guard.clarify.<name>]`: a question with choices.

use std::collections::BTreeSet;

use rejoinder_core::{Question, is_blank};

use crate::{
    check::Checks,
    text::{self, is_name},
};

pub(super) fn check(name: &str, question: &Question, checks: &mut Checks<'_>) {
    if !is_name(name) {
        checks.wrong(checks.key(&["clarify", name]), text::NAME_RULE);
    }
    let key = checks.key(&["clarify", name, "choices"]);
    if !(2..=8).contains(&question.choices.len()) {
        checks.wrong(key, format!("must be a list of 2 to 8 texts, not of {}", question.choices.len()));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, choice) in question.choices.iter().enumerate() {
        if is_blank(choice) {
            checks.wrong(key.index(index), "is empty");
        } else if !seen.insert(choice.trim()) {
            checks.wrong(key.index(index), "is listed twice: the choices must differ");
        }
    }
}
