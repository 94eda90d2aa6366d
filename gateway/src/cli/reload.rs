//! Reads the configuration again while the gateway runs.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
};

use rejoinder_config::{Agent, Config, Loaded};
use rejoinder_core::{
    Actor, AgentName, AgentRuntime, Engine, KnownAs, Masker, SharedClock, SystemClock, store::Subject,
};
use secrecy::ExposeSecret;
use serde_json::{Map, Value};
use tokio::{signal::unix::Signal, sync::oneshot};
use tracing::{error, info, warn};

use super::{global::Global, notify};
use crate::{
    agents,
    alerts::{LiveAlerts, Means},
    logging,
    materials::{Materials, TokenMode, WiringError},
    own_tools::OwnTools,
    reload::{ReloadRequests, ReloadResult, Reloaded},
    wiring,
};

/// When a key of the configuration holds that was read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// As soon as it is read.
    AtOnce,
    /// The same, but for a change together with one of a secret: agents and the alerter are built anew, and the engine masks the
    /// secrets of the start.
    Built,
    AtRestart,
}

/// When keys, and all that is below them, hold; `*` is any name. The first that fits counts.
const KEYS: [(&str, Holds); 41] = [
    ("admin", Holds::AtRestart),
    ("agents.*.kind", Holds::AtRestart),
    ("agents.*.max_concurrent", Holds::AtRestart),
    ("agents", Holds::Built),
    ("alerts", Holds::Built),
    ("approvals", Holds::AtOnce),
    ("channels.*.*.allow_bots", Holds::AtOnce),
    ("channels.*.*.allow_from", Holds::AtOnce),
    ("channels.*.*.dm_policy", Holds::AtOnce),
    ("channels.*.*.group_allow_from", Holds::AtOnce),
    ("channels.*.*.group_policy", Holds::AtOnce),
    ("channels.*.*.group_queue", Holds::AtOnce),
    ("channels.*.*.groups", Holds::AtOnce),
    ("channels.*.*.language", Holds::AtOnce),
    ("channels.*.*.on_unknown", Holds::AtOnce),
    ("channels.*.*.queue", Holds::AtOnce),
    ("channels.*.*.quote_strangers", Holds::AtOnce),
    ("channels.*.*.voice", Holds::AtOnce),
    ("channels", Holds::AtRestart),
    ("commands", Holds::AtOnce),
    ("files", Holds::AtRestart),
    ("guard", Holds::AtOnce),
    ("limits", Holds::AtOnce),
    ("log.level", Holds::AtOnce),
    ("log", Holds::AtRestart),
    ("metrics", Holds::AtRestart),
    ("outbox", Holds::AtOnce),
    ("pairing", Holds::AtOnce),
    ("people", Holds::AtOnce),
    ("queue", Holds::AtOnce),
    ("retention", Holds::AtRestart),
    ("routing.default_agent", Holds::AtRestart),
    ("routing.max_concurrent_turns", Holds::AtRestart),
    ("routing", Holds::AtOnce),
    ("schedules", Holds::AtOnce),
    ("sessions", Holds::AtOnce),
    ("triggers", Holds::AtOnce),
    ("server", Holds::AtRestart),
    ("store", Holds::AtRestart),
    ("telemetry", Holds::AtRestart),
    ("voice", Holds::AtRestart),
];

/// Reads the configuration again at each SIGHUP, and when an operator asks for it. What can be changed while the gateway runs
/// is changed, and the log says what waits for the next start. If the reload is refused, the old configuration stays.
pub(super) struct Reloader {
    hangup: Signal,
    requests: ReloadRequests,
    global: Global,
    data_dir: PathBuf,
    /// Where the configuration came from.
    source: String,
    /// The configuration of the start, with digests of what is not printed.
    started: Value,
    /// The secrets of the start, in the order in which they are read.
    secrets: Vec<String>,
    /// The configuration that was read last.
    read: Value,
    /// The sections from which the agents and the alerter that run were built.
    built: Value,
    /// The agents of these sections.
    agents: BTreeMap<String, Agent>,
}

