//! An agent with the Agent2Agent protocol, on the protocol's own SDK.

use rejoinder_tests::{A2aServer, Chat, Gateway, Reply, eventually};
use rstest::rstest;

use crate::{TOKEN, hook};

const FAILED: &str = "Sorry, that did not work. Please try again.";

async fn gateway(agent: &A2aServer) -> Gateway {
    Gateway::builder().config(&hook("")).config(&agent.section()).start().await
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tasks_and_messages_are_answers(
    #[values("JSONRPC", "HTTP+JSON")] binding: &str,
    #[values(true, false)] streams: bool,
) {
    let agent = A2aServer::start(binding, streams).await;
    let gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    for (said, words) in [("hello", "echo: hello"), ("a message", "direct: a message"), ("fail", FAILED)] {
        assert_eq!(hook.ask(said).await.text(), words);
    }
    let failed = hook.ask("fail").await;
    let explained = gateway.explain(&failed.turn());
    assert!(explained.contains("the task failed: it has no fuel"), "{explained}");
}

/// The context of a session and the task that waits for an answer outlive the gateway.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_question_of_the_agent_is_answered_in_its_task(
    #[values("JSONRPC", "HTTP+JSON")] binding: &str,
    #[values(true, false)] streams: bool,
) {
    let agent = A2aServer::start(binding, streams).await;
    let mut gateway = gateway(&agent).await;
    let ask = async |gateway: &Gateway, words: &str| {
        Reply::of(gateway.hook("test", TOKEN).message_in("table", words)).await.text().to_owned()
    };

    assert_eq!(ask(&gateway, "book a table").await, "Which day?");
    gateway.kill();
    gateway.restart().await;
    assert_eq!(ask(&gateway, "Tuesday").await, "echo: Tuesday");
    assert_eq!(agent.begun().await, 1, "the answer goes on in the task");
    assert_eq!(ask(&gateway, "thanks").await, "echo: thanks");

    assert_eq!(agent.begun().await, 2);
    let contexts = agent.contexts().await;
    assert!(contexts.iter().all(|context| *context == contexts[0]), "{contexts:?}");
}

/// D1: the gateway is killed while the agent works on a task. Afterwards it follows the same task.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_is_followed_after_a_crash_and_answered_once(
    #[values("JSONRPC", "HTTP+JSON")] binding: &str,
    #[values(true, false)] streams: bool,
) {
    let agent = A2aServer::start(binding, streams).await;
    let mut gateway = gateway(&agent).await;
    let hook = gateway.hook("test", TOKEN);

    let accepted = hook.send("slow").await;
    eventually("the agent's context is stored", async || {
        let database = rusqlite::Connection::open(gateway.data().join("rejoinder.db")).ok()?;
        let stored =
            database.query_row("SELECT count(*) FROM agent_sessions WHERE own_session <> ''", [], |row| row.get(0));
        (stored == Ok(1)).then_some(())
    })
    .await;
    gateway.kill();
    gateway.restart().await;
    agent.release().await;

    let result = hook.until_settled(&accepted.turn()).await;
    assert_eq!(result.text(), "echo: slow");
    assert_eq!((agent.begun().await, agent.canceled().await), (1, 0), "{}", gateway.explain(&accepted.turn()));
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stop_cancels_the_task(#[values("JSONRPC", "HTTP+JSON")] binding: &str, #[values(true, false)] streams: bool) {
    let agent = A2aServer::start(binding, streams).await;
    let gateway = Gateway::builder().config("[channels.webchat.main]\n").config(&agent.section()).start().await;
    let mut chat = Chat::open(&gateway.url(), "a-conversation-of-tests").await;

    chat.says("message-1", "slow").await;
    eventually("the agent works", async || (agent.begun().await == 1).then_some(())).await;
    chat.says("message-2", "/stop").await;

    eventually("the task is canceled", async || (agent.canceled().await == 1).then_some(())).await;
}
