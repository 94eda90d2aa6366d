//! A program of the operator, started for each turn.
//!
//! | File | Contains |
//! | --- | --- |
//! | `section` | the configuration, and whether its program is there |
//! | `run` | one run: its process, and what it writes |
//!
//! The program runs below a [supervisor](crate::supervise), which ends it with all its processes when the run is over.

mod run;
mod section;

use async_trait::async_trait;
use rejoinder_core::{AgentError, AgentName, AgentRuntime, AgentTurn, Outcome, RunEvents, SessionNotice};
use tokio_util::sync::CancellationToken;

pub use self::section::{CommandSection, Memory, ProgramError, is_executable};
use crate::{supervise::Supervisor, wire};

/// An agent that is a program.
#[derive(Debug)]
pub struct Command {
    /// For logs.
    name: AgentName,
    settings: CommandSection,
    supervisor: Supervisor,
}

impl Command {
    /// Starts nothing yet.
    ///
    /// # Errors
    /// When its program cannot be run.
    pub fn new(name: AgentName, settings: CommandSection, supervisor: Supervisor) -> Result<Self, ProgramError> {
        settings.find_program()?;
        Ok(Self { name, settings, supervisor })
    }
}

#[async_trait]
impl AgentRuntime for Command {
    fn describe(&self) -> String {
        format!("command {}", self.settings.command.first().map_or("", String::as_str))
    }

    fn history(&self) -> usize {
        self.settings.history_messages as usize
    }

    fn reads(&self, _: &str) -> Option<usize> {
        Some(wire::MAX_FILE)
    }

    fn seals(&self) -> bool {
        true
    }

    fn keeps_sessions(&self) -> bool {
        self.settings.sessions
    }

    async fn session_changed(&self, notice: SessionNotice) -> Result<(), AgentError> {
        // What is left of a time in which it kept sessions is not for it.
        if self.settings.sessions { self.tell(&notice).await } else { Ok(()) }
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let timeout = self.settings.timeout;
        let in_time = async {
            match timeout {
                None => self.answer(turn, &events).await,
                Some(limit) => tokio::time::timeout(limit, self.answer(turn, &events))
                    .await
                    .unwrap_or_else(|_| Err(AgentError::Stalled(format!("it has not ended within {limit:?}")))),
            }
        };
        tokio::select! {
            biased;
            outcome = in_time => outcome,
            () = cancel.cancelled() => Err(AgentError::Failed("the run was cancelled".to_owned())),
        }
    }
}
