//! A program that serves the gateway on its standard input and output, for as long as it is wanted.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use rejoinder_config::Secret;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::{
    supervise::{LONGEST_END, Supervisor, program_end},
    tail::Tail,
};

/// The variables of the gateway that every program gets, besides `LC_…` and `XDG_…`.
const PASSED_ON: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

/// A program, as a section describes it.
#[derive(Clone, Copy, Debug)]
pub struct ServingProgram<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// The absolute path of the folder in which it works.
    pub folder: &'a str,
    /// Its environment variables.
    pub env: &'a BTreeMap<String, Secret>,
    /// The names of the gateway's own variables that it gets as well.
    pub inherit: &'a [String],
}

/// A program that was started, below a supervisor: it ends with its standard input, and with the gateway.
#[expect(missing_debug_implementations, reason = "pipes")]
pub struct StartedProgram {
    pub input: ChildStdin,
    pub output: ChildStdout,
    pub errors: ChildStderr,
    pub process: ProgramProcess,
    /// Keeps the end of `errors`, without the program's secrets.
    pub tail: Arc<Tail>,
}

/// The supervisor of a program.
#[derive(Debug)]
pub struct ProgramProcess {
    supervisor: Child,
    group: Option<Pid>,
}

impl ServingProgram<'_> {
    /// Its file; `None` if there is none.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        let program = self.command.first()?;
        if program.contains('/') {
            let path = Path::new(self.folder).join(program);
            return is_program(&path).then_some(path);
        }
        let path = self.env.get("PATH").map(|path| OsString::from(path.expose())).or_else(|| env::var_os("PATH"))?;
        env::split_paths(&path).map(|folder| folder.join(program)).find(|path| is_program(path))
    }

    /// Says that [`find`](Self::find) finds nothing.
    #[must_use]
    pub fn missing(&self) -> String {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let place = if program.contains('/') { "" } else { " in the folders of PATH" };
        format!("there is no program {program}{place}")
    }

    /// # Errors
    /// Says why it cannot be started, for the operator.
    pub fn start(&self, supervisor: &Supervisor) -> Result<StartedProgram, String> {
        let [program, arguments @ ..] = self.command else {
            return Err("`command` is empty".to_owned());
        };
        if !Path::new(self.folder).is_dir() {
            return Err(format!("there is no folder {} (`cwd`)", self.folder));
        }
        let found = self.find().ok_or_else(|| format!("{} (`command`)", self.missing()))?;
        let passed_on = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| self.passes_on(name)));
        let mut command = supervisor.clone().streaming().command(found);
        command
            .args(arguments)
            .current_dir(self.folder)
            .env_clear()
            .envs(passed_on)
            .envs(self.env.iter().map(|(name, value)| (name, value.expose())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal to the gateway's group does not end the program.
            .process_group(0);
        let mut supervisor = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        let pipes = (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
        let group = supervisor.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(format!("{program} has no standard input and output"));
        };
        let (process, tail) = (ProgramProcess { supervisor, group }, Arc::new(Tail::of(self.env, self.inherit)));
        Ok(StartedProgram { input, output, errors, process, tail })
    }

    fn passes_on(&self, name: &str) -> bool {
        PASSED_ON.contains(&name)
            || name.starts_with("LC_")
            || name.starts_with("XDG_")
            || self.inherit.iter().any(|inherited| inherited == name)
    }
}

impl ProgramProcess {
    /// Waits for the end of a program whose input is closed. Returns how it ended.
    pub async fn end(mut self) -> String {
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

/// Whether this process may execute the file.
fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
