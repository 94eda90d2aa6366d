//! Sample values for the unit tests of this crate.

use std::time::Duration;

use rejoinder_core::{
    AgentTurn, Capabilities, ChannelId, ChatKind, ConversationRef, DeferralLimits, Receipts, Resend, Sender,
    SenderKind, SessionId, Support, Surface, Timestamp, TurnId,
};

use crate::OpenAiSection;

/// A frontend that can do everything.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        receipts: Receipts::Platform,
        can_write_first: true,
        resend: Resend::Idempotent,
        edit: Support::Full,
        reactions: Support::Full,
        allowed_reactions: None,
        choices: Support::Full,
        attachments: Support::Full,
        drafts: Support::Full,
        drafts_are_messages: false,
        draft_interval: Duration::ZERO,
        typing: Support::Full,
        typing_interval: Duration::ZERO,
        typing_ends_by_itself: true,
        bang_commands: false,
        text_limit: None,
        conversation_rate: None,
        account_rate: None,
    }
}

/// A message from Ada in a direct chat.
pub(crate) fn turn(text: &str) -> AgentTurn {
    let now = Timestamp::from_millis(1_700_000_000_000);
    AgentTurn {
        turn: TurnId::new(now),
        conversation: ConversationRef::new(ChannelId::new("telegram", "main"), "7"),
        chat: ChatKind::Direct,
        surface: Surface::Chat("Telegram".into()),
        session: SessionId::new(now),
        model: None,
        attempt: 1,
        deferred: None,
        may_defer: DeferralLimits { left: 3, longest: Duration::from_hours(24) },
        approvals: Vec::new(),
        may_ask_approval: false,
        may_schedule: false,
        sender: Sender { id: "ada".into(), name: Some("Ada".into()), username: None, kind: SenderKind::Person },
        language: None,
        text: text.into(),
        instructions: None,
        reaction: None,
        attachments: Vec::new(),
        forwarded: None,
        quoted: None,
        more: Vec::new(),
        history: Vec::new(),
        capabilities: capabilities(),
        cut_off: "The rest is missing.".to_owned(),
        now,
        deadline: now + Duration::from_mins(10),
        trace: None,
    }
}

/// Settings for a server that no test calls.
pub(crate) fn settings() -> OpenAiSection {
    let base_url = "http://127.0.0.1:9/v1".parse().expect("a URL");
    OpenAiSection { base_url, model: "test-model".to_owned(), ..OpenAiSection::default() }
}
