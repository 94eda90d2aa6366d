//! The turns with which commands ask an agent, outside of all chats.

use std::time::Duration;

use rejoinder_core::{
    AgentTurn, Capabilities, Cause, ChannelId, ChatKind, ConversationRef, DeferralLimits, Handoff, Language, Sender,
    SenderKind, SessionId, Support, Surface, Timestamp, TurnId,
};

/// How long an answer may be put off.
const LONGEST: Duration = Duration::from_hours(24);

/// A question of the operator's, which is shown on the terminal alone. Nothing can be put off, scheduled or approved.
pub(super) fn asking(question: &str, now: Timestamp, time: Duration) -> AgentTurn {
    AgentTurn {
        turn: TurnId::new(now),
        conversation: ConversationRef::new(ChannelId::new("cli", "test"), "test"),
        chat: ChatKind::Direct,
        surface: Surface::Chat("the command line".into()),
        session: SessionId::new(now),
        own_session: None,
        holder: None,
        model: None,
        attempt: 1,
        deferred: None,
        handoff: None,
        last_answer: None,
        may_defer: DeferralLimits { left: 0, longest: LONGEST },
        approvals: Vec::new(),
        spent: Vec::new(),
        may_ask_approval: false,
        answers: Vec::new(),
        may_ask_person: false,
        may_schedule: false,
        sender: Sender { id: "operator".to_owned(), name: None, username: None, kind: SenderKind::Person },
        language: None,
        text: question.to_owned(),
        forwarded: None,
        instructions: None,
        seal_to: None,
        reaction: None,
        attachments: Vec::new(),
        quoted: None,
        more: Vec::new(),
        history: Vec::new(),
        capabilities: capabilities(Support::No),
        cut_off: "The rest is missing.".to_owned(),
        now,
        deadline: now + time,
        trace: None,
        tools: None,
    }
}

/// A turn in a direct chat where everything can be done, and of which everything is to be told.
pub(super) fn in_chat(now: Timestamp) -> AgentTurn {
    AgentTurn {
        surface: Surface::Chat("<the platform>".into()),
        may_defer: DeferralLimits { left: 1, longest: LONGEST },
        may_ask_approval: true,
        may_ask_person: true,
        may_schedule: true,
        language: Some(Language::ENGLISH),
        instructions: Some(String::new()),
        handoff: Some(Handoff { cause: Cause::Error, why: String::new(), tried: Vec::new() }),
        capabilities: capabilities(Support::Full),
        ..asking("", now, LONGEST)
    }
}

fn capabilities(reactions: Support) -> Capabilities {
    Capabilities { can_write_first: false, reactions, ..Capabilities::minimal() }
}
