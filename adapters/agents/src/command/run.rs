//! One run: its process, and what it writes.

use std::{os::unix::process::ExitStatusExt, pin::pin, process::Stdio, time::Duration};

use futures_util::future::maybe_done;
use rejoinder_core::{AgentError, AgentTurn, Outcome, RunEvents, SessionNotice};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdout},
    time::timeout,
};

use super::Command;
use crate::{
    supervise::{MAX_MEMORY, program_end},
    tail::Tail,
    wire::{Body, Said, WireSession, WireTurn},
};

/// How long a supervisor may take to end after its output, which it closes with its end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what a program wrote for the operator may take to arrive after its end.
const ERRORS_TIMEOUT: Duration = Duration::from_secs(1);

/// How much is read at once, in bytes.
const PIECE: usize = 16 * 1024;

impl Command {
    pub(super) async fn answer(&self, mut turn: AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        events.shown(WireTurn::input(&turn)).await;
        let json = WireTurn::take_json(&mut turn);
        // The supervisor ends with its standard input, which is dropped with this run.
        let mut child =
            self.start().map_err(|error| AgentError::Unreachable(format!("it cannot be started: {error}")))?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut stdin, stdout, stderr) = (stdin.expect("a pipe"), stdout.expect("a pipe"), stderr.expect("a pipe"));

        let writing = async move {
            // If it fails, the supervisor has ended, which its output shows.
            let _ = stdin.write_u64(json.len() as u64).await;
            let _ = stdin.write_all(&json).await;
            drop(json);
            stdin
        };
        let tail = Tail::of(&self.settings.env, &self.settings.inherit);
        let (mut writing, mut errors) = (pin!(maybe_done(writing)), pin!(maybe_done(tail.follow(stderr))));
        let mut body = Body::new(None, Said::of(&self.name, &turn, events));
        let most = self.settings.max_output.bytes();
        let read = tokio::select! {
            read = read(stdout, &mut body, most) => read,
            () = killed(&mut child, group) => Err(AgentError::Failed("its supervisor was killed".to_owned())),
            () = async {
                tokio::join!(writing.as_mut(), errors.as_mut());
                std::future::pending::<()>().await;
            } => unreachable!("it is pending"),
        };
        let ended = if let Ok(Read::ToTheEnd) = read {
            let ended = ended(&mut child, group).await;
            // Another process may hold them open.
            let _ = timeout(ERRORS_TIMEOUT, errors.as_mut()).await;
            ended
        } else {
            Ok(())
        };
        let written = tail.text();
        if !written.is_empty() {
            tracing::debug!(agent = &*self.name, turn_id = %turn.turn, stderr = written, "what the program wrote for the operator");
        }
        let outcome = match (read, ended) {
            (Err(error), _) => Err(error),
            (Ok(_), Err(why)) => Err(AgentError::Failed(why)),
            (Ok(_), Ok(())) => body.outcome().await,
        };
        outcome.map_err(|error| with_note(error, &written))
    }

    /// Tells the program what happened to a session: one that ends with 0 has done it.
    pub(super) async fn tell(&self, notice: &SessionNotice) -> Result<(), AgentError> {
        let json = WireSession::of(notice).json();
        let mut child =
            self.start().map_err(|error| AgentError::Unreachable(format!("it cannot be started: {error}")))?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut stdin, mut stdout, stderr) =
            (stdin.expect("a pipe"), stdout.expect("a pipe"), stderr.expect("a pipe"));
        let tail = Tail::of(&self.settings.env, &self.settings.inherit);
        let write = async {
            // If it fails, the supervisor has ended, which its output shows.
            let _ = stdin.write_u64(json.len() as u64).await;
            let _ = stdin.write_all(&json).await;
        };
        let mut ignored = tokio::io::sink();
        let read = async { tokio::join!(write, tokio::io::copy(&mut stdout, &mut ignored)).1 };
        let mut errors = pin!(maybe_done(tail.follow(stderr)));
        let read = tokio::select! {
            read = read => read.map_err(|error| AgentError::Broken(format!("its output cannot be read: {error}"))),
            () = killed(&mut child, group) => Err(AgentError::Failed("its supervisor was killed".to_owned())),
            () = async {
                errors.as_mut().await;
                std::future::pending::<()>().await;
            } => unreachable!("it is pending"),
        };
        let told = match read {
            Ok(_) => ended(&mut child, group).await.map_err(AgentError::Failed),
            Err(error) => Err(error),
        };
        // Another process may hold them open.
        let _ = timeout(ERRORS_TIMEOUT, errors.as_mut()).await;
        told.map_err(|error| with_note(error, &tail.text()))
    }

    fn start(&self) -> std::io::Result<Child> {
        let settings = &self.settings;
        let mut command = tokio::process::Command::new(&self.supervisor.program);
        command.arg0("rejoinder").args(&self.supervisor.arguments);
        if let Some(memory) = settings.max_memory {
            command.arg(MAX_MEMORY).arg(memory.bytes().to_string());
        }
        command.arg("--").args(&settings.command).env_clear().envs(settings.variables());
        if let Some(folder) = &settings.cwd {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: a signal to the gateway's group does not end the run.
        command.process_group(0).spawn()
    }
}

