//! A server for tests: that of the environment variable `REJOINDER_TEST_POSTGRES`, a URL `postgres://…`, or one that the first test
//! starts from the newest programs in `/usr/lib/postgresql`.
//!
//! A server that a test has started serves all tests of a target directory, each of which may be a process of its own. Each process
//! holds a shared lock as long as it runs. A script stops the server when nobody has held it for ten seconds.

use std::{
    ffi::OsStr,
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use rejoinder_core::{Clock, SystemClock, TurnId, store::StoreState};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::OnceCell;

use crate::common::open;

/// The oldest version that the store uses.
const OLDEST: u32 = 15;

/// The options of a database without a schema.
pub(crate) const EMPTY: &str = "template template0 encoding 'UTF8'";

pub(crate) struct Server {
    /// The URL of its database `postgres`, or of another one that always exists.
    url: String,
    /// Locked until the process ends; `None` for a server that no test has started.
    _in_use: Option<File>,
}

impl Server {
    /// The server, which is started if there is none. `None` if there are no programs to start.
    pub(crate) fn get() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        let server = SERVER.get_or_init(|| match std::env::var("REJOINDER_TEST_POSTGRES") {
            Ok(url) => Some(Self { url, _in_use: None }),
            Err(_) => start(),
        });
        if server.is_none() {
            eprintln!("not run: there is no PostgreSQL; name a server in REJOINDER_TEST_POSTGRES");
        }
        server.as_ref()
    }

    /// The URL of a database.
    pub(crate) fn url_of(&self, database: &str) -> String {
        let (base, parameters) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let host = base.find("://").map_or(0, |at| at + "://".len());
        let host = &base[..base[host..].find('/').map_or(base.len(), |at| host + at)];
        format!("{host}/{database}?{parameters}")
    }

    /// Executes a statement in the database that always exists.
    pub(crate) async fn execute(&self, sql: String) -> Result<(), sqlx::Error> {
        let mut connection = PgConnection::connect(&self.url).await?;
        connection.execute(AssertSqlSafe(sql)).await?;
        connection.close().await
    }

    /// Creates a database with these options, and returns its name.
    pub(crate) async fn create(&self, options: &str) -> String {
        let name = format!("rejoinder_test_{}", TurnId::new(SystemClock.now()).as_uuid().simple());
        self.execute(format!("create database {name} {options}")).await.expect("the database is created");
        name
    }

    /// The name of a database with the schema and no rows, which the first test makes.
    pub(crate) async fn template(&self) -> &'static str {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        TEMPLATE.get_or_init(|| self.find_template()).await
    }

    async fn find_template(&self) -> String {
        let name = format!("rejoinder_template_{:016x}", schema());
        let mut connection = PgConnection::connect(&self.url).await.expect("the server is there");
        // Until the connection ends.
        connection.execute("select pg_advisory_lock(1)").await.expect("it is locked");
        let find = "select exists (select 1 from pg_database where datname = $1 and datistemplate)";
        let is_there: bool =
            sqlx::query_scalar(find).bind(&name).fetch_one(&mut connection).await.expect("databases are listed");
        if !is_there {
            for sql in ["drop database if exists NAME with (force)", "create database NAME EMPTY"] {
                let sql = sql.replace("NAME", &name).replace("EMPTY", EMPTY);
                self.execute(sql).await.expect("the template is created");
            }
            open(&self.url_of(&name)).await.close().await;
            let done = self.execute(format!("alter database {name} is_template true"));
            done.await.expect("the template is done");
        }
        name
    }
}

/// A number that changes with the schema.
fn schema() -> u64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
    let mut files: Vec<_> =
        folder.read_dir().expect("it is there").map(|file| file.expect("it is read").path()).collect();
    files.sort();
    hash(&files.iter().map(|file| std::fs::read(file).expect("it is read")).collect::<Vec<_>>())
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Starts a server, unless a test that ran before has left one.
fn start() -> Option<Server> {
    let programs = programs()?;
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = |name: &str| {
        let path = target.join(name);
        (File::create(&path).expect("the target directory is written"), path)
    };
    let (in_use, in_use_path) = lock("postgres.in-use");
    in_use.lock_shared().expect("it is locked");
    let (starting, _) = lock("postgres.starting");
    starting.lock().expect("it is locked");
    // Its socket needs a short path, and the user `postgres` may not come into the target directory.
    let folder = std::env::temp_dir().join(format!("rejoinder-postgres-{:016x}", hash(&target)));
    if UnixStream::connect(folder.join(".s.PGSQL.5432")).is_err() {
        start_in(&folder, &programs, &in_use_path);
    }
    let url = format!("postgres://postgres@localhost/postgres?host={}", folder.display());
    Some(Server { url, _in_use: Some(in_use) })
}

/// The folder of the newest programs.
fn programs() -> Option<PathBuf> {
    let versions = Path::new("/usr/lib/postgresql").read_dir().ok()?.flatten();
    let number = |version: &std::fs::DirEntry| version.file_name().to_str()?.parse::<u32>().ok();
    let newest = versions.filter_map(|version| Some((number(&version)?, version.path().join("bin")))).max()?;
    (newest.0 >= OLDEST && newest.1.join("initdb").exists()).then_some(newest.1)
}

fn start_in(folder: &Path, programs: &Path, in_use: &Path) {
    run(as_server("rm").arg("-rf").arg(folder));
    run(as_server("mkdir").args(["-m", "700"]).arg(folder));
    let (data, pg_ctl) = (folder.join("data"), programs.join("pg_ctl"));
    run(as_server(programs.join("initdb"))
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
        .arg(&data));
    let settings = format!(
        "-c listen_addresses= -c unix_socket_directories={} -c port=5432 -c max_connections=400 -c fsync=off \
         -c synchronous_commit=off -c full_page_writes=off",
        folder.display()
    );
    run(as_server(&pg_ctl)
        .args(["start", "--wait", "--silent", "--options", &settings, "--log"])
        .arg(folder.join("log"))
        .arg("--pgdata")
        .arg(&data));
    let stop = as_server(&pg_ctl);
    run(Command::new("setsid")
        .args(["--fork", "sh", "-c", STOP_WHEN_UNUSED, "rejoinder-stop-postgres"])
        .args([in_use, folder])
        .arg(stop.get_program())
        .args(stop.get_args())
        .args(["stop", "--silent", "--mode=immediate", "--pgdata"])
        .arg(&data));
}

/// `$1`: the file that tests lock. `$2`: the folder of the server. The others: the command that stops it.
const STOP_WHEN_UNUSED: &str = r#"
    exec 9<"$1"; folder=$2; shift 2; unused=0
    while [ "$unused" -lt 5 ]; do
        sleep 2
        if flock --nonblock 9; then flock --unlock 9; unused=$((unused + 1)); else unused=0; fi
    done
    flock 9
    "$@"
    rm -rf "$folder"
"#;

/// A program that runs as the user of the server: PostgreSQL does not run as root.
fn as_server(program: impl AsRef<OsStr>) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    // It may not come into the current directory.
    command.current_dir("/");
    command
}

fn run(command: &mut Command) {
    // The server keeps what it inherits, and a test whose output is open has not ended.
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(ended.as_ref().is_ok_and(std::process::ExitStatus::success), "{command:?}: {ended:?}");
}
