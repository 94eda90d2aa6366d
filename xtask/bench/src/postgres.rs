//! A PostgreSQL server of the bench's own, and what it has done so far.

use std::{path::Path, time::Duration};

use anyhow::Result;
use rejoinder_postgres_server::{SUPERUSER, Servers, children};
use rustix::process::geteuid;
use sqlx::PgConnection;

use crate::cpu;

/// What differs from PostgreSQL's defaults: five gateways and the bench are connected, and statements are counted.
const SETTINGS: [&str; 2] = ["max_connections=200", "shared_preload_libraries=pg_stat_statements"];

/// The role of the gateways, which owns the databases.
const ROLE: &str = "rejoinder";

const PRIMARY: usize = 0;

/// One server, and its standby if it has one. Stopped and removed on drop.
pub(crate) struct Postgres {
    servers: Servers,
}

/// What was used since the server started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// The CPU time of all processes of the server, and of the standby.
    pub(crate) cpu_time: Duration,
    /// The statements of gateways. Each is a round trip.
    pub(crate) statements: i64,
    /// The transactions that have written something.
    pub(crate) commits: i64,
    /// The bytes of the write-ahead log.
    pub(crate) log: i64,
}

impl Postgres {
    /// Starts a server that has its data on the disk of `folder`; if we are root, on that of /var/tmp.
    ///
    /// # Errors
    ///
    /// When PostgreSQL is not installed, or does not start.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        // It does not run as root, and its user may not come into our folder.
        let folder = if geteuid().is_root() { Path::new("/var/tmp") } else { folder };
        let mut servers = Servers::prepare(folder, &SETTINGS)?;
        servers.add();
        servers.create(PRIMARY)?;
        servers.start(PRIMARY)?;
        servers.execute(SUPERUSER, "create extension pg_stat_statements").await?;
        servers.execute(SUPERUSER, &format!("create role {ROLE} login")).await?;
        Ok(Self { servers })
    }

    /// Starts a synchronous standby: a commit waits for its disk, too.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub(crate) async fn add_standby(&mut self) -> Result<()> {
        let standby = self.servers.add();
        self.servers.start_standby(standby, PRIMARY).await
    }

    /// The folder on the disk of the data.
    pub(crate) fn folder(&self) -> &Path {
        self.servers.folder()
    }

    /// Creates an empty database in place of another one with this name, and returns its section of the configuration.
    ///
    /// # Errors
    ///
    /// When the server refuses it.
    pub(crate) async fn create(&self, database: &str) -> Result<String> {
        self.servers.execute(SUPERUSER, &format!("drop database if exists {database} with (force)")).await?;
        let create = format!("create database {database} owner {ROLE} encoding 'UTF8' template template0");
        self.servers.execute(SUPERUSER, &create).await?;
        Ok(self.section(database))
    }

    /// The section of the configuration for a database.
    pub(crate) fn section(&self, database: &str) -> String {
        let port = self.servers.port(PRIMARY);
        format!("[store]\nurl = \"postgres://{ROLE}@127.0.0.1:{port}/{database}\"\n")
    }

    /// Opens a connection of the superuser to a database.
    ///
    /// # Errors
    ///
    /// When the server refuses it.
    pub(crate) async fn connect(&self, database: &str) -> Result<PgConnection> {
        self.servers.connect(database).await
    }

    /// Reads what was used so far; of the statements, those in this database.
    ///
    /// # Errors
    ///
    /// When the server has ended.
    pub(crate) async fn used(&self, database: &str) -> Result<Used> {
        let mut connection = self.connect(SUPERUSER).await?;
        let (statements, commits, log) = sqlx::query_as(USED).bind(database).fetch_one(&mut connection).await?;
        let mut cpu_time = Duration::ZERO;
        for server in 0..self.servers.count() {
            let postmaster = self.servers.postmaster(server)?;
            cpu_time += cpu::time_of(postmaster)? + cpu::time_of_children(postmaster)?;
            // One that has ended meanwhile is among those that the postmaster has waited for.
            cpu_time += children(postmaster).into_iter().filter_map(|child| cpu::time_of(child).ok()).sum::<Duration>();
        }
        Ok(Used { cpu_time, statements, commits, log })
    }
}

/// A transaction has a number once it writes. Foreign keys that are checked at the commit are statements of the server's own.
const USED: &str = "
    select (select coalesce(sum(calls), 0)::bigint from pg_stat_statements
            where userid = 'rejoinder'::regrole and dbid = (select oid from pg_database where datname = $1)
                and query not like 'SELECT % FROM ONLY %'),
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
        pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