/// Waits until somebody has killed the supervisor, and with it, on Linux, the program. Ends the rest of its group.
async fn killed(supervisor: &mut Child, group: Option<Pid>) {
    match supervisor.wait().await {
        Ok(status) if status.signal().is_some() => kill_rest(group),
        _ => std::future::pending().await,
    }
}

fn kill_rest(group: Option<Pid>) {
    // None of it may be left.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

/// Waits for the end of a supervisor whose output has ended.
///
/// # Errors
/// Says how the program failed, or that nobody knows how it ended.
async fn ended(supervisor: &mut Child, group: Option<Pid>) -> Result<(), String> {
    let status = match timeout(END_TIMEOUT, supervisor.wait()).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => return Err(format!("how it ended is unknown: {error}")),
        Err(_) => return Err(format!("its output has ended, and its supervisor has not within {END_TIMEOUT:?}")),
    };
    if status.code().is_none() {
        kill_rest(group);
    }
    if status.success() { Ok(()) } else { Err(format!("it ended with {}", program_end(status))) }
}

/// Adds what the program wrote for the operator to an error that it explains.
fn with_note(error: AgentError, written: &str) -> AgentError {
    let note = |why: String| if written.is_empty() { why } else { format!("{why}; it wrote: {written}") };
    match error {
        AgentError::Failed(why) => AgentError::Failed(note(why)),
        AgentError::Broken(why) => AgentError::Broken(note(why)),
        other => other,
    }
}

enum Read {
    ToTheEnd,
    /// The outcome is known.
    Enough,
}

/// Reads what a program writes, as text or as JSON lines.
async fn read(mut stdout: ChildStdout, body: &mut Body<'_>, most: usize) -> Result<Read, AgentError> {
    let (mut piece, mut size) = (vec![0; PIECE], 0);
    loop {
        let read = stdout.read(&mut piece).await;
        let read = read.map_err(|error| AgentError::Broken(format!("its output cannot be read: {error}")))?;
        if read == 0 {
            body.end().await?;
            return Ok(if body.has_ended() { Read::Enough } else { Read::ToTheEnd });
        }
        size += read;
        body.push(&piece[..read]).await?;
        if body.has_ended() {
            return Ok(Read::Enough);
        }
        if size > most {
            return Err(AgentError::Broken(format!("it has written more than {most} bytes (`max_output`)")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn how_a_supervisor_ended_that_does_not_end_is_no_success() {
        let mut supervisor = tokio::process::Command::new("sleep").arg("600").kill_on_drop(true).spawn().unwrap();

        let why = ended(&mut supervisor, None).await.unwrap_err();

        assert_eq!(why, "its output has ended, and its supervisor has not within 10s");
    }
}
