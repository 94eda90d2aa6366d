use std::collections::BTreeSet;

use rejoinder_config::testing::{Machine, uncommented};
use rejoinder_core::Settings;
use serde_json::json;

use super::*;

#[test]
fn the_keys_that_differ_are_named() {
    let before = json!({ "log": { "level": "info" }, "agents": { "main": { "model": "a" } }, "limits": { "x": 1 } });
    let after =
        json!({ "log": { "level": "debug" }, "agents": { "main": { "model": "b" }, "new": {} }, "limits": { "x": 1 } });

    assert_eq!(differences(&before, &after), ["agents.main.model", "agents.new", "log.level"]);
    assert_eq!(differences(&after, &after), Vec::<String>::new());
}

#[test]
fn channels_and_agents_that_come_or_go_are_named() {
    let before = json!({ "channels": { "webhook": { "a": {}, "b": {} } }, "agents": { "main": { "model": "x" } } });
    let after = json!({ "channels": { "webhook": { "a": { "wait": 1 } } }, "agents": { "main": {}, "new": {} } });

    assert_eq!(changed_parts(&before, &after), ["channels.webhook.b", "agents.new"]);
    assert_eq!(changed_parts(&after, &after), Vec::<String>::new());
}

/// A configuration with one of everything.
const BASE: &str = r#"
[channels.webchat.main]
[channels.webhook.default]
token = "token-of-these-tests"
[channels.webhook.github]
token = "token-of-these-tests"
deliver_to = "ada"
[channels.webhook.told]
token = "token-of-these-tests"
callback_url = "https://told.example.org/"
callback_secret = "whsec_dGhlLWtleS1vZi10aGUtdGVzdHMtb2YtYS1yZWxvYWQ="
[channels.api.main]
token = "token-of-these-tests"
[channels.telegram.main]
token = "1234:token-of-these-tests"
[channels.discord.main]
token = "MTIz.token.of-these-tests-of-these-tests"
[channels.words.nowhere]
[channels.words.journal]
file = "journal.md"
[channels.words.archive]
url = "https://archive.example.org/words"
secret = "whsec_dGhlLWtleS1vZi10aGUtdGVzdHMtb2YtYS1yZWxvYWQ="
[channels.matrix.main]
homeserver = "https://matrix.example.org"
user = "@agent:example.org"
password = "password-of-these-tests"
[alerts]
to = ["telegram.main/42"]
[people.ada]
identities = ["telegram.main/42", "discord.main/43"]
[agents.main]
kind = "openai"
base_url = "http://127.0.0.1:11434/v1"
model = "llama"
price = { input = 1.0, output = 2.0 }
[agents.main.mcp.files]
command = ["true"]
[agents.main.mcp.tracker]
url = "https://tracker.example.org/mcp"
[agents.claude]
kind = "anthropic"
model = "claude"
[agents.claude.mcp.files]
command = ["true"]
[agents.front-desk]
kind = "front-desk"
[agents.script]
kind = "command"
command = ["true"]
[agents.service]
kind = "http"
url = "https://answers.example.org/turns"
[agents.fleet]
kind = "pull"
token = "token-of-these-tests"
[agents.fleet.workers.gpu]
token = "another-token-of-these-tests"
[agents.coder]
kind = "acp"
command = ["opencode", "acp"]
cwd = "/srv/agent"
[agents.helper]
kind = "a2a"
url = "https://helper.example.org"
[agents.both]
kind = "cascade"
members = ["main", "front-desk"]
[routing]
default_agent = "main"
[voice.transcriptions]
base_url = "http://127.0.0.1:8000/v1"
model = "whisper"
[voice.speech]
base_url = "http://127.0.0.1:8000/v1"
model = "kokoro"
voice = "heart"
[commands.weather]
description = "The weather"
words = "Look out of the window."
[schedules.morning]
every = "6h"
to = "telegram.main/42"
message = "Good morning."
[triggers.summary]
idle = "30m"
prompt = "Sum it up."
"#;

