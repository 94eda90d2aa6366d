//! The store as a whole.

use async_trait::async_trait;
use rejoinder_guard::Timestamp;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{error::StoreError, hints::Hint};
use crate::model::LogSeq;

/// The store as a whole.
#[async_trait]
pub trait StoreState: Send + Sync + 'static {
    /// Why the store cannot write, as its last writes tell: set by the first write that fails, and unset when there is
    /// room for further ones. Costs nothing.
    fn trouble(&self) -> Option<StoreError>;

    /// Since when the store cannot write, if it cannot. Once it can again, it logs the outage itself, however short it was.
    fn unwritable_since(&self) -> Option<Timestamp>;

    /// The position up to which the log can be read: no entry up to it is committed later. It changes after each commit that added
    /// an entry, and may be after the last one: numbers of entries may have gaps.
    fn logged(&self) -> watch::Receiver<LogSeq>;

    /// Changes after each commit that owes agents [notices](super::agent_sessions::AgentSessionStore::agent_notices), settles them or
    /// puts them off.
    fn noticed(&self) -> watch::Receiver<()>;

    /// The hints of other nodes, from now on. [`Hint::All`] is the first, and comes again after each interruption. A store that admits
    /// one process has none: it closes the channel at once.
    fn hints(&self) -> broadcast::Receiver<Hint>;

    /// Tells the other nodes something, soon. Waits for nothing, and does nothing if the store admits one process.
    fn hint(&self, hint: Hint);

    /// Whether other nodes use the store as well: then it must not answer from memory what they may have changed.
    fn set_shared(&self, is_shared: bool);

    /// Cancelled when an internal error has ended the store: every later write fails, until the process is restarted.
    fn broken(&self) -> CancellationToken;

    /// Finishes pending writes and closes the database. Every later call fails.
    async fn close(&self);
}
