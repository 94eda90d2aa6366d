//! Whatever people write: a command is a whole text, in capital or small letters, and nothing else is one.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, sample::select};

use super::{all, bang, find, spoken};
use crate::{
    model::{CommandAnswer, Condition, OwnCommand, PolicyChange, Rule},
    operator::own_commands,
};

/// What stands between words.
const SPACES: [&str; 6] = [" ", "  ", "\n", "\t", "\r\n", "\u{a0}"];

/// Pieces of texts that look like commands.
const PIECES: [&str; 28] = [
    "/", "!", "@", " ", "\n", "\u{a0}", ".", "!", "¡", "¿", "'", "’", "stop", "Stop", "it", "/stop", "/new", "/HOURS",
    "hours", "/joke", "joke", "/code", "status", "hör auf", "HÖR", "İ", "ß", "👍",
];

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![vec(select(&PIECES), 0..8).prop_map(|pieces| pieces.concat()), "\\PC{0,20}"]
}

/// Spaces, or none.
fn space() -> impl Strategy<Value = String> {
    vec(select(&SPACES), 0..3).prop_map(|spaces| spaces.concat())
}

fn one_space() -> impl Strategy<Value = String> {
    vec(select(&SPACES), 1..3).prop_map(|spaces| spaces.concat())
}

/// The text with some of its letters as capitals.
fn shouted(text: &str, capitals: u64) -> String {
    let capital = |(at, char): (usize, char)| {
        if capitals >> (at % 64) & 1 == 1 { char.to_uppercase().to_string() } else { char.to_string() }
    };
    text.chars().enumerate().map(capital).collect()
}

/// Words of people's, each after a space.
fn words(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = String> {
    vec((one_space(), "[^\\s]{1,8}"), count)
        .prop_map(|words| words.into_iter().flat_map(|(space, word)| [space, word]).collect())
}

/// A name by which a command is invoked, with how many words may follow.
fn names() -> impl Strategy<Value = (&'static str, &'static str, usize)> {
    let names = all().flat_map(|command| command.texts.iter().map(|text| (command.name, *text, command.arguments)));
    select(names.collect::<Vec<_>>())
}

fn own_commands() -> BTreeMap<String, OwnCommand> {
    let answers = [
        ("hours", CommandAnswer::Words("At {text}.".to_owned())),
        ("joke", CommandAnswer::Prompt("Tell a joke.".to_owned())),
    ];
    let of = |answer| OwnCommand { description: "What it does".to_owned(), answer };
    answers.map(|(name, answer)| (name.to_owned(), of(answer))).into()
}

fn rules() -> [Rule; 1] {
    let conditions = vec![Condition::Command(vec!["/code".to_owned()])];
    let rule = Rule {
        name: "code".into(),
        conditions,
        agent: None,
        language: None,
        queue: None,
        policy: PolicyChange::default(),
    };
    [rule]
}

proptest! {
    #[test]
    fn a_command_is_one_whatever_its_letters_and_spaces(
        (name, text, most) in names(),
        capitals: u64,
        (before, after) in (space(), space()),
        (rest, one_more) in (words(0..10), words(1)),
    ) {
        let count = rest.split_whitespace().count();
        let said = format!("{before}{}{rest}{after}", shouted(text, capitals));
        let found = find(&said).map(|command| command.name);
        prop_assert_eq!(found, (count <= most).then_some(name), "{:?}", said);

        for other in [format!("{said}{one_more}"), format!("please {said}"), format!("x{}", said.trim_start())] {
            let is_one = other.trim_start().starts_with('/') && count < most;
            prop_assert_eq!(find(&other).is_some(), is_one, "{:?}", other);
        }
    }

    #[test]
    fn what_is_found_in_any_text_is_the_whole_of_it(text in texts()) {
        let words: Vec<_> = text.split_whitespace().collect();
        if let Some(command) = find(&text) {
            prop_assert!(command.texts.contains(&&*words[0].to_ascii_lowercase()) && words.len() <= 1 + command.arguments);
        }
        let known = own_commands();
        if let Some(own) = own_commands::find(&text, &known) {
            prop_assert_eq!(words[0].to_ascii_lowercase(), format!("/{}", own.name));
            prop_assert!(text.trim_end().ends_with(own.rest) && find(&text).is_none(), "{:?}", own);
        }
    }

    #[test]
    fn an_operators_command_keeps_what_follows_it(
        name in select(vec!["hours", "joke"]),
        capitals: u64,
        (before, between, after) in (space(), one_space(), space()),
        rest in "(\\PC|\n){0,40}",
    ) {
        let known = own_commands();
        let said = format!("{before}/{}{between}{rest}{after}", shouted(name, capitals));
        let own = own_commands::find(&said, &known).expect("a command");
        prop_assert_eq!((own.name, own.rest), (name, rest.trim()));
        prop_assert_eq!(own.handler().is_some(), name == "hours");
        let no_command = format!("x{said}");
        prop_assert!(own_commands::find(&no_command, &known).is_none(), "{}", no_command);
    }

    #[test]
    fn a_spoken_command_is_said_alone(
        (name, said) in select(spoken::all().collect::<Vec<_>>()),
        capitals: u64,
        (before, between, after) in ("[ ¡¿]{0,3}", one_space(), "[ .,!?…\n]{0,3}"),
        more in "[a-z]{6,9}",
    ) {
        let said = said.replace(' ', &between);
        let whole = format!("{before}{}{after}", shouted(&said, capitals));
        prop_assert_eq!(spoken::find(&whole).map(|command| command.name), Some(name), "{:?}", whole);
        for other in [format!("{said} {more}"), format!("{more} {said}"), format!("{said}{more}"), format!("/{said}")] {
            prop_assert!(spoken::find(&other).is_none(), "{:?}", other);
        }
    }

    #[test]
    fn any_text_is_heard(text in texts()) {
        if let Some(command) = spoken::find(&text) {
            let is_said = |said: &str| text.to_lowercase().contains(said.split(' ').next().unwrap_or_default());
            prop_assert!(spoken::all().any(|(name, said)| name == command.name && is_said(said)), "{:?}", text);
        }
    }

    #[test]
    fn a_bang_is_a_slash_before_a_command_and_nothing_else(text in texts(), (name, ..) in names(), after in space()) {
        let (known, rules) = (own_commands(), rules());
        let of_rule = |text: &str| text.split_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case("/code"));
        let is_command = |text: &str| find(text).is_some() || own_commands::find(text, &known).is_some() || of_rule(text);
        for text in [text.clone(), format!("!{text}"), format!("!{name}{text}")] {
            let slashed = text.trim_start().strip_prefix('!').map(|rest| format!("/{rest}"));
            let expected = slashed.filter(|slashed| is_command(slashed));
            prop_assert_eq!(bang::command(&text, &known, &rules), expected, "{:?}", text);
        }
        for named in ["stop", "Hours at noon", "JOKE", "code it"] {
            let heard = bang::command(&format!("{after}!{named}"), &known, &rules);
            prop_assert_eq!(heard, Some(format!("/{named}")));
        }
        prop_assert_eq!(bang::command(&format!("/{text}"), &known, &rules), None);
    }
}
