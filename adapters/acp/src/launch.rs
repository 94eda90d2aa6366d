//! Starts the agent's process, and ends it with all that it started.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use rejoinder_agents::{LONGEST_END, Supervisor, program_end, tail::Tail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::Child,
    time::timeout,
};

use crate::AcpSection;

/// The variables of the gateway that every agent gets, besides `LC_…` and `XDG_…`.
const PASSED_ON: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

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

/// The supervisor of an agent. It ends with its standard input, and the agent with all that it has started.
pub(crate) struct Process {
    supervisor: Child,
    group: Option<Pid>,
}

impl Process {
    /// Waits for the end of an agent whose input is closed. Returns how it ended.
    pub(crate) async fn end(mut self) -> String {
        match timeout(LONGEST_END, self.supervisor.wait()).await {
            Ok(Ok(status)) => {
                if status.code().is_none()
                    && let Some(group) = self.group
                {
                    // Its supervisor was killed. It fails if all its processes have ended.
                    let _ = kill_process_group(group, Signal::KILL);
                }
                program_end(status)
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its supervisor does not end".to_owned(),
        }
    }
}

/// Starts agents as processes.
pub(crate) struct Launcher {
    pub(crate) settings: AcpSection,
    pub(crate) supervisor: Supervisor,
}

impl Launch for Launcher {
    fn launch(&self) -> Result<Launched, String> {
        let settings = &self.settings;
        let [program, arguments @ ..] = settings.command.as_slice() else {
            return Err("`command` is empty".to_owned());
        };
        if !Path::new(settings.folder()).is_dir() {
            return Err(format!("there is no folder {} (`cwd`)", settings.folder()));
        }
        let found = settings.find_program().ok_or_else(|| settings.missing_program())?;
        let passed_on = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| settings.passes_on(name)));
        let mut command = self.supervisor.clone().streaming().command(found);
        command
            .args(arguments)
            .current_dir(settings.folder())
            .env_clear()
            .envs(passed_on)
            .envs(settings.env.iter().map(|(name, value)| (name, value.expose())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal to the gateway's group does not end the agent.
            .process_group(0);
        let mut supervisor = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let pipes = (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
        let group = supervisor.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let process = Some(Process { supervisor, group });
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(format!("{program} has no standard input and output"));
        };
        let tail = Arc::new(Tail::of(&settings.env, &settings.inherit));
        Ok(Launched { input: Box::new(input), output: Box::new(output), errors: Box::new(errors), process, tail })
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
