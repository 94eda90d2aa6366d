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
