//! The turns with which commands ask an agent, outside of all chats.

use std::time::Duration;

use rejoinder_core::{
    AgentMessage, AgentPast, AgentPerson, AgentPlace, AgentRights, AgentTurn, BudgetLeft, Capabilities, Cause,
    ChannelId, ChatKind, ConversationRef, Cost, Currency, DeferralLimits, Handoff, Language, Sender, SenderKind,
    SessionId, Support, Surface, Timestamp, TurnId,
};

/// How long an answer may be put off.
const LONGEST: Duration = Duration::from_hours(24);

/// A question of the operator's, which is shown on the terminal alone. Nothing can be put off, scheduled or approved.
pub(super) fn asking(question: &str, now: Timestamp, time: Duration) -> AgentTurn {
    AgentTurn {
        turn: TurnId::new(now),
        attempt: 1,
        person: AgentPerson::default(),
        message: AgentMessage {
            sender: Sender { id: "operator".to_owned(), name: None, username: None, kind: SenderKind::Person },
            text: question.to_owned(),
            forwarded: None,
            attachments: Vec::new(),
            voice: None,
            quoted: None,
            reaction: None,
        },
        more: Vec::new(),
        place: AgentPlace {
            conversation: ConversationRef::new(ChannelId::new("cli", "test"), "test"),
            chat: ChatKind::Direct,
            surface: Surface::Chat("the command line".into()),
            session: SessionId::new(now),
            own_session: None,
            model: None,
            capabilities: capabilities(Support::No),
            cut_off: "The rest is missing.".to_owned(),
        },
        rights: AgentRights {
            may_defer: DeferralLimits { left: 0, longest: LONGEST },
            may_ask_approval: false,
            may_ask_person: false,
            may_schedule: false,
            budget: None,
            spent: Vec::new(),
            tools: None,
        },
        past: AgentPast::default(),
        now,
        deadline: now + time,
        trace: None,
    }
}

/// A turn in a direct chat where everything can be done, and of which everything is to be told.
pub(super) fn in_chat(now: Timestamp) -> AgentTurn {
    let mut turn = asking("", now, LONGEST);
    turn.person.language = Some(Language::ENGLISH);
    turn.person.instructions = Some(String::new());
    turn.place.surface = Surface::Chat("<the platform>".into());
    turn.place.capabilities = capabilities(Support::Full);
    turn.rights.may_defer.left = 1;
    turn.rights.may_ask_approval = true;
    turn.rights.may_ask_person = true;
    turn.rights.may_schedule = true;
    let cost = Cost { micros: 2_000_000, currency: Currency::USD };
    turn.rights.budget = Some(BudgetLeft { tokens: Some(400_000), cost: Some(cost) });
    turn.past.handoff = Some(Handoff { cause: Cause::Error, why: String::new(), tried: Vec::new() });
    turn
}

fn capabilities(reactions: Support) -> Capabilities {
    Capabilities { can_write_first: false, reactions, ..Capabilities::minimal() }
}
