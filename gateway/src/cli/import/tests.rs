use jiff::tz::TimeZone;
use rstest::rstest;
use serde_json::json;

use super::{
    draft::{Block, Draft, Names},
    jobs::{conversation, time},
    notes::Notes,
    table::Table,
    variables::{Variables, reference},
};

#[rstest]
#[case("${KEY}", Some("KEY"))]
#[case(" $KEY_2 ", Some("KEY_2"))]
#[case("secretref-env:KEY", Some("KEY"))]
#[case("__env__:KEY", Some("KEY"))]
#[case("$key", None)]
#[case("KEY", None)]
#[case("${KEY}/v1", None)]
fn a_whole_text_may_be_a_reference(#[case] text: &str, #[case] name: Option<&str>) {
    assert_eq!(reference(text), name);
}

#[test]
fn variables_are_replaced_but_in_secrets() {
    let mut variables = Variables::default();
    variables.set("HOST", "example.org".to_owned());
    let mut value = json!({ "a": ["https://${HOST}/v1", "$${HOST}", "${GONE_FROM_HERE}"], "botToken": "${HOST}" });

    assert!(variables.substitute(&mut value).is_empty());

    let expected = ["https://example.org/v1", "$${HOST}", "${GONE_FROM_HERE}"];
    assert_eq!(value, json!({ "a": expected, "botToken": "${HOST}" }));
}

#[test]
fn a_secret_inside_a_text_is_not_written_out() {
    let mut variables = Variables::default();
    for name in ["SEARCH_KEY", "HOST", "MONKEY"] {
        variables.set(name, format!("value-of-{name}"));
    }
    let texts = ["https://${HOST}/?key=${SEARCH_KEY}", "${MONKEY}"];
    let mut value = json!({ "url": texts[0], "list": [{ "x": "Bearer ${SEARCH_KEY}" }, texts[1]], "y": "${GONE_KEY}" });

    let with_secrets = variables.substitute(&mut value);

    assert_eq!(with_secrets, ["list[0].x", "url"]);
    let expected = json!({
        "url": "https://value-of-HOST/?key=${SEARCH_KEY}",
        "list": [{ "x": "Bearer ${SEARCH_KEY}" }, "value-of-MONKEY"],
        "y": "${GONE_KEY}",
    });
    assert_eq!(value, expected);
}

#[test]
fn names_are_ours_and_differ() {
    let mut names = Names::default();

    let made = ["Morning brief!", "morning-brief", "日本", "日本"].map(|name| names.unused(name, "job"));

    assert_eq!(made, ["morning-brief", "morning-brief-2", "job", "job-2"]);
}

#[test]
fn a_time_without_a_zone_is_in_the_one_that_is_given() {
    let at = |text: &str| time(text, &TimeZone::get("Europe/Vienna").unwrap()).map(|at| at.to_string());

    assert_eq!(at("2030-01-31T09:00:00").as_deref(), Some("2030-01-31T08:00:00Z"));
    assert_eq!(at("2030-01-31T09:00:00+02:00").as_deref(), Some("2030-01-31T07:00:00Z"));
    assert_eq!(at("tomorrow"), None);
}

#[rstest]
#[case("telegram", "-100:topic:7", Some("telegram.main/-100/7"))]
#[case("telegram", "telegram:group:-100:7", Some("telegram.main/-100/7"))]
#[case("telegram", "42", Some("telegram.main/42"))]
#[case("telegram", "@ada", None)]
#[case("telegram", "-100/7\n", None)]
#[case("discord", "channel:80351110224678912", Some("discord.main/80351110224678912"))]
#[case("discord", "user:80351110224678912", None)]
#[case("matrix", "room:!abc:example.org", Some("matrix.main/!abc:example.org"))]
#[case("matrix", "@ada:example.org", None)]
#[case("slack", "channel:C1", None)]
fn a_chat_is_named_in_our_words(#[case] platform: &str, #[case] to: &str, #[case] expected: Option<&str>) {
    let mut draft = Draft::default();
    draft.blocks.extend(["telegram", "discord", "matrix"].map(|platform| Block::new(&["channels", platform, "main"])));

    assert_eq!(conversation(&draft, platform, "main", to).ok().as_deref(), expected);
}

#[test]
fn what_is_left_over_is_noted_with_the_nearest_hint() {
    let mut notes = Notes::new(&[("a", "is wide", "look"), ("a.b", "is near", "see"), ("ab", "is another", "no")]);
    let root = json!({ "a": { "b": { "x": 1, "y": "yes" }, "c": null, "e": 3 }, "d": 2, "text": [] });
    let mut root = Table::new("", root.as_object().unwrap().clone());

    let taken = root.enter("a").and_then(|a| a.enter("b")).and_then(|b| b.flag("y"));
    let wrong = root.text("text");
    root.note_rest(&mut notes);

    assert_eq!((taken, wrong), (Some(true), None));
    let lines = notes.lines();
    let lines: Vec<_> = lines.lines().map(str::trim).collect();
    assert_eq!(lines[0], "text is not a text. Instead: nothing was taken over: correct it there, or set ours.");
    assert!(lines[1].starts_with("d has no counterpart."), "{lines:?}");
    assert_eq!(lines[2..], ["a.e is wide. Instead: look.", "a.b.x is near. Instead: see."]);
}
