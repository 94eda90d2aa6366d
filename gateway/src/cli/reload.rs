//! The signal to read the configuration again.

use rejoinder_config::{Config, Loaded};
use rejoinder_core::{Engine, Masker};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::signal::unix::Signal;
use tracing::{error, info, warn};

use super::{Global, notify};
use crate::{logging, wiring};

/// Sections, and keys, that hold as soon as they are read.
const AT_ONCE: [&str; 10] = [
    "approvals",
    "commands",
    "guard",
    "limits",
    "log.level",
    "outbox",
    "pairing",
    "queue",
    "routing.rules",
    "routing.time_zone",
];

/// The same for the keys of channels: who may talk to the agent, and what is done about a message that may have been sent.
const AT_ONCE_OF_CHANNELS: [&str; 9] = [
    "allow_from",
    "dm_policy",
    "group_allow_from",
    "group_policy",
    "group_queue",
    "language",
    "on_unknown",
    "queue",
    "quote_strangers",
];

/// Reads the configuration again at each SIGHUP. What can be changed while the gateway runs is changed, and the log says what
/// waits for the next start. If the new configuration is wrong, the old one stays.
pub(super) struct Reloader {
    hangup: Signal,
    global: Global,
    /// Where the configuration came from.
    source: String,
    /// What the gateway was started with, without secrets.
    started: Value,
    /// The secrets that it was started with, in the order in which they are read.
    secrets: Vec<String>,
    /// What was read last.
    read: Value,
}

impl Reloader {
    pub(super) fn new(hangup: Signal, global: &Global, Loaded { config, source, .. }: &Loaded) -> Self {
        Self {
            hangup,
            global: global.clone(),
            source: source.to_string(),
            started: shown(config),
            secrets: secrets(config),
            read: shown(config),
        }
    }

    pub(super) fn start(mut self, engine: Engine) {
        tokio::spawn(async move {
            while self.hangup.recv().await.is_some() {
                notify::reloading();
                match self.global.load() {
                    Ok(loaded) => self.apply(&loaded, &engine),
                    Err(failure) => {
                        error!(error = %failure, "the configuration is wrong, and the gateway keeps the old one");
                    }
                }
                notify::reloaded();
            }
        });
    }

    fn apply(&mut self, Loaded { config, source, .. }: &Loaded, engine: &Engine) {
        let source = source.to_string();
        if source != self.source {
            return error!(
                "the gateway keeps its configuration: it was started with {}, and finds {source}",
                self.source
            );
        }
        let after = shown(config);
        let parts = changed_parts(&self.started, &after);
        if !parts.is_empty() {
            // Rules and words belong to channels, and ladders name agents: half of such a change could let somebody in, or
            // leave somebody without an answer.
            let parts = parts.join(", ");
            return error!(parts, "channels or agents were added or removed, and nothing changes: restart the gateway");
        }
        logging::set_level(config.log.level);
        // The engine goes on masking the secrets that it was started with, which the parts still use.
        engine.change_settings(wiring::settings(config, Masker::default()));
        let mut now = differences(&self.read, &after);
        now.retain(|key| is_at_once(key));
        let mut later = differences(&self.started, &after);
        later.retain(|key| !is_at_once(key));
        if self.secrets != secrets(config) {
            later.push("a secret".to_owned());
        }
        if !later.is_empty() {
            warn!(changed = later.join(", "), "these settings change at the next start: restart the gateway");
        }
        self.read = after;
        let changed = if now.is_empty() { "nothing".to_owned() } else { now.join(", ") };
        info!(changed, "the configuration was read again");
    }
}

/// The channels and agents that are in one configuration only.
fn changed_parts(before: &Value, after: &Value) -> Vec<String> {
    let names = |config: &Value| -> Vec<String> {
        let below = |value: &Value, prefix: &str| -> Vec<(String, Value)> {
            let table = value.as_object().into_iter().flatten();
            table.map(|(name, value)| (format!("{prefix}.{name}"), value.clone())).collect()
        };
        let channels = below(&config["channels"], "channels").into_iter().flat_map(|(key, table)| below(&table, &key));
        channels.chain(below(&config["agents"], "agents")).map(|(key, _)| key).collect()
    };
    let (before, after) = (names(before), names(after));
    let removed = before.iter().filter(|name| !after.contains(name));
    let added = after.iter().filter(|name| !before.contains(name));
    removed.chain(added).cloned().collect()
}

/// Whether a key holds as soon as it is read.
fn is_at_once(key: &str) -> bool {
    let is_under =
        |section: &str| key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if AT_ONCE.iter().any(|section| is_under(section)) {
        return true;
    }
    // channels.<platform>.<name>.<key>, people.<name>.<key>
    match key.split('.').collect::<Vec<_>>()[..] {
        ["channels", _, _, "groups", ..] | ["people", _, "limits", ..] => true,
        ["channels", _, _, name] => AT_ONCE_OF_CHANNELS.contains(&name),
        _ => false,
    }
}

fn secrets(config: &Config) -> Vec<String> {
    config.secrets.iter().map(|secret| secret.expose_secret().to_owned()).collect()
}

/// The configuration without its secrets.
fn shown(config: &Config) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

/// The keys that differ, sections with all they hold as `section.key`.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let empty = serde_json::Map::new();
    let table = |value: &Value| value.as_object().unwrap_or(&empty).clone();
    let (before, after) = (table(before), table(after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let mut differ = Vec::new();
    for section in names {
        match (before.get(section), after.get(section)) {
            (one, other) if one == other => {}
            (Some(Value::Object(_)), Some(Value::Object(_))) => {
                let inner = differences(&before[section], &after[section]);
                differ.extend(inner.into_iter().map(|key| format!("{section}.{key}")));
            }
            _ => differ.push(section.clone()),
        }
    }
    differ
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_keys_that_differ_are_named() {
        let before =
            json!({ "log": { "level": "info" }, "agents": { "main": { "model": "a" } }, "limits": { "x": 1 } });
        let after = json!({ "log": { "level": "debug" }, "agents": { "main": { "model": "b" }, "new": {} }, "limits": { "x": 1 } });

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

    #[test]
    fn what_holds_at_once_is_known_by_its_key() {
        for key in [
            "guard.templates.failed",
            "limits.turns_per_minute",
            "log.level",
            "outbox.lifetime",
            "channels.telegram.main.allow_from",
            "channels.matrix.main.groups.!kitchen:example.org.agent",
            "people.ada.limits.waiting_turns",
            "routing.rules",
        ] {
            assert!(is_at_once(key), "{key}");
        }
        for key in [
            "log.format",
            "channels.telegram.main.token",
            "retention.turns",
            "routing.default_agent",
            "agents.a.allow_from",
        ] {
            assert!(!is_at_once(key), "{key}");
        }
    }
}
