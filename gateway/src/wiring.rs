//! Builds the parts from the configuration, with a loop over the platforms and the kinds of agents. The sections that
//! belong to neither are read mainly here.

use std::{collections::HashMap, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::Router;
use rejoinder_config::{Channel, Common, Config, Log, Queue, Retention, TokenValue, Voice};
use rejoinder_core::{
    Access, AgentName, AgentRuntime, ChannelAdapter, ChatKind, FileLinks, Language, Lifetimes, Masker, PersonRole,
    Policies, Policy, Queues, ScheduleSettings, SessionSettings, Settings, SharedClock, SpecialLimits, Speech,
    SystemClock, Templates,
};
use rejoinder_kit::{Guesses, Tokens};
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    agents,
    built_agent::{AgentLoop, BuiltAgent},
    client::is_readable_on_the_way,
    exposure::readable_secrets,
    location::StoreLocation,
    materials::{Materials, TokenMode, TokenSource, WiringError},
    platforms::{self, ChannelNotice, Hook, Routes},
    secrets,
};

/// How many runs of a schedule may fail in a row.
const MAX_FAILURES: u32 = 5;

/// An agent as the start and the admin interface show it.
#[derive(Clone, Debug)]
pub(crate) struct AgentInfo {
    pub(crate) name: AgentName,
    pub(crate) kind: &'static str,
    /// What the agent is and where it runs, without secrets.
    pub(crate) description: String,
    pub(crate) is_default: bool,
    /// The agents that answer in its place.
    pub(crate) members: Vec<String>,
    pub(crate) counts_requests: bool,
    /// What the start prints if this is the default agent.
    pub(crate) remark: Option<String>,
}

/// Everything that is built from the configuration.
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    pub(crate) agent_infos: Vec<AgentInfo>,
    pub(crate) channels: Vec<Arc<dyn ChannelAdapter>>,
    /// What hears and speaks, as far as there are servers for that.
    pub(crate) speech: Speech,
    /// What runs beside the turns of agents.
    pub(crate) loops: Vec<(AgentName, AgentLoop)>,
    /// The HTTP routes of channels and agents.
    pub(crate) routes: Vec<Routes>,
    pub(crate) notices: Vec<ChannelNotice>,
    pub(crate) hooks: Vec<Hook>,
    /// Where `/` redirects to.
    pub(crate) front_page: Option<&'static str>,
    /// `None`: `/admin` is switched off.
    pub(crate) admin_tokens: Option<Tokens>,
    pub(crate) admin_token_source: Option<TokenSource>,
    pub(crate) metrics_tokens: Option<Tokens>,
    pub(crate) file_links: FileLinks,
    pub(crate) guesses: Arc<Guesses>,
    /// Cancelled at the end of the shutdown: callers that still wait then get their current state.
    pub(crate) stop_waiting: CancellationToken,
    pub(crate) public_url: Option<Url>,
    pub(crate) node_url: Option<Url>,
    pub(crate) request_timeout: Duration,
    pub(crate) drain: Duration,
}

/// The file in the data directory with the generated admin token.
pub(crate) const ADMIN_TOKEN_FILE: &str = "admin-token";

/// The file in the data directory with the path of the configuration that it was last used with.
pub(crate) const CONFIG_PATH_FILE: &str = "config-path";

/// The token that a command on this machine sends to `/admin`; `None` if it is not generated yet, or `/admin` is switched off.
pub(crate) fn admin_token(config: &Config, data_dir: &Path) -> io::Result<Option<SecretString>> {
    match &config.admin.token.current {
        _ if !config.admin.enabled => Ok(None),
        TokenValue::Configured(secret) => Ok(Some(secret.get().clone())),
        TokenValue::Generate => secrets::read(data_dir, ADMIN_TOKEN_FILE),
    }
}

/// The file in the data directory with the generated token of the metrics.
const METRICS_TOKEN_FILE: &str = "metrics-token";

pub(crate) fn listen(config: &Config) -> SocketAddr {
    config.server.listen
}

/// The address of `/admin`, and of what else is for the operator only.
pub(crate) fn listen_for_operator(config: &Config) -> SocketAddr {
    config.admin.listen.unwrap_or(config.server.listen)
}

pub(crate) fn database(config: &Config, data_dir: &Path) -> StoreLocation {
    StoreLocation::of(&config.store, data_dir)
}

/// A digest of what all nodes must have in common.
pub(crate) fn digest(config: &Config) -> [u8; 32] {
    Sha256::digest(config.in_common().to_string()).into()
}

/// Builds the parts. Starts nothing and connects to nothing.
pub(crate) fn parts(materials: &Materials<'_>) -> Result<Parts, WiringError> {
    Wiring(materials).parts()
}

