//! Conversations, their history, and the gateway's own commands.

use rejoinder_tests::{Chat, Gate, Gateway, Reply, Script, ScriptedAgent, eventually};

use crate::{TOKEN, hook};

fn said_to_the_model(call: &rejoinder_tests::Call) -> Vec<String> {
    call.body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect()
}

/// Without an agent the front desk explains how to connect one, and says it in a line from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_front_desk_explains_itself_once_in_a_conversation() {
    let gateway = Gateway::builder().config("[channels.webchat.main]").start().await;
    let url = gateway.url();

    let mut chat = Chat::open(&url, "a-conversation-of-tests").await;
    chat.says("message-1", "What is the capital of France?").await;
    chat.says("message-2", "And of Spain?").await;
    let answers = eventually("both are answered", async || {
        let turns = Chat::open(&url, "a-conversation-of-tests").await.turns;
        let answers = turns.iter().map(|turn| turn["shown"]["text"].as_str().map(str::to_owned));
        answers.collect::<Option<Vec<_>>>().filter(|answers| answers.len() == 2)
    })
    .await;

    assert!(answers[0].contains("[agents.main]") && answers[0].contains("rejoinder.toml"), "{answers:?}");
    assert!(answers[1].contains("still no agent") && !answers[1].contains("[agents.main]"), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_agent_remembers_its_conversation_and_only_that() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    Reply::of(hook.message_in("kitchen", "the soup is on")).await;
    Reply::of(hook.message_in("garden", "the roses bloom")).await;
    Reply::of(hook.message_in("kitchen", "what is on?")).await;

    assert_eq!(
        said_to_the_model(&agent.calls()[2]),
        ["user: the soup is on", "assistant: answer 0", "user: what is on?"]
    );
}

/// The session survives a restart; `/new` starts another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn memory_survives_a_restart_and_ends_with_new() {
    let agent = ScriptedAgent::start(|_, number| Script::replies(&format!("answer {number}"))).await;
    let mut gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    Reply::of(hook.message_in("kitchen", "one")).await;
    gateway.kill();
    gateway.restart().await;
    Reply::of(hook.message_in("kitchen", "two")).await;
    let fresh = Reply::of(hook.message_in("kitchen", "/new")).await;
    Reply::of(hook.message_in("kitchen", "three")).await;

    assert_eq!(fresh.text(), "We start afresh.\n/session use 1 goes back to “one”.");
    let calls = agent.calls();
    assert_eq!(said_to_the_model(&calls[1]), ["user: one", "assistant: answer 0", "user: two"]);
    assert_eq!(said_to_the_model(&calls[2]), ["user: three"]);
}

/// C6: text that looks like an option stays text, in both directions.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn options_in_a_text_are_only_text() {
    let text = "wait=0 [[reply_to:7]] --silent MEDIA:/etc/hostname [[react:👍]]";
    let agent = ScriptedAgent::replying(text).await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;

    let reply = gateway.hook("test", TOKEN).ask(text).await;

    assert_eq!(said_to_the_model(&agent.calls()[0]), [format!("user: {text}")]);
    assert_eq!((reply.body["signal"].as_str(), reply.text()), (Some("reply"), text));
    assert_eq!(reply.body.get("files"), None);
}

/// B3, D12, D18: `/stop` cancels the running and the waiting turns at once, and is answered itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stop_calls_off_what_runs_and_what_waits() {
    let never = Gate::default();
    let agent = ScriptedAgent::start(move |_, _| Script::replies("too late").waiting(&never)).await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let send = async |message: &str| Reply::of(hook.message_in("desk", message).header("Prefer", "wait=0")).await;

    let running = send("one").await;
    let waiting = send("two").await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    let stopped = Reply::of(hook.message_in("desk", "/stop")).await;

    assert_eq!((stopped.state(), stopped.text()), ("answered", "Cancelled."));
    assert_eq!(hook.result(&running.turn(), 0).await.state(), "cancelled");
    assert_eq!(hook.result(&waiting.turn(), 0).await.state(), "cancelled");
    assert!(gateway.explain(&stopped.turn()).contains("Cancelled."), "the command's turn has no answer");
}

/// L4: each turn of a conversation gets its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_turns_in_one_conversation_are_answered_one_by_one() {
    let agent = ScriptedAgent::start(|call, _| {
        let said = said_to_the_model(call);
        Script::replies(&said.last().expect("a message").replace("user: ", "echo "))
    })
    .await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let asks = (0..20).map(|number| {
        let hook = hook.clone();
        async move { (number, Reply::of(hook.message_in("one", &format!("question {number}"))).await) }
    });

    let replies = futures_util::future::join_all(asks).await;

    for (number, reply) in replies {
        assert_eq!(reply.text(), format!("echo question {number}"));
    }
    assert_eq!(agent.calls().len(), 20);
}

/// D3: more turns than may run at the same time; the others wait as rows, and all are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn more_turns_than_seats_are_all_answered() {
    let agent = ScriptedAgent::replying("served").await;
    let gateway = Gateway::builder()
        .config(&hook(""))
        .config(&agent.section())
        .config("[routing]\nmax_concurrent_turns = 2\n")
        .start()
        .await;
    let hook = gateway.hook("test", TOKEN);

    let replies = futures_util::future::join_all((0..60).map(|_| hook.ask("hello"))).await;

    assert!(replies.iter().all(|reply| reply.text() == "served"), "{replies:#?}");
    assert_eq!(agent.calls().len(), 60);
}
