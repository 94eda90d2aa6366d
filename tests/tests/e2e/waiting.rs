//! Turns that wait: for their conversation, for a channel that is not configured now, or for a time that an agent named.

use rejoinder_tests::{Chat, Gate, Gateway, GatewayBuilder, Hook, Reply, Script, ScriptedAgent, eventually};
use standardwebhooks::Webhook;

use crate::{TOKEN, hook};

const CONVERSATION: &str = "waiting-conversation-0001";

/// An agent whose first call never ends, and which echoes the others.
async fn hanging_at_first() -> ScriptedAgent {
    let never = Gate::default();
    ScriptedAgent::start(move |call, number| match number {
        0 => Script::replies("never").waiting(&never),
        _ => Script::replies(&format!("echo {}", call.last_message().lines().last().unwrap_or_default())),
    })
    .await
}

fn with(agent: &ScriptedAgent) -> GatewayBuilder {
    Gateway::builder().config(&hook("")).config(&agent.section())
}

/// Kills the gateway, replaces `from` by `to` in its configuration, and starts it again.
async fn starts_with(gateway: &mut Gateway, from: &str, to: &str) {
    gateway.kill();
    gateway.reconfigure(|config| config.replace(from, to));
    gateway.restart().await;
}

async fn queue_messages(hook: &Hook, messages: &[&str]) -> Vec<String> {
    let mut turns = Vec::new();
    for message in messages {
        turns.push(Reply::of(hook.message_in("desk", message).header("Prefer", "wait=0")).await.turn());
    }
    turns
}

/// D9, I4: a hook is renamed for one start. Its running and waiting turns are answered when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hook_that_was_absent_for_one_start_answers_when_it_is_back() {
    let agent = hanging_at_first().await;
    let mut gateway = with(&agent).start().await;
    let hook = gateway.hook("test", TOKEN);
    let turns = queue_messages(&hook, &["one", "two", "three"]).await;
    agent.until_called(1).await;

    starts_with(&mut gateway, "[channels.webhook.test]", "[channels.webhook.another]").await;

    let mut absent: Vec<_> =
        gateway.turns("absent").iter().map(|turn| turn["turn_id"].as_str().unwrap().to_owned()).collect();
    absent.reverse();
    assert_eq!(absent, turns);
    assert!(gateway.log().contains("wait for a channel that is not configured"), "not in the log: {}", gateway.log());
    assert!(gateway.log().contains("\"turns\":3"), "the log does not count the waiting turns: {}", gateway.log());
    let explained = gateway.explain(&turns[1]);
    assert!(explained.contains("The turn waits: its channel webhook.test is not configured."), "{explained}");
    assert_eq!(
        gateway.hook("another", TOKEN).ask("hello").await.text(),
        "echo hello",
        "other hooks are answered meanwhile"
    );
    assert_eq!(agent.calls().len(), 2, "the agent must not run for an absent channel");

    starts_with(&mut gateway, "[channels.webhook.another]", "[channels.webhook.test]").await;

    for (turn, words) in turns.iter().zip(["echo one", "echo two", "echo three"]) {
        let reply = hook.until_settled(turn).await;
        assert_eq!((reply.state(), reply.text()), ("answered", words));
    }
    assert!(gateway.turns("absent").is_empty());
}

/// H3: a deferral that was shown is a debt, and is paid when its channel is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shown_deferral_is_paid_when_its_hook_is_back() {
    let agent = hanging_at_first().await;
    let mut gateway = with(&agent).config("[guard]\nsoft_deadline = \"1s\"\nhard_deadline = \"2s\"\n").start().await;
    let hook = gateway.hook("test", TOKEN);
    let deferred = hook.ask("hello").await;
    assert_eq!(deferred.state(), "deferred");

    starts_with(&mut gateway, "[channels.webhook.test]", "[channels.webhook.another]").await;
    assert_eq!(gateway.hook("another", TOKEN).ask("something else").await.text(), "echo something else");
    assert_eq!(gateway.turns("absent").len(), 1);
    starts_with(&mut gateway, "[channels.webhook.another]", "[channels.webhook.test]").await;

    let reply = hook.until_settled(&deferred.turn()).await;
    assert_eq!((reply.state(), reply.text()), ("answered", "echo hello"));
}

/// D9: the same for a conversation on the chat page.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_web_chat_that_was_absent_for_one_start_answers_when_it_is_back() {
    let agent = hanging_at_first().await;
    let mut gateway = with(&agent).config("[channels.webchat.main]").start().await;
    let mut chat = Chat::open(&gateway.url(), CONVERSATION).await;
    chat.says("message-1", "one").await;
    chat.says("message-2", "two").await;
    agent.until_called(1).await;

    starts_with(&mut gateway, "[channels.webchat.main]", "#[channels.webchat.main]").await;
    assert_eq!(gateway.hook("test", TOKEN).ask("something else").await.text(), "echo something else");
    assert_eq!(gateway.turns("absent").len(), 2);
    starts_with(&mut gateway, "#[channels.webchat.main]", "[channels.webchat.main]").await;

    let shown = eventually("both are answered", async || {
        let turns = Chat::open(&gateway.url(), CONVERSATION).await.turns;
        turns.iter().all(|turn| turn["status"] == "answered").then_some(turns)
    })
    .await;
    let words: Vec<_> = shown.iter().map(|turn| turn["shown"]["text"].as_str().unwrap()).collect();
    assert_eq!(words, ["echo one", "echo two"]);
}

