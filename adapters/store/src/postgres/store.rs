//! The store port, on a few connections that write and a few that read.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use rejoinder_core::{
    SharedClock, StoreError, Timestamp, TurnId,
    store::{
        Beside, Commit, Hint, InboxStore, LogSeq, NewEvent, Noun, Store, StoreState, Stored, Transition, Transitions,
        Version,
    },
};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{connections::Connections, hints::Hints, log_order::LogOrder, versions, writer::Writer};
use crate::shared::{
    request::{WriteRequest, WriteResult},
    transcripts::Transcripts,
    writes,
};

/// A PostgreSQL database as the store.
///
/// Its connections end when it is [closed](StoreState::close), or shortly after it is dropped.
pub struct PostgresStore {
    /// They read for turns.
    pub(super) readers: Connections,
    /// They read for the operator: what reads for turns does not wait for them.
    pub(super) operator: Connections,
    /// It counts all rows, which takes long in a big database.
    pub(super) counter: Connections,
    /// They say that this node lives, and take its leases: no other statement makes that late.
    pub(super) nodes: Connections,
    /// They share permits and leases with other nodes.
    pub(super) shares: Connections,
    pub(super) hints: Hints,
    /// They keep what runs say so far.
    pub(super) drafts: Connections,
    pub(super) writer: Writer,
    pub(super) log_order: Arc<LogOrder>,
    pub(super) clock: SharedClock,
    pub(super) transcripts: Arc<Transcripts>,
}

// Without the connections: their options have the password.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").finish_non_exhaustive()
    }
}

impl PostgresStore {
    pub(super) async fn write(&self, request: WriteRequest) -> Result<WriteResult, StoreError> {
        self.writer.write(request).await
    }
}

#[async_trait]
impl InboxStore for PostgresStore {
    async fn accept(&self, events: Vec<NewEvent>, beside: Option<Beside<Stored>>) -> Result<Vec<Stored>, StoreError> {
        writes::accept(&self.transcripts, events, beside, |request| self.write(request)).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.write(WriteRequest::Probe { room: 0 }).await.map(drop)
    }

    fn mark_fetched(&self, turn: TurnId, at: Timestamp) {
        self.writer.write_later(WriteRequest::Fetched { turn, at });
    }
}

#[async_trait]
impl Transitions for PostgresStore {
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError> {
        writes::commit(&self.transcripts, transition, |request| self.write(request)).await
    }

    async fn version(&self, noun: Noun) -> Result<Version, StoreError> {
        versions::version(&self.readers, noun).await
    }
}

#[async_trait]
impl StoreState for PostgresStore {
    fn trouble(&self) -> Option<StoreError> {
        self.writer.trouble().error()
    }

    fn unwritable_since(&self) -> Option<Timestamp> {
        self.writer.trouble().since()
    }

    fn logged(&self) -> watch::Receiver<LogSeq> {
        self.log_order.watch()
    }

    fn noticed(&self) -> watch::Receiver<()> {
        self.writer.noticed()
    }

    fn hints(&self) -> broadcast::Receiver<Hint> {
        self.hints.subscribe()
    }

    fn hint(&self, hint: Hint) {
        self.hints.send(&hint);
    }

    fn set_shared(&self, is_shared: bool) {
        self.transcripts.set_shared(is_shared);
    }

    fn broken(&self) -> CancellationToken {
        self.writer.panicked()
    }

    async fn close(&self) {
        self.readers.close().await;
        self.operator.close().await;
        self.counter.close().await;
        self.nodes.close().await;
        self.shares.close().await;
        self.hints.close().await;
        self.drafts.close().await;
        self.writer.close().await;
        self.log_order.close().await;
    }
}

impl Store for PostgresStore {}
