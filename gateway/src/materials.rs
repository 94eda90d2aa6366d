//! What channels and agents are made with: the configuration, the tokens, the clock and the HTTP client.

use std::{
    collections::HashMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rejoinder_config::{Config, Token};
use rejoinder_core::{AgentName, AgentRuntime, ChannelId, SharedClock, Timestamp};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::{
    client,
    secrets::{self, MadeToken},
};

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

/// What becomes of a token that the gateway has to make itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    /// It is made, and kept in the data directory.
    Make,
    /// Nothing is made: the parts are looked at, and not used.
    Look,
}

/// What channels and agents are made with.
pub(crate) struct Materials<'a> {
    pub(crate) config: &'a Config,
    pub(crate) data_dir: &'a Path,
    tokens: Tokens,
    pub(crate) clock: &'a SharedClock,
    pub(crate) started_at: Timestamp,
    pub(crate) http: reqwest::Client,
    /// Cancelled when callers that still wait are answered with what there is.
    pub(crate) hang_up: CancellationToken,
    /// Agents that take the place of configured ones, or are there as well.
    pub(crate) agents: &'a HashMap<AgentName, Arc<dyn AgentRuntime>>,
}

impl fmt::Debug for Materials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Materials").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl<'a> Materials<'a> {
    /// # Errors
    /// When there is no HTTP client to be had.
    pub(crate) fn new(
        config: &'a Config,
        data_dir: &'a Path,
        tokens: Tokens,
        clock: &'a SharedClock,
        agents: &'a HashMap<AgentName, Arc<dyn AgentRuntime>>,
    ) -> Result<Self, WiringError> {
        let (http, hang_up) = (client::http_client().map_err(WiringError::Http)?, CancellationToken::new());
        Ok(Self { config, data_dir, tokens, clock, started_at: clock.now(), http, hang_up, agents })
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
}
