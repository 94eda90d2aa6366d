//! The PostgreSQL of a run: one server, or several of which one is the primary.

mod patroni;

use std::{
    env, fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rejoinder_postgres_server::{SUPERUSER, Servers, children};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use tokio::time::{sleep, timeout};

use self::patroni::Patroni;
use super::signal::signal;

/// The role and the database of the nodes.
const NAME: &str = "rejoinder";
/// A role that takes connections.
const OTHERS: &str = "others";
/// How many connections a server takes, besides three of a superuser.
const CONNECTIONS: u32 = 80;
/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// How long the database may be away after what was done to it.
const BACK: Duration = Duration::from_mins(2);

pub(crate) struct Database {
    /// Before the servers, in whose folder it writes, and which it starts again.
    patroni: Option<Patroni>,
    servers: Servers,
}

/// A primary whose processes are stopped.
pub(crate) struct Frozen {
    primary: usize,
    /// With that of Patroni beside it.
    processes: Vec<u32>,
}

impl Database {
    /// Starts one server, or with `has_standby` three under Patroni; without Patroni a primary with a synchronous standby.
    pub(crate) async fn start(has_standby: bool) -> Result<Self> {
        // The user `postgres` may not come into the target directory.
        let servers = Servers::prepare(&env::temp_dir(), &[&format!("max_connections={CONNECTIONS}")])?;
        let mut database = Self { patroni: None, servers };
        if has_standby && Patroni::is_installed() {
            database.start_patroni().await?;
        } else {
            database.start_alone(has_standby).await?;
        }
        database.writable().await?;
        for role in [NAME, OTHERS] {
            database.execute(SUPERUSER, &format!("create role {role} login")).await?;
        }
        let create = format!("create database {NAME} owner {NAME} encoding 'UTF8' template template0");
        database.execute(SUPERUSER, &create).await?;
        database.until_synchronous().await?;
        Ok(database)
    }

    /// Without Patroni.
    async fn start_alone(&mut self, has_standby: bool) -> Result<()> {
        let primary = self.servers.add();
        self.servers.create(primary)?;
        self.servers.start(primary)?;
        self.execute(SUPERUSER, "create table chaos (at timestamptz not null default now())").await?;
        if has_standby {
            let standby = self.servers.add();
            self.servers.start_standby(standby, primary).await?;
        }
        Ok(())
    }

    async fn start_patroni(&mut self) -> Result<()> {
        for _ in 0..patroni::SERVERS {
            self.servers.add();
        }
        self.patroni = Some(Patroni::start(&self.servers, CONNECTIONS)?);
        let begun = Instant::now();
        while self.execute(SUPERUSER, "create table chaos (at timestamptz not null default now())").await.is_err() {
            ensure!(begun.elapsed() < BACK, "Patroni has not made a primary: {}", self.servers.log());
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    /// With Patroni, waits until another server can become the primary.
    async fn until_synchronous(&self) -> Result<()> {
        match &self.patroni {
            Some(patroni) => patroni.until_synchronous().await,
            None => Ok(()),
        }
    }

    /// What it is, for people.
    pub(crate) fn description(&self) -> String {
        let servers = match (self.has_patroni(), self.has_standby()) {
            (true, _) => "three servers under Patroni, one of them a synchronous standby",
            (false, true) => "a primary and a synchronous standby, without Patroni",
            (false, false) => "one server",
        };
        format!("PostgreSQL {}: {servers}", self.servers.version())
    }

    /// The port of each server.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        (0..self.servers.count()).map(|server| self.servers.port(server))
    }

    /// The URL of the database, with these ports in place of those of the servers.
    pub(crate) fn url(ports: &[u16]) -> String {
        let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let attributes = if ports.len() > 1 { "?target_session_attrs=read-write" } else { "" };
        format!("postgres://{NAME}@{}/{NAME}{attributes}", hosts.join(","))
    }

    pub(crate) const fn has_patroni(&self) -> bool {
        self.patroni.is_some()
    }

    pub(crate) fn has_standby(&self) -> bool {
        self.servers.count() > 1
    }

    /// Waits until a transaction is committed that writes, and returns when that was.
    pub(crate) async fn writable(&self) -> Result<Instant> {
        let begun = Instant::now();
        while begun.elapsed() < BACK {
            if self.primary().await.is_some() {
                return Ok(Instant::now());
            }
            sleep(Duration::from_millis(100)).await;
        }
        bail!("the database is away for {BACK:?}: {}", self.servers.log())
    }

    /// The server on which can be written, which there is now.
    async fn primary_now(&self) -> Result<usize> {
        self.primary().await.context("there is no primary")
    }

    /// The server on which can be written.
    async fn primary(&self) -> Option<usize> {
        for server in 0..self.servers.count() {
            let writing = async {
                let mut connection = self.servers.connect_to(server, SUPERUSER, SUPERUSER).await?;
                connection.execute("insert into chaos default values").await
            };
            if matches!(timeout(ANSWER, writing).await, Ok(Ok(_))) {
                return Some(server);
            }
        }
        None
    }

    /// A connection of a superuser to the database of the nodes.
    pub(crate) async fn connect(&self) -> Result<PgConnection> {
        self.servers.connect(NAME).await
    }

    /// Executes a statement as a superuser at the primary.
    async fn execute(&self, database: &str, sql: &str) -> Result<()> {
        self.servers.execute(database, sql).await
    }

    /// For how long a node still has its leases; zero if it has none.
    pub(crate) async fn lease_left(&self, node: &str) -> Result<Duration> {
        let left = "select coalesce(greatest(max(extract(epoch from until - clock_timestamp())), 0), 0)::float8
                    from leases where node = $1::uuid";
        let left = sqlx::query_scalar(left).bind(node).fetch_one(&mut self.connect().await?).await?;
        Ok(Duration::from_secs_f64(left))
    }

    /// Whether a server takes writes now.
    pub(crate) async fn is_writable(&self) -> bool {
        self.primary().await.is_some()
    }

    /// Ends all connections of the nodes.
    pub(crate) async fn end_backends(&self) -> Result<()> {
        self.execute(SUPERUSER, &end_backends()).await
    }

    /// Takes all connections for some time, those of the nodes as well.
    pub(crate) async fn exhaust(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        let primary = self.primary_now().await?;
        // A new one in each round might find those of a superuser taken by the last ones, which end late.
        let mut superuser = self.servers.connect_to(primary, SUPERUSER, SUPERUSER).await?;
        let mut taken = Vec::new();
        while Instant::now() < until {
            while let Ok(Ok(connection)) = timeout(ANSWER, self.servers.connect_to(primary, OTHERS, SUPERUSER)).await {
                taken.push(connection);
            }
            // What the nodes still have ends, and is taken in the next round.
            superuser.execute(AssertSqlSafe(end_backends())).await?;
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Stops the primary in order, and starts it again.
    pub(crate) async fn restart(&self) -> Result<()> {
        let primary = self.primary_now().await?;
        if let Some(patroni) = &self.patroni {
            return patroni.restart(primary).await;
        }
        self.servers.stop(primary, "fast")?;
        self.servers.start(primary)
    }

    /// Ends the primary and what is beside it, as the loss of its machine does, and returns when there was one again. With Patroni another
    /// server takes its place, and it comes back as a standby; without Patroni it is started again.
    pub(crate) async fn lose(&mut self) -> Result<Instant> {
        if self.patroni.is_none() {
            self.crash().await?;
            return self.writable().await;
        }
        self.until_synchronous().await?;
        let primary = self.primary_now().await?;
        let postmaster = self.servers.postmaster(primary)?;
        if let Some(patroni) = &mut self.patroni {
            patroni.kill(primary)?;
        }
        signal("KILL", &[postmaster])?;
        let since = self.writable().await?;
        if let Some(patroni) = &mut self.patroni {
            patroni.start_again(&self.servers, primary)?;
        }
        Ok(since)
    }

    /// Ends the primary as `kill -9` does. Patroni starts it again, or another one takes its place; without Patroni it is started again.
    pub(crate) async fn crash(&self) -> Result<()> {
        let primary = self.primary_now().await?;
        signal("KILL", &[self.servers.postmaster(primary)?])?;
        if self.patroni.is_some() {
            return Ok(());
        }
        let begun = Instant::now();
        // Not before its last process has noticed.
        while self.servers.start(primary).is_err() {
            ensure!(begun.elapsed() < BACK, "a server does not start again: {}", self.servers.log());
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    /// Stops all processes of the primary, and what is beside it, until [`end_freeze`](Self::end_freeze).
    pub(crate) async fn freeze(&self) -> Result<Frozen> {
        self.until_synchronous().await?;
        let primary = self.primary_now().await?;
        let postmaster = self.servers.postmaster(primary)?;
        // It starts no others then.
        signal("STOP", &[postmaster])?;
        let mut processes = children(postmaster);
        processes.extend(self.patroni.as_ref().map(|patroni| patroni.process(primary)));
        signal("STOP", &processes)?;
        processes.push(postmaster);
        Ok(Frozen { primary, processes })
    }

    /// The processes go on; some may have ended by themselves. With a Patroni that could then overwrite the lock of the next leader, they
    /// are killed and Patroni is started, as if a watchdog had reset their machine: until it has booted, it is as silent as a frozen one.
    pub(crate) fn end_freeze(&mut self, frozen: &Frozen) -> Result<()> {
        let Frozen { primary, processes } = frozen;
        match &mut self.patroni {
            Some(patroni) if !Patroni::keeps_locks()? => {
                let _ = signal("KILL", processes);
                patroni.kill(*primary)?;
                patroni.start_again(&self.servers, *primary)
            }
            _ => {
                let _ = signal("CONT", processes);
                Ok(())
            }
        }
    }

    /// Makes the standby the primary. Returns when it was.
    pub(crate) async fn switch_over(&self) -> Result<Instant> {
        self.until_synchronous().await?;
        let primary = self.primary_now().await?;
        if let Some(patroni) = &self.patroni {
            patroni.switch_over(primary).await?;
            return self.writable().await;
        }
        let standby = 1 - primary;
        self.servers.stop(primary, "fast")?;
        self.servers.promote(standby)?;
        let since = self.writable().await?;
        self.servers.start_standby(primary, standby).await?;
        Ok(since)
    }

    /// Writes the database of the nodes, and what the servers have logged, to a folder.
    pub(crate) async fn keep(&self, folder: &Path) -> Result<()> {
        let port = self.servers.port(self.primary_now().await?).to_string();
        let mut dump = Command::new(self.servers.programs().join("pg_dump"));
        dump.args(["--host=127.0.0.1", "--username=postgres", "--format=custom", "--port", &port, "--file"]);
        let status = dump.arg(folder.join("database.dump")).arg(NAME).status().context("cannot start pg_dump")?;
        ensure!(status.success(), "pg_dump failed: {status}");
        Ok(fs::write(folder.join("postgres.log"), self.servers.log())?)
    }
}

/// Ends all connections of the nodes.
fn end_backends() -> String {
    format!("select pg_terminate_backend(pid) from pg_stat_activity where usename = '{NAME}'")
}
