//! The program of a server.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use rejoinder_agents::{LONGEST_END, McpServerSection, Supervisor, program_end, tail::Tail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

/// The variables of the gateway that every program gets, besides `LC_…` and `XDG_…`.
const PASSED_ON: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

/// A program that was started, below a supervisor: it ends with its standard input, and with the gateway.
pub(crate) struct Started {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) process: Process,
}

/// The supervisor of a program.
pub(crate) struct Process {
    supervisor: Child,
    group: Option<Pid>,
    /// Keeps the end of what the program writes for the operator, without its secrets.
    tail: Arc<Tail>,
    /// Reads it, to its end.
    reading: JoinHandle<()>,
}

/// How long what an ended program wrote is read: a process that outlives it may hold the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Process {
    /// Waits for the end of a program whose input is closed. Returns how it ended.
    pub(crate) async fn end(mut self) -> String {
        let how = match timeout(LONGEST_END, self.supervisor.wait()).await {
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
        };
        let _ = timeout(LAST_WORDS, self.reading).await;
        match self.tail.text() {
            text if text.is_empty() => how,
            text => format!("{how}; it wrote: {}", text.lines().last().unwrap_or_default()),
        }
    }
}

/// # Errors
/// Says why the program cannot be started, for the operator.
pub(crate) fn start(section: &McpServerSection, supervisor: &Supervisor) -> Result<Started, String> {
    let [program, arguments @ ..] = section.command.as_deref().unwrap_or_default() else {
        return Err("`command` is empty".to_owned());
    };
    let folder = section.cwd.as_deref().unwrap_or("/");
    if !Path::new(folder).is_dir() {
        return Err(format!("there is no folder {folder} (`cwd`)"));
    }
    let found = find(section, program, folder).ok_or_else(|| {
        let place = if program.contains('/') { "" } else { " in the folders of PATH" };
        format!("there is no program {program}{place} (`command`)")
    })?;
    let passed_on = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|name| passes_on(section, name)));
    let mut command = supervisor.clone().streaming().command(found);
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(passed_on)
        .envs(section.env.iter().map(|(name, value)| (name, value.expose())))
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
    let tail = Arc::new(Tail::of(&section.env, &section.inherit));
    let reading = follow(Arc::clone(&tail), errors);
    Ok(Started { input, output, process: Process { supervisor, group, tail, reading } })
}

/// Reads what the program writes for the operator, until it has ended.
fn follow(tail: Arc<Tail>, errors: ChildStderr) -> JoinHandle<()> {
    tokio::spawn(async move { tail.follow(errors).await })
}

fn find(section: &McpServerSection, program: &str, folder: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let path = Path::new(folder).join(program);
        return is_program(&path).then_some(path);
    }
    let path = section.env.get("PATH").map(|path| OsString::from(path.expose())).or_else(|| env::var_os("PATH"))?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn passes_on(section: &McpServerSection, name: &str) -> bool {
    PASSED_ON.contains(&name)
        || name.starts_with("LC_")
        || name.starts_with("XDG_")
        || section.inherit.iter().any(|inherited| inherited == name)
}
