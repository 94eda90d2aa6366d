//! The store port, on one writer and a few readers.

use std::{collections::BTreeMap, sync::Mutex};

use async_trait::async_trait;
use rejoinder_core::{
    SharedClock, StoreError, Timestamp, TurnId,
    store::{
        Beside, Commit, Hint, InboxStore, LogSeq, NewEvent, Noun, Store, StoreState, Stored, Transition, Transitions,
        Version,
    },
};
use sqlx::SqlitePool;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{versions, writer::Writer};
use crate::shared::{
    request::{WriteRequest, WriteResult},
    transcripts::Transcripts,
    writes,
};

/// A SQLite database as the store.
///
/// It releases the lock on the database when it is [closed](StoreState::close), or shortly after it is dropped.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) readers: SqlitePool,
    /// The connections of the operator: what reads for turns does not wait for them.
    pub(super) operator: SqlitePool,
    /// The connection that counts all rows, which takes long in a big database.
    pub(super) counter: SqlitePool,
    /// `None` when the store was opened for reading only.
    pub(super) writer: Option<Writer>,
    pub(super) clock: SharedClock,
    pub(super) transcripts: Transcripts,
    /// What runs say so far, and the numbers of these: in memory, because nobody needs it any more when the process has ended.
    pub(super) drafts: Mutex<BTreeMap<TurnId, (u32, String)>>,
}

impl SqliteStore {
    pub(super) async fn write(&self, request: WriteRequest) -> Result<WriteResult, StoreError> {
        match &self.writer {
            Some(writer) => writer.write(request).await,
            None => Err(StoreError::Failed("the store was opened for reading only".to_owned())),
        }
    }
}

#[async_trait]
impl InboxStore for SqliteStore {
    async fn accept(&self, events: Vec<NewEvent>, beside: Option<Beside<Stored>>) -> Result<Vec<Stored>, StoreError> {
        writes::accept(&self.transcripts, events, beside, |request| self.write(request)).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.write(WriteRequest::Probe { room: 0 }).await.map(drop)
    }

    fn mark_fetched(&self, turn: TurnId, at: Timestamp) {
        if let Some(writer) = &self.writer {
            writer.write_later(WriteRequest::Fetched { turn, at });
        }
    }
}

#[async_trait]
impl Transitions for SqliteStore {
    async fn commit(&self, transition: Transition) -> Result<Commit, StoreError> {
        writes::commit(&self.transcripts, transition, |request| self.write(request)).await
    }

    async fn version(&self, noun: Noun) -> Result<Version, StoreError> {
        versions::version(&self.readers, noun).await
    }
}

#[async_trait]
impl StoreState for SqliteStore {
    fn trouble(&self) -> Option<StoreError> {
        self.writer.as_ref()?.trouble.error()
    }

    fn unwritable_since(&self) -> Option<Timestamp> {
        self.writer.as_ref()?.trouble.since()
    }

    fn logged(&self) -> watch::Receiver<LogSeq> {
        self.writer.as_ref().map_or_else(|| watch::Sender::new(0).subscribe(), |writer| writer.logged.clone())
    }

    fn noticed(&self) -> watch::Receiver<()> {
        self.writer.as_ref().map_or_else(|| watch::Sender::new(()).subscribe(), |writer| writer.noticed.clone())
    }

    /// There is no other node.
    fn hints(&self) -> broadcast::Receiver<Hint> {
        broadcast::Sender::new(1).subscribe()
    }

    fn hint(&self, _hint: Hint) {}

    fn set_shared(&self, _is_shared: bool) {}

    fn broken(&self) -> CancellationToken {
        self.writer.as_ref().map_or_else(CancellationToken::new, |writer| writer.panicked.clone())
    }

    /// Also writes the log back into the database.
    async fn close(&self) {
        self.readers.close().await;
        self.operator.close().await;
        self.counter.close().await;
        if let Some(writer) = &self.writer {
            writer.close().await;
        }
    }
}

impl Store for SqliteStore {}
