//! What channels and agents are built with: configuration, tokens, clock and HTTP client.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rejoinder_config::{Config, Origin, Secret, Token, TokenValue};
use rejoinder_core::{AgentName, AgentRuntime, ChannelId, Masker, Runtimes, SharedClock, Timestamp};
use rejoinder_kit::{Guesses, Tokens};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::{
    built_agent::BuiltAgent,
    client,
    own_tools::{Caller, OwnTools},
    secrets::{self, GeneratedToken},
};

/// Why the parts cannot be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WiringError {
    /// A token's file can be neither read nor written.
    #[error("cannot read or create the token {}", path.display())]
    Token {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A channel's section is invalid.
    #[error("config key `channels.{channel}` cannot be used: {reason}")]
    Channel { channel: ChannelId, reason: String },
    /// An agent's section is invalid.
    #[error("config key `agents.{name}` cannot be used: {reason}")]
    Agent { name: AgentName, reason: String },
    /// A key of an agent's section cannot be used.
    #[error("config key `{key}` cannot be used: {reason} ({origin})")]
    AgentKey { key: String, reason: String, origin: Origin },
    #[error("cannot create the HTTP client")]
    Http(#[source] reqwest::Error),
}

/// Where the token of a channel or of the admin interface comes from, for showing it to the operator.
#[derive(Clone, Debug)]
pub(crate) enum TokenSource {
    /// The configuration gives it.
    Configured,
    /// The gateway generated it, and keeps it in a file.
    Generated(GeneratedToken),
}

/// What to do about a missing token that the gateway should generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenMode {
    /// Generate it, and keep it in the data directory.
    Create,
    /// Write nothing: use a throwaway token, because the parts are only checked.
    CheckOnly,
}

/// What channels and agents are built with.
pub(crate) struct Materials<'a> {
    pub(crate) config: &'a Config,
    pub(crate) data_dir: &'a Path,
    token_mode: TokenMode,
    pub(crate) clock: &'a SharedClock,
    pub(crate) started_at: Timestamp,
    pub(crate) http: reqwest::Client,
    /// Cancelled at the end of the shutdown: callers that still wait then get their current state.
    pub(crate) stop_waiting: CancellationToken,
    /// Slows down who guesses a secret, on any surface.
    pub(crate) guesses: Arc<Guesses>,
    /// Agents that replace configured ones, or are added to them.
    pub(crate) agents: &'a HashMap<AgentName, BuiltAgent>,
    /// What agents call that ask for it.
    pub(crate) own_tools: OwnTools,
    /// The runtimes of all agents, as they are at the moment: empty while they are built at the start.
    pub(crate) runtimes: Arc<Runtimes>,
    /// The generated tokens that were given out.
    generated: Mutex<Vec<SecretString>>,
}

impl<'a> Materials<'a> {
    /// `agent`, whose runs have the gateway's tools if its section wants them.
    pub(crate) fn with_tools(
        &self,
        name: &AgentName,
        agent: Arc<dyn AgentRuntime>,
        is_wanted: bool,
        caller: Caller<'_>,
    ) -> Result<Arc<dyn AgentRuntime>, WiringError> {
        let given = self.own_tools.given_to(agent, is_wanted, caller);
        given.map_err(|reason| WiringError::Agent { name: Arc::clone(name), reason })
    }

    pub(crate) fn new(
        config: &'a Config,
        data_dir: &'a Path,
        token_mode: TokenMode,
        clock: &'a SharedClock,
        agents: &'a HashMap<AgentName, BuiltAgent>,
    ) -> Result<Self, WiringError> {
        let (http, stop_waiting) = (client::http_client().map_err(WiringError::Http)?, CancellationToken::new());
        Ok(Self {
            config,
            data_dir,
            token_mode,
            clock,
            started_at: clock.now(),
            http,
            stop_waiting,
            guesses: Arc::default(),
            agents,
            own_tools: OwnTools::default(),
            runtimes: Arc::default(),
            generated: Mutex::default(),
        })
    }

    /// Masks all secrets: the configured ones, and the generated tokens that were given out so far.
    pub(crate) fn masker(&self) -> Masker {
        let generated = self.generated.lock().unwrap_or_else(PoisonError::into_inner);
        Masker::new(self.config.secrets.iter().chain(&*generated).map(ExposeSecret::expose_secret))
    }

    /// The tokens of one surface, and how to show the current one. `file` in the data directory holds a generated one.
    pub(crate) fn tokens(&self, token: &Token, file: &str) -> Result<(Tokens, TokenSource), WiringError> {
        let former = token.former.as_ref().map(Secret::get);
        match &token.current {
            TokenValue::Configured(secret) => {
                Ok((Tokens::new(former.into_iter().chain([secret.get()])), TokenSource::Configured))
            }
            TokenValue::Generate => {
                let made = self.generated_token(file)?;
                Ok((Tokens::new(former.into_iter().chain([&made.token])), TokenSource::Generated(made)))
            }
        }
    }

    /// A generated token, which is kept in `file` of the data directory.
    pub(crate) fn generated_token(&self, file: &str) -> Result<GeneratedToken, WiringError> {
        let made = match self.token_mode {
            TokenMode::Create => secrets::read_or_create(self.data_dir, file),
            TokenMode::CheckOnly => secrets::read_or_throwaway(self.data_dir, file),
        };
        let made = made.map_err(|source| WiringError::Token { path: self.data_dir.join(file), source })?;
        self.generated.lock().unwrap_or_else(PoisonError::into_inner).push(made.token.clone());
        Ok(made)
    }
}