impl Reloader {
    pub(super) fn new(
        (hangup, requests): (Signal, ReloadRequests),
        global: &Global,
        Loaded { config, source, .. }: &Loaded,
        data_dir: PathBuf,
    ) -> Self {
        let started = config.to_compare();
        Self {
            hangup,
            requests,
            global: global.clone(),
            data_dir,
            source: source.to_string(),
            secrets: secrets(config),
            read: started.clone(),
            built: started.clone(),
            agents: config.agents.clone(),
            started,
        }
    }

    pub(super) fn start(mut self, (engine, alerts, own_tools): (Engine, Arc<LiveAlerts>, OwnTools)) {
        tokio::spawn(async move {
            while let Some(caller) = self.next().await {
                notify::reloading();
                let result = self.read_again(&engine, &alerts, &own_tools).await;
                notify::reloaded();
                match &result {
                    Ok(reloaded) => {
                        report(reloaded);
                        if caller.is_none()
                            && let Err(error) = engine
                                .operations()
                                .record(&signalled(), "reload", reloaded.target(), Subject::default())
                                .await
                        {
                            error!(%error, "the store cannot be written: the audit does not have this reload");
                        }
                    }
                    Err(error) => error!(error, "a reload was refused, and the gateway keeps the old configuration"),
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

    async fn read_again(&mut self, engine: &Engine, alerts: &LiveAlerts, own_tools: &OwnTools) -> ReloadResult {
        let loaded = self.global.load();
        let Loaded { config, source, .. } = loaded.map_err(|failure| format!("{failure}"))?;
        if source.to_string() != self.source {
            return Err(format!("the gateway was started with {}, and finds {source}", self.source));
        }
        let after = config.to_compare();
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
        let agents = if same_secrets {
            self.changed_agents(&config, &after["agents"], engine, own_tools)
        } else {
            Ok(HashMap::new())
        };
        let agents = agents.map_err(|error| error.to_string())?;
        let means = Means::of(&config.alerts).map_err(|error| format!("the alerts cannot be changed: {error}"))?;
        let level = config.log.level;
        let zone = config.alerts.time_zone.zone.clone();
        // Of agents that wait, the prices and models wait as well.
        let sections = if same_secrets { config.agents.clone() } else { self.agents.clone() };
        let config = Config { agents: sections.clone(), ..config };
        let (settings, digest) = (wiring::settings(&config, Masker::default()), wiring::digest(&config));
        let replanted = engine.reload(settings, agents, Some(digest)).await;
        let replanted = replanted.map_err(|error| format!("the store cannot be written: {error}"))?;
        let replanted = replanted.ok_or(
            "another configuration became the latest meanwhile, and nothing changes: read it again if this one is to count",
        )?;
        logging::set_level(level);
        let mut reloaded = self.compared(&after, same_secrets);
        if same_secrets {
            if self.built["alerts"] != after["alerts"] {
                alerts.change(means, zone).await;
            }
            self.built = after.clone();
        }
        (self.agents, self.read) = (sections, after);
        let shown = |known: &[KnownAs]| known.iter().map(ToString::to_string).collect();
        reloaded.let_in = shown(&replanted.let_in);
        reloaded.still_known = shown(&replanted.still_known);
        reloaded.replaced_schedules = replanted.replaced;
        Ok(reloaded)
    }

    /// The keys that differ, by when they hold.
    fn compared(&self, after: &Value, same_secrets: bool) -> Reloaded {
        let of = |before: &Value, when: Holds| {
            let differ = differences(before, after).into_iter();
            differ.filter(move |key| holds(key) == when).collect::<Vec<_>>()
        };
        let mut changed = of(&self.read, Holds::AtOnce);
        let mut at_restart = of(&self.started, Holds::AtRestart);
        let list = if same_secrets { &mut changed } else { &mut at_restart };
        list.extend(of(&self.built, Holds::Built));
        list.sort();
        Reloaded { changed, at_restart, ..Reloaded::default() }
    }

    /// New runtimes for the agents whose sections have changed, or those of their members.
    fn changed_agents(
        &self,
        config: &Config,
        sections: &Value,
        engine: &Engine,
        own_tools: &OwnTools,
    ) -> Result<HashMap<AgentName, Arc<dyn AgentRuntime>>, WiringError> {
        let (clock, none): (SharedClock, _) = (Arc::new(SystemClock), HashMap::new());
        let mut materials = Materials::new(config, &self.data_dir, TokenMode::CheckOnly, &clock, &none)?;
        materials.runtimes = Arc::clone(engine.runtimes());
        materials.own_tools = own_tools.clone();
        let is_changed = |name: &String| self.built["agents"][name] != sections[name];
        let changed =
            config.agents.iter().filter(|(name, agent)| is_changed(name) || agent.members.iter().any(is_changed));
        let built = changed.map(|(name, agent)| {
            let name = AgentName::from(name.as_str());
            let built = agents::factory_of(agent).build(&name, agent, &materials)?;
            if built.has_more() {
                let reason = "agents of this kind change at a restart only: restart the gateway".to_owned();
                return Err(WiringError::Agent { name, reason });
            }
            Ok((name, built.runtime))
        });
        built.collect()
    }
}

/// The channel that the configuration has if something names it as `words_to = "nowhere"`.
const NOWHERE: &str = "channels.words.nowhere";

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
    let said = |part: &String| {
        if part == NOWHERE { format!("{part}, for words_to = \"nowhere\"") } else { part.clone() }
    };
    removed.chain(added).map(said).collect()
}

/// When a key holds. One that nobody has thought of waits for the next start.
fn holds(key: &str) -> Holds {
    listed(key).unwrap_or(Holds::AtRestart)
}

fn listed(key: &str) -> Option<Holds> {
    let fits = |pattern: &str| {
        let mut steps = key.split('.');
        pattern.split('.').all(|part| steps.next().is_some_and(|step| part == "*" || part == step))
    };
    KEYS.iter().find(|(pattern, _)| fits(pattern)).map(|(_, when)| *when)
}

/// Who reads the configuration again with a signal, in the audit.
fn signalled() -> Actor {
    Actor::named("SIGHUP".to_owned())
}

/// Writes into the log what a reload has changed.
fn report(reloaded: &Reloaded) {
    let Reloaded { changed, at_restart, let_in, still_known, replaced_schedules } = reloaded;
    let joined = |list: &[String]| list.join(", ");
    if !at_restart.is_empty() {
        warn!(changed = joined(at_restart), "these settings change at the next start: restart the gateway");
    }
    if !let_in.is_empty() {
        warn!(people = joined(let_in), "the configuration lets these people in");
    }
    if !still_known.is_empty() {
        warn!(
            people = joined(still_known),
            "these people are no longer configured, and stay known until they are revoked"
        );
    }
    if !replaced_schedules.is_empty() {
        warn!(schedules = joined(replaced_schedules), "schedules of the configuration replace these of the same names");
    }
    let changed = if changed.is_empty() { "nothing".to_owned() } else { joined(changed) };
    info!(changed, "the configuration was read again");
}

fn secrets(config: &Config) -> Vec<String> {
    config.secrets.iter().map(|secret| secret.expose_secret().to_owned()).collect()
}

/// The keys that differ, sections with all they hold as `section.key`.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let sections = [before, after].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    let differ = |section: &String| match (before.get(section), after.get(section)) {
        (one, other) if one == other => Vec::new(),
        (Some(one @ Value::Object(_)), Some(other @ Value::Object(_))) => {
            differences(one, other).into_iter().map(|key| format!("{section}.{key}")).collect()
        }
        _ => vec![section.clone()],
    };
    sections.collect::<BTreeSet<_>>().into_iter().flat_map(differ).collect()
}

#[cfg(test)]
mod tests;
