//! The PostgreSQL of a run: one server, or several of which one is the primary.
//!
//! The servers are started from the newest programs in `/usr/lib/postgresql`, flush to the disk as they do by default, and are stopped and
//! removed at the end.

mod patroni;

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rejoinder_tests::free_port;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection,
    postgres::{PgConnectOptions, PgSslMode},
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use self::patroni::Patroni;
use super::signal::signal;

/// The oldest version that the store uses.
const OLDEST: u32 = 15;
/// The role and the database of the nodes.
const NAME: &str = "rejoinder";
/// A superuser, and a database that each server has.
const SUPERUSER: &str = "postgres";
/// A role that takes connections.
const OTHERS: &str = "others";
/// How many connections a server takes, besides three of a superuser.
const CONNECTIONS: u32 = 80;
/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// How long the database may be away after what was done to it.
const BACK: Duration = Duration::from_mins(2);

/// A server, running or not.
struct Server {
    port: u16,
    data: PathBuf,
}

pub(crate) struct Database {
    /// Before the folder, in which it writes.
    patroni: Option<Patroni>,
    folder: TempDir,
    version: u32,
    programs: PathBuf,
    /// The user and the group of the servers, if we are root: PostgreSQL does not run as root.
    user: Option<(u32, u32)>,
    servers: Vec<Server>,
}

impl Database {
    /// Starts one server, or with `has_standby` three under Patroni; without Patroni a primary with a synchronous standby.
    pub(crate) async fn start(has_standby: bool) -> Result<Self> {
        let Some((version, programs)) = programs() else {
            bail!("PostgreSQL {OLDEST} or newer is not installed: there is none in /usr/lib/postgresql");
        };
        // The user `postgres` may not come into the target directory.
        let folder = tempfile::Builder::new().prefix("rejoinder-chaos").tempdir()?;
        let user =
            if id("-u", None)? == 0 { Some((id("-u", Some("postgres"))?, id("-g", Some("postgres"))?)) } else { None };
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let mut database = Self { patroni: None, folder, version, programs, user, servers: Vec::new() };
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
        Ok(database)
    }

    /// Without Patroni.
    async fn start_alone(&mut self, has_standby: bool) -> Result<()> {
        let primary = self.add_server();
        let initdb = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"];
        run(self.program("initdb").args(initdb).arg(&primary))?;
        self.start_server(0)?;
        self.execute(SUPERUSER, "create table chaos (at timestamptz not null default now())").await?;
        if has_standby {
            self.add_server();
            self.start_standby(1, 0).await?;
        }
        Ok(())
    }