/// Builds the parts as a start would, and drops them. Starts nothing and writes nothing.
pub(crate) fn check(config: &Config, data_dir: &Path) -> Result<(), WiringError> {
    let clock: SharedClock = Arc::new(SystemClock);
    parts(&Materials::new(config, data_dir, TokenMode::CheckOnly, &clock, &HashMap::new())?).map(drop)
}

/// Remarks on a valid configuration that the operator should know.
pub(crate) fn remarks(config: &Config) -> Vec<String> {
    let on_secrets = readable_secrets(&config.secret_files);
    remarks_on_settings(config).into_iter().chain(on_secrets).collect()
}

/// The same without those on the files of secrets.
pub(crate) fn remarks_on_settings(config: &Config) -> Vec<String> {
    let listen = config.server.listen;
    let is_behind_tls = config.server.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
    let open = (!listen.ip().is_loopback() && !is_behind_tls).then(|| {
        format!(
            "server.listen is {listen}, and the gateway speaks plain HTTP: tokens and messages can be read on the way. Put \
             a TLS proxy in front, and set server.public_url to its https:// address."
        )
    });
    let open_admin = config.admin.listen.filter(|listen| !listen.ip().is_loopback()).map(|listen| {
        format!(
            "admin.listen is {listen}, and the gateway speaks plain HTTP: the admin token can be read on the way. Choose a \
             loopback address, or one that only a TLS proxy or a private network reaches."
        )
    });
    let unknown_proxy = (config.server.public_url.is_some() && config.server.trusted_proxies.is_empty()).then(|| {
        "server.public_url says that a proxy stands in front, and server.trusted_proxies is empty: all callers count as \
         one, so a single one who guesses tokens, or opens many connections, shuts out the others. Set \
         server.trusted_proxies to the proxy's addresses."
            .to_owned()
    });
    let open_traces = config.telemetry.otlp_endpoint.as_ref().filter(|url| is_readable_on_the_way(url)).map(|url| {
        format!("telemetry.otlp_endpoint is {url}: traces can be read on the way. Use https://, or a collector on this machine.")
    });
    let of_agents = config.agents.iter().flat_map(|(name, agent)| agents::factory_of(agent).remarks_on(name, agent));
    let of_platforms = platforms::all().flat_map(|platform| platform.remarks(config));
    let of_server = open.into_iter().chain(open_admin).chain(unknown_proxy).chain(open_traces);
    of_server.chain(of_agents).chain(remarks_on_voice(&config.voice)).chain(of_platforms).collect()
}

/// The keys of servers for speech that can be read on the way.
fn remarks_on_voice(voice: &Voice) -> impl Iterator<Item = String> {
    let readable = voice.servers().filter(|(_, url, key)| key.is_some() && is_readable_on_the_way(url));
    readable.map(|(name, ..)| {
        format!(
            "voice.{name}.base_url begins with http://: the key and all that is said can be read on the way. Use https://, \
             or a server on this machine."
        )
    })
}

pub(crate) const fn lifetimes(retention: Retention, log: Log) -> Lifetimes {
    let Retention { turns, dead_letters, payloads, voice } = retention;
    Lifetimes { turns, dead_letters, payloads, lines: Some(log.keep), voice: Some(voice) }
}

struct Wiring<'a>(&'a Materials<'a>);

