//! Keeps the copies of the operators' tokens, of the sessions of their page, and of the links to it as new as their rows, which other
//! nodes change.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Engine, SharedClock, Store, StoreError,
    store::{Hint, Noun, Version},
};
use tokio::{
    sync::{
        Notify,
        broadcast::{Receiver, error::RecvError},
        watch,
    },
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::sessions::AdminSessions;
use crate::callers::StoredTokens;

/// The pause between two looks, after [`AT_LEAST`]. With both and what a look takes, a token that another node revoked opens nothing here
/// after a second, as long as both reach the database.
const EVERY: Duration = Duration::from_millis(700);

/// How long it is at least from one look to the next, however many secrets are sent that nobody knows.
const AT_LEAST: Duration = Duration::from_millis(200);

/// For how long the copies count after a look.
const TRUSTED: Duration = Duration::from_secs(30);

/// For how long they count while no other node is known: it takes half of [`TRUSTED`] until this one does not count as alone.
const TRUSTED_ALONE: Duration = Duration::from_secs(15);

/// How long a request waits for a look.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Renewal {
    engine: Engine,
    store: Arc<dyn Store>,
    clock: SharedClock,
    tokens: Arc<StoredTokens>,
    sessions: Arc<AdminSessions>,
    /// Told when a request waits for a look.
    wanted: Notify,
    looks: watch::Sender<Looks>,
}

/// The looks at the rows.
#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    /// How many have begun, and how many of them have ended.
    begun: u64,
    ended: u64,
    /// Whether the last one failed.
    has_failed: bool,
}

impl Renewal {
    pub(crate) fn new(
        engine: Engine,
        store: Arc<dyn Store>,
        clock: SharedClock,
        (tokens, sessions): (Arc<StoredTokens>, Arc<AdminSessions>),
    ) -> Arc<Self> {
        let (wanted, looks) = (Notify::new(), watch::Sender::default());
        Arc::new(Self { engine, store, clock, tokens, sessions, wanted, looks })
    }

    /// Looks at the rows again and again while other nodes live, and until a look has succeeded after the last one has gone. If there can
    /// be none, it returns at once.
    pub(crate) async fn run(self: Arc<Self>) {
        if !self.engine.may_have_neighbours() {
            return;
        }
        let mut hints = self.store.hints();
        // One may have changed them after they were read, and be gone.
        let (mut copied, mut is_due) = (None, true);
        loop {
            let has_neighbours = self.engine.has_neighbours();
            if has_neighbours || is_due {
                is_due = !self.look(&mut copied).await || has_neighbours;
            } else {
                self.tokens.count_until(self.clock.boottime() + TRUSTED_ALONE);
            }
            sleep(AT_LEAST).await;
            tokio::select! {
                () = sleep(EVERY) => {}
                () = self.wanted.notified() => {}
                () = told(&mut hints) => is_due = true,
            }
        }
    }

    /// Looks at the rows; returns whether that succeeded.
    async fn look(&self, copied: &mut Option<Version>) -> bool {
        let begun_at = self.clock.boottime();
        self.looks.send_modify(|looks| looks.begun += 1);
        let result = self.copy(copied).await;
        let (had_failed, fails) = (self.looks.borrow().has_failed, result.is_err());
        match result {
            Ok(()) => {
                self.tokens.count_until(begun_at + TRUSTED);
                if had_failed {
                    info!("what other nodes change of tokens and sessions can be read again");
                }
            }
            Err(error) if !had_failed => {
                warn!(%error, "cannot read whether another node has changed tokens or sessions, trying again");
            }
            Err(_) => {}
        }
        self.looks.send_modify(|looks| *looks = Looks { ended: looks.begun, has_failed: fails, ..*looks });
        !fails
    }

    /// Copies the rows if they have changed since they were `copied`.
    async fn copy(&self, copied: &mut Option<Version>) -> Result<(), StoreError> {
        loop {
            let changes = (self.tokens.changes(), self.sessions.changes());
            // Before the rows: if they change meanwhile, they are read once more.
            let version = self.store.version(Noun::Tokens).await?;
            if *copied == Some(version) {
                return Ok(());
            }
            let tokens = self.store.tokens().await?;
            let (links, open) = (self.store.links().await?, self.store.sign_ins().await?);
            // What was changed here meanwhile may not be in these rows.
            if self.tokens.replace(tokens, changes.0) && self.sessions.replace(links, open, changes.1) {
                *copied = Some(version);
                return Ok(());
            }
        }
    }

    /// What `open` finds; if that is nothing, what it finds after a look at the rows, which another node may have changed.
    ///
    /// # Errors
    /// If it finds nothing while the rows cannot be read. The look has logged why.
    pub(crate) async fn find<T>(&self, open: impl Fn() -> Option<T>) -> Result<Option<T>, StoreError> {
        if let Some(found) = open() {
            return Ok(Some(found));
        }
        let is_read = self.renew().await;
        match open() {
            None if is_read == Some(false) || !self.tokens.do_count() => {
                Err(StoreError::Unavailable("the tokens of other nodes cannot be read".to_owned()))
            }
            found => Ok(found),
        }
    }

    /// Waits for a look at the rows that begins from now on. Returns whether it succeeded; `None` if no other nodes live. While looks fail,
    /// it does not wait.
    pub(crate) async fn renew(&self) -> Option<bool> {
        if !self.engine.has_neighbours() {
            return None;
        }
        let mut looks = self.looks.subscribe();
        let Looks { begun, has_failed, .. } = *looks.borrow_and_update();
        if has_failed {
            return Some(false);
        }
        self.wanted.notify_one();
        let next = timeout(PATIENCE, looks.wait_for(|looks| looks.ended > begun)).await;
        Some(next.is_ok_and(|next| next.is_ok_and(|looks| !looks.has_failed)))
    }
}

/// Waits until another node tells that it has changed tokens, sessions or links, or may have.
async fn told(hints: &mut Receiver<Hint>) {
    loop {
        match hints.recv().await {
            Ok(Hint::Noun(Noun::Tokens) | Hint::All) | Err(RecvError::Lagged(_)) => return,
            Ok(_) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}