    async fn start_patroni(&mut self) -> Result<()> {
        for _ in 0..patroni::SERVERS {
            self.add_server();
        }
        let servers: Vec<_> = self.servers.iter().map(|it| (it.port, &*it.data)).collect();
        let run_as_server = |program: &Path| self.as_server(program);
        self.patroni = Some(Patroni::start(self.folder.path(), &self.programs, &servers, CONNECTIONS, run_as_server)?);
        let begun = Instant::now();
        while self.execute(SUPERUSER, "create table chaos (at timestamptz not null default now())").await.is_err() {
            ensure!(begun.elapsed() < BACK, "Patroni has not made a primary: {}", self.log());
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    /// Adds a server that has not been started, and returns the folder of its data.
    fn add_server(&mut self) -> PathBuf {
        let data = self.folder.path().join(format!("data-{}", self.servers.len() + 1));
        self.servers.push(Server { port: free_port(), data: data.clone() });
        data
    }

    fn start_server(&self, server: usize) -> Result<()> {
        let Server { port, data } = &self.servers[server];
        let settings = format!(
            "-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c port={port} -c max_connections={CONNECTIONS}"
        );
        let log = self.folder.path().join(format!("postgres-{}.log", server + 1));
        run(self
            .program("pg_ctl")
            .args(["start", "--wait", "--silent", "--options", &settings, "--log"])
            .arg(log)
            .arg("--pgdata")
            .arg(data))
    }

    /// Makes a server the synchronous standby of another one, which commits alone until then.
    async fn start_standby(&self, standby: usize, primary: usize) -> Result<()> {
        let Server { data, .. } = &self.servers[standby];
        if data.exists() {
            fs::remove_dir_all(data)?;
        }
        let port = self.servers[primary].port.to_string();
        let mut copy = self.program("pg_basebackup");
        copy.args([
            "--host=127.0.0.1",
            "--username=postgres",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--port",
            &port,
        ]);
        run(copy.arg("--pgdata").arg(data))?;
        self.start_server(standby)?;
        self.execute(SUPERUSER, "alter system set synchronous_standby_names = '*'").await?;
        self.execute(SUPERUSER, "select pg_reload_conf()").await
    }

    /// What it is, for people.
    pub(crate) fn description(&self) -> String {
        let servers = match (self.has_patroni(), self.has_standby()) {
            (true, _) => "three servers under Patroni, one of them a synchronous standby",
            (false, true) => "a primary and a synchronous standby, without Patroni",
            (false, false) => "one server",
        };
        format!("PostgreSQL {}: {servers}", self.version)
    }

    /// The port of each server.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.servers.iter().map(|server| server.port)
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
        self.servers.len() > 1
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
        bail!("the database is away for {BACK:?}: {}", self.log())
    }

    /// The server on which can be written, which there is now.
    async fn primary_now(&self) -> Result<usize> {
        self.primary().await.context("there is no primary")
    }

    /// The server on which can be written.
    async fn primary(&self) -> Option<usize> {
        for (number, server) in self.servers.iter().enumerate() {
            let writing = async {
                let mut connection = connect(server.port, SUPERUSER, SUPERUSER).await?;
                connection.execute("insert into chaos default values").await
            };
            if matches!(timeout(ANSWER, writing).await, Ok(Ok(_))) {
                return Some(number);
            }
        }
        None
    }

    /// A connection of a superuser to the database of the nodes.
    pub(crate) async fn connect(&self) -> Result<PgConnection> {
        self.connect_to(NAME).await
    }

    /// A connection of a superuser to a database of the primary.
    async fn connect_to(&self, database: &str) -> Result<PgConnection> {
        for Server { port, .. } in &self.servers {
            let connecting = async {
                let mut connection = connect(*port, SUPERUSER, database).await?;
                let is_standby: bool =
                    sqlx::query_scalar("select pg_is_in_recovery()").fetch_one(&mut connection).await?;
                Ok::<_, sqlx::Error>((!is_standby).then_some(connection))
            };
            if let Ok(Ok(Some(connection))) = timeout(ANSWER, connecting).await {
                return Ok(connection);
            }
        }
        bail!("no server answers")
    }

    /// Executes a statement as a superuser at the primary.
    async fn execute(&self, database: &str, sql: &str) -> Result<()> {
        let mut connection = self.connect_to(database).await?;
        connection.execute(AssertSqlSafe(sql)).await?;
        Ok(connection.close().await?)
    }

    /// Ends all connections of the nodes.
    pub(crate) async fn end_backends(&self) -> Result<()> {
        let sql = format!("select pg_terminate_backend(pid) from pg_stat_activity where usename = '{NAME}'");
        self.execute(SUPERUSER, &sql).await
    }

    /// Takes all connections for some time, those of the nodes as well.
    pub(crate) async fn exhaust(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        let port = self.servers[self.primary_now().await?].port;
        let mut taken = Vec::new();
        while Instant::now() < until {
            while let Ok(Ok(connection)) = timeout(ANSWER, connect(port, OTHERS, SUPERUSER)).await {
                taken.push(connection);
            }
            // What the nodes still have ends, and is taken in the next round.
            self.end_backends().await?;
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
        self.stop_server(primary, "fast")?;
        self.start_server(primary)
    }

    /// Ends the primary as `kill -9` does. Patroni starts it again, or another one takes its place; without Patroni it is started again.
    pub(crate) async fn crash(&self) -> Result<()> {
        let primary = self.primary_now().await?;
        signal("KILL", &[self.postmaster(primary)?])?;
        if self.patroni.is_some() {
            return Ok(());
        }
        let begun = Instant::now();
        // Not before its last process has noticed.
        while self.start_server(primary).is_err() {
            ensure!(begun.elapsed() < BACK, "a server does not start again: {}", self.log());
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    /// Stops all processes of the primary, and returns them for [`thaw`](Self::thaw).
    pub(crate) async fn freeze(&self) -> Result<Vec<u32>> {
        let primary = self.primary_now().await?;
        let postmaster = self.postmaster(primary)?;
        // It starts no others then.
        signal("STOP", &[postmaster])?;
        let mut processes = children(postmaster);
        processes.extend(self.patroni.as_ref().map(|patroni| patroni.process(primary)));
        signal("STOP", &processes)?;
        processes.push(postmaster);
        Ok(processes)
    }

    pub(crate) fn thaw(processes: &[u32]) {
        // Some may have ended by themselves.
        let _ = signal("CONT", processes);
    }

    /// Makes the standby the primary. Returns when it was.
    pub(crate) async fn switch_over(&self) -> Result<Instant> {
        let primary = self.primary_now().await?;
        if let Some(patroni) = &self.patroni {
            patroni.switch_over(primary).await?;
            return self.writable().await;
        }
        let standby = 1 - primary;
        self.stop_server(primary, "fast")?;
        run(self
            .program("pg_ctl")
            .args(["promote", "--wait", "--silent", "--pgdata"])
            .arg(&self.servers[standby].data))?;
        let since = self.writable().await?;
        self.start_standby(primary, standby).await?;
        Ok(since)
    }

    /// Writes the database of the nodes, and what the servers have logged, to a folder.
    pub(crate) async fn keep(&self, folder: &Path) -> Result<()> {
        let port = self.servers[self.primary_now().await?].port.to_string();
        let mut dump = Command::new(self.programs.join("pg_dump"));
        dump.args(["--host=127.0.0.1", "--username=postgres", "--format=custom", "--port", &port, "--file"]);
        run(dump.arg(folder.join("database.dump")).arg(NAME))?;
        Ok(fs::write(folder.join("postgres.log"), self.log())?)
    }

    /// What the servers have logged.
    fn log(&self) -> String {
        let files = fs::read_dir(self.folder.path()).into_iter().flatten().flatten().map(|file| file.path());
        let logs = files.filter(|path| path.extension().is_some_and(|it| it == "log"));
        logs.filter_map(|path| fs::read(path).ok()).map(|log| String::from_utf8_lossy(&log).into_owned()).collect()
    }

    fn stop_server(&self, server: usize, mode: &str) -> Result<()> {
        let data = &self.servers[server].data;
        run(self.program("pg_ctl").args(["stop", "--wait", "--silent", "--mode", mode, "--pgdata"]).arg(data))
    }

    /// The process of a server from which its others come.
    fn postmaster(&self, server: usize) -> Result<u32> {
        let file = self.servers[server].data.join("postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        text.lines().next().and_then(|line| line.trim().parse().ok()).context("a postmaster has no process id")
    }

    fn program(&self, name: &str) -> Command {
        self.as_server(&self.programs.join(name))
    }

    /// A program that runs as the user of the servers.
    fn as_server(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // It may not come into the current directory. A server keeps what it inherits.
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.patroni = None;
        for server in 0..self.servers.len() {
            // One that does not run cannot be stopped.
            let _ = self.stop_server(server, "immediate");
        }
    }
}

async fn connect(port: u16, user: &str, database: &str) -> Result<PgConnection, sqlx::Error> {
    let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port).ssl_mode(PgSslMode::Disable);
    options.username(user).database(database).connect().await
}

/// The newest version, and the folder of its programs.
fn programs() -> Option<(u32, PathBuf)> {
    let versions = Path::new("/usr/lib/postgresql").read_dir().ok()?.flatten();
    let number = |version: &fs::DirEntry| version.file_name().to_str()?.parse::<u32>().ok();
    let newest = versions.filter_map(|version| Some((number(&version)?, version.path().join("bin")))).max()?;
    (newest.0 >= OLDEST && newest.1.join("initdb").exists()).then_some(newest)
}

/// The id of a user or of its group; ours if none is given.
fn id(which: &str, user: Option<&str>) -> Result<u32> {
    let output = Command::new("id").arg(which).args(user).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("there is no user {}", user.unwrap_or_default()))
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // After the name, which is in brackets: the state, and the parent.
        let after = stat.rsplit_once(')').map(|(_, after)| after).unwrap_or_default();
        after.split_whitespace().nth(1).and_then(|id| id.parse().ok()) == Some(parent)
    })
    .collect()
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(status.success(), "{} failed: {status}", command.get_program().display());
    Ok(())
}