impl Wiring<'_> {
    fn parts(&self) -> Result<Parts, WiringError> {
        let built = platforms::all().map(|platform| platform.build(self.0)).collect::<Result<Vec<_>, _>>()?;
        let (agents, agent_infos) = self.agents()?;
        let Config { admin, metrics, .. } = self.0.config;
        let admin = admin.enabled.then(|| self.0.tokens(&admin.token, ADMIN_TOKEN_FILE)).transpose()?.unzip();
        let metrics = metrics.token.as_ref().map(|token| self.0.tokens(token, METRICS_TOKEN_FILE)).transpose()?;
        let file_links = self.0.file_links()?;
        let server = &self.0.config.server;
        let mut parts = Parts {
            // After everything that may generate a token.
            settings: settings(self.0.config, self.0.masker()),
            agents: HashMap::new(),
            loops: Vec::new(),
            agent_infos,
            channels: Vec::new(),
            speech: self.0.speech()?,
            routes: Vec::new(),
            notices: Vec::new(),
            hooks: Vec::new(),
            front_page: None,
            admin_tokens: admin.0,
            admin_token_source: admin.1,
            metrics_tokens: metrics.map(|(tokens, _)| tokens),
            file_links,
            guesses: Arc::clone(&self.0.guesses),
            stop_waiting: self.0.stop_waiting.clone(),
            public_url: server.public_url.clone(),
            node_url: server.node_url.clone(),
            request_timeout: server.request_timeout,
            drain: server.drain,
        };
        for built in built {
            parts.channels.extend(built.channels);
            parts.routes.extend(built.routes);
            parts.notices.extend(built.notices);
            parts.hooks.extend(built.hooks);
            parts.front_page = parts.front_page.or(built.front_page);
        }
        if let Some(routes) = self.0.own_tools.routes(self.0.config, &self.0.guesses, &self.0.stop_waiting) {
            parts.routes.push(Box::new(move |_| routes));
        }
        for (name, BuiltAgent { runtime, routes, run, .. }) in agents {
            parts.loops.extend(run.map(|run| (Arc::clone(&name), run)));
            if let Some(routes) = routes {
                let path = format!("/agents/{name}");
                parts.routes.push(Box::new(move |_| Router::new().nest(&path, routes)));
            }
            parts.agents.insert(name, runtime);
        }
        self.0.runtimes.set(parts.agents.clone());
        parts.notices.sort_by(|a, b| a.account().cmp(&b.account()));
        Ok(parts)
    }

    fn agents(&self) -> Result<(HashMap<AgentName, BuiltAgent>, Vec<AgentInfo>), WiringError> {
        let mut agents: HashMap<AgentName, BuiltAgent> = HashMap::new();
        let mut infos = Vec::new();
        for (name, agent) in &self.0.config.agents {
            let (name, factory) = (AgentName::from(name.as_str()), agents::factory_of(agent));
            let built = match self.0.agents.get(&name) {
                Some(other) => other.clone(),
                None => factory.build(&name, agent, self.0)?,
            };
            infos.push(AgentInfo {
                name: Arc::clone(&name),
                kind: agent.kind,
                description: built.runtime.describe(),
                is_default: *name == *self.0.config.routing.default_agent,
                members: agent.members.clone(),
                counts_requests: factory.counts_requests(),
                remark: factory.remark(self.0.config),
            });
            agents.insert(name, built);
        }
        for (name, agent) in self.0.agents {
            agents.entry(Arc::clone(name)).or_insert_with(|| agent.clone());
        }
        Ok((agents, infos))
    }
}

/// The settings of the core. `masker` masks all secrets.
pub(crate) fn settings(config: &Config, masker: Masker) -> Settings {
    let Config { channels, people, agents, routing, limits, outbox, retention, log, telemetry, .. } = config;
    let commons = || channels.iter().map(|(id, channel)| (id, &channel.common));
    let telling = commons().filter(|(_, common)| common.notify_reactions);
    Settings {
        default_agent: AgentName::from(routing.default_agent.as_str()),
        channel_agents: commons()
            .filter_map(|(id, common)| Some((id, AgentName::from(common.keys.agent.as_deref()?))))
            .collect(),
        rules: commons()
            .flat_map(|(id, common)| common.keys.groups.rules(&id).collect::<Vec<_>>())
            .chain(routing.rules())
            .collect(),
        access: commons().filter_map(|(id, common)| Some((id, access(common)?))).collect(),
        reaction_channels: telling.map(|(id, _)| id).collect(),
        // The largest of all channels, and of requests; each channel applies its own limit.
        max_attachment: commons()
            .filter_map(|(_, common)| common.max_attachment)
            .fold(config.files.max, Ord::max)
            .bytes(),
        files: config.files.limits(),
        policies: policies(config),
        templates: templates(config),
        max_concurrent_turns: routing.max_concurrent_turns as usize,
        agent_turns: agents
            .iter()
            .filter_map(|(name, agent)| Some((AgentName::from(&**name), agent.max_concurrent? as usize)))
            .collect(),
        prices: agents.iter().filter_map(|(name, agent)| Some((AgentName::from(&**name), agent.price?))).collect(),
        budgets: limits.budgets().map(|(name, budget)| (AgentName::from(name), budget)).collect(),
        masker,
        commands: config.commands.own(),
        people: people.seeds(),
        elsewhere: config.guard.elsewhere,
        notify_owners: config.pairing.notify_owners,
        approvals: config.approvals.settings(people),
        queues: queues(config),
        voices: config.channels.iter().filter_map(|(id, channel)| Some((id, channel.common.keys.voice?))).collect(),
        sessions: sessions(config),
        schedules: ScheduleSettings {
            seeds: config.schedules.seeds(&routing.time_zone).collect(),
            max_failures: MAX_FAILURES,
        },
        agent_schedules: agents
            .iter()
            .filter_map(|(name, agent)| Some((AgentName::from(&**name), agent.schedules?)))
            .collect(),
        shown_activities: agents
            .iter()
            .filter(|(_, agent)| agent.shows_activity)
            .map(|(name, _)| AgentName::from(&**name))
            .collect(),
        triggers: config.triggers.triggers(),
        quiet_hours: people.quiet_hours(),
        time_zone: routing.time_zone.zone.clone(),
        limits: limits.general(),
        special_limits: special_limits(config),
        delivery_lifetime: outbox.lifetime,
        min_attempts: outbox.min_attempts,
        max_parts: outbox.max_parts as usize,
        lifetimes: lifetimes(*retention, *log),
        is_traced: telemetry.otlp_endpoint.is_some(),
    }
}

