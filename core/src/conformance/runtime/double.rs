//! The double of an agent, and the turns that it is given.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{ApprovalRequest, Timestamp};

use crate::{
    conformance::scripted::capabilities,
    model::{
        agent::{
            AgentApproval, AgentMessage, AgentPast, AgentPerson, AgentPlace, AgentRights, AgentTurn, DeferralLimits,
            Surface,
        },
        approval::ApprovalState,
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{Sender, SenderKind},
        ids::{SessionId, TurnId},
    },
    ports::agent::AgentRuntime,
    questions::request::as_stored,
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

/// What was decided on a request, before the first run that is given it. Nobody says who decided, or anything about it.
#[must_use]
pub fn decision(request: &ApprovalRequest, state: ApprovalState) -> AgentApproval {
    AgentApproval { request: as_stored(request), state, by: None, note: None, chosen: None, is_used: false }
}

/// A message from Ada in a direct chat, in the first run of its turn.
#[must_use]
pub fn turn(text: &str) -> AgentTurn {
    // 2023-11-14T22:13:20Z
    let now = Timestamp::from_millis(1_700_000_000_000);
    AgentTurn {
        turn: TurnId::new(now),
        attempt: 1,
        person: AgentPerson::default(),
        message: AgentMessage {
            sender: Sender { id: "ada".into(), name: Some("Ada".into()), username: None, kind: SenderKind::Person },
            text: text.into(),
            forwarded: None,
            attachments: Vec::new(),
            voice: None,
            quoted: None,
            reaction: None,
        },
        more: Vec::new(),
        place: AgentPlace {
            conversation: ConversationRef::new(ChannelId::new("telegram", "main"), "7"),
            chat: ChatKind::Direct,
            surface: Surface::Chat("Telegram".into()),
            session: SessionId::new(now),
            own_session: None,
            model: None,
            capabilities: capabilities(),
            cut_off: "The rest is missing.".to_owned(),
        },
        rights: AgentRights {
            may_defer: DeferralLimits { left: 3, longest: Duration::from_hours(24) },
            may_ask_approval: false,
            may_ask_person: false,
            may_schedule: false,
            budget: None,
            spent: Vec::new(),
            tools: None,
        },
        past: AgentPast::default(),
        now,
        deadline: now + Duration::from_mins(10),
        trace: None,
    }
}

impl AgentTurn {
    /// The same with other values, which `change` sets.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// The same turn in another run.
pub(super) fn again(turn: &AgentTurn, attempt: u32) -> AgentTurn {
    turn.clone().with(|turn| turn.attempt = attempt)
}

pub(super) fn says(pieces: &[&str]) -> Conduct {
    Conduct::Says(pieces.iter().map(|piece| (*piece).to_owned()).collect())
}
