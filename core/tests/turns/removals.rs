//! Turns that are removed while the input of a run is prepared are not given to its agent.

use rejoinder_core::{
    AgentTurn, Attachment, Farewell, InboundEvent,
    conformance::scripted::{Script, ScriptedAgent},
    store::Removal,
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, operator, secs},
    linking::says,
    memories::{ada, names_it, turn_of},
};

/// An agent that reads files and the transcript, and can only forget whole sessions.
fn reading(director: impl Fn(&AgentTurn) -> Script + Clone + Send + Sync + 'static) -> GatewaySetup {
    let mut setup = GatewaySetup::new();
    let make = move |clock| {
        ScriptedAgent::new(clock, director.clone()).keeping_whole_sessions().remembering(50).reading(&["text/"])
    };
    setup.agents.push(("main", Box::new(make)));
    setup
}

fn with_file(text: &str) -> InboundEvent {
    let (name, media_type, url) = ("a.txt".to_owned(), "text/plain".to_owned(), "file:a".to_owned());
    InboundEvent { attachments: vec![Attachment { name, media_type, url }], ..says(&chat("ada"), text) }
}

async fn remove(gateway: &TestGateway, text: &str) {
    gateway.store.remove(Removal::Turns(vec![turn_of(gateway, text)])).await.expect("it is removed");
    gateway.settle().await;
}

/// The agent's own id of the session, and the lines, as the latest run was given them.
fn given(gateway: &TestGateway) -> (Option<String>, Vec<String>) {
    let turn = gateway.agent("main").runs().pop().expect("there is a run").turn;
    (turn.place.own_session, turn.past.history.iter().map(|line| line.text.clone()).collect())
}

#[tokio::test]
async fn a_turn_that_is_removed_while_files_are_fetched_is_not_given_to_the_agent() {
    let gateway = reading(names_it).start().await;
    for text in ["one", "two"] {
        ada(&gateway, text).await;
    }
    comes_in(&gateway, with_file("three")).await;
    assert_eq!(gateway.agent("main").runs().len(), 2, "the file is not there yet");

    remove(&gateway, "two").await;
    gateway.life.files.open();
    gateway.advance(secs(5)).await;

    assert_eq!(given(&gateway), (None, vec!["one".to_owned(), "one None".to_owned()]));
    assert_eq!(ada(&gateway, "four").await, "four Some(\"own-three\")");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_turn_that_is_removed_while_the_session_is_read_is_not_given_to_the_agent() {
    let gateway = reading(names_it).start().await;
    for text in ["one", "two"] {
        ada(&gateway, text).await;
    }
    gateway.life.hold(Some("transcript"));
    comes_in(&gateway, says(&chat("ada"), "three")).await;
    assert_eq!(gateway.agent("main").runs().len(), 2, "the transcript is not read yet");

    remove(&gateway, "two").await;
    gateway.life.hold(None);
    gateway.settle().await;

    assert_eq!(given(&gateway), (None, vec!["one".to_owned(), "one None".to_owned()]));
    assert_eq!(ada(&gateway, "four").await, "four Some(\"own-three\")");
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_its_files_are_fetched_never_reaches_the_agent() {
    let gateway = reading(|_| Script::replies("yes").ignoring_cancel()).start().await;
    let turn = gateway.receives(with_file("one")).await;

    let cancelled = gateway.engine().operations().cancel(turn, Farewell::Silence, operator("it was a mistake")).await;
    cancelled.expect("it is cancelled");
    gateway.advance(secs(60)).await;

    assert!(gateway.agent("main").runs().is_empty());
    gateway.at_rest().await;
}
