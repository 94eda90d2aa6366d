//! The signal to read the configuration again.

use anyhow::Context;
use rejoinder_config::{Config, LogLevel};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

use super::{Global, notify};
use crate::{console::failure::Failure, logging};

/// Reads the configuration again at each SIGHUP. What can be changed while the gateway runs is changed, and the log says what
/// waits for the next start. If the new configuration is wrong, the old one stays.
pub(super) fn listen(global: &Global, config: &Config) -> Result<(), Failure> {
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen to SIGHUP")?;
    let (global, mut before, mut level) = (global.clone(), shown(config), config.log.level);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            notify::reloading();
            match global.load() {
                Ok(loaded) => {
                    let after = shown(&loaded.config);
                    apply(&before, &after, &mut level, loaded.config.log.level);
                    before = after;
                }
                Err(failure) => error!("the configuration is wrong, and the gateway keeps the old one: {failure}"),
            }
            notify::reloaded();
        }
    });
    Ok(())
}

fn apply(before: &Value, after: &Value, level: &mut LogLevel, new: LogLevel) {
    if *level != new {
        logging::set_level(new);
        *level = new;
        info!(level = new.as_str(), "the level of the log was changed");
    }
    let changed: Vec<_> = differences(before, after).into_iter().filter(|key| key != "log.level").collect();
    if !changed.is_empty() {
        warn!(changed = changed.join(", "), "these settings change at the next start: restart the gateway");
    }
    info!("the configuration was read again");
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
}
