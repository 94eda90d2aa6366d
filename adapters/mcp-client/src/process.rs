//! The program of a server.

use std::{sync::Arc, time::Duration};

use rejoinder_agents::{
    McpServerSection, Supervisor,
    serving::{ProgramProcess, StartedProgram},
    tail::Tail,
};
use tokio::{
    process::{ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

/// How long what an ended program wrote is read: a process that outlives it may hold the pipe.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A program that was started: it ends with its standard input, and with the gateway.
pub(crate) struct Started {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) process: Process,
}

/// A program, and what it writes for the operator.
pub(crate) struct Process {
    program: ProgramProcess,
    tail: Arc<Tail>,
    /// Reads it, to its end.
    reading: JoinHandle<()>,
}

impl Process {
    /// Waits for the end of a program whose input is closed. Returns how it ended.
    pub(crate) async fn end(self) -> String {
        let how = self.program.end().await;
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
    let program = section.program().ok_or("it has no `command`")?;
    let StartedProgram { input, output, errors, process: program, tail } = program.start(supervisor)?;
    let followed = Arc::clone(&tail);
    let reading = tokio::spawn(async move { followed.follow(errors).await });
    Ok(Started { input, output, process: Process { program, tail, reading } })
}
