//! What the server, its handles and its webhook worker have in common.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    door::Entry,
    view::View,
    world::{Signals, World},
};

/// How long something is waited for that must happen: far above what it takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How the whole server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outage {
    /// Connections are refused, and those there were are reset.
    Refuse,
    /// Every call is answered with 503 and not executed.
    Unavailable,
}

#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    pub(crate) signals: Arc<Signals>,
    /// The token that was taken at first.
    pub(crate) token: String,
    /// The token that is taken now.
    valid: Mutex<String>,
    entry: watch::Sender<Entry>,
    unavailable: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(world: World, signals: Arc<Signals>, token: String) -> Self {
        let entry = watch::Sender::new(Entry { open: true, all: CancellationToken::new() });
        let valid = Mutex::new(token.clone());
        Self { world: Mutex::new(world), signals, token, valid, entry, unavailable: watch::Sender::new(false) }
    }

    /// Whether a token is taken.
    pub(crate) fn takes(&self, token: &str) -> bool {
        *self.valid.lock().unwrap_or_else(PoisonError::into_inner) == token
    }

    /// Takes another token from now on, which it gives.
    pub(crate) fn reset_token(&self) -> String {
        let mut valid = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, secret) = valid.split_once(':').expect("a token is <id>:<secret>");
        let (first, rest) = secret.split_at(1);
        *valid = format!("{id}:{rest}{first}");
        valid.clone()
    }

    /// Everything; not to be kept across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        // A test that panicked while it looked changed nothing.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn entry(&self) -> watch::Receiver<Entry> {
        self.entry.subscribe()
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        *self.unavailable.borrow()
    }

    /// Fails until it is lifted.
    pub(crate) fn fail(&self, outage: Outage) {
        match outage {
            Outage::Unavailable => drop(self.unavailable.send_replace(true)),
            Outage::Refuse => self.entry.send_modify(|entry| {
                entry.open = false;
                entry.all.cancel();
            }),
        }
        // Polls under way end too.
        self.signals.poll.notify_waiters();
    }

    /// Works again.
    pub(crate) fn lift(&self) {
        self.unavailable.send_replace(false);
        self.entry.send_modify(|entry| {
            if !entry.open {
                *entry = Entry { open: true, all: CancellationToken::new() };
            }
        });
    }

    /// No fault waits any more, and what is stalled ends.
    pub(crate) fn heal(&self) {
        self.lock().faults.clear();
        self.signals.healed.notify_waiters();
    }

    /// Ends every connection there is.
    pub(crate) fn disconnect(&self) {
        self.entry.send_modify(|entry| {
            entry.all.cancel();
            entry.all = CancellationToken::new();
        });
    }

    /// Waits until a look gives something.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`].
    pub(crate) async fn until<T>(&self, about: &str, check: impl FnMut(View<'_>) -> Option<T>) -> T {
        let found = self.wait(&self.signals.changed, PATIENCE, check).await;
        found.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain: {about}"))
    }

    /// Looks again whenever `changed` tells, for so long.
    pub(crate) async fn wait<T>(
        &self,
        changed: &Notify,
        patience: Duration,
        mut check: impl FnMut(View<'_>) -> Option<T>,
    ) -> Option<T> {
        let waiting = async {
            loop {
                let mut told = pin!(changed.notified());
                told.as_mut().enable();
                if let Some(found) = check(View::of(&self.lock())) {
                    return found;
                }
                told.await;
            }
        };
        timeout(patience, waiting).await.ok()
    }
}
