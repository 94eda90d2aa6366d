//! What all measurements share.

use std::{path::PathBuf, time::Duration};

use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::{client::Endpoint, postgres::Postgres};

/// The settings of all measurements.
pub(crate) struct Bench {
    /// The path of the binary.
    pub(crate) rejoinder: PathBuf,
    /// The folder for databases and logs.
    pub(crate) folder: PathBuf,
    /// The duration of a load.
    pub(crate) length: Duration,
    /// The number of waiting turns.
    pub(crate) waiting: u64,
    /// The least number of settled turns.
    pub(crate) settled: u64,
    /// The least number of open turns in the backlog on PostgreSQL.
    pub(crate) backlog_open: u64,
    /// The least number of settled turns there.
    pub(crate) backlog_settled: u64,
    /// The number of conversations of waiting and of settled turns.
    pub(crate) conversations: u32,
    /// Another server to compare with.
    pub(crate) peer: Option<Endpoint>,
    /// The port of the agent of hooks, which a peer can ask, too; 0: any.
    pub(crate) agent_port: u16,
    /// The store with settled turns; made when it is first needed.
    pub(crate) settled_store: OnceCell<SettledStore>,
    /// The server with the backlog; likewise.
    pub(crate) backlog: OnceCell<Backlog>,
}

/// A server that has a database with many open and many settled turns.
pub(crate) struct Backlog {
    pub(crate) postgres: Postgres,
    pub(crate) open: u64,
    pub(crate) settled: u64,
}

/// A database with many settled turns.
pub(crate) struct SettledStore {
    _folder: TempDir,
    pub(crate) database: PathBuf,
    pub(crate) turns: u64,
}

impl SettledStore {
    /// `folder`, which holds the database, is deleted on drop.
    pub(crate) fn new(folder: TempDir, database: PathBuf, turns: u64) -> Self {
        Self { _folder: folder, database, turns }
    }
}
