//! Reads the configuration again while the gateway runs.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use rejoinder_config::{Config, Loaded};
use rejoinder_core::{AgentName, AgentRuntime, Engine, Masker, SharedClock, SystemClock};
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::{signal::unix::Signal, sync::oneshot};
use tracing::{error, info, warn};

use super::{Global, notify};
use crate::{
    agents,
    alerts::{LiveAlerts, Means},
    logging,
    materials::{Materials, TokenMode, WiringError},
    reload::{ReloadRequests, ReloadResult, Reloaded},
    wiring,
};

/// Sections, and keys, that hold as soon as they are read.
const AT_ONCE: [&str; 13] = [
    "approvals",
    "commands",
    "guard",
    "limits",
    "log.level",
    "outbox",
    "pairing",
    "people",
    "queue",
    "routing.rules",
    "routing.time_zone",
    "schedules",
    "triggers",
];

/// The keys of agents that are fixed at the start: the permits of the scheduler, and how the agent is listed.
const AT_RESTART_OF_AGENTS: [&str; 2] = ["kind", "max_concurrent"];

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

/// Reads the configuration again at each SIGHUP, and when an operator asks for it. What can be changed while the gateway runs
/// is changed, and the log says what waits for the next start. If the new configuration is wrong, the old one stays.
pub(super) struct Reloader {
    hangup: Signal,
    requests: ReloadRequests,
    global: Global,
    data_dir: PathBuf,
    /// Where the configuration came from.
    source: String,
    /// The configuration of the start, without secrets.
    started: Value,
    /// The secrets of the start, in the order in which they are read.
    secrets: Vec<String>,
    /// The configuration that was read last.
    read: Value,
    /// The sections from which the agents and the alerter that run were built.
    built: Value,
}

impl Reloader {
    pub(super) fn new(
        (hangup, requests): (Signal, ReloadRequests),
        global: &Global,
        Loaded { config, source, .. }: &Loaded,
        data_dir: PathBuf,
    ) -> Self {
        let started = shown(config);
        Self {
            hangup,
            requests,
            global: global.clone(),
            data_dir,
            source: source.to_string(),
            secrets: secrets(config),
            read: started.clone(),
            built: started.clone(),
            started,
        }
    }

    pub(super) fn start(mut self, (engine, alerts): (Engine, Arc<LiveAlerts>)) {
        tokio::spawn(async move {
            while let Some(caller) = self.next().await {
                notify::reloading();
                let result = self.read_again(&engine, &alerts).await;
                notify::reloaded();
                match &result {
                    Ok(Reloaded { changed, at_restart }) => {
                        if !at_restart.is_empty() {
                            let changed = at_restart.join(", ");
                            warn!(changed, "these settings change at the next start: restart the gateway");
                        }
                        let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") };
                        info!(changed, "the configuration was read again");
                    }
                    Err(error) => error!(error, "the configuration is wrong, and the gateway keeps the old one"),
                }
                if let Some(caller) = caller {
                    // It may have gone.
                    let _ = caller.send(result);
                }
            }
        });
    }

    /// Waits for a signal, or for a request with its caller.
    async fn next(&mut self) -> Option<Option<oneshot::Sender<ReloadResult>>> {
        tokio::select! {
            signal = self.hangup.recv() => signal.map(|()| None),
            Some(caller) = self.requests.recv() => Some(Some(caller)),
        }
    }

    async fn read_again(&mut self, engine: &Engine, alerts: &LiveAlerts) -> ReloadResult {
        let loaded = self.global.load();
        let Loaded { config, source, .. } = loaded.map_err(|failure| format!("{failure}"))?;
        if source.to_string() != self.source {
            return Err(format!("the gateway was started with {}, and finds {source}", self.source));
        }
        let after = shown(&config);
        let parts = changed_parts(&self.started, &after);
        if !parts.is_empty() {
            // Rules and words belong to channels, and ladders name agents: half of such a change could let somebody in, or
            // leave somebody without an answer.
            return Err(format!(
                "channels or agents were added or removed, and nothing changes: restart the gateway ({})",
                parts.join(", ")
            ));
        }
        // The engine goes on masking the secrets of the start: with another one, agents and alerts wait for the next start.
        let same_secrets = self.secrets == secrets(&config);
        let agents = if same_secrets { self.changed_agents(&config, &after["agents"]) } else { Ok(HashMap::new()) };
        let agents = agents.map_err(|error| error.to_string())?;
        let means = Means::of(&config.alerts).map_err(|error| format!("the alerts cannot be changed: {error}"))?;
        let reloaded = engine.reload(wiring::settings(&config, Masker::default()), agents).await;
        reloaded.map_err(|error| format!("the store cannot be written: {error}"))?;
        logging::set_level(config.log.level);
        if same_secrets {
            if self.built["alerts"] != after["alerts"] {
                alerts.change(means).await;
            }
            self.built = after.clone();
        }
        let holds = |key: &String| is_at_once(key) || (same_secrets && is_built(key));
        let mut changed = differences(&self.read, &after);
        changed.retain(holds);
        let mut at_restart = differences(&self.started, &after);
        at_restart.retain(|key| !holds(key));
        if !same_secrets {
            at_restart.push("a secret".to_owned());
        }
        self.read = after;
        Ok(Reloaded { changed, at_restart })
    }

    /// New runtimes for the agents whose sections have changed.
    fn changed_agents(
        &self,
        config: &Config,
        sections: &Value,
    ) -> Result<HashMap<AgentName, Arc<dyn AgentRuntime>>, WiringError> {
        let (clock, none): (SharedClock, _) = (Arc::new(SystemClock), HashMap::new());
        let materials = Materials::new(config, &self.data_dir, TokenMode::CheckOnly, &clock, &none)?;
        let changed = config.agents.iter().filter(|(name, _)| self.built["agents"][name] != sections[name]);
        let built = changed.map(|(name, agent)| {
            let name = AgentName::from(name.as_str());
            let runtime = agents::factory_of(agent).build(&name, agent, &materials)?;
            Ok((name, runtime))
        });
        built.collect()
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
    // channels.<platform>.<name>.<key>
    match key.split('.').collect::<Vec<_>>()[..] {
        ["channels", _, _, "groups", ..] => true,
        ["channels", _, _, name] => AT_ONCE_OF_CHANNELS.contains(&name),
        _ => false,
    }
}

/// Whether a key belongs to an agent or to the alerter, which are built anew.
fn is_built(key: &str) -> bool {
    // agents.<name>.<key>, alerts.<key>
    match key.split('.').collect::<Vec<_>>()[..] {
        ["alerts", ..] => true,
        ["agents", _, name, ..] => !AT_RESTART_OF_AGENTS.contains(&name),
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
            "people.ada",
            "routing.rules",
            "schedules.tea.cron",
        ] {
            assert!(is_at_once(key), "{key}");
        }
        assert!(is_built("agents.main.instructions") && is_built("agents.main.price.input"));
        for key in [
            "log.format",
            "channels.telegram.main.token",
            "retention.turns",
            "routing.default_agent",
            "agents.a.max_concurrent",
            "agents.a.kind",
        ] {
            assert!(!is_at_once(key) && !is_built(key), "{key}");
        }
    }
}
