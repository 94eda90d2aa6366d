//! What was said is found soon after its turn ended, and no turn waits for that.

use rejoinder_core::{
    AgentTurn, LateAnswer, Policy,
    conformance::scripted::Script,
    store::{SearchFilter, SearchQuery},
};

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, TestGateway, chat, policy, said, secs},
    life::Crash,
    texts::LATE,
};

/// The lines that are found.
pub(crate) async fn found(gateway: &TestGateway, typed: &str) -> Vec<String> {
    let query = SearchQuery::parse(typed).expect("it has a word");
    let filter = SearchFilter { query, channels: None, conversations: None, session: None, before: None, limit: 1000 };
    let found = gateway.store.search(&filter).await.expect("readable");
    found.into_iter().map(|line| line.excerpt).collect()
}

#[tokio::test]
async fn what_was_said_is_found_when_nothing_happened_for_a_moment() {
    let gateway = TestGateway::with(Script::replies("hello Ada")).await;
    gateway.advance(secs(5)).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    assert_eq!(gateway.life.indexings(), 0);
    assert_eq!(found(&gateway, "hello").await, [""; 0]);

    gateway.advance(secs(2)).await;

    assert_eq!(found(&gateway, "hello").await, ["hello Ada", "hello"]);
    assert_eq!(gateway.life.indexings(), 1);
    gateway.advance(secs(3600)).await;
    assert_eq!(gateway.life.indexings(), 1, "without turns there is nothing to do");
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_was_said_is_found_although_something_happens_all_the_time() {
    let gateway = TestGateway::with(Script::replies("hello Ada")).await;
    let half = secs(1) / 2;

    for number in 0..19 {
        gateway.receives(said(&chat("ada"), &format!("hello {number}"))).await;
        gateway.advance(half).await;
    }
    assert_eq!(found(&gateway, "hello").await, [""; 0]);
    for number in 19..24 {
        gateway.receives(said(&chat("ada"), &format!("hello {number}"))).await;
        gateway.advance(half).await;
    }

    let lines = found(&gateway, "hello").await;
    assert!(lines.len() >= 2 * 19 && lines.len() < 2 * 24, "{lines:?}");
    gateway.advance(secs(2)).await;
    assert_eq!(found(&gateway, "hello").await.len(), 2 * 24);
    gateway.at_rest().await;
}

/// Far more is left than one step indexes.
#[tokio::test]
async fn what_was_left_before_a_crash_is_found_after_the_next_start() {
    let mut gateway = TestGateway::with(Script::replies("hello Ada")).await;
    for number in 0..200 {
        gateway.accepts(said(&chat(&format!("c{}", number % 10)), &format!("hello {number}"))).await;
    }
    gateway.settle().await;
    gateway.life.crash_at(2, Crash::Before);
    gateway.advance(secs(5)).await;
    assert!(gateway.life.is_over(), "it takes more than one step");
    let lines = found(&gateway, "hello").await.len();
    assert!((1..400).contains(&lines), "{lines}");

    gateway.restart().await;
    gateway.advance(secs(5)).await;

    assert_eq!(found(&gateway, "hello").await.len(), 400);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_store_that_cannot_index_is_asked_again() {
    let gateway = TestGateway::with(Script::replies("hello Ada")).await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.life.set_store_down(true);
    gateway.advance(secs(10)).await;
    gateway.life.set_store_down(false);
    assert_eq!(found(&gateway, "hello").await, [""; 0]);

    gateway.advance(secs(90)).await;

    assert_eq!(found(&gateway, "hello").await.len(), 2);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_answer_that_comes_after_the_fallback_is_found() {
    let policy = Policy { late_answer: LateAnswer::Deliver, late_window: secs(120), ..policy() };
    let director = |turn: &AgentTurn| match turn.message.text.as_str() {
        "slow" => Script::replies("here at last").taking(HARD_DEADLINE + secs(60)),
        _ => Script::replies("re"),
    };
    let gateway = GatewaySetup::new().policy(policy).agent("main", director).start().await;
    gateway.receives(said(&chat("ada"), "slow")).await;
    gateway.advance(HARD_DEADLINE + secs(30)).await;
    assert_eq!(found(&gateway, "sorry").await, [LATE]);
    assert_eq!(found(&gateway, "slow").await, ["slow"]);
    gateway.advance(secs(60)).await;

    assert_eq!(found(&gateway, "at last").await, ["here at last"]);
    gateway.at_rest().await;
}
