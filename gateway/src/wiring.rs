//! From the configuration to running parts: a loop over the platforms and the kinds of agents. Nothing else in this
//! package reads the sections that belong to neither.

use std::{
    collections::HashMap,
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rejoinder_config::{Config, Size, Token};
use rejoinder_core::{
    AgentName, AgentRuntime, ChannelAdapter, ChannelId, ChatKind, Policies, Settings, SharedClock, SystemClock,
    Timestamp, Words,
};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    agents,
    platforms::{self, Routes, Told},
    secrets::{self, MadeToken},
};

/// The most bytes of one attachment that an agent is given, where no channel says more.
const MAX_ATTACHMENT: usize = 1 << 20;

/// How long connecting to an agent or a callback may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long somebody who is only looked at may take to answer.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the parts cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WiringError {
    /// The data directory, or a token in it, can be neither read nor written.
    #[error("the token {} can be neither read nor made", path.display())]
    Token {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A channel's settings do not hold.
    #[error("config key `channels.{channel}` cannot be used: {reason}")]
    Channel { channel: ChannelId, reason: String },
    /// An agent's settings do not hold.
    #[error("config key `agents.{name}` cannot be used: {reason}")]
    Agent { name: AgentName, reason: String },
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Http(#[source] reqwest::Error),
}

/// A token that callers show.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// The operator chose it.
    Given,
    /// The gateway made it, and keeps it in a file.
    Made(MadeToken),
}

/// An agent, for whoever is told which there are.
#[derive(Clone, Debug)]
pub(crate) struct AgentInfo {
    pub(crate) name: AgentName,
    pub(crate) kind: &'static str,
    /// What it is and where, without secrets.
    pub(crate) description: String,
    pub(crate) is_default: bool,
    /// What whoever starts a gateway is told of the default agent.
    pub(crate) remark: Option<&'static str>,
}

/// What the configuration comes to.
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    pub(crate) agent_infos: Vec<AgentInfo>,
    pub(crate) channels: Vec<Arc<dyn ChannelAdapter>>,
    /// What is served for the channels.
    pub(crate) routes: Vec<Routes>,
    pub(crate) told: Vec<Told>,
    /// Where a browser is led that asks for nothing.
    pub(crate) front_page: Option<&'static str>,
    pub(crate) admin_token: SecretString,
    pub(crate) admin_shown: Shown,
    /// Cancelled when callers that still wait are answered with what there is.
    pub(crate) hang_up: CancellationToken,
    pub(crate) public_url: Option<Url>,
    pub(crate) request_timeout: Duration,
    pub(crate) drain: Duration,
}

/// Where the gateway listens when nothing else is said.
pub(crate) fn listen(config: &Config) -> SocketAddr {
    config.server.listen
}

/// The database's file.
pub(crate) fn database(config: &Config, data_dir: &Path) -> PathBuf {
    config.store.url.path(data_dir)
}

/// Makes the parts as a start would, and lets them go: nothing is started, and nothing is written.
///
/// # Errors
/// As [`Wiring::parts`].
pub(crate) fn check(config: &Config, data_dir: &Path) -> Result<(), WiringError> {
    let clock: SharedClock = Arc::new(SystemClock);
    Wiring::new(config, data_dir, Tokens::Look, &clock, &HashMap::new())?.parts().map(drop)
}

/// What an operator should know about a configuration that is valid all the same.
pub(crate) fn remarks(config: &Config) -> Vec<String> {
    platforms::all().flat_map(|platform| platform.remarks(config)).collect()
}

/// The client for everything that goes out over HTTP. It has no timeout for whole requests, since an answer may
/// take minutes: whoever sends sets one. It follows no redirects: what is sent goes where the operator said.
pub(crate) fn http_client() -> Result<reqwest::Client, WiringError> {
    reqwest::Client::builder()
        .user_agent(concat!("rejoinder/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(WiringError::Http)
}

/// What becomes of a token that the gateway has to make itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    /// It is made, and kept in the data directory.
    Make,
    /// Nothing is made: the parts are looked at, and not used.
    Look,
}

/// What is wired, and with what.
pub(crate) struct Wiring<'a> {
    pub(crate) config: &'a Config,
    pub(crate) data_dir: &'a Path,
    tokens: Tokens,
    pub(crate) clock: &'a SharedClock,
    pub(crate) started_at: Timestamp,
    pub(crate) http: reqwest::Client,
    /// Cancelled when callers that still wait are answered with what there is.
    pub(crate) hang_up: CancellationToken,
    /// Agents that take the place of configured ones, or are there as well.
    agents: &'a HashMap<AgentName, Arc<dyn AgentRuntime>>,
}

