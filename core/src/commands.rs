//! The gateway's own commands, the same on every channel. Every other one goes to the agent.
//!
//! To add one: a variant of [`Command`], a line in [`COMMANDS`], its words in `config/default.toml`, its arm
//! in `Core::answer`.

use rejoinder_guard::{Event, Outcome, Reply};
use std::sync::Arc;
use tracing::{error, warn};

use crate::{
    engine::Core,
    ledger::{Along, FIRST_PAUSE, MAX_PAUSE, MAX_REJECTED, Step},
    model::{agent::AgentName, event::EventKind, ids::SessionId, turn::TurnRecord},
    ports::store::{
        StoreError,
        transition::{NewSession, RunEnd},
    },
};

/// The name that a command's turn carries in place of an agent's. No agent has it.
pub const AGENT: &str = "gateway";

/// A command, for a platform that lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandHelp {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, in a few words.
    pub description: &'static str,
}

/// The gateway's own commands, in the order in which people are shown them.
pub const COMMANDS: [CommandHelp; 5] = [
    CommandHelp { name: "start", description: "Say hello" },
    CommandHelp { name: "help", description: "What can be said here" },
    CommandHelp { name: "new", description: "Start afresh: what was said before is forgotten" },
    CommandHelp { name: "stop", description: "Stop what is being worked on" },
    CommandHelp { name: "status", description: "What is being worked on" },
];

/// A command of the gateway's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Says hello.
    Start,
    /// Says what there is.
    Help,
    /// Says what is open in this conversation.
    Status,
    /// Ends what is running and drops what waits in this conversation.
    Stop,
    /// Starts a new session: the agent forgets.
    New,
}

impl Command {
    /// The command that a text is, if it is one and nothing else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text {
            "/help" => Some(Self::Help),
            "/status" => Some(Self::Status),
            "/stop" | "/cancel" => Some(Self::Stop),
            "/new" | "/reset" => Some(Self::New),
            // A link into a chat may carry a word of its own.
            _ if text.split_whitespace().next() == Some("/start") && text.split_whitespace().count() <= 2 => {
                Some(Self::Start)
            }
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
        // An earlier version could store a command without a run.
        let run_ended = (command_turn.runs > 0).then_some(run_ended);
        let mut along = Along { run_ended, ..Along::default() };
        let mut steps = Vec::new();
        let words = match Command::parse(&command_turn.event.text) {
            _ if command_turn.event.kind == EventKind::Stranger => "stranger",
            Some(Command::Start) => "start",
            Some(Command::Help) => "help",
            Some(Command::Status) if self.open_before(&command_turn).await?.is_empty() => "status_idle",
            Some(Command::Status) => "status_busy",
            Some(Command::Stop) => {
                for turn in self.open_before(&command_turn).await? {
                    steps.push(Step { turn, event: Event::Cancelled { by: command.id.to_string() } });
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
        let event = Event::Outcome(Outcome::Reply(Reply::text(self.fill_in(words, &command_turn))));
        steps.push(Step { turn: command_turn, event });
        self.decide_all(&mut steps, along).await?;
        Ok(())
    }

    /// The turns of a command's conversation that are owed an answer, and came before it.
    async fn open_before(&self, command: &TurnRecord) -> Result<Vec<TurnRecord>, StoreError> {
        let mut open = Vec::new();
        for id in self.store.open_turns(command.conversation).await? {
            if id < command.id
                && let Some(turn) = self.store.turn(id).await?
                && &*turn.agent != AGENT
            {
                open.push(turn);
            }
        }
        Ok(open)
    }

    /// The words of a template, with what it names: `{agent}`, and `{sender}`, the platform's id of whoever
    /// wrote.
    fn fill_in(&self, template: &str, turn: &TurnRecord) -> String {
        let channel = &turn.event.conversation.channel;
        let words = self.settings.words.say(channel, template);
        words.replace("{agent}", self.settings.agent(channel)).replace("{sender}", &turn.event.sender.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_the_command_is_the_command() {
        assert_eq!(Command::parse(" /stop\n"), Some(Command::Stop));
        assert_eq!(Command::parse("/new"), Some(Command::New));
        assert_eq!(Command::parse("/start"), Some(Command::Start));
        assert_eq!(Command::parse("/start from-the-website"), Some(Command::Start));
        assert_eq!(Command::parse("/start the engine now"), None);
        assert_eq!(Command::parse("/started"), None);
        assert_eq!(Command::parse("/stop it"), None);
        assert_eq!(Command::parse("please stop"), None);
    }
}