/// Its trigger would begin nothing until then.
#[test]
fn a_place_for_words_that_only_a_trigger_names_waits_for_the_restart() {
    let before = BASE.replace("[channels.words.nowhere]\n", "");
    let after = format!("{before}words_to = \"nowhere\"\n");
    let [before, after] = [before, after]
        .map(|toml| Machine::of(crate::build()).with_file("rejoinder.toml", &toml).config().to_compare());

    assert_eq!(changed_parts(&before, &after), ["channels.words.nowhere, for words_to = \"nowhere\""]);
}

/// Keys whose value depends on another one.
const DEPENDENT: [&str; 35] = [
    "server.public_url",
    "server.node_url",
    "channels.webchat.main.access",
    "channels.webchat.family.access",
    "channels.webchat.home.access",
    "channels.webchat.home.header",
    "channels.webhook.tickets.callback_url",
    "channels.telegram.main.mode",
    "channels.telegram.posted.mode",
    "channels.telegram.posted.webhook.url",
    "channels.telegram.posted.webhook.max_connections",
    "agents.fleet.kind",
    "agents.front-desk.kind",
    "agents.claude.kind",
    "agents.both.kind",
    "agents.main.kind",
    "agents.script.kind",
    "agents.service.kind",
    "agents.coder.kind",
    "agents.helper.kind",
    "agents.coder.env",
    "agents.script.env",
    "agents.main.mcp.files.env",
    "commands.weather.prompt",
    "schedules.morning.cron",
    "schedules.morning.at",
    "schedules.morning.prompt",
    "schedules.morning.digest",
    "schedules.morning.agent",
    "schedules.morning.quiet",
    "schedules.morning.words_to",
    "schedules.morning.session",
    "triggers.summary.quiet",
    "sessions.reset_at",
    "sessions.idle",
];

/// Values that some key takes, to find another one than it has.
const VALUES: &[&str] = &[
    "\"7s\"",
    "\"7m\"",
    "\"7h\"",
    "\"7 KiB\"",
    "\"7 MiB\"",
    "\"70 MiB\"",
    "\"de\"",
    "\"hold\"",
    "\"collect\"",
    "\"front-desk\"",
    "\"22:00-07:00\"",
    "\"07:00\"",
    "\"@seven:example.org\"",
    "\"https://seven.example.org/7\"",
    "\"wss://seven.example.org\"",
    "\"127.0.0.1:7007\"",
    "\"discord.main\"",
    "\"Europe/Vienna\"",
    "\"sqlite:seven.db\"",
    "\"7\"",
    "\"/srv/seven\"",
    "true",
    "false",
    "7",
    "70",
    "7000",
    "0.7",
    "[\"7\"]",
    "[\"one\", \"two\"]",
    "[\"10.0.0.7\"]",
    "[\"front-desk\"]",
    "[\"front-desk\", \"main\"]",
    "[\"telegram.main/7\"]",
    "[\"telegram.*\"]",
    "[\"@seven:example.org\"]",
    "[\"https://seven.example.org/7\"]",
    "[\"https://seven.example.org\"]",
    "[\"store\"]",
    "[\"date\"]",
    "{ x-seven = \"7\" }",
    "[{ name = \"seven\", agent = \"front-desk\" }]",
    "[{ kind = \"seven\", decision = \"approve\" }]",
    "[{ say = \"failed\" }, { say = \"silent\" }]",
    "{ \"✅\" = \"👍\" }",
    "{ input = 7.0, output = 7.0, currency = \"USD\" }",
    "{ most = 7, shortest = \"7h\" }",
];

