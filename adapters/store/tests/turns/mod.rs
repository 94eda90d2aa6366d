//! Turns to put into a database.

use std::sync::Arc;

use rejoinder_core::{
    ChannelId, ChatKind, Clock, ConversationId, ConversationRef, Directed, EventId, Expectation, Handler, InboundEvent,
    Obligation, Policy, Sender, SenderKind, SessionId, SystemClock, TurnId,
    store::{NewEvent, NewTurn, SessionUse},
};

pub(crate) fn handler() -> Handler {
    Handler::Agent("main".into())
}

pub(crate) fn new_turn(chat: &str, key: &str, text: String) -> NewEvent {
    let now = SystemClock.now();
    let event = InboundEvent {
        directed: Directed::DirectChat,
        text,
        ..InboundEvent::new(
            ConversationRef::new(ChannelId::new("test", "main"), chat),
            ChatKind::Direct,
            key.to_owned(),
            Sender { id: "ann".to_owned(), name: None, username: None, kind: SenderKind::Person },
            now,
        )
    };
    let turn = NewTurn {
        id: TurnId::new(now),
        handler: handler(),
        rule: None,
        obligation: Obligation::open(Expectation::Answer, &Policy::default(), None, now),
        run: None,
        conversation: ConversationId::new(now),
        about: None,
        session: SessionUse::current(SessionId::new(now)),
        model: None,
        remark: None,
        repeats: None,
        day: None,
    };
    NewEvent {
        id: EventId::new(now),
        event: Arc::new(event),
        turn: Some(turn),
        only_if_known: false,
        files: Vec::new(),
    }
}
