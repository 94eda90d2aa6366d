//! The signal to read the configuration again.

use std::collections::BTreeSet;

use anyhow::Context;
use rejoinder_config::{Config, LogLevel};
use rejoinder_core::{Engine, Masker};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info, warn};

use super::{Global, notify};
use crate::{console::failure::Failure, logging, wiring};

/// Sections, and keys, that hold as soon as they are read.
const AT_ONCE: [&str; 6] = ["guard", "limits", "log.keep", "log.level", "outbox", "retention"];

/// The same for the keys of channels: who may talk to the agent, and what is done about a message that may have been sent.
const AT_ONCE_OF_CHANNELS: [&str; 6] =
    ["allow_from", "dm_policy", "group_allow_from", "group_policy", "on_unknown", "quote_strangers"];

/// Reads the configuration again at each SIGHUP. What can be changed while the gateway runs is changed, and the log says what
/// waits for the next start. If the new configuration is wrong, the old one stays.
pub(super) struct Reloader {
    hangup: Signal,
    global: Global,
    /// What the gateway was started with, without secrets.
    started: Value,
    /// And these.
    secrets: BTreeSet<String>,
    /// What was read last.
    read: Value,
    level: LogLevel,
}

impl Reloader {
    /// Keeps the signal from ending the process.
    pub(super) fn listen(global: &Global, config: &Config) -> Result<Self, Failure> {
        Ok(Self {
            hangup: signal(SignalKind::hangup()).context("cannot listen to SIGHUP")?,
            global: global.clone(),
            started: shown(config),
            secrets: secrets(config),
            read: shown(config),
            level: config.log.level,
        })
    }

    pub(super) fn start(mut self, engine: Engine) {
        tokio::spawn(async move {
            while self.hangup.recv().await.is_some() {
                notify::reloading();
                match self.global.load() {
                    Ok(loaded) => self.apply(&loaded.config, &engine),
                    Err(failure) => error!("the configuration is wrong, and the gateway keeps the old one: {failure}"),
                }
                notify::reloaded();
            }
        });
    }

    fn apply(&mut self, config: &Config, engine: &Engine) {
        if self.level != config.log.level {
            logging::set_level(config.log.level);
            self.level = config.log.level;
        }
        // The engine goes on masking the secrets that it was started with, which the parts still use.
        engine.change_settings(wiring::settings(config, Masker::default()));
        let after = shown(config);
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
        info!(changed = now.join(", "), "the configuration was read again");
    }
}

/// Whether a key holds as soon as it is read.
fn is_at_once(key: &str) -> bool {
    let is_under =
        |section: &str| key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if AT_ONCE.iter().any(|section| is_under(section)) {
        return true;
    }
    // channels.<platform>.<name>.<key>
    matches!(key.split('.').collect::<Vec<_>>()[..], ["channels", _, _, name] if AT_ONCE_OF_CHANNELS.contains(&name))
}

fn secrets(config: &Config) -> BTreeSet<String> {
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
    fn what_holds_at_once_is_known_by_its_key() {
        for key in
            ["guard.templates.failed", "limits.turns_per_minute", "log.level", "channels.telegram.main.allow_from"]
        {
            assert!(is_at_once(key), "{key}");
        }
        for key in
            ["log.format", "channels.telegram.main.token", "channels.telegram.new", "guardian", "agents.a.allow_from"]
        {
            assert!(!is_at_once(key), "{key}");
        }
    }
}
