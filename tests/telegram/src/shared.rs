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
    listener::ListenerState,
    view::View,
    world::{Signals, World},
};

/// How long to wait for what must happen: far longer than it takes.
pub const PATIENCE: Duration = Duration::from_mins(2);

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
    listener_state: watch::Sender<ListenerState>,
    unavailable: watch::Sender<bool>,
}

impl Shared {
    pub(crate) fn new(world: World, signals: Arc<Signals>, token: String) -> Self {
        let listener_state = watch::Sender::new(ListenerState { is_open: true, connections: CancellationToken::new() });
        let valid = Mutex::new(token.clone());
        Self { world: Mutex::new(world), signals, token, valid, listener_state, unavailable: watch::Sender::new(false) }
    }

    /// Whether a token is valid.
    pub(crate) fn accepts_token(&self, token: &str) -> bool {
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

    pub(crate) fn listener_state(&self) -> watch::Receiver<ListenerState> {
        self.listener_state.subscribe()
    }

    pub(crate) fn is_unavailable(&self) -> bool {
        *self.unavailable.borrow()
    }

    /// Begins an outage.
    pub(crate) fn start_outage(&self, outage: Outage) {
        match outage {
            Outage::Unavailable => drop(self.unavailable.send_replace(true)),
            Outage::Refuse => self.listener_state.send_modify(|listener_state| {
                listener_state.is_open = false;
                listener_state.connections.cancel();
            }),
        }
        // Wakes pending polls, so that they end.
        self.signals.poll.notify_waiters();
    }

    /// Ends an outage.
    pub(crate) fn end_outage(&self) {
        self.unavailable.send_replace(false);
        self.listener_state.send_modify(|listener_state| {
            if !listener_state.is_open {
                *listener_state = ListenerState { is_open: true, connections: CancellationToken::new() };
            }
        });
    }

    /// Removes all faults and ends stalled calls.
    pub(crate) fn clear_faults(&self) {
        self.lock().faults.clear();
        self.signals.faults_cleared.notify_waiters();
    }

    /// Closes all connections.
    pub(crate) fn disconnect(&self) {
        self.listener_state.send_modify(|listener_state| {
            listener_state.connections.cancel();
            listener_state.connections = CancellationToken::new();
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
                let mut notified = pin!(changed.notified());
                notified.as_mut().enable();
                if let Some(found) = check(View::of(&self.lock())) {
                    return found;
                }
                notified.await;
            }
        };
        timeout(patience, waiting).await.ok()
    }
}
