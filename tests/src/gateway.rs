//! The real binary, as a process of its own.

use std::{
    fmt,
    fs::File,
    io::{PipeReader, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, net::TcpSocket, sync::mpsc, task::JoinSet};

use crate::{Hook, PATIENCE, eventually, free_port, plain_log::rust_in};

/// The token that tests use at `/admin`.
const ADMIN_TOKEN: &str = "admin-token-of-the-tests";

/// The capacity of a Linux pipe, in bytes.
const PIPE: usize = 64 << 10;

/// How long the gateway may take to say whether it is ready: longer than it waits for its store.
const READINESS_TIMEOUT: Duration = Duration::from_secs(10);

/// What a gateway is started with.
#[derive(Debug, Default)]
pub struct GatewayBuilder {
    config: String,
    environment: Vec<(String, String)>,
    allow_open_turns: bool,
    time: TimeMode,
    port: Option<u16>,
    output_mode: OutputMode,
    open_files: Option<u32>,
}

/// Where standard output and the log go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum OutputMode {
    /// The log goes to a file, as JSON.
    #[default]
    LogFile,
    /// Both go to one pipe, as with `2>&1 | less`.
    Piped,
    /// As [`Piped`](Self::Piped), with a pipe that is already full.
    Stuck,
}

/// How time passes for the process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum TimeMode {
    /// Unchanged.
    #[default]
    Unchanged,
    /// Faster by this factor.
    Faster(u32),
    /// Unchanged, but the wall clock can be set.
    OwnCalendar,
}

impl GatewayBuilder {
    /// Adds sections to `rejoinder.toml`.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.config.push('\n');
        self
    }

    /// Sets an environment variable of the process.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Skips the check at the end that no turn is owed.
    #[must_use]
    pub const fn allow_open_turns(mut self) -> Self {
        self.allow_open_turns = true;
        self
    }

    /// Makes the clocks, timers and sleeps of the process `times` as fast.
    #[must_use]
    pub const fn time_passes_faster(mut self, times: u32) -> Self {
        self.time = TimeMode::Faster(times);
        self
    }

    /// Gives the process a wall clock of its own, for [`Gateway::set_calendar_offset`].
    #[must_use]
    pub const fn own_calendar(mut self) -> Self {
        self.time = TimeMode::OwnCalendar;
        self
    }

    /// Listens on this port, for tests that must know it before the start.
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Prints and logs as text to a pipe that nobody reads.
    #[must_use]
    pub const fn unread_output(mut self) -> Self {
        self.output_mode = OutputMode::Piped;
        self
    }

    /// As [`unread_output`](Self::unread_output), with a pipe that is already full.
    #[must_use]
    pub const fn stuck_output(mut self) -> Self {
        self.output_mode = OutputMode::Stuck;
        self
    }

    /// Limits how many files, sockets included, the process may have open at once.
    #[must_use]
    pub const fn open_files(mut self, most: u32) -> Self {
        self.open_files = Some(most);
        self
    }

    /// Starts the process and waits until it is ready.
    pub async fn start(self) -> Gateway {
        let mut gateway = self.prepare();
        gateway.restart().await;
        gateway
    }

    /// Creates the folder and the configuration without starting the process.
    ///
    /// # Panics
    /// If the folder cannot be created or there is no free port.
    #[must_use]
    pub fn prepare(self) -> Gateway {
        let folder = tempfile::tempdir().expect("a folder for the gateway");
        let port = self.port.unwrap_or_else(free_port);
        let config = folder.path().join("rejoinder.toml");
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\ndrain = \"2s\"\n[admin]\ntoken = \"{ADMIN_TOKEN}\"\n{}",
            self.config
        );
        std::fs::write(&config, text).expect("rejoinder.toml is written");
        if self.time == TimeMode::OwnCalendar {
            std::fs::write(folder.path().join("calendar"), "+0").expect("the calendar is written");
        }
        Gateway {
            folder,
            port,
            binary: binary(),
            process: None,
            environment: self.environment,
            allow_open_turns: self.allow_open_turns,
            time: self.time,
            output_mode: self.output_mode,
            unread: None,
            open_files: self.open_files,
            http: client(),
        }
    }
}

/// A gateway with a folder of its own, running or stopped.
#[derive(Debug)]
pub struct Gateway {
    folder: TempDir,
    port: u16,
    binary: PathBuf,
    process: Option<Child>,
    environment: Vec<(String, String)>,
    allow_open_turns: bool,
    time: TimeMode,
    output_mode: OutputMode,
    unread: Option<PipeReader>,
    open_files: Option<u32>,
    http: reqwest::Client,
}

