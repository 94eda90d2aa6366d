//! An event that the store rejects although it can write.

use rejoinder_core::{
    Accepted, Access, Actor, AgentTurn, Attachment, Identity, InboundEvent, IntakeError, PersonRole, SeedPerson,
    StoreError,
    conformance::{
        rejecting::Rejection,
        scripted::{Script, ScriptedAgent},
    },
    store::{AuditFilter, NewEvent, Stored},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, operator, said},
    initiative::{answer_with_turns, message},
    linking::{last, says, setup},
};

async fn rejecting(rejection: Rejection) -> TestGateway {
    let mut setup = GatewaySetup::new().agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text));
    setup.rejection = Some(rejection);
    setup.start().await
}

fn texts(agent: &ScriptedAgent) -> Vec<String> {
    agent.runs().into_iter().map(|run| run.turn.message.text).collect()
}

/// Accepts an event again, without a turn.
async fn again(gateway: &TestGateway, event: &InboundEvent) -> Stored {
    let id = rejoinder_core::EventId::new(event.received_at);
    let again = NewEvent { id, event: event.clone().into(), turn: None, only_if_known: false, files: Vec::new() };
    gateway.store.accept(vec![again], None).await.expect("accepted").remove(0)
}

/// E3. The other events of the batch are answered in order, the cursor moves, and the event's key is stored.
#[tokio::test]
async fn a_poison_event_costs_those_that_came_with_it_nothing() {
    for rejection in [Rejection::Text, Rejection::Payload, Rejection::Panic] {
        let gateway = rejecting(rejection).await;
        let poison = said(&chat("ada"), "poison");
        let batch =
            vec![poison.clone(), said(&chat("ada"), "one"), said(&chat("bob"), "two"), said(&chat("ada"), "three")];

        let accepted = gateway.intake().accept_all(batch.clone(), Some(("updates", "4".to_owned()))).await;
        gateway.settle().await;

        let accepted = accepted.expect("it is accepted");
        assert_eq!(accepted[0], Accepted::Refused);
        assert!(accepted[1..].iter().all(|one| matches!(one, Accepted::Turn(_))), "{accepted:?}");
        assert_eq!(gateway.visible(&chat("ada")), ["one", "three"]);
        assert_eq!(gateway.visible(&chat("bob")), ["two"]);
        assert_eq!(gateway.store.cursor(&main_channel(), "updates").await.expect("readable").as_deref(), Some("4"));
        assert_eq!(again(&gateway, &poison).await, Stored::Duplicate { turn: None, message: None });
        let again = gateway.intake().accept_all(batch, None).await.expect("it is accepted");
        assert!(again[1..].iter().all(|one| matches!(one, Accepted::Duplicate { .. })), "{again:?}");
        assert_eq!(texts(gateway.agent("main")).len(), 3);
        gateway.at_rest().await;
    }
}

/// An event that cannot be stored in any form is skipped.
#[tokio::test]
async fn what_cannot_even_be_noted_is_passed_over() {
    let gateway = rejecting(Rejection::Everything).await;
    let poison = said(&chat("ada"), "poison");
    let batch = vec![poison.clone(), said(&chat("ada"), "one")];

    let accepted = gateway.intake().accept_all(batch, Some(("updates", "2".to_owned()))).await.expect("it is accepted");
    gateway.settle().await;

    assert_eq!(accepted[0], Accepted::Refused);
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    assert_eq!(again(&gateway, &poison).await, Stored::Kept);
    assert_eq!(gateway.store.cursor(&main_channel(), "updates").await.expect("readable").as_deref(), Some("2"));
    gateway.at_rest().await;
}

/// A store that cannot write at all gives a transient error, so the platform sends the event again.
#[tokio::test]
async fn a_store_that_takes_nothing_at_all_makes_nothing_a_poison_event() {
    let gateway = rejecting(Rejection::EveryEvent).await;

    let refused = gateway.intake().accept(said(&chat("ada"), "one")).await;

    assert!(matches!(refused, Err(IntakeError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    gateway.at_rest().await;
}

/// The others get theirs, and the audit and the answer tell of all.
#[tokio::test]
async fn a_message_that_the_store_rejects_costs_its_recipient_only() {
    let mut setup = setup(Access::default());
    let identities = vec![Identity { channel: main_channel(), id: "bob".to_owned() }];
    let (name, role) = ("Bob".to_owned(), PersonRole::Member);
    setup.people.push(SeedPerson { name, role, identities, home: None, language: None });
    setup.rejection = Some(Rejection::Text);
    let gateway = setup.start().await;
    let photo = Attachment {
        name: "photo.png".to_owned(),
        media_type: "image/png".to_owned(),
        url: "data:image/png;base64,aGVsbG8=".to_owned(),
    };
    for address in [chat("ada"), chat("bob")] {
        comes_in(&gateway, InboundEvent { attachments: vec![photo.clone()], ..says(&address, "") }).await;
    }
    let by = Actor { answer: Some(answer_with_turns()), ..operator("a test") };

    let sent = gateway.engine().initiative().send(&message("role:member", "Leave the house."), "key", &by).await;
    gateway.settle().await;

    let sent = sent.expect("it is sent");
    assert_eq!((sent.begun.len(), sent.missed.len()), (1, 1));
    assert_eq!(last(&gateway, &sent.begun[0].to), "Leave the house.");
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    let turn = sent.begun[0].turn.to_string();
    assert!(!audit.is_empty() && audit.iter().all(|it| it.entry.target == turn), "{audit:?}");
    assert_eq!(audit[0].entry.not_reached, sent.missed);
    let answer = gateway.store.answer("grace", "key").await.expect("readable");
    assert_eq!(answer.map(|answer| answer.body), Some(turn));
    gateway.at_rest().await;
}