/// The keys of the manual without secrets, each with values that may be another one than it has.
fn keys_of_the_manual() -> Vec<(String, Vec<String>)> {
    let (manual, mut section, mut about, mut keys) =
        (uncommented(&crate::build().manual()), String::new(), String::new(), Vec::new());
    for line in manual.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            about.push_str(comment);
        } else if line.starts_with("[[") {
            // Of a list of tables, the list.
            section = format!("[{}", line.trim_matches(['[', ']']));
            keys.push((section[1..].to_owned(), like("[")));
        } else if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
        } else if let Some((key, value)) = line.split_once(" = ")
            && !section.starts_with('[')
            && !["{ env", "{ generate"].iter().any(|secret| value.starts_with(secret))
        {
            let quoted = about.split('"').skip(1).step_by(2).map(|word| format!("\"{word}\""));
            let values = if value.starts_with('"') { quoted.collect() } else { Vec::new() };
            keys.push((format!("{section}.{key}"), [values, like(value)].concat()));
        }
        if !line.starts_with('#') {
            about.clear();
        }
    }
    keys
}

/// Those of the values that are of the same kind.
fn like(value: &str) -> Vec<String> {
    let kind = |value: &str| match value.chars().next() {
        Some('t' | 'f') => 't',
        Some('0'..='9') => '0',
        Some(first) => first,
        None => ' ',
    };
    let limit = |one: &&str| kind(one) == kind(value) || (value == "\"off\"" && kind(one) == '0');
    VALUES.iter().copied().filter(limit).map(ToOwned::to_owned).collect()
}

/// What stands for a key in the environment, for the one channel or agent of its kind in [`BASE`].
fn variable(key: &str) -> String {
    let mut steps: Vec<_> = key.split('.').collect();
    match steps[..] {
        ["channels", "webhook", "tickets", ..] => steps[2] = "default",
        ["channels", "webchat" | "telegram" | "matrix", ..] => steps[2] = "main",
        _ => {}
    }
    format!("REJOINDER__{}", steps.join("__").to_uppercase().replace('-', "_"))
}

fn read(variables: &[(&str, &str)]) -> Option<Config> {
    Machine::of(crate::build())
        .with_file("rejoinder.toml", BASE)
        .with_environment(variables)
        .load()
        .ok()
        .map(|it| it.config)
}

/// Values of keys that are printed alike, or not at all.
const PRINTED_ALIKE: [(&str, &str, &str); 15] = [
    ("store.url", "\"postgres://me:first-password@db/chats\"", "\"postgres://me:other-password@db/chats\""),
    ("alerts.to", "[\"https://alerts.example.org/one\"]", "[\"https://alerts.example.org/two\"]"),
    ("alerts.otherwise", "[\"https://alerts.example.org/?one\"]", "[\"https://alerts.example.org/?two\"]"),
    ("alerts.secret", "\"the-first-secret-of-these-tests\"", "\"the-other-secret-of-these-tests\""),
    ("agents.main.base_url", "\"https://models.example.org/v1?one\"", "\"https://models.example.org/v1?two\""),
    ("agents.fleet.token", "\"the-first-token-of-these-tests\"", "\"the-other-token-of-these-tests\""),
    ("agents.fleet.workers.gpu.token", "\"the-first-token-of-these-tests\"", "\"the-other-token-of-these-tests\""),
    ("agents.main.api_key", "\"the-first-key-of-these-tests\"", "\"the-other-key-of-these-tests\""),
    ("channels.telegram.main.token", "\"1234:first-token-of-these-tests\"", "\"1234:other-token-of-these-tests\""),
    ("channels.matrix.main.password", "\"first-password-of-these-tests\"", "\"other-password-of-these-tests\""),
    ("channels.webhook.default.token", "\"first-token-of-these-tests\"", "\"other-token-of-these-tests\""),
    ("channels.webhook.told.callback_url", "\"https://told.example.org/one\"", "\"https://told.example.org/two\""),
    ("voice.speech.api_key", "\"the-first-key-of-these-tests\"", "\"the-other-key-of-these-tests\""),
    ("channels.words.archive.url", "\"https://archive.example.org/one\"", "\"https://archive.example.org/two\""),
    (
        "channels.words.archive.secret",
        "\"whsec_dGhlLWZpcnN0LWtleS1vZi10aGVzZS10ZXN0cy4uLi4=\"",
        "\"whsec_dGhlLW90aGVyLWtleS1vZi10aGVzZS10ZXN0cy4uLi4=\"",
    ),
];

