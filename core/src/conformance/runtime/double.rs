//! The double of an agent, and the turns that it is given.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::Timestamp;

use crate::{
    conformance::scripted::capabilities,
    model::{
        agent::{AgentTurn, DeferralLimits, Surface},
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{Sender, SenderKind},
        ids::{SessionId, TurnId},
    },
    ports::agent::AgentRuntime,
};

/// What the agent does in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conduct {
    /// It says these pieces of text, which together are its answer.
    Says(Vec<String>),
    /// It sends this text as its answer before the end of the run.
    Sends(String),
    /// It says the first text, and answers what came meanwhile, if the run has heard anything, with the second one.
    Listens(String, String),
    /// It says this, and then nothing more, and does not end.
    Hangs(String),
    /// It says this, and then breaks: its connection is cut, its process is killed, or it sends what cannot be read.
    Breaks(String),
    /// It makes the runtime panic.
    Panics,
}

/// A double of an agent, with a runtime that is connected to it.
pub trait AgentDouble: Send + Sync {
    /// The runtime under test.
    fn runtime(&self) -> Arc<dyn AgentRuntime>;

    /// Says what the agent does in the run with this [`attempt`](AgentTurn::attempt). Returns `false` if it cannot do that.
    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool;

    /// On how many runs the agent works now.
    fn at_work(&self) -> usize;

    /// All that the agent was given in all runs.
    fn given(&self) -> Vec<String>;
}

/// A message from Ada in a direct chat, in the first run of its turn.
#[must_use]
pub fn turn(text: &str) -> AgentTurn {
    // 2023-11-14T22:13:20Z
    let now = Timestamp::from_millis(1_700_000_000_000);
    AgentTurn {
        turn: TurnId::new(now),
        conversation: ConversationRef::new(ChannelId::new("telegram", "main"), "7"),
        chat: ChatKind::Direct,
        surface: Surface::Chat("Telegram".into()),
        session: SessionId::new(now),
        own_session: None,
        holder: None,
        model: None,
        attempt: 1,
        deferred: None,
        handoff: None,
        last_answer: None,
        may_defer: DeferralLimits { left: 3, longest: Duration::from_hours(24) },
        approvals: Vec::new(),
        may_ask_approval: false,
        answers: Vec::new(),
        may_ask_person: false,
        spent: Vec::new(),
        may_schedule: false,
        sender: Sender { id: "ada".into(), name: Some("Ada".into()), username: None, kind: SenderKind::Person },
        language: None,
        text: text.into(),
        forwarded: None,
        instructions: None,
        seal_to: None,
        reaction: None,
        attachments: Vec::new(),
        quoted: None,
        more: Vec::new(),
        history: Vec::new(),
        capabilities: capabilities(),
        cut_off: "The rest is missing.".to_owned(),
        now,
        deadline: now + Duration::from_mins(10),
        trace: None,
        tools: None,
    }
}

/// The same turn in another run.
pub(super) fn again(turn: &AgentTurn, attempt: u32) -> AgentTurn {
    AgentTurn { attempt, ..turn.clone() }
}

pub(super) fn says(pieces: &[&str]) -> Conduct {
    Conduct::Says(pieces.iter().map(|piece| (*piece).to_owned()).collect())
}