impl Gateway {
    #[must_use]
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }

    /// Where it listens: `http://127.0.0.1:…`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The client that tests call it with.
    #[must_use]
    pub const fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// The hook `name`, called with `token`.
    #[must_use]
    pub fn hook(&self, name: &str, token: &str) -> Hook {
        Hook::new(self.http.clone(), format!("{}/hooks/{name}", self.url()), token)
    }

    /// Changes `rejoinder.toml` for the next start.
    ///
    /// # Panics
    /// If the file cannot be read or written, or `change` changes nothing.
    pub fn reconfigure(&self, change: impl FnOnce(&str) -> String) {
        let path = self.folder.path().join("rejoinder.toml");
        let text = std::fs::read_to_string(&path).expect("rejoinder.toml is read");
        let changed = change(&text);
        assert_ne!(changed, text, "the configuration is as it was");
        std::fs::write(&path, changed).expect("rejoinder.toml is written");
    }

    /// Uses another binary for the next start and for commands, in place of [`binary`].
    pub fn set_binary(&mut self, path: &Path) {
        path.clone_into(&mut self.binary);
    }

    /// As [`hook`](Self::hook), called from another address of this machine, such as `127.0.0.2`.
    ///
    /// # Panics
    /// If the client cannot be built.
    #[must_use]
    pub fn hook_from(&self, address: IpAddr, name: &str, token: &str) -> Hook {
        let http = http_client().local_address(address).build().expect("an HTTP client");
        Hook::new(http, format!("{}/hooks/{name}", self.url()), token)
    }

    /// Opens connections from an address of this machine. Each sends `start` and then nothing until it is dropped. Waits
    /// until half of them are open, as the gateway may hold the others back.
    ///
    /// # Panics
    /// If a connection cannot be opened.
    pub async fn connections(&self, from: IpAddr, count: usize, start: &'static str) -> JoinSet<()> {
        let (opened, mut are_open) = mpsc::channel(count);
        let mut connections = JoinSet::new();
        for _ in 0..count {
            let (to, opened) = (SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), opened.clone());
            connections.spawn(async move {
                let socket = TcpSocket::new_v4().expect("a socket");
                socket.bind((from, 0).into()).expect("an address of this machine");
                let mut connection = socket.connect(to).await.expect("a connection is opened");
                // The connection may be closed again already, and the receiver may be dropped.
                let _ = connection.write_all(start.as_bytes()).await;
                let _ = opened.send(()).await;
                std::future::pending::<()>().await;
            });
        }
        for _ in 0..count / 2 {
            are_open.recv().await.expect("a connection is opened");
        }
        connections
    }

    /// Starts it (again) in the same folder and on the same port, and waits until it is ready.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn restart(&mut self) {
        self.spawn(&[]);
        self.until_ready().await;
    }

    /// Starts it, without waiting for it. It ends by itself, as with `kill -9`, when it passes this crash point, such as `accepted:1`,
    /// for the time that the number says.
    ///
    /// # Panics
    /// If the binary cannot be started.
    pub fn spawn_crashing_at(&mut self, point: &str) {
        self.spawn(&[("REJOINDER_CRASH_AT", point)]);
    }

    /// Starts it with additional environment variables, without waiting for it.
    ///
    /// # Panics
    /// If the binary cannot be started.
    pub fn spawn(&mut self, environment: &[(&str, &str)]) {
        assert!(self.process.is_none(), "the gateway runs already");
        let mut command = match self.output_mode {
            OutputMode::LogFile => {
                let mut command = self.command(&["run", "--log-format", "json"]);
                command.stdout(Stdio::null()).stderr(self.log_file());
                command
            }
            OutputMode::Piped | OutputMode::Stuck => {
                let (reader, mut writer) = std::io::pipe().expect("a pipe");
                if self.output_mode == OutputMode::Stuck {
                    writer.write_all(&vec![b'\n'; PIPE]).expect("the pipe is filled");
                }
                self.unread = Some(reader);
                let mut command = self.command(&["run", "--log-format", "text"]);
                command.stdout(writer.try_clone().expect("the pipe has two writers")).stderr(writer);
                command
            }
        };
        let process = command.envs(environment.iter().copied()).spawn().expect("the gateway starts");
        self.process = Some(process);
    }

    /// From now on, reads its output and adds it to the [log](Self::log).
    ///
    /// # Panics
    /// If its output was not left unread.
    pub fn read_output(&mut self) {
        let mut output = self.unread.take().expect("nobody has read the output");
        let mut log = self.log_file();
        std::thread::spawn(move || std::io::copy(&mut output, &mut log));
    }

    fn log_file(&self) -> File {
        let path = self.folder.path().join("log");
        File::options().create(true).append(true).open(path).expect("the log is opened")
    }

    /// Waits until `/readyz` reports ready.
    ///
    /// # Panics
    /// If it does not in time, or the process has ended.
    pub async fn until_ready(&mut self) {
        let url = format!("{}/readyz", self.url());
        let last = Mutex::new("no response".to_owned());
        let about = fmt::from_fn(|f| write!(f, "the gateway is ready: {}", last.lock().expect("no panic")));
        eventually(about, async || {
            if let Some(status) = self.process.as_mut().and_then(|process| process.try_wait().ok().flatten()) {
                panic!("the gateway ended with {status}:\n{}", self.log());
            }
            let (is_ready, said) = match self.http.get(&url).timeout(READINESS_TIMEOUT).send().await {
                Ok(response) => (response.status().is_success(), response.text().await.unwrap_or_default()),
                Err(error) => (false, format!("{error:?}")),
            };
            *last.lock().expect("no panic") = said;
            is_ready.then_some(())
        })
        .await;
    }

    /// Ends the process as `kill -9` does.
    ///
    /// # Panics
    /// If it is not running.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("the gateway runs");
        process.kill().expect("the gateway is killed");
        process.wait().expect("the gateway is gone");
    }

    /// Sends `SIGTERM` to the process and waits until it has ended.
    ///
    /// # Panics
    /// If it is not running.
    pub async fn stop(&mut self) -> ExitStatus {
        self.terminate();
        self.until_ended().await
    }

    /// Sends `SIGTERM` to the process.
    ///
    /// # Panics
    /// If it is not running.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Waits until the process has ended by itself, and returns how.
    ///
    /// # Panics
    /// If it was not started, or does not end in time.
    pub async fn until_ended(&mut self) -> ExitStatus {
        // The process stays in `self` until it is gone: one that does not end is killed on drop.
        let process = self.process.as_mut().expect("the gateway runs");
        let status =
            eventually("the gateway ends", async || process.try_wait().expect("the process is waited for")).await;
        self.process = None;
        status
    }

    /// Stops the process where it is, until it [thaws](Self::thaw).
    ///
    /// # Panics
    /// If it is not running.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Has a process that is frozen go on.
    ///
    /// # Panics
    /// If it is not running.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Has it read its configuration again.
    ///
    /// # Panics
    /// If it does not run.
    pub fn hang_up(&self) {
        self.signal("HUP");
    }

    fn signal(&self, name: &str) {
        let process = self.process_id().expect("the gateway runs");
        let signalled = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
        assert!(signalled.is_ok_and(|status| status.success()), "the gateway gets a SIG{name}");
    }

    /// The id of the process, if it was started and has not been stopped.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// How the process has ended by itself, once, if it has.
    ///
    /// # Panics
    /// If the process cannot be waited for.
    pub fn has_ended(&mut self) -> Option<std::process::ExitStatus> {
        let status = self.process.as_mut()?.try_wait().expect("the process is waited for")?;
        self.process = None;
        Some(status)
    }

    /// Waits until the process has ended by itself (a crash point), and returns how.
    ///
    /// # Panics
    /// If it does not crash in time.
    pub async fn until_crashed(&mut self) -> ExitStatus {
        let status = self.until_ended().await;
        assert!(!status.success(), "the gateway ended by itself, without a crash");
        status
    }

    /// From now on no file of the process may grow: it sees a full disk.
    ///
    /// # Panics
    /// If the limit cannot be set.
    pub fn fill_disk(&self) {
        self.limit_file_size("1");
    }

    /// From now on no file of the process may grow beyond so many bytes: it sees a disk with little room.
    ///
    /// # Panics
    /// If the limit cannot be set.
    pub fn fill_disk_up_to(&self, bytes: u32) {
        self.limit_file_size(&bytes.to_string());
    }

    /// Undoes [`fill_disk`](Self::fill_disk) and [`fill_disk_up_to`](Self::fill_disk_up_to).
    ///
    /// # Panics
    /// If the limit cannot be set.
    pub fn free_disk(&self) {
        self.limit_file_size("unlimited");
    }

    fn limit_file_size(&self, limit: &str) {
        let process = self.process.as_ref().expect("the gateway runs");
        let limited = Command::new("prlimit")
            .args(["--pid", &process.id().to_string(), &format!("--fsize={limit}:unlimited")])
            .status();
        assert!(limited.is_ok_and(|status| status.success()), "the process is limited");
    }

    /// Sets the wall clock of the process to `seconds` from ours, as an operator or a time server does. Its monotonic clock
    /// is unchanged.
    ///
    /// # Panics
    /// If the process has no wall clock of its own.
    pub fn set_calendar_offset(&self, seconds: i64) {
        assert_eq!(self.time, TimeMode::OwnCalendar, "the process uses our wall clock");
        std::fs::write(self.calendar(), format!("{seconds:+}")).expect("the calendar is written");
    }

    fn calendar(&self) -> PathBuf {
        self.folder.path().join("calendar")
    }

    /// The environment variables that change the time of the process.
    fn time(&self) -> Vec<(&str, std::ffi::OsString)> {
        let (name, value) = match self.time {
            TimeMode::Unchanged => return Vec::new(),
            TimeMode::Faster(times) => ("FAKETIME", format!("+0 x{times}").into()),
            TimeMode::OwnCalendar => ("FAKETIME_TIMESTAMP_FILE", self.calendar().into()),
        };
        let library = std::env::var_os("REJOINDER_FAKETIME").expect("libfaketime: run `cargo xtask test`");
        let mut environment = vec![("LD_PRELOAD", library), ("FAKETIME_NO_CACHE", "1".into()), (name, value)];
        if self.time == TimeMode::OwnCalendar {
            environment.push(("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()));
        }
        environment
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Runs a command of the binary on this gateway's folder.
    ///
    /// # Panics
    /// If the binary cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command runs")
    }

    /// The standard output of a command of the binary.
    ///
    /// # Panics
    /// If the command fails.
    #[must_use]
    pub fn output_of(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "`rejoinder {}` failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("the output is text")
    }

    /// The output of `turns explain`: why a turn ended as it did.
    #[must_use]
    pub fn explain(&self, turn: &str) -> String {
        self.output_of(&["turns", "explain", turn])
    }

    /// What the admin API returns for `path`.
    ///
    /// # Panics
    /// If it does not respond with JSON.
    pub async fn admin(&self, path: &str) -> Value {
        self.http
            .get(format!("{}/admin/api/{path}", self.url()))
            .bearer_auth(ADMIN_TOKEN)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .expect("the admin API answers")
            .json()
            .await
            .expect("the admin API answers with JSON")
    }

    /// A request to the admin API, with `token` or, if there is none, the configured one.
    pub fn admin_request(&self, method: reqwest::Method, path: &str, token: Option<&str>) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}/admin/api/{path}", self.url()));
        request.bearer_auth(token.unwrap_or(ADMIN_TOKEN))
    }

    /// The turns that are still owed.
    ///
    /// # Panics
    /// If the list cannot be read.
    #[must_use]
    pub fn open_turns(&self) -> Vec<Value> {
        self.turns("open")
    }

    /// The turns in this state, as `turns list` prints them.
    ///
    /// # Panics
    /// If the list cannot be read.
    #[must_use]
    pub fn turns(&self, state: &str) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.output_of(&["turns", "list", "--state", state, "--json"]))
            .expect("the list is JSON");
        list["items"].as_array().expect("the list has items").clone()
    }

    /// A command of the binary on this gateway's folder, with nothing on its standard input.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let limit = self.open_files.map(|most| format!("ulimit -n {most}; ")).unwrap_or_default();
        command
            .args(["-c", &format!("{limit}exec \"$0\" \"$@\"")])
            .arg(&self.binary)
            .arg("--config")
            .arg(self.folder.path().join("rejoinder.toml"))
            .arg("--data")
            .arg(self.data())
            .args(arguments)
            .env_remove("REJOINDER_CONFIG")
            .env_remove("REJOINDER_DATA")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(self.time())
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Gateway {
    /// Checks the promise: nothing is owed, nothing is waiting; and that the log is for people. A message that was just seen may not be recorded yet, so it
    /// polls. The test's servers keep running meanwhile, as its runtime has another thread.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the gateway's log:\n{}", self.log());
        } else if !self.allow_open_turns && ["rejoinder.db", "node"].iter().any(|it| self.data().join(it).exists()) {
            let checked = Instant::now();
            loop {
                let open = self.open_turns();
                if open.is_empty() {
                    break;
                }
                assert!(checked.elapsed() < PATIENCE, "turns are still owed: {open:#?}\n{}", self.log());
            }
        }
        if let Some(mut process) = self.process.take() {
            // The process may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
        if !std::thread::panicking() {
            let log = self.log();
            let rust = rust_in(&log);
            assert!(rust.is_empty(), "lines of the log speak Rust: {rust:#?}");
        }
    }
}

/// The binary under test.
#[must_use]
pub fn binary() -> PathBuf {
    std::env::var_os("REJOINDER_BIN")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug/rejoinder"), PathBuf::from)
}

fn client() -> reqwest::Client {
    http_client().build().expect("an HTTP client")
}

fn http_client() -> reqwest::ClientBuilder {
    // A connection is not kept for another request: one that begins in the moment in which the peer is killed may never end
    // (hyper issue 4122).
    reqwest::Client::builder().no_proxy().timeout(crate::PATIENCE * 2).pool_max_idle_per_host(0)
}
