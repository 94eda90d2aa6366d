//! The turns of the checks, and how they are stored.

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Event, Expectation, Obligation, Outcome, Policy, Reply, Timestamp};

use crate::{
    conformance::{answer, new_delivery},
    model::{
        conversation::{ChannelId, ChatKind, ConversationRef},
        event::{Directed, InboundEvent, Sender, SenderKind},
        ids::{ConversationId, DeliveryId, EventId, NodeId, SessionId, TurnId},
        language::Language,
        question::AskedQuestion,
        session::{SessionChange, SessionUse},
        stored_delivery::{DeliveryRecord, DeliveryState},
        turn::{Handler, TurnSeq, Version},
    },
    ports::store::{
        Store,
        accept::{NewEvent, NewTurn, Stored},
        housekeeping::Cutoffs,
        transition::{Commit, NewDelivery, RunStart, Transition, TurnChange},
    },
};

/// The start time of every check.
pub(super) const START: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// Nothing is past its time.
pub(super) const NEVER: Cutoffs =
    Cutoffs { turns: START, dead_letters: START, payloads: START, keys: START, lines: START, voice: START };

/// `seconds` after [`START`].
pub(super) fn at(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

pub(super) fn policy() -> Policy {
    Policy::default()
}

/// The handler of the checks' turns.
pub(super) fn main() -> Handler {
    Handler::Agent("main".into())
}

/// The node of the checks' runs and attempts: a process that is gone.
pub(super) fn gone() -> NodeId {
    NodeId::from(uuid::Uuid::from_u128(1))
}

/// The process that looks for the leftovers of others.
pub(super) fn me() -> NodeId {
    NodeId::from(uuid::Uuid::from_u128(2))
}

pub(super) fn chat(name: &str) -> ConversationRef {
    ConversationRef::new(ChannelId::new("test", "main"), name)
}

/// A message in `conversation`, with the key `key`.
pub(super) fn said(conversation: &ConversationRef, key: &str) -> InboundEvent {
    InboundEvent {
        directed: Directed::DirectChat,
        text: format!("text of {key}"),
        raw: "{}".to_owned(),
        ..InboundEvent::new(
            conversation.clone(),
            ChatKind::Direct,
            key.to_owned(),
            Sender { id: "ann".to_owned(), name: None, username: None, kind: SenderKind::Person },
            START,
        )
    }
}

/// An event with a turn that waits for its run.
pub(super) fn new_turn(event: InboundEvent) -> NewEvent {
    let at = event.received_at;
    NewEvent {
        id: EventId::new(at),
        turn: Some(NewTurn {
            id: TurnId::new(at),
            handler: main(),
            rule: None,
            obligation: Obligation::open(Expectation::Answer, &policy(), None, at),
            run: None,
            conversation: ConversationId::new(at),
            about: None,
            session: SessionUse::current(SessionId::new(at)),
            model: None,
            remark: None,
            repeats: None,
            day: None,
        }),
        event: Arc::new(event),
        only_if_known: false,
        files: Vec::new(),
    }
}

/// A session that becomes the current one of a conversation.
pub(super) fn new_session(id: SessionId, conversation: ConversationId, seconds: u64) -> SessionChange {
    SessionChange::New { id, conversation, name: None, person: None, at: at(seconds) }
}

pub(super) async fn accept_one(store: &dyn Store, event: NewEvent) -> Stored {
    let mut stored = store.accept(vec![event], None).await.expect("events are accepted");
    assert_eq!(stored.len(), 1);
    stored.remove(0)
}

/// A turn as its writer knows it, with the version that the next change expects.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) seq: TurnSeq,
    pub(super) version: Version,
    pub(super) obligation: Obligation,
    pub(super) address: ConversationRef,
    pub(super) conversation: ConversationId,
    pub(super) session: SessionId,
}

impl Turn {
    /// Accepts `event` as a turn.
    pub(super) async fn accept(store: &dyn Store, event: InboundEvent) -> Self {
        Self::of(store, new_turn(event)).await
    }

