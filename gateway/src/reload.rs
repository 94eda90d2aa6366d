//! Requests to read the configuration again while the gateway runs.

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use utoipa::ToSchema;

/// How many requests may wait.
const WAITING: usize = 8;

/// The keys of the configuration that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Reloaded {
    /// What has changed since it was read last, and holds from now on.
    pub(crate) changed: Vec<String>,
    /// What differs from the start, and waits for the next one.
    pub(crate) at_restart: Vec<String>,
    /// Who was not known and was let in, as `CHANNEL/ID (NAME, ROLE)`.
    pub(crate) let_in: Vec<String>,
    /// Who is no longer configured and stays known until they are revoked, likewise.
    pub(crate) still_known: Vec<String>,
    /// The schedules of operators and agents that gave way to a configured one of the same name.
    pub(crate) replaced_schedules: Vec<String>,
}

impl Reloaded {
    /// What has changed, for the audit.
    pub(crate) fn target(&self) -> String {
        let let_in = self.let_in.iter().map(|person| format!("let in {person}"));
        let replaced = self.replaced_schedules.iter().map(|name| format!("replaced the schedule {name}"));
        self.changed.iter().cloned().chain(let_in).chain(replaced).collect::<Vec<_>>().join(", ")
    }
}

/// What a request is answered: the changes, or why there are none, for the operator.
pub(crate) type ReloadResult = Result<Reloaded, String>;

/// The requests, for the loop that reads the configuration.
pub(crate) type ReloadRequests = mpsc::Receiver<oneshot::Sender<ReloadResult>>;

/// Asks for the configuration to be read again.
#[derive(Clone, Debug)]
pub(crate) struct Reload(mpsc::Sender<oneshot::Sender<ReloadResult>>);

impl Reload {
    pub(crate) fn new() -> (Self, ReloadRequests) {
        let (sender, requests) = mpsc::channel(WAITING);
        (Self(sender), requests)
    }

    /// # Errors
    /// Why nothing has changed.
    pub(crate) async fn read_again(&self) -> ReloadResult {
        let ended = || "the gateway is stopping".to_owned();
        let (sender, answer) = oneshot::channel();
        self.0.send(sender).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}
