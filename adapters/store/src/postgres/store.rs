//! The store port, on a few connections that write and a few that read.

use rejoinder_core::SharedClock;

use super::{connections::Connections, log_order::LogOrder, writer::Writer};
use crate::shared::transcripts::Transcripts;

/// A PostgreSQL database as the store.
#[derive(Debug)]
pub struct PostgresStore {
    /// They read for turns.
    pub(super) readers: Connections,
    /// They read for the operator: what reads for turns does not wait for them.
    pub(super) operator: Connections,
    /// It counts all rows, which takes long in a big database.
    pub(super) counter: Connections,
    pub(super) writer: Writer,
    pub(super) log_order: LogOrder,
    pub(super) clock: SharedClock,
    pub(super) transcripts: Transcripts,
}