/// D9: an agent has another name at the next start: its turns go to the channel's current agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn turns_of_a_renamed_agent_are_answered_by_the_one_of_now() {
    let agent = hanging_at_first().await;
    let mut gateway = with(&agent).start().await;
    let hook = gateway.hook("test", TOKEN);
    let turns = queue_messages(&hook, &["one", "two"]).await;
    agent.until_called(1).await;

    starts_with(&mut gateway, "[agents.main]", "[agents.chief]").await;

    for (turn, words) in turns.iter().zip(["echo one", "echo two"]) {
        let reply = hook.until_settled(turn).await;
        assert_eq!((reply.state(), reply.text()), ("answered", words));
    }
    let explained = gateway.explain(&turns[1]);
    assert!(explained.contains("Run 1: given to `chief`, as `main` is not configured any more."), "{explained}");
}

/// M6: a result URL that was given to a caller stays valid when its hook is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_result_of_a_removed_hook_is_read_at_its_address() {
    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let agent = ScriptedAgent::echoing().await;
    let section = format!("[channels.webhook.test]\nsigning_secret = \"{SECRET}\"\n");
    let mut gateway = Gateway::builder().config(&section).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);
    let seconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let signature = Webhook::new(SECRET).unwrap().sign("msg_1", i64::try_from(seconds).unwrap(), b"hello").unwrap();
    let signed = hook
        .bare()
        .header("webhook-id", "msg_1")
        .header("webhook-timestamp", seconds)
        .header("webhook-signature", signature)
        .header("prefer", "wait=0")
        .body("hello");
    let accepted = Reply::of(signed).await;
    let url = accepted.body["result_url"].as_str().expect("an address").to_owned();
    eventually("the turn is answered", async || gateway.open_turns().is_empty().then_some(())).await;

    starts_with(&mut gateway, "[channels.webhook.test]", "[channels.webhook.another]").await;

    let result = Reply::of(gateway.http().get(&url)).await;
    assert_eq!((result.state(), result.text()), ("answered", "echo hello"));
    let without = url.split('?').next().expect("an address");
    assert_eq!(Reply::of(gateway.http().get(without)).await.status, 404);
}

/// H3: a stateless model pays its debt, because it is reminded of it; its promise is in the history that it is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_that_remembers_nothing_pays_the_debt_that_it_made() {
    let agent = ScriptedAgent::start(|call, _| match call.last_message() {
        text if text.contains("The time that you named has come") => {
            assert!(text.contains("said “Soon.”"), "{text}");
            Script::replies("Here it is.")
        }
        text if text.contains("later") => Script::defers(Some("Soon."), std::time::Duration::from_secs(2)),
        _ => Script::replies(&call.body["messages"].to_string()),
    })
    .await;
    let gateway = with(&agent).start().await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = Reply::of(hook.message_in("desk", "later")).await;
    let meanwhile = Reply::of(hook.message_in("desk", "meanwhile")).await;
    let paid = hook.until_settled(&deferred.turn()).await;

    assert_eq!((deferred.state(), deferred.text()), ("deferred", "Soon."));
    assert!(meanwhile.text().contains("Soon."), "{meanwhile:?}");
    assert_eq!((paid.state(), paid.text()), ("answered", "Here it is."));
    assert_eq!(agent.calls().len(), 3);
}

/// D3: the run goes on after the fallback, and its answer is delivered: the result of the turn changes to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_after_the_fallback_is_delivered_where_the_operator_wants_it() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => Script::replies("at last").waiting(&release),
            _ => Script::replies("the next one"),
        })
        .await
    };
    let guard = "[guard]\nsoft_deadline = \"1s\"\nhard_deadline = \"2s\"\nlate_answer = \"deliver\"\n";
    let gateway = with(&agent).config(guard).start().await;
    let hook = gateway.hook("test", TOKEN);

    let asked = Reply::of(hook.message_in("desk", "hello").header("Prefer", "wait=0")).await;
    let fallback = hook.until_settled(&asked.turn()).await;
    let next = Reply::of(hook.message_in("desk", "and now?")).await;
    release.release_one();
    eventually("the late answer", async || (hook.result(&asked.turn(), 0).await.text() == "at last").then_some(()))
        .await;

    assert_eq!((fallback.state(), fallback.text()), ("answered", "Sorry, that took too long. Please try again."));
    assert_eq!((next.state(), next.text()), ("answered", "the next one"));
    assert!(gateway.explain(&asked.turn()).contains("late answer"), "{}", gateway.explain(&asked.turn()));
}

/// D3: 80 turns of an agent that hangs keep no turn of another agent waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hook_whose_agent_hangs_holds_up_no_other() {
    let release = Gate::default();
    let stuck = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("at last").waiting(&release)).await
    };
    let agent = ScriptedAgent::echoing().await;
    let gateway = with(&agent)
        .config(&stuck.section().replace("[agents.main]", "[agents.stuck]"))
        .config(&format!("[channels.webhook.stuck]\ntoken = \"{TOKEN}\"\nagent = \"stuck\"\n"))
        .config("[routing]\ndefault_agent = \"main\"\n")
        .start()
        .await;
    let hooks = (gateway.hook("test", TOKEN), gateway.hook("stuck", TOKEN));
    let asks = (0..80).map(|_| async { Reply::of(hooks.1.message("hello").header("Prefer", "wait=0")).await.turn() });
    let turns = futures_util::future::join_all(asks).await;
    stuck.until_called(32).await;

    assert_eq!(hooks.0.ask("hello").await.text(), "echo hello");

    assert_eq!(stuck.calls().len(), 32, "more turns of one agent run than `max_concurrent` allows");
    release.open();
    for turn in turns {
        assert_eq!(hooks.1.until_settled(&turn).await.text(), "at last");
    }
}
