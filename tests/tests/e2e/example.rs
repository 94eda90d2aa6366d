//! The example channel (`docs/write-an-adapter.md`), through the binary.

use rejoinder_example::server::{ChatServer, Fault, TOKEN};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, eventually};
use rstest::rstest;

pub(crate) async fn server() -> ChatServer {
    ChatServer::start("127.0.0.1:0").await.expect("a free port")
}

/// A channel on `server` that Ada may write to.
pub(crate) fn channel(server: &ChatServer) -> String {
    format!(
        "[channels.example.main]\naddress = \"{}\"\ntoken = \"{TOKEN}\"\nallow_from = [\"ada\"]\n",
        server.address()
    )
}

async fn answers(server: &ChatServer, chat: &str) -> Vec<String> {
    eventually("an answer", async || Some(server.shown(chat)).filter(|shown| !shown.is_empty())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_is_answered() {
    let (server, agent) = (server().await, ScriptedAgent::start(|_, _| Script::replies("four,\nof course")).await);
    let _gateway = Gateway::builder().config(&channel(&server)).config(&agent.section()).start().await;

    let asked = server.writes("ada", "ada", "what is 2 + 2?");

    assert_eq!(answers(&server, "ada").await, ["four,\nof course"]);
    eventually("the message is acknowledged", async || server.is_acknowledged(&asked).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn in_a_room_a_mention_is_answered() {
    let (server, agent) = (server().await, ScriptedAgent::start(|_, _| Script::replies("here")).await);
    let gateway = Gateway::builder().config(&channel(&server)).config(&agent.section()).start().await;

    server.writes("ada", "#kitchen", "who is there?");
    server.writes("ada", "#kitchen", "@agent are you?");
    answers(&server, "#kitchen").await;
    gateway.until_settled().await;

    assert_eq!(server.shown("#kitchen"), ["here"]);
    assert_eq!(agent.calls().len(), 1, "the other message is not for the agent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_could_not_be_sent_is_sent_again() {
    for fault in [Fault::Busy, Fault::Wait(1), Fault::LoseAnswer] {
        let (server, agent) = (server().await, ScriptedAgent::start(|_, _| Script::replies("once")).await);
        let gateway = Gateway::builder().config(&channel(&server)).config(&agent.section()).start().await;
        server.fail_next(fault);

        server.writes("ada", "ada", "hello");
        let shown = answers(&server, "ada").await;
        gateway.until_settled().await;

        assert_eq!((shown, server.shown("ada").len()), (vec!["once".to_owned()], 1), "{fault:?}");
    }
}

/// The gateway connects again, and says meanwhile that it is not ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_is_back_is_listened_to_again() {
    let (server, agent) = (server().await, ScriptedAgent::start(|_, _| Script::replies("here")).await);
    let gateway = Gateway::builder().config(&channel(&server)).config(&agent.section()).start().await;
    server.writes("ada", "ada", "hello");
    answers(&server, "ada").await;

    server.disconnect();
    gateway.until_not_ready("cannot connect").await;
    server.reconnect();
    server.writes("ada", "ada", "hello again");

    let both = eventually("both answers", async || Some(server.shown("ada")).filter(|shown| shown.len() == 2)).await;
    assert_eq!(both, ["here", "here"]);
}

/// The token is refused once, and accepted at the next connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_account_whose_token_is_refused_says_so() {
    let (server, agent) = (server().await, ScriptedAgent::start(|_, _| Script::replies("here")).await);
    let gateway = Gateway::builder().config(&channel(&server)).config(&agent.section()).start().await;
    server.writes("ada", "ada", "hello");
    answers(&server, "ada").await;
    gateway.until_settled().await;

    server.fail_next(Fault::Deny);
    server.writes("ada", "ada", "hello again");

    gateway.until_not_ready("the server rejects the token").await;
    server.disconnect();
    gateway.until_not_ready("cannot connect").await;
    server.reconnect();
    let both = eventually("both answers", async || Some(server.shown("ada")).filter(|shown| shown.len() == 2)).await;
    assert_eq!(both, ["here", "here"]);
}

/// D1, E1. The server redelivers unacknowledged messages and recognises repeated keys.
#[rstest]
#[case::received_before_the_commit("received:1")]
#[case::committed_before_the_server_is_told("accepted:1")]
#[case::the_agent_is_about_to_run("run_started:1")]
#[case::the_agent_has_run("run_ended:1")]
#[case::the_outcome_is_about_to_be_claimed("before_commit:1")]
#[case::claimed_before_it_is_sent("after_commit:1")]
#[case::about_to_be_sent("attempt_started:1")]
#[case::sent_before_it_is_stored("attempt_ended:1")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_leaves_one_answer(#[case] point: &str) {
    let (server, agent) = (server().await, ScriptedAgent::start(|_, _| Script::replies("once")).await);
    let mut gateway = Gateway::builder().config(&channel(&server)).config(&agent.section()).prepare();
    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;

    server.writes("ada", "ada", "hello");
    gateway.until_crashed().await;
    gateway.restart().await;
    let shown = answers(&server, "ada").await;
    gateway.until_settled().await;

    assert_eq!((shown, server.shown("ada").len()), (vec!["once".to_owned()], 1));
}