/// What may be chosen for sessions, and when they end by themselves.
fn sessions(config: &Config) -> SessionSettings {
    let Config { agents, routing, sessions, .. } = config;
    let models = agents.iter().map(|(name, agent)| (AgentName::from(&**name), &agent.models));
    SessionSettings {
        reset: sessions.reset(&routing.time_zone.zone),
        new_in_groups: sessions.new_in_groups,
        agents: routing.choosable.iter().map(|name| AgentName::from(&**name)).collect(),
        models: models.filter(|(_, models)| models.len() > 1).map(|(name, models)| (name, models.clone())).collect(),
    }
}

/// Who may talk to the agent on a channel that does not authenticate its callers itself.
fn access(common: &Common) -> Option<Access> {
    let groups = common.keys.groups.policies().map(|(id, policy)| (id.into(), policy)).collect();
    Some(Access { groups, ..common.people.as_ref()?.access() })
}

fn special_limits(config: &Config) -> SpecialLimits {
    let roles = [PersonRole::Guest, PersonRole::Member, PersonRole::Owner];
    let roles = roles.into_iter().map(|role| (role, config.limits.of_role(role))).collect();
    SpecialLimits { roles, people: config.people.limits(&config.limits) }
}

/// What happens to messages that come while a turn runs.
fn queues(config: &Config) -> Queues {
    let Queue { mode, group_mode, window, cap, overflow, backlog, late_after, ref seen } = config.queue;
    let seen = Some(seen.clone()).filter(|seen| !seen.is_empty());
    let modes = config.channels.iter().flat_map(|(id, channel)| {
        let direct = channel.common.keys.queue.unwrap_or(mode);
        let group = channel.common.keys.group_queue.unwrap_or(group_mode);
        [((id.clone(), ChatKind::Direct), direct), ((id, ChatKind::Group), group)]
    });
    Queues { mode, modes: modes.collect(), window, cap, overflow, backlog, late_after, seen }
}

/// A policy for every channel and kind of chat, and a default for turns of channels that are no longer configured.
fn policies(config: &Config) -> Policies {
    let policy = |channel: &str, chat, on_unknown| Policy {
        approval_wait: config.approvals.expires,
        max_approvals: config.approvals.per_turn,
        ..config.guard.policy(channel, chat, on_unknown)
    };
    let mut policies = Policies::new(policy("default", ChatKind::Direct, None));
    for (id, Channel { common, .. }) in config.channels.iter() {
        for chat in [ChatKind::Direct, ChatKind::Group] {
            let policy = policy(id.as_str(), chat, common.on_unknown);
            // Nobody is there to promise something to, or to ask.
            let for_words = || Policy { only_agents_words: true, max_deferrals: 0, max_approvals: 0, ..policy.clone() };
            policies =
                policies.with(id.as_str(), chat, if common.only_agents_words { for_words() } else { policy.clone() });
        }
    }
    policies
}

fn templates(config: &Config) -> Templates {
    let guard = &config.guard;
    let mut templates = Templates::default().with_default_language("", guard.language);
    for (channel, Channel { common, .. }) in config.channels.iter() {
        if let Some(language) = common.keys.language {
            templates = templates.with_default_language(channel.as_str(), language);
        }
    }
    for language in &guard.languages {
        templates = with_texts(templates, config, *language);
    }
    templates
}

/// Adds the texts and questions in a language.
fn with_texts(mut templates: Templates, config: &Config, language: Language) -> Templates {
    let guard = &config.guard;
    let everywhere = guard.templates.for_channel("", language);
    for (name, text) in &everywhere {
        templates = templates.with_template_in(language, "", name, text);
    }
    for (channel, _) in config.channels.iter() {
        for (name, text) in guard.templates.for_channel(channel.as_str(), language) {
            if everywhere.get(name) != Some(&text) {
                templates = templates.with_template_in(language, channel.as_str(), name, text);
            }
        }
    }
    for name in guard.clarify.names() {
        if let Some(question) = guard.clarify.question(name, language) {
            templates = templates.with_question_in(language, name, question);
        }
    }
    templates
}

#[cfg(test)]
pub(crate) mod tests;