    /// Accepts a new turn.
    pub(super) async fn of(store: &dyn Store, new: NewEvent) -> Self {
        let address = new.event.conversation.clone();
        let NewTurn { id, obligation, .. } = new.turn.clone().expect("it has a turn");
        match accept_one(store, new).await {
            Stored::Turn { seq, conversation, session, .. } => {
                Self { id, seq, version: 1, obligation, address, conversation, session }
            }
            other => panic!("the event should be a turn, and is {other:?}"),
        }
    }

    /// Applies `event` to the turn, `seconds` after the start, and returns the transition that stores this.
    pub(super) fn on(&mut self, event: Event, seconds: u64) -> Transition {
        let expected = self.version;
        let _ = self.obligation.on(event, &policy(), at(seconds));
        self.version += 1;
        let change = TurnChange { turn: self.id, expected, obligation: self.obligation.clone(), at: at(seconds) };
        Transition { turns: vec![change], ..Transition::default() }
    }

    /// Begins the turn's run.
    pub(super) async fn begin(&mut self, store: &dyn Store) {
        let transition = self.on(Event::Begin, 1);
        done(store, transition).await;
    }

    /// Ends the turn's run with an answer, whose delivery waits to be sent.
    pub(super) async fn answer(&mut self, store: &dyn Store, text: &str) -> DeliveryId {
        self.begin(store).await;
        let mut transition = self.on(Event::Outcome(Outcome::Reply(Reply::text(text))), 2);
        let record = self.delivery(1, text);
        let id = record.id;
        transition.deliveries.push(new_delivery(record));
        done(store, transition).await;
        id
    }

    /// Stores that the latest claim is delivered.
    pub(super) async fn settle(&mut self, store: &dyn Store, delivery: DeliveryId) {
        let claim = self.obligation.claims();
        let mut transition = self.on(Event::Delivered { claim, messages: vec!["m".to_owned()] }, 3);
        let records = store.deliveries(self.id).await.expect("deliveries are read");
        let record = records.iter().find(|record| record.id == delivery).expect("the delivery is there");
        transition.delivery_changes.push(crate::store::DeliveryChange {
            state: DeliveryState::Delivered,
            message_ids: vec!["m".to_owned()],
            delivered_at: Some(at(3)),
            ..crate::store::DeliveryChange::of(record)
        });
        done(store, transition).await;
    }

    /// A pending delivery of one part.
    pub(super) fn delivery(&self, claim: u32, text: &str) -> DeliveryRecord {
        DeliveryRecord { claim, ..answer(self.id, self.conversation, self.address.clone(), text, at(2)) }
    }

    /// The question of its first claim, which never expires.
    pub(super) fn question(&self) -> AskedQuestion {
        AskedQuestion {
            turn: self.id,
            claim: 1,
            conversation: self.conversation,
            address: self.address.clone(),
            chooser: None,
            text: "Well?".to_owned(),
            choices: vec!["Yes".to_owned(), "No".to_owned()],
            free_text: true,
            asked_at: at(2),
            expires_at: None,
            language: Language::of("de"),
        }
    }

    pub(super) fn run(&self, number: u32) -> RunStart {
        RunStart { turn: self.id, number, handler: main(), node: gone(), at: at(1) }
    }
}

/// The turns with runs that nodes have left, as another node reads them that runs nothing.
pub(super) async fn runs_left(store: &dyn Store) -> Vec<TurnId> {
    let left = store.runs_left(me(), &[], None, 10).await.expect("turns are read");
    left.into_iter().map(|left| left.turn).collect()
}

/// A transition of deliveries alone.
pub(super) fn deliveries(records: impl IntoIterator<Item = DeliveryRecord>) -> Transition {
    let deliveries: Vec<NewDelivery> = records.into_iter().map(new_delivery).collect();
    Transition { deliveries, ..Transition::default() }
}

pub(super) async fn commit(store: &dyn Store, transition: Transition) -> Commit {
    store.commit(transition).await.expect("the transition is executed")
}

pub(super) async fn done(store: &dyn Store, transition: Transition) {
    assert_eq!(commit(store, transition).await, Commit::Done);
}
