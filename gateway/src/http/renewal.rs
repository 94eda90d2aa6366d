//! Keeps the copies of the operators' tokens, of the sessions of their page, and of the links to it as new as their rows, which other
//! nodes change.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Engine, StoreError,
    store::{Noun, TokenStore, Version},
};
use tokio::{
    sync::Mutex,
    time::{MissedTickBehavior, interval},
};
use tracing::warn;

use super::sessions::AdminSessions;
use crate::callers::StoredTokens;

/// For how long a token that another node revoked may still open something here.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Renewal {
    engine: Engine,
    store: Arc<dyn TokenStore>,
    tokens: Arc<StoredTokens>,
    sessions: Arc<AdminSessions>,
    /// The version of the rows that were copied last, if they were since the start.
    copied: Mutex<Option<Version>>,
}

impl Renewal {
    pub(crate) fn new(
        engine: Engine,
        store: Arc<dyn TokenStore>,
        tokens: Arc<StoredTokens>,
        sessions: Arc<AdminSessions>,
    ) -> Arc<Self> {
        Arc::new(Self { engine, store, tokens, sessions, copied: Mutex::default() })
    }

    /// Reads the rows again, again and again while other nodes live.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut interval = interval(EVERY);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.renew().await;
        }
    }

    /// Reads the rows again if other nodes live, and the rows have changed. Returns whether they were read.
    pub(crate) async fn renew(&self) -> bool {
        if !self.engine.has_neighbours() {
            return false;
        }
        let renewed = self.try_to_renew().await;
        renewed.unwrap_or_else(|error| {
            warn!(%error, "cannot read whether another node has changed tokens or sessions");
            false
        })
    }

    async fn try_to_renew(&self) -> Result<bool, StoreError> {
        let mut copied = self.copied.lock().await;
        // Before the rows: if they change meanwhile, they are read once more.
        let version = self.store.version(Noun::Tokens).await?;
        if *copied == Some(version) {
            return Ok(false);
        }
        let tokens = self.store.tokens().await?;
        let (links, open) = (self.store.links().await?, self.store.sign_ins().await?);
        self.tokens.replace(tokens);
        self.sessions.replace(links, open);
        *copied = Some(version);
        Ok(true)
    }
}
