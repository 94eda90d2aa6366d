//! `words_to` and `session` of schedules and triggers.

use rstest::rstest;

use crate::Machine;

/// A schedule that puts a prompt before an agent, with further keys.
fn schedule(keys: &str) -> String {
    format!("[schedules.one]\nevery = \"1h\"\nto = \"ada\"\nprompt = \"Reflect.\"\n{keys}\n")
}

/// A trigger with further keys.
fn trigger(keys: &str) -> String {
    format!("[triggers.one]\nidle = \"1h\"\nprompt = \"Reflect.\"\n{keys}\n")
}

#[rstest]
#[case("words_to = \"https://example.org/hook\"", "words_to` must be chat, nowhere, a channel such as words.journal")]
#[case("words_to = \"file:journal.md\"", "words_to` must be chat, nowhere, a channel")]
#[case("words_to = \"role:owner\"", "words_to` must be chat, nowhere, a channel")]
#[case("words_to = \"\"", "words_to` must be chat, nowhere, a channel")]
#[case("words_to = \"words.journal\"", "words_to` names the channel `words.journal`, which does not exist")]
#[case("words_to = \"telegram.main/42\"", "words_to` names the channel `telegram.main`, which does not exist")]
#[case("session = \"copied\"", "session` must be `current` or `copy`, not `copied`")]
fn what_is_wrong_is_named(#[case] keys: &str, #[case] told: &str) {
    for (name, toml) in [("schedules", schedule(keys)), ("triggers", trigger(keys))] {
        let errors = Machine::with_toml(&toml).errors();

        assert!(errors.contains(&format!("`{name}.one.{told}")), "{errors}");
    }
}

#[test]
fn only_an_agent_has_words() {
    let message = "[schedules.one]\nevery = \"1h\"\nto = \"ada\"\nmessage = \"Hello.\"\nsession = \"copy\"\n";
    let errors = Machine::with_toml(message).errors();

    assert!(errors.contains("`schedules.one` has no `prompt`, and only that is put before an agent"), "{errors}");
}

/// In a chat an agent that is triggered may be silent in any case.
#[test]
fn a_trigger_is_quiet_where_it_could_be_heard() {
    let errors = Machine::with_toml(&trigger("quiet = true")).errors();

    assert!(errors.contains("`triggers.one.quiet` is only for words that go to a file"), "{errors}");
}