#[test]
fn a_change_of_what_is_not_printed_is_named_and_not_printed() {
    for (key, one, other) in PRINTED_ALIKE {
        let name = variable(key);
        let [before, after] = [one, other].map(|value| read(&[(&name, value)]).unwrap_or_else(|| panic!("{key}")));

        assert_eq!(differences(&before.to_compare(), &after.to_compare()), [key]);
        assert_eq!(before.to_toml_redacted(), after.to_toml_redacted(), "{key}");
        let printed = [&before, &after].map(|config| serde_json::to_value(config).expect("JSON"));
        assert_eq!(printed[0], printed[1], "{key}");
        assert!(!before.to_compare().to_string().contains(one.trim_matches(['[', ']', '"'])), "{key}");
    }
}

/// Of each key that takes a URL.
#[test]
fn another_path_or_query_of_a_url_is_a_change() {
    let url = |tail: &str| format!("\"https://seven.example.org/{tail}\"");
    let (text, list) = (url("7"), format!("[{}]", url("7")));
    let mut unseen = Vec::new();
    for (key, values) in keys_of_the_manual() {
        let Some(form) = values.iter().find(|value| **value == text || **value == list) else { continue };
        // These are printed as they are.
        if key.starts_with("guard.templates") {
            continue;
        }
        let name = variable(&key);
        for tails in [["a", "b"], ["?a", "?b"]] {
            let pair = tails.map(|tail| read(&[(&name, &form.replace(&text, &url(tail)))]));
            if let [Some(before), Some(after)] = pair
                && differences(&before.to_compare(), &after.to_compare()).is_empty()
            {
                unseen.push(key.clone());
            }
        }
    }

    assert_eq!(unseen, Vec::<String>::new());
}

/// What the core's settings say, in an order that does not depend on maps.
fn words_of(settings: &Settings) -> Vec<String> {
    let text = format!("{settings:?}");
    let mut words: Vec<_> = text.split([' ', ',', '(', ')', '{', '}', '[', ']']).map(ToOwned::to_owned).collect();
    words.sort_unstable();
    words
}

/// What is taken over is what is said to be.
#[test]
fn each_key_holds_when_a_reload_says_that_it_does() {
    let before = read(&[]).expect("the configuration is valid");
    let (started, settings) = (before.to_compare(), wiring::settings(&before, Masker::default()));
    let unchanged = words_of(&settings);
    let (mut untried, mut wrong, mut sections) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (key, values) in keys_of_the_manual() {
        let Some(when) = listed(&key) else {
            wrong.push(format!("{key} is not listed"));
            continue;
        };
        // The words of a section are all alike. Another build has other examples.
        let section = key.rsplit_once('.').unwrap_or_default().0.to_owned();
        let is_told = section.starts_with("guard.templates") && !sections.insert(section);
        if is_told || key.contains('"') || key.starts_with("channels.example") || DEPENDENT.contains(&&*key) {
            continue;
        }
        let name = variable(&key);
        let others = values.iter().filter_map(|value| read(&[(&name, value)]));
        let mut others = others.filter(|after| after.to_compare() != started).peekable();
        if others.peek().is_none() {
            untried.push(key);
            continue;
        }
        let is_taken = |after| words_of(&settings.changed_to(wiring::settings(&after, Masker::default()))) != unchanged;
        let is_said = match when {
            // Of some keys, one value is the same as none.
            Holds::AtOnce => key == "log.level" || others.any(is_taken),
            Holds::Built => true,
            Holds::AtRestart => !others.next().is_some_and(is_taken),
        };
        if !is_said {
            wrong.push(format!("{key} is said to hold {when:?}"));
        }
    }
    assert_eq!((wrong, untried), (Vec::new(), Vec::<String>::new()));
}