impl fmt::Debug for Wiring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiring").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl<'a> Wiring<'a> {
    /// # Errors
    /// When there is no HTTP client to be had.
    pub(crate) fn new(
        config: &'a Config,
        data_dir: &'a Path,
        tokens: Tokens,
        clock: &'a SharedClock,
        agents: &'a HashMap<AgentName, Arc<dyn AgentRuntime>>,
    ) -> Result<Self, WiringError> {
        let (http, hang_up) = (http_client()?, CancellationToken::new());
        Ok(Self { config, data_dir, tokens, clock, started_at: clock.now(), http, hang_up, agents })
    }

    /// Makes the parts. Nothing is started, and nothing is connected to.
    ///
    /// # Errors
    /// When a token cannot be kept, or a section cannot be used.
    pub(crate) fn parts(&self) -> Result<Parts, WiringError> {
        let built = platforms::all().map(|platform| platform.build(self)).collect::<Result<Vec<_>, _>>()?;
        let (agents, agent_infos) = self.agents()?;
        let (admin_token, admin_shown) = self.token(&self.config.admin.token, "admin-token")?;
        let server = &self.config.server;
        let mut parts = Parts {
            settings: self.settings(),
            agents,
            agent_infos,
            channels: Vec::new(),
            routes: Vec::new(),
            told: Vec::new(),
            front_page: None,
            admin_token,
            admin_shown,
            hang_up: self.hang_up.clone(),
            public_url: server.public_url.clone(),
            request_timeout: server.request_timeout,
            drain: server.drain,
        };
        for built in built {
            parts.channels.extend(built.channels);
            parts.routes.extend(built.routes);
            parts.told.extend(built.told);
            parts.front_page = parts.front_page.or(built.front_page);
        }
        parts.told.sort_by(|a, b| a.account().cmp(&b.account()));
        Ok(parts)
    }

    /// A token, and how it is told; `file` keeps it where the gateway makes it.
    ///
    /// # Errors
    /// When it can be neither read nor made.
    pub(crate) fn token(&self, token: &Token, file: &str) -> Result<(SecretString, Shown), WiringError> {
        match token {
            Token::Given(secret) => Ok((secret.get().clone(), Shown::Given)),
            Token::Generate => {
                let made = self.made(file)?;
                Ok((made.token.clone(), Shown::Made(made)))
            }
        }
    }

    /// What the gateway has made itself, and keeps in `file` of its data directory.
    ///
    /// # Errors
    /// When it can be neither read nor made.
    pub(crate) fn made(&self, file: &str) -> Result<MadeToken, WiringError> {
        let made = match self.tokens {
            Tokens::Make => secrets::kept_or_made(self.data_dir, file),
            Tokens::Look => secrets::kept_or_none(self.data_dir, file),
        };
        made.map_err(|source| WiringError::Token { path: self.data_dir.join(file), source })
    }

    #[expect(clippy::type_complexity, reason = "a pair of two plain collections")]
    fn agents(&self) -> Result<(HashMap<AgentName, Arc<dyn AgentRuntime>>, Vec<AgentInfo>), WiringError> {
        let mut agents: HashMap<AgentName, Arc<dyn AgentRuntime>> = HashMap::new();
        let mut infos = Vec::new();
        for (name, agent) in &self.config.agents {
            let (name, kind) = (AgentName::from(name.as_str()), agents::kind_of(agent));
            let runtime = match self.agents.get(&name) {
                Some(other) => Arc::clone(other),
                None => kind.build(&name, agent, self)?,
            };
            infos.push(AgentInfo {
                name: Arc::clone(&name),
                kind: agent.kind(),
                description: runtime.describe(),
                is_default: *name == *self.config.routing.default_agent,
                remark: kind.remark(),
            });
            agents.insert(name, runtime);
        }
        for (name, agent) in self.agents {
            agents.entry(Arc::clone(name)).or_insert_with(|| Arc::clone(agent));
        }
        Ok((agents, infos))
    }

    fn settings(&self) -> Settings {
        let Config { channels, routing, outbox, .. } = self.config;
        let commons = || channels.iter().map(|(id, channel)| (id, &channel.common));
        let telling = commons().filter(|(_, common)| common.tells_reactions);
        Settings {
            default_agent: AgentName::from(routing.default_agent.as_str()),
            channel_agents: commons()
                .filter_map(|(id, common)| Some((id, AgentName::from(common.agent.as_deref()?))))
                .collect(),
            access: commons().filter_map(|(id, common)| Some((id, common.people.as_ref()?.access()))).collect(),
            tells_reactions: telling.map(|(id, _)| id).collect(),
            // Each channel keeps to its own.
            max_attachment: commons()
                .filter_map(|(_, common)| common.max_attachment)
                .max()
                .map_or(MAX_ATTACHMENT, Size::bytes),
            policies: self.policies(),
            words: self.words(),
            max_concurrent_turns: routing.max_concurrent_turns as usize,
            delivery_lifetime: outbox.lifetime,
            min_attempts: outbox.min_attempts,
        }
    }

    /// A policy for every channel and kind of chat, and one for turns of channels that are gone.
    fn policies(&self) -> Policies {
        let guard = &self.config.guard;
        let mut policies = Policies::new(guard.policy("default", ChatKind::Direct, None));
        for (id, channel) in self.config.channels.iter() {
            for chat in [ChatKind::Direct, ChatKind::Group] {
                policies = policies.with(id.as_str(), chat, guard.policy(id.as_str(), chat, channel.common.on_unknown));
            }
        }
        policies
    }

    fn words(&self) -> Words {
        let guard = &self.config.guard;
        let everywhere = guard.templates.for_channel("");
        let mut words = Words::default();
        for (name, text) in &everywhere {
            words = words.with_template("", name, text);
        }
        for (channel, _) in self.config.channels.iter() {
            for (name, text) in guard.templates.for_channel(channel.as_str()) {
                if everywhere.get(name) != Some(&text) {
                    words = words.with_template(channel.as_str(), name, text);
                }
            }
        }
        for (name, question) in &guard.clarify {
            words = words.with_question(name, question.clone());
        }
        words
    }
}

#[cfg(test)]
pub(crate) mod tests;
