//! A server for tests: that of the environment variable `REJOINDER_TEST_POSTGRES`, a URL `postgres://…`, or one that the first test
//! starts from the newest programs in `/usr/lib/postgresql`.
//!
//! A server that a test has started serves all tests of a target directory, each of which may be a process of its own. Each process
//! holds a shared lock as long as it runs. A script stops the server when nobody has held it for ten seconds.
//!
//! A test that finds no server passes. It adds a line to the file that `REJOINDER_NOT_RUN` names.

use std::{
    ffi::OsStr,
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use rejoinder_store::TestServer;

/// The oldest version that the store uses.
const OLDEST: u32 = 15;

/// A user who does not exist, and whose password is asked for by a server that a test has started.
pub(crate) const WITH_PASSWORD: &str = "ann_with_password";

/// A server, and the lock of one that a test has started, which this process holds until it ends.
type Running = (TestServer, Option<File>);

/// The server, which is started if there is none. `None` if there are no programs to start.
pub(crate) fn get() -> Option<&'static TestServer> {
    static SERVER: OnceLock<Option<Running>> = OnceLock::new();
    let running = SERVER.get_or_init(|| TestServer::named().map(|server| (server, None)).or_else(start));
    if running.is_none() {
        not_run("there is no PostgreSQL; name a server in REJOINDER_TEST_POSTGRES");
    }
    running.as_ref().map(|(server, _)| server)
}

/// Says that the test passes without having been run.
pub(crate) fn not_run(why: &str) {
    eprintln!("not run: {why}");
    if let Some(path) = std::env::var_os("REJOINDER_NOT_RUN") {
        let mut list = File::options().create(true).append(true).open(path).expect("the list is opened");
        // Tests run at the same time: a line is written at once.
        list.write_all(format!("{why}\n").as_bytes()).expect("the list is written");
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Starts a server, unless a test that ran before has left one.
fn start() -> Option<Running> {
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
    Some((TestServer::at(url), Some(in_use)))
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
    let first = format!("1i local all {WITH_PASSWORD} scram-sha-256");
    run(as_server("sed").args(["-i", &first]).arg(data.join("pg_hba.conf")));
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
pub(crate) fn as_server(program: impl AsRef<OsStr>) -> Command {
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
