//! Starts the agent's process, and ends it with all that it started.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use rejoinder_agents::tail::Tail;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::{Child, Command},
    time::timeout,
};

use crate::AcpSection;

/// The variables of the gateway that every agent gets, besides `LC_…` and `XDG_…`.
const PASSED_ON: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

/// How long a process may take to end by itself, and again after it was asked to.
const END: Duration = Duration::from_secs(1);

/// What starts an agent.
pub(crate) trait Launch: Send + Sync + 'static {
    /// # Errors
    /// Says why it cannot be started, for the operator.
    fn launch(&self) -> Result<Launched, String>;
}

/// An agent that was started.
pub(crate) struct Launched {
    pub(crate) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) output: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) errors: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) process: Option<Process>,
    /// Keeps the end of `errors`, without the agent's secrets.
    pub(crate) tail: Arc<Tail>,
}

/// A child process, with a process group of its own that is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
}

impl Process {
    /// Waits a moment for the end of the process, whose input is closed; then asks it to end, and then kills it with its group.
    /// Returns how it ended.
    pub(crate) async fn end(mut self) -> String {
        let mut status = timeout(END, self.child.wait()).await;
        if status.is_err() {
            self.signal(Signal::TERM);
            status = timeout(END, self.child.wait()).await;
        }
        match status {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it was killed, because it did not end".to_owned(),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails if all its processes have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Launch for AcpSection {
    fn launch(&self) -> Result<Launched, String> {
        let [program, arguments @ ..] = self.command.as_slice() else {
            return Err("`command` is empty".to_owned());
        };
        if !Path::new(self.folder()).is_dir() {
            return Err(format!("there is no folder {} (`cwd`)", self.folder()));
        }
        let found = self.find_program().ok_or_else(|| self.missing_program())?;
        let mut command = Command::new(found);
        let passed_on = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| self.passes_on(name)));
        command
            .args(arguments)
            .current_dir(self.folder())
            .env_clear()
            .envs(passed_on)
            .envs(self.env.iter().map(|(name, value)| (name, value.expose())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let process = Some(Process { child, group });
        match (input, output, errors) {
            (Some(input), Some(output), Some(errors)) => {
                let tail = Arc::new(Tail::of(&self.env, &self.inherit));
                Ok(Launched {
                    input: Box::new(input),
                    output: Box::new(output),
                    errors: Box::new(errors),
                    process,
                    tail,
                })
            }
            _ => Err(format!("{program} has no standard input and output")),
        }
    }
}

impl AcpSection {
    /// The file of the program; `None` if there is none.
    #[must_use]
    pub fn find_program(&self) -> Option<PathBuf> {
        let program = self.command.first()?;
        if program.contains('/') {
            let path = Path::new(self.folder()).join(program);
            return is_program(&path).then_some(path);
        }
        let path = self.env.get("PATH").map(|path| OsString::from(path.expose())).or_else(|| env::var_os("PATH"))?;
        env::split_paths(&path).map(|folder| folder.join(program)).find(|path| is_program(path))
    }

    /// Says that [`find_program`](Self::find_program) finds nothing.
    #[must_use]
    pub fn missing_program(&self) -> String {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let place = if program.contains('/') { "" } else { " in the folders of PATH" };
        format!("there is no program {program}{place} (`command`)")
    }

    fn passes_on(&self, name: &str) -> bool {
        PASSED_ON.contains(&name)
            || name.starts_with("LC_")
            || name.starts_with("XDG_")
            || self.inherit.iter().any(|inherited| inherited == name)
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
