//! PostgreSQL servers of a run's own: one, or a primary and its standbys.
//!
//! They are started from the newest programs in `/usr/lib/postgresql`, flush to the disk as they do by default, and are stopped and
//! removed at the end.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use rejoinder_matrix_server::free_port;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection,
    postgres::{PgConnectOptions, PgSslMode},
};
use tempfile::TempDir;
use tokio::time::timeout;

/// A superuser, and a database that each server has.
pub const SUPERUSER: &str = "postgres";
/// The oldest version that the store uses.
const OLDEST: u32 = 15;
/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// A server, running or not.
struct Server {
    port: u16,
    data: PathBuf,
}

/// Servers that stop when this is dropped. Each has a number, from 0.
pub struct Servers {
    folder: TempDir,
    version: u32,
    programs: PathBuf,
    /// The user and the group of the servers, if we are root: PostgreSQL does not run as root.
    user: Option<(u32, u32)>,
    /// The options of each.
    settings: String,
    all: Vec<Server>,
}

impl Servers {
    /// Whether a version that the store uses is installed.
    pub fn are_installed() -> bool {
        programs().is_some()
    }

    /// Prepares for servers with these settings (`max_connections=80`), which have their data in a folder of their own in `parent`. If
    /// we are root, `postgres` must be able to come there.
    ///
    /// # Errors
    /// If no PostgreSQL is installed, or nothing can be written there.
    pub fn prepare(parent: &Path, settings: &[&str]) -> Result<Self> {
        let Some((version, programs)) = programs() else {
            bail!("PostgreSQL {OLDEST} or newer is not installed: there is none in /usr/lib/postgresql");
        };
        let folder = tempfile::Builder::new().prefix("rejoinder-postgres").tempdir_in(parent)?;
        let user =
            if id("-u", None)? == 0 { Some((id("-u", Some("postgres"))?, id("-g", Some("postgres"))?)) } else { None };
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let settings = settings.iter().flat_map(|setting| [" -c ", setting]).collect();
        Ok(Self { folder, version, programs, user, settings, all: Vec::new() })
    }

    /// Adds a server without data, which has not been started.
    pub fn add(&mut self) -> usize {
        let number = self.all.len();
        let data = self.folder.path().join(format!("data-{}", number + 1));
        self.all.push(Server { port: free_port(), data });
        number
    }

    /// Makes the data of a server that is no standby. Everybody on this machine may connect.
    ///
    /// # Errors
    /// If `initdb` fails.
    pub fn create(&self, server: usize) -> Result<()> {
        let initdb = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"];
        run(self.program("initdb").args(initdb).arg(&self.all[server].data))
    }

    /// Starts a server that has data.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&self, server: usize) -> Result<()> {
        let Server { port, data } = &self.all[server];
        let settings =
            format!("-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c port={port}{}", self.settings);
        let log = self.folder.path().join(format!("postgres-{}.log", server + 1));
        run(self
            .program("pg_ctl")
            .args(["start", "--wait", "--silent", "--options", &settings, "--log"])
            .arg(log)
            .arg("--pgdata")
            .arg(data))
    }

    /// Makes a server the synchronous standby of another one, which commits alone until then.
    ///
    /// # Errors
    /// If the primary cannot be copied, or the standby does not start.
    pub async fn start_standby(&self, standby: usize, primary: usize) -> Result<()> {
        let Server { data, .. } = &self.all[standby];
        if data.exists() {
            fs::remove_dir_all(data)?;
        }
        let port = self.all[primary].port.to_string();
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
        self.start(standby)?;
        self.execute(SUPERUSER, "alter system set synchronous_standby_names = '*'").await?;
        self.execute(SUPERUSER, "select pg_reload_conf()").await
    }

    /// Makes a standby a primary.
    ///
    /// # Errors
    /// If it is none, or does not run.
    pub fn promote(&self, standby: usize) -> Result<()> {
        let data = &self.all[standby].data;
        run(self.program("pg_ctl").args(["promote", "--wait", "--silent", "--pgdata"]).arg(data))
    }

    /// Stops a server: `fast` or `immediate`.
    ///
    /// # Errors
    /// If it does not run.
    pub fn stop(&self, server: usize, mode: &str) -> Result<()> {
        let data = &self.all[server].data;
        run(self.program("pg_ctl").args(["stop", "--wait", "--silent", "--mode", mode, "--pgdata"]).arg(data))
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.all.len()
    }

    /// The version of all.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// The folder of PostgreSQL's programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// The folder with the data and the logs (`*.log`) of all.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The port of a server, on 127.0.0.1.
    pub fn port(&self, server: usize) -> u16 {
        self.all[server].port
    }

    /// The folder of a server's data.
    pub fn data(&self, server: usize) -> &Path {
        &self.all[server].data
    }

    /// The process of a server from which its others come.
    ///
    /// # Errors
    /// If it does not run.
    pub fn postmaster(&self, server: usize) -> Result<u32> {
        let file = self.all[server].data.join("postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        text.lines().next().and_then(|line| line.trim().parse().ok()).context("a postmaster has no process id")
    }

    /// What the servers have logged.
    pub fn log(&self) -> String {
        let files = fs::read_dir(self.folder()).into_iter().flatten().flatten().map(|file| file.path());
        let logs = files.filter(|path| path.extension().is_some_and(|it| it == "log"));
        logs.filter_map(|path| fs::read(path).ok()).map(|log| String::from_utf8_lossy(&log).into_owned()).collect()
    }

    /// Opens a connection to a database of a server.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn connect_to(&self, server: usize, user: &str, database: &str) -> Result<PgConnection, sqlx::Error> {
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(self.port(server));
        options.ssl_mode(PgSslMode::Disable).username(user).database(database).connect().await
    }

    /// Opens a connection of the superuser to a database of the primary.
    ///
    /// # Errors
    /// If no primary answers.
    pub async fn connect(&self, database: &str) -> Result<PgConnection> {
        for server in 0..self.count() {
            let connecting = async {
                let mut connection = self.connect_to(server, SUPERUSER, database).await?;
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

    /// Executes a statement as the superuser at the primary.
    ///
    /// # Errors
    /// If no primary answers, or the statement fails.
    pub async fn execute(&self, database: &str, sql: &str) -> Result<()> {
        let mut connection = self.connect(database).await?;
        connection.execute(AssertSqlSafe(sql)).await?;
        Ok(connection.close().await?)
    }

    fn program(&self, name: &str) -> Command {
        self.command(&self.programs.join(name))
    }

    /// A program that runs as the user of the servers.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // It may not come into the current directory. A server keeps what it inherits.
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in 0..self.count() {
            // One that does not run cannot be stopped.
            let _ = self.stop(server, "immediate");
        }
    }
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

/// The processes that a process has started and that have not ended.
pub fn children(parent: u32) -> Vec<u32> {
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
