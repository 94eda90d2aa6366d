//! The receiver retries until events are stored, and one that the store rejects does not stop the others.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, ChannelId, ChatKind, ConversationRef, Engine, InboundEvent, Sender, SenderKind, Store, Timestamp,
    conformance::{
        parts_without_agents,
        rejecting::{RejectingLayer, Rejection},
    },
};
use rejoinder_kit::{Health, Receiver, ShuttingDown};
use rejoinder_store::{OpenOptions, SqliteStore};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

fn channel() -> ChannelId {
    ChannelId::new("test", "main")
}

/// A gateway without channels and agents, over a store that rejects as `rejection` says.
async fn gateway(rejection: Rejection) -> (Engine, Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let store =
        Arc::new(SqliteStore::open(OpenOptions::new(directory.path().join("test.db"))).await.expect("a database"));
    let parts = parts_without_agents(Arc::new(RejectingLayer::wrap(Arc::clone(&store) as _, rejection)), Vec::new());
    (Engine::start(parts).await.expect("an empty store can be read"), store, directory)
}

fn message(text: &str) -> InboundEvent {
    let sender = Sender { id: "ada".to_owned(), name: None, username: None, kind: SenderKind::OtherAgent };
    let conversation = ConversationRef::new(channel(), "ada");
    InboundEvent {
        text: text.to_owned(),
        ..InboundEvent::new(conversation, ChatKind::Group, text.to_owned(), sender, Timestamp::from_millis(1))
    }
}

/// E4.
#[tokio::test]
async fn a_poison_event_costs_itself_only() {
    let (engine, store, _directory) = gateway(Rejection::Text).await;
    let (intake, health, shutdown) = (engine.intake(&channel()), Health::default(), CancellationToken::new());
    let channel = channel();
    let receiver = Receiver { channel: &channel, intake: &intake, health: &health, shutdown: &shutdown };

    let accepted = receiver.accept(&[message("poison"), message("one"), message("two")], Some(("updates", "3"))).await;

    assert_eq!(accepted, Ok(vec![Accepted::Refused, Accepted::Kept, Accepted::Kept]));
    assert_eq!(receiver.cursor("updates").await, Ok(Some("3".to_owned())));
    assert_eq!(health.report().problem, None);
    assert_eq!(store.cursor(&channel, "updates").await.expect("readable").as_deref(), Some("3"));
    engine.stop(Duration::ZERO).await;
}

/// When the store accepts nothing, no event is skipped.
#[tokio::test]
async fn events_wait_for_a_store_that_cannot_write() {
    let (engine, store, _directory) = gateway(Rejection::EveryEvent).await;
    let (intake, health, shutdown) = (engine.intake(&channel()), Health::default(), CancellationToken::new());
    let channel = channel();
    let receiver = Receiver { channel: &channel, intake: &intake, health: &health, shutdown: &shutdown };
    let events = [message("one")];

    let accepting = receiver.accept(&events, Some(("updates", "1")));
    let watching = async {
        while health.report().problem.is_none() {
            tokio::task::yield_now().await;
        }
        shutdown.cancel();
    };
    let (accepted, ()) = tokio::join!(accepting, watching);

    assert_eq!(accepted, Err(ShuttingDown));
    let problem = health.report().problem.unwrap_or_default();
    assert!(problem.starts_with("events cannot be stored: "), "{problem}");
    assert_eq!(store.cursor(&channel, "updates").await.expect("readable"), None);
    engine.stop(Duration::ZERO).await;
}
