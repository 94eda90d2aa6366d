//! One run: its process, and what it writes.

use std::{os::unix::process::ExitStatusExt, pin::pin, process::Stdio, time::Duration};

use futures_util::future::maybe_done;
use rejoinder_core::{AgentError, AgentTurn, Outcome, RunEvents};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdout},
    time::timeout,
};

use super::{Command, tail::Tail};
use crate::{
    supervise::MAX_MEMORY,
    wire::{Format, Lines, Said, TextPieces, WireTurn},
};

/// How long a supervisor that has closed its output may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How much is read at once, in bytes.
const PIECE: usize = 16 * 1024;

impl Command {
    pub(super) async fn answer(&self, turn: &AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        events.shown(WireTurn::input(turn)).await;
        let json = WireTurn::of(turn).to_json();
        // The supervisor ends with its standard input, which is dropped with this run.
        let mut child =
            self.start().map_err(|error| AgentError::Unreachable(format!("it cannot be started: {error}")))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut stdin, stdout, stderr) = (stdin.expect("a pipe"), stdout.expect("a pipe"), stderr.expect("a pipe"));

        let writing = async move {
            // If it fails, the supervisor has ended, which its output shows.
            let _ = stdin.write_u64(json.len() as u64).await;
            let _ = stdin.write_all(&json).await;
            drop(json);
            stdin
        };
        let tail = Tail::default();
        let (mut writing, mut errors) = (pin!(maybe_done(writing)), pin!(maybe_done(tail.follow(stderr))));
        let mut answer = Answer {
            said: Said::of(&self.name, turn, events),
            format: None,
            begun: Vec::new(),
            lines: Lines::default(),
            text: TextPieces::default(),
        };
        let most = self.settings.max_output.bytes();
        let read = tokio::select! {
            read = answer.read(stdout, most) => read,
            () = killed(&mut child) => Err(AgentError::Failed("its supervisor was killed".to_owned())),
            () = async {
                tokio::join!(writing.as_mut(), errors.as_mut());
                std::future::pending::<()>().await;
            } => unreachable!("it is pending"),
        };
        let status = match read {
            Ok(Read::ToTheEnd) => Some(ended(&mut child, errors.as_mut()).await),
            Ok(Read::Enough) | Err(_) => None,
        };
        let written = tail.text();
        if !written.is_empty() {
            tracing::debug!(agent = &*self.name, turn_id = %turn.turn, stderr = written, "what the program wrote for the operator");
        }
        let failed = status.flatten().filter(|_| !answer.said.has_ended());
        let ended = match (read, failed) {
            (Err(error), _) => Err(error),
            (Ok(_), Some(status)) => Err(AgentError::Failed(format!("it ended with {status}"))),
            (Ok(_), None) => answer.outcome().await,
        };
        ended.map_err(|error| with_note(error, &written))
    }

    fn start(&self) -> std::io::Result<Child> {
        let settings = &self.settings;
        let mut command = tokio::process::Command::new(&self.supervisor.program);
        command.args(&self.supervisor.arguments);
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
async fn killed(supervisor: &mut Child) {
    let group = supervisor.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    match supervisor.wait().await {
        Ok(status) if status.signal().is_some() => {
            group.map(|group| kill_process_group(group, Signal::KILL));
        }
        _ => std::future::pending().await,
    }
}

/// Waits for the end of a supervisor whose output has ended. Returns how the program ended, unless it succeeded.
async fn ended(supervisor: &mut Child, errors: impl Future<Output = ()>) -> Option<String> {
    let waiting = async { tokio::join!(supervisor.wait(), errors).0 };
    match timeout(END_TIMEOUT, waiting).await.ok()?.ok()?.code() {
        Some(0) => None,
        Some(code @ 129..) => Some(format!("exit code {code} (signal {})", code - 128)),
        Some(code) => Some(format!("exit code {code}")),
        None => Some("the death of its supervisor".to_owned()),
    }
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

/// What a program writes, as text or as objects.
struct Answer<'a> {
    said: Said<'a>,
    /// `None`: its first line has not ended.
    format: Option<Format>,
    /// The bytes before the format is known.
    begun: Vec<u8>,
    lines: Lines,
    text: TextPieces,
}

impl Answer<'_> {
    async fn read(&mut self, mut stdout: ChildStdout, most: usize) -> Result<Read, AgentError> {
        let mut piece = vec![0; PIECE];
        let mut size = 0;
        loop {
            let read = stdout.read(&mut piece).await;
            let read = read.map_err(|error| AgentError::Broken(format!("its output cannot be read: {error}")))?;
            if read == 0 {
                self.end().await?;
                return Ok(Read::ToTheEnd);
            }
            size += read;
            self.push(&piece[..read]).await?;
            if self.said.has_ended() {
                return Ok(Read::Enough);
            }
            if size > most {
                return Err(AgentError::Broken(format!("it has written more than {most} bytes (`max_output`)")));
            }
        }
    }

    async fn push(&mut self, piece: &[u8]) -> Result<(), AgentError> {
        if self.format.is_some() {
            return self.more(piece).await;
        }
        self.begun.extend_from_slice(piece);
        self.begin(false).await
    }

    /// Reads what has come so far, if it shows the format.
    async fn begin(&mut self, has_ended: bool) -> Result<(), AgentError> {
        self.format = Format::of(&self.begun, has_ended);
        if self.format.is_none() {
            return Ok(());
        }
        let begun = std::mem::take(&mut self.begun);
        self.more(&begun).await
    }

    async fn more(&mut self, piece: &[u8]) -> Result<(), AgentError> {
        if self.format != Some(Format::Objects) {
            let text = self.text.push(piece);
            self.said.text(&text).await;
            return Ok(());
        }
        self.lines.push(piece);
        while let Some(line) = self.lines.next_line(false)? {
            self.said.object(&line).await?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), AgentError> {
        if self.format.is_none() {
            self.begin(true).await?;
        }
        if let Some(line) = std::mem::take(&mut self.lines).rest()? {
            self.said.object(&line).await?;
        }
        let text = std::mem::take(&mut self.text).rest();
        self.said.text(&text).await;
        Ok(())
    }

    async fn outcome(self) -> Result<Outcome, AgentError> {
        match self.format {
            Some(Format::Objects) => self.said.into_outcome(),
            _ => Ok(self.said.into_text().await),
        }
    }
}
