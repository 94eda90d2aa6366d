//! `rejoinder supervise`: the process between the gateway and a program that it runs. It ends with the program, or when
//! the gateway no longer holds its standard input, and leaves none of the program's processes behind.
//!
//! ```text
//! gateway ── supervise ── supervise --exec ─ becomes ─► the program
//! ```
//!
//! Its standard input is a number of eight bytes (big-endian), as many bytes for the standard input of the program, and then
//! nothing: its end means that the run is over, also because the gateway has died. With `--stream` the program reads it itself, and
//! has a second to end when it ends. The program inherits the rest.
//!
//! On Linux the supervisor adopts what the program starts and abandons, so that it finds all of it, and the kernel kills the
//! program if the supervisor is killed. Elsewhere it only reaches the program's group of processes.

mod processes;

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    pin::Pin,
    process::{Command, ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getppid, setrlimit, wait};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest, unix::AsyncFd},
    net::unix::pipe,
    process::ChildStdin,
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};

/// The argument that makes a process a supervisor.
const SUPERVISE: &str = "supervise";

/// The argument of the process that becomes the program. The supervisor's id follows.
const EXEC: &str = "--exec";

/// The argument before the program's address space, in bytes.
pub(crate) const MAX_MEMORY: &str = "--max-memory";

/// The argument of a program that reads the standard input of its supervisor.
const STREAM: &str = "--stream";

/// How long such a program has to end by itself when its input has ended.
const INPUT_GRACE: Duration = Duration::from_secs(1);

/// How long a supervisor whose standard input has ended takes at most, and the program with it.
pub const LONGEST_END: Duration = Duration::from_secs(4);

/// How long the program's processes have to end by themselves once they are told to.
const GRACE: Duration = Duration::from_millis(1500);

/// What a shell answers if it cannot run a program.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The command line that starts a supervisor; what it is to run follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervisor {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

impl Supervisor {
    /// The running program, which must call [`supervise`] first of all.
    ///
    /// # Errors
    /// When the path of the running program is unknown.
    pub fn own() -> io::Result<Self> {
        // Names the running program even after another one was installed in its place.
        let link = Path::new("/proc/self/exe");
        let program = if link.exists() { link.to_owned() } else { std::env::current_exe()? };
        Ok(Self { program, arguments: vec![SUPERVISE.into()] })
    }

    /// The same for a program that reads the supervisor's standard input.
    #[must_use]
    pub fn streaming(mut self) -> Self {
        self.arguments.push(STREAM.into());
        self
    }

    /// The command that runs `program` below a supervisor.
    pub fn command(&self, program: impl AsRef<OsStr>) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.arg0("rejoinder").args(&self.arguments).arg("--").arg(program);
        command
    }
}

/// How a program ended whose supervisor ended with `status`.
#[must_use]
pub fn program_end(status: ExitStatus) -> String {
    match status.code() {
        Some(code @ 129..) => format!("exit code {code} (signal {})", code - 128),
        Some(code) => format!("exit code {code}"),
        None => "the death of its supervisor".to_owned(),
    }
}

/// What a supervisor is told to run.
struct Orders {
    /// Set in the process that becomes the program.
    supervisor: Option<i32>,
    max_memory: Option<u64>,
    is_stream: bool,
    command: Vec<OsString>,
}

impl Orders {
    fn read(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut orders = Self { supervisor: None, max_memory: None, is_stream: false, command: Vec::new() };
        loop {
            let number = |text: Option<OsString>| text?.to_str()?.parse::<u64>().ok();
            match arguments.next()?.to_str()? {
                EXEC => orders.supervisor = Some(i32::try_from(number(arguments.next())?).ok()?),
                STREAM => orders.is_stream = true,
                MAX_MEMORY => orders.max_memory = Some(number(arguments.next())?),
                "--" => break,
                _ => return None,
            }
        }
        orders.command.extend(arguments);
        (!orders.command.is_empty()).then_some(orders)
    }
}

/// Runs a program and ends it with all its processes, if the arguments of this process say so. The exit code is the program's; 128
/// and the signal's number if one killed it. `None`: this process is no supervisor.
pub fn supervise() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != SUPERVISE {
        return None;
    }
    let Some(orders) = Orders::read(arguments) else {
        eprintln!("error: `rejoinder supervise` is for the gateway");
        return Some(ExitCode::from(2));
    };
    let done = match orders.supervisor {
        Some(supervisor) => Err(become_program(&orders, supervisor)),
        None => run(&orders),
    };
    Some(done.unwrap_or_else(|error| {
        eprintln!("rejoinder: cannot run {}: {error}", Path::new(&orders.command[0]).display());
        ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN })
    }))
}

