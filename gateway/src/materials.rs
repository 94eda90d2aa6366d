//! What channels and agents are built with: configuration, tokens, clock and HTTP client.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rejoinder_config::{Config, Origin, Secret, Token, TokenValue, Voice};
use rejoinder_core::{
    AgentName, AgentRuntime, ChannelId, FileLinks, HandedOut, Masker, Runtimes, SharedClock, Speech, StoreError,
    Synthesizer, Timestamp, Transcriber, store::AgreementStore,
};
use rejoinder_kit::{Guesses, Tokens};
use rejoinder_speech::{HttpSynthesizer, HttpTranscriber, KeyError};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use crate::{
    built_agent::BuiltAgent,
    client,
    own_tools::{Caller, OwnTools},
    secrets::{self, GeneratedToken},
};

/// The file in the data directory with the key of links to files.
const FILE_LINK_KEY: &str = "file-link-key";

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
    /// The key of a server for speech cannot be sent.
    #[error("config key `voice.{server}.api_key` cannot be used: {reason}")]
    Speech { server: &'static str, reason: KeyError },
    #[error("cannot create the HTTP client")]
    Http(#[source] reqwest::Error),
    /// The store does not say which tokens all nodes use.
    #[error("cannot read the generated tokens in the store")]
    SharedTokens(#[source] StoreError),
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
    /// The runs that all nodes hand out; `None` if there can be no other nodes, or the parts are only checked.
    pub(crate) handed_out: Option<Arc<dyn HandedOut>>,
    /// The generated tokens that were given out, by file.
    generated: Mutex<BTreeMap<String, SecretString>>,
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
            handed_out: None,
            generated: Mutex::default(),
        })
    }

    /// Masks all secrets: the configured ones, and the generated tokens that were given out so far.
    pub(crate) fn masker(&self) -> Masker {
        let generated = self.generated.lock().unwrap_or_else(PoisonError::into_inner);
        Masker::new(self.config.secrets.iter().chain(generated.values()).map(ExposeSecret::expose_secret))
    }

    /// Has all nodes on one store use the same generated tokens: those that a node gave first. Returns whether others than those that
    /// were given out are in their files now: then what was built with these must be built anew.
    pub(crate) async fn share_generated(&self, store: &dyn AgreementStore) -> Result<bool, WiringError> {
        let given = self.generated.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut is_changed = false;
        for (file, token) in &given {
            let shared = store.put_secret(file, token.expose_secret()).await.map_err(WiringError::SharedTokens)?;
            if shared != token.expose_secret() {
                let path = self.data_dir.join(file);
                let written = secrets::write(&path, &SecretString::from(shared));
                written.map_err(|source| WiringError::Token { path, source })?;
                is_changed = true;
            }
        }
        Ok(is_changed)
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
        let mut generated = self.generated.lock().unwrap_or_else(PoisonError::into_inner);
        generated.insert(file.to_owned(), made.token.clone());
        drop(generated);
        Ok(made)
    }

    /// What hears and speaks, as far as there are servers for that.
    pub(crate) fn speech(&self) -> Result<Speech, WiringError> {
        Ok(Speech { transcriber: self.transcriber()?, synthesizer: self.synthesizer()? })
    }

    /// The server that writes down what people speak, if there is one.
    fn transcriber(&self) -> Result<Option<Arc<dyn Transcriber>>, WiringError> {
        let Voice { longest, per_day, transcriptions, .. } = &self.config.voice;
        let Some(server) = transcriptions else { return Ok(None) };
        let unusable = |reason| WiringError::Speech { server: "transcriptions", reason };
        let transcriber = HttpTranscriber::new(server, *longest, self.http.clone()).map_err(unusable)?;
        Ok(Some(Arc::new(transcriber.at_most(*per_day))))
    }

    /// The server that speaks, if there is one.
    fn synthesizer(&self) -> Result<Option<Arc<dyn Synthesizer>>, WiringError> {
        let Some(server) = &self.config.voice.speech else { return Ok(None) };
        let unusable = |reason| WiringError::Speech { server: "speech", reason };
        let synthesizer = HttpSynthesizer::new(server, self.http.clone()).map_err(unusable)?;
        Ok(Some(Arc::new(synthesizer.at_most(self.config.voice.spoken_per_day))))
    }

    /// What makes and verifies links to files: the same wherever it is used.
    pub(crate) fn file_links(&self) -> Result<FileLinks, WiringError> {
        let secret = self.generated_token(FILE_LINK_KEY)?.token;
        let links = FileLinks::new(secret.expose_secret(), self.config.files.link_for);
        Ok(match &self.config.server.public_url {
            Some(url) => links.at(url.as_str()),
            None => links,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use rejoinder_core::{
        SystemClock,
        store::{AnswerUnderWay, Configuration},
    };

    use super::*;
    use crate::wiring::tests::config;

    /// A store of several nodes, as far as it keeps secrets.
    #[derive(Default)]
    struct SharedSecrets(Mutex<HashMap<String, String>>);

    #[async_trait]
    impl AgreementStore for SharedSecrets {
        async fn put_secret(&self, name: &str, made: &str) -> Result<String, StoreError> {
            let mut secrets = self.0.lock().unwrap();
            Ok(secrets.entry(name.to_owned()).or_insert_with(|| made.to_owned()).clone())
        }
        async fn configuration(&self, _: &[u8; 32]) -> Result<Option<Configuration>, StoreError> {
            unreachable!("no node begins")
        }
        async fn latest_configuration(&self) -> Result<Option<Configuration>, StoreError> {
            unreachable!("no node reads it again")
        }
        async fn begin_answer(&self, _: &AnswerUnderWay) -> Result<bool, StoreError> {
            unreachable!("nobody asks")
        }
        async fn end_answer(&self, _: &AnswerUnderWay) -> Result<(), StoreError> {
            unreachable!("nobody asks")
        }
        async fn count_minute(&self, _: &str, _: Duration, _: bool) -> Result<Option<Duration>, StoreError> {
            unreachable!("nobody writes")
        }
        async fn uncount_minute(&self, _: &str, _: Duration) -> Result<(), StoreError> {
            unreachable!("nobody writes")
        }
    }

    #[tokio::test]
    async fn nodes_have_the_same_generated_tokens() {
        let (config, clock) = (config(""), Arc::new(SystemClock) as SharedClock);
        let (store, agents, folders) =
            (SharedSecrets::default(), HashMap::new(), [(); 2].map(|()| tempfile::tempdir().unwrap()));
        let materials = folders
            .each_ref()
            .map(|folder| Materials::new(&config, folder.path(), TokenMode::Create, &clock, &agents).unwrap());
        let token = |of: &Materials<'_>| of.generated_token("admin-token").unwrap().token.expose_secret().to_owned();
        let (first, second) = (token(&materials[0]), token(&materials[1]));
        assert_ne!(first, second);

        assert!(!materials[0].share_generated(&store).await.unwrap());
        assert!(materials[1].share_generated(&store).await.unwrap());

        assert_eq!([token(&materials[0]), token(&materials[1])], [first.clone(), first.clone()]);
        assert!(!materials[1].share_generated(&store).await.unwrap());
        assert_eq!(materials[1].masker().text(format!("{first} {second}")), format!("•••• {second}"));
    }
}
