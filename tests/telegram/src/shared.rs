//! State that the server, its handles and its webhook worker share.

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

/// How long to wait for what must happen: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How the whole server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outage {
    /// Connections are refused, and existing ones are closed.
    Refuse,
    /// Every call gets a 503 and is not executed.
    Unavailable,
}

#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    pub(crate) signals: Arc<Signals>,
    /// The initial token.
    pub(crate) token: String,
    /// The currently valid token.
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

    /// Whether a token is valid.
    pub(crate) fn takes(&self, token: &str) -> bool {
        *self.valid.lock().unwrap_or_else(PoisonError::into_inner) == token
    }

    /// Replaces the token and returns the new one.
    pub(crate) fn reset_token(&self) -> String {
        let mut valid = self.valid.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, secret) = valid.split_once(':').expect("a token is <id>:<secret>");
        let (first, rest) = secret.split_at(1);
        *valid = format!("{id}:{rest}{first}");
        valid.clone()
    }

    /// Locks the state; must not be held across an await.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        // A test that panicked while it held the lock only read.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn entry(&self) -> watch::Receiver<Entry> {
        self.entry.subscribe()
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        *self.unavailable.borrow()
    }

    /// Begins an outage.
    pub(crate) fn fail(&self, outage: Outage) {
        match outage {
            Outage::Unavailable => drop(self.unavailable.send_replace(true)),
            Outage::Refuse => self.entry.send_modify(|entry| {
                entry.open = false;
                entry.all.cancel();
            }),
        }
        // Wakes pending polls, so that they end.
        self.signals.poll.notify_waiters();
    }

    /// Ends an outage.
    pub(crate) fn lift(&self) {
        self.unavailable.send_replace(false);
        self.entry.send_modify(|entry| {
            if !entry.open {
                *entry = Entry { open: true, all: CancellationToken::new() };
            }
        });
    }

    /// Removes all faults and ends stalled calls.
    pub(crate) fn heal(&self) {
        self.lock().faults.clear();
        self.signals.healed.notify_waiters();
    }

    /// Closes all connections.
    pub(crate) fn disconnect(&self) {
        self.entry.send_modify(|entry| {
            entry.all.cancel();
            entry.all = CancellationToken::new();
        });
    }

    /// Waits until `check` returns `Some`.
    ///
    /// # Panics
    /// If it does not within [`PATIENCE`].
    pub(crate) async fn until<T>(&self, about: &str, check: impl FnMut(View<'_>) -> Option<T>) -> T {
        let found = self.wait(&self.signals.changed, PATIENCE, check).await;
        found.unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain: {about}"))
    }

    /// Evaluates `check` again on each notification of `changed`, for up to `patience`.
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