/// Turns this process into the program. Returns why it cannot.
fn become_program(orders: &Orders, supervisor: i32) -> io::Error {
    let prepared = (|| {
        die_with_parent()?;
        if getppid().map(Pid::as_raw_pid) != Some(supervisor) {
            return Err(io::Error::other("its supervisor is gone"));
        }
        // A service of systemd may set no limits; this one is in its unit.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        let Some(bytes) = orders.max_memory else { return Ok(()) };
        setrlimit(Resource::As, Rlimit { current: Some(bytes), maximum: Some(bytes) })
            .map_err(|error| io::Error::other(format!("`max_memory` cannot be set: {error}")))
    })();
    match prepared {
        Ok(()) => Command::new(&orders.command[0]).args(&orders.command[1..]).exec(),
        Err(error) => error,
    }
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> io::Result<()> {
    Ok(())
}

fn run(orders: &Orders) -> io::Result<ExitCode> {
    // One thread: the kernel kills the program when the thread ends that has started it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(watch(orders))?;
    Ok(status.map_or(ExitCode::FAILURE, |status| {
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
    }))
}

/// Runs the program until none of its processes is left. `None`: it was ended before it began.
async fn watch(orders: &Orders) -> io::Result<Option<ExitStatus>> {
    let (mut ended, mut told) = (signal(SignalKind::child())?, signal(SignalKind::terminate())?);
    // What a program sends to its whole group reaches the supervisor, too.
    let (_interrupt, _hangup) = (signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    processes::adopt()?;
    let Ok((turn, mut released)) = gateway(orders).await else { return Ok(None) };
    let (main, stdin) = start(orders)?;
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program need not read it.
            let _ = stdin.write_all(&turn).await;
        }
        drop(turn);
        std::future::pending::<()>().await;
    };
    let mut write = std::pin::pin!(write);
    let patience = if orders.is_stream { INPUT_GRACE } else { Duration::ZERO };

    let (mut status, mut stop_at, mut kill_at, mut is_killing) = (None, None, None, false);
    loop {
        tokio::select! {
            () = &mut write => {}
            _ = ended.recv() => {}
            _ = told.recv(), if kill_at.is_none() => kill_at = Some(stop(main)),
            () = &mut released, if stop_at.is_none() => stop_at = Some(Instant::now() + patience),
            () = sleep_until(stop_at.unwrap_or_else(Instant::now)), if stop_at.is_some() && kill_at.is_none() => kill_at = Some(stop(main)),
            () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() && !is_killing => is_killing = true,
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, ended))) if pid == main => {
                    status = Some(ExitStatus::from_raw(ended.as_raw()));
                    is_killing = true;
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return Ok(status),
            }
        }
        if is_killing {
            processes::signal_all(main, Signal::KILL);
        }
    }
}

/// Tells all processes to end. Returns when they are killed.
fn stop(main: Pid) -> Instant {
    processes::signal_all(main, Signal::TERM);
    Instant::now() + GRACE
}

/// Ends when the gateway no longer holds the standard input of this process.
type Released = Pin<Box<dyn Future<Output = ()>>>;

/// The turn for the program, and the end of the gateway's interest in it.
async fn gateway(orders: &Orders) -> io::Result<(Vec<u8>, Released)> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    if orders.is_stream {
        #[expect(deprecated, reason = "its successor is unsafe, and an `OwnedFd` stays the same file")]
        let stdin = AsyncFd::with_interest(stdin, Interest::READABLE)?;
        return Ok((Vec::new(), Box::pin(closed(stdin))));
    }
    let mut stdin = pipe::Receiver::from_owned_fd(stdin)?;
    let length = stdin.read_u64().await?;
    let mut turn = Vec::new();
    (&mut stdin).take(length).read_to_end(&mut turn).await?;
    if turn.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let released = async move { drop(stdin.read(&mut [0]).await) };
    Ok((turn, Box::pin(released)))
}

/// Waits until nobody writes to a pipe any more, and reads nothing of it.
async fn closed(pipe: AsyncFd<OwnedFd>) {
    while let Ok(mut guard) = pipe.readable().await {
        if guard.ready().is_read_closed() {
            return;
        }
        guard.clear_ready();
    }
}

fn start(orders: &Orders) -> io::Result<(Pid, Option<ChildStdin>)> {
    let Supervisor { program, arguments } = Supervisor::own()?;
    let mut command = Command::new(program);
    command.arg0("rejoinder").args(arguments).arg(EXEC).arg(getpid().as_raw_pid().to_string());
    if let Some(bytes) = orders.max_memory {
        command.arg(MAX_MEMORY).arg(bytes.to_string());
    }
    if cfg!(not(target_os = "linux")) {
        command.process_group(0);
    }
    let stdin = if orders.is_stream { Stdio::inherit() } else { Stdio::piped() };
    let mut child = command.arg("--").args(&orders.command).stdin(stdin).spawn()?;
    let main = Pid::from_child(&child);
    Ok((main, child.stdin.take().map(ChildStdin::from_std).transpose()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Option<(Option<i32>, Option<u64>, Vec<OsString>)> {
        let orders = Orders::read(arguments.iter().map(Into::into))?;
        Some((orders.supervisor, orders.max_memory, orders.command))
    }

    #[test]
    fn a_stream_is_named() {
        let orders = Orders::read(["--stream", "--", "a"].iter().map(Into::into)).expect("it can be read");
        assert!(orders.is_stream && orders.command == ["a"]);
    }

    #[test]
    fn what_follows_the_dashes_is_the_program() {
        let command = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<OsString>>();
        assert_eq!(read(&["--", "a", "--exec", "--"]), Some((None, None, command(&["a", "--exec", "--"]))));
        let orders = read(&["--exec", "7", "--max-memory", "1024", "--", "a"]);
        assert_eq!(orders, Some((Some(7), Some(1024), command(&["a"]))));
        assert_eq!(read(&["--max-memory", "much", "--", "a"]), None);
        assert_eq!(read(&["--"]), None);
        assert_eq!(read(&["a"]), None);
    }
}
