//! The gateway's own commands: `/stop` and `/new`. Everything else goes to the agent.
//!
//! To add one: a variant of [`Command`], its words in `config/default.toml`, its arm in
//! `Core::perform`.

use std::sync::Arc;

use rejoinder_guard::Event;
use tracing::{error, warn};

use crate::{
    AgentName, Outcome, Reply, SessionId,
    engine::Core,
    ledger::{Along, FIRST_PAUSE, MAX_PAUSE, MAX_REJECTED, Step},
    store::{NewSession, RunEnd, StoreError, TurnRecord},
};

/// The name that a command's turn carries in place of an agent's.
pub(crate) const AGENT: &str = "gateway";

/// A command of the gateway's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Ends what is running and drops what waits in this conversation.
    Stop,
    /// Starts a new session: the agent forgets.
    New,
}

impl Command {
    /// The command that a text is, if it is one and nothing else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "/stop" | "/cancel" => Some(Self::Stop),
            "/new" | "/reset" => Some(Self::New),
            _ => None,
        }
    }
}

pub(crate) fn agent() -> AgentName {
    AgentName::from(AGENT)
}

impl Core {
    /// Performs the command that `turn` is, and answers it, in one transaction.
    pub(crate) async fn perform(self: &Arc<Self>, turn: TurnRecord) {
        let (mut pause, mut rejected) = (FIRST_PAUSE, 0);
        while let Err(error) = self.try_to_perform(&turn).await {
            rejected += u32::from(!matches!(error, StoreError::Unavailable(_)));
            if rejected > MAX_REJECTED {
                return error!(turn = %turn.id, %error, "what a command does cannot be stored");
            }
            warn!(turn = %turn.id, %error, "cannot store what a command does, trying again");
            if !self.pause(pause).await {
                return;
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// As [`perform`](Self::perform), once.
    pub(crate) async fn try_to_perform(self: &Arc<Self>, command: &TurnRecord) -> Result<(), StoreError> {
        let Some(command_turn) = self.store.turn(command.id).await? else { return Ok(()) };
        if command_turn.obligation.state().is_final() {
            return Ok(());
        }
        let run_ended = RunEnd {
            turn: command.id,
            number: command_turn.runs,
            at: self.clock.now(),
            end: "reply".to_owned(),
            detail: None,
            usage: None,
        };
        let mut along = Along { run_ended: Some(run_ended), ..Along::default() };
        let mut steps = Vec::new();
        let words = match Command::parse(&command_turn.event.text) {
            Some(Command::Stop) => {
                for id in self.store.open_turns(command_turn.conversation).await? {
                    if id < command.id
                        && let Some(turn) = self.store.turn(id).await?
                        && &*turn.agent != AGENT
                    {
                        steps.push(Step { turn, event: Event::Cancelled { by: command.id.to_string() } });
                    }
                }
                if steps.is_empty() { "nothing_to_cancel" } else { "cancelled" }
            }
            Some(Command::New) => {
                let at = self.clock.now();
                along.session =
                    Some(NewSession { id: SessionId::new(at), conversation: command_turn.conversation, at });
                "new_session"
            }
            // A command that an older version knew.
            None => "failed",
        };
        let text = self.settings.words.say(&command_turn.event.conversation.channel, words).to_owned();
        let event = Event::Outcome(Outcome::Reply(Reply::text(text)));
        steps.push(Step { turn: command_turn, event });
        self.decide_all(&mut steps, along).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_the_command_is_the_command() {
        assert_eq!(Command::parse(" /stop\n"), Some(Command::Stop));
        assert_eq!(Command::parse("/new"), Some(Command::New));
        assert_eq!(Command::parse("/stop it"), None);
        assert_eq!(Command::parse("please stop"), None);
    }
}
