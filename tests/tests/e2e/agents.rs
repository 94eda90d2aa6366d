//! Whatever the agent does, the turn ends in one signal, and `turns explain` says why.

use rejoinder_tests::{AgentKind, Gate, Gateway, ModelServer, Reply, Script, ScriptedAgent};
use reqwest::StatusCode;
use serde_json::json;

use crate::{TOKEN, hook};

const SILENT: &str = "I have nothing to say to that.";
const FAILED: &str = "Sorry, that did not work. Please try again.";
const LATE: &str = "Sorry, that took too long. Please try again.";

async fn with_model(keys: &str, more: &str) -> (ModelServer, Gateway) {
    let model = ModelServer::start().await;
    let gateway = Gateway::builder().config(&hook("")).config(&model.section_with(keys)).config(more).start().await;
    (model, gateway)
}

/// Sends a message, and expects this reply, this fallback cause, and `because` in the explanation.
async fn asked(gateway: &Gateway, message: &str, words: &str, fallback: Option<&str>, because: &str) {
    let reply = gateway.hook("test", TOKEN).ask(message).await;

    assert_eq!((reply.status, reply.state(), reply.text()), (StatusCode::OK, "answered", words));
    assert_eq!(reply.body["fallback"]["cause"].as_str(), fallback, "{reply:?}");
    let explained = gateway.explain(&reply.turn());
    assert!(explained.contains(because), "`{because}` is not in:\n{explained}");
}

/// I3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_answers() {
    let (_model, gateway) = with_model("", "").await;

    asked(&gateway, "hello", "The model's answer.", None, "reply").await;
}

/// Anthropic's Messages API as a server speaks it that we did not write: text, tools, a status that passes, and one that
/// stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_answers_by_the_messages_api() {
    let model = ModelServer::start().await;
    let gateway = Gateway::builder().config(&hook("")).config(&model.anthropic_section()).start().await;

    asked(&gateway, "hello", "The model's answer.", None, "reply").await;
    asked(&gateway, "zebra-once", "after the retry", None, "reply").await;
    asked(&gateway, "zebra-silent", SILENT, Some("silent"), "nothing to add").await;
    asked(&gateway, "zebra-boom", FAILED, Some("error"), "500").await;
    let reply = gateway.hook("test", TOKEN).ask("zebra-react").await;
    assert_eq!((reply.body["signal"].as_str(), reply.text()), (Some("reaction"), "👍"));
}

/// OpenAI's Responses API, in the same way.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_answers_by_the_responses_api() {
    let (_model, gateway) = with_model("api = \"responses\"", "").await;

    asked(&gateway, "hello", "The model's answer.", None, "reply").await;
    asked(&gateway, "zebra-once", "after the retry", None, "reply").await;
    asked(&gateway, "zebra-silent", SILENT, Some("silent"), "nothing to add").await;
    asked(&gateway, "zebra-empty", SILENT, Some("silent"), "empty").await;
    asked(&gateway, "zebra-cut", FAILED, Some("error"), "cut off").await;
    asked(&gateway, "zebra-boom", FAILED, Some("error"), "500").await;
    let reply = gateway.hook("test", TOKEN).ask("zebra-react").await;
    assert_eq!((reply.body["signal"].as_str(), reply.text()), (Some("reaction"), "👍"));
}

/// A1, A3.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_empty_answer_becomes_one_fallback() {
    let (_model, gateway) = with_model("", "").await;

    asked(&gateway, "zebra-empty", SILENT, Some("silent"), "empty").await;
}

/// A20, B6, C1.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_silence_marker_is_silence_and_never_shown() {
    let (_model, gateway) = with_model("", "").await;

    asked(&gateway, "zebra-marker", SILENT, Some("silent"), "marker").await;
}

/// A7, C1: thoughts and silence markers in the forms that models write them are removed. A hook returns the text unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn thoughts_and_markers_are_taken_out() {
    let agent = ScriptedAgent::start(|call, _| Script::replies(&call.last_message())).await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;

    for (said, words) in [
        ("The person greets. </think> Hello.", "Hello."),
        ("The person greets.\n</think>\n\nNO_REPLY", SILENT),
        ("NO_REPLYNO_REPLY", SILENT),
        ("<no-reply />", SILENT),
        ("[Answer]: 42", "[Answer]: 42"),
    ] {
        let reply = gateway.hook("test", TOKEN).ask(said).await;
        assert_eq!((reply.state(), reply.text()), ("answered", words), "{said}");
    }
}

/// B6, B14.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_chosen_silence_becomes_what_the_operator_says() {
    let ladder = "[guard.ladder.webhook.direct]\nsilent = [{ react = \"👌\" }]\n";
    let (_model, gateway) = with_model("", ladder).await;

    let reply = gateway.hook("test", TOKEN).ask("zebra-silent").await;

    assert_eq!((reply.body["signal"].as_str(), reply.text()), (Some("reaction"), "👌"));
    let explained = gateway.explain(&reply.turn());
    assert!(explained.contains("nothing to add"), "{explained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reaction_by_tool_is_the_answer() {
    let (_model, gateway) = with_model("", "").await;

    let reply = gateway.hook("test", TOKEN).ask("zebra-react").await;

    assert_eq!(
        reply.body,
        json!({
            "turn_id": reply.turn(), "status": "answered", "signal": "reaction", "reply": "👍",
        })
    );
}

/// C5.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_that_fails_becomes_one_fallback_without_its_error() {
    let (_model, gateway) = with_model("", "").await;

    asked(&gateway, "zebra-boom", FAILED, Some("error"), "500").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_model_that_fails_once_is_asked_again() {
    let (_model, gateway) = with_model("", "").await;

    asked(&gateway, "zebra-once", "after the retry", None, "reply").await;
}

/// B8.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_cut_off_is_no_answer() {
    let (_model, gateway) = with_model("", "").await;

    asked(&gateway, "zebra-cut", FAILED, Some("error"), "cut").await;
}

/// A9.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_stalls_ends_in_one_fallback() {
    let agent = ScriptedAgent::start(|_, _| Script::hangs().streaming("I am")).await;
    let gateway = Gateway::builder()
        .config(&hook(""))
        .config(&agent.section_with("first_token_timeout = \"1s\"\nidle_timeout = \"1s\""))
        .start()
        .await;

    asked(&gateway, "hello", FAILED, Some("error"), "stalled").await;
}

/// A9, A10, G2.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stall_past_both_deadlines_is_deferred_and_then_given_up() {
    let guard = "[guard]\nsoft_deadline = \"1s\"\nhard_deadline = \"3s\"\n";
    let (_model, gateway) = with_model("", guard).await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = hook.ask("zebra-stall").await;
    let result = hook.until_settled(&deferred.turn()).await;

    assert_eq!((deferred.status, deferred.state()), (StatusCode::ACCEPTED, "deferred"));
    assert_eq!((result.state(), result.text()), ("answered", LATE));
    assert_eq!(result.body["fallback"], json!({ "cause": "timeout", "rung": "say:late" }));
    let explained = gateway.explain(&deferred.turn());
    assert!(explained.contains("hard deadline"), "{explained}");
}

/// A10.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stall_past_the_soft_deadline_is_deferred_and_then_answered() {
    let (_model, gateway) = with_model("", "[guard]\nsoft_deadline = \"1s\"\n").await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = hook.ask("zebra-slow").await;
    let result = hook.until_settled(&deferred.turn()).await;

    assert_eq!(deferred.state(), "deferred");
    assert_eq!((result.state(), result.text()), ("answered", "slow, but here it is"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_by_tool_is_paid_by_the_next_run() {
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::defers(Some("Give me a second."), std::time::Duration::from_secs(1)),
        _ => Script::replies("Now I know."),
    })
    .await;
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    let deferred = hook.ask("think about it").await;
    let result = hook.until_settled(&deferred.turn()).await;

    assert_eq!((deferred.state(), deferred.text()), ("deferred", "Give me a second."));
    assert_eq!((result.state(), result.text()), ("answered", "Now I know."));
    let calls = agent.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].turn, calls[1].turn);
    assert_eq!((calls[0].attempt.as_deref(), calls[1].attempt.as_deref()), (Some("1"), Some("2")));
}

/// A5, C4, C5: the agent cannot be reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agent_that_cannot_be_reached_ends_in_one_fallback() {
    let agent = "[agents.main]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"none\"\n";
    let gateway = Gateway::builder().config(&hook("")).config(agent).start().await;

    asked(&gateway, "hello", FAILED, Some("unreachable"), "cannot be reached").await;
}

/// A11, B14.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_fallback_speaks_the_operators_words() {
    let agent = ScriptedAgent::start(|_, _| Script::fails("the model exploded: secret detail")).await;
    let gateway = Gateway::builder()
        .config(&hook(""))
        .config(&agent.section())
        .config("[guard.templates.webhook]\nfailed = \"Da ist etwas schiefgegangen.\"\n")
        .start()
        .await;

    asked(&gateway, "hello", "Da ist etwas schiefgegangen.", Some("error"), "say:failed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_silent_agent_hands_the_turn_to_the_orchestrator() {
    let silent = ScriptedAgent::replying("").await;
    let orchestrator = ScriptedAgent::replying("I will take this one.").await;
    let gateway = Gateway::builder()
        .config(&hook(""))
        .config(&silent.section())
        .config(&orchestrator.section().replace("[agents.main]", "[agents.orchestrator]"))
        .config("[routing]\ndefault_agent = \"main\"\n")
        .config("[guard.ladder.webhook.direct]\nsilent = [{ handoff = \"orchestrator\" }, { say = \"silent\" }]\n")
        .start()
        .await;

    asked(&gateway, "hello", "I will take this one.", Some("silent"), "the ladder hands it to `orchestrator`").await;
}

/// A5, P4: the ladder has no last word, and the agents are silent, fail, or cannot be reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn when_every_agent_of_a_ladder_fails_the_person_is_told_so() {
    let silent = ScriptedAgent::replying("").await;
    let failing = ScriptedAgent::start(|_, _| Script::fails("out of order")).await;
    let gateway = Gateway::builder()
        .config(&hook("agent = \"main\""))
        .config(&format!("[channels.webhook.broken]\ntoken = \"{TOKEN}\"\nagent = \"broken\"\n"))
        .config(&silent.section())
        .config(&failing.section().replace("[agents.main]", "[agents.broken]"))
        .config("[agents.absent]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"none\"\n")
        .config("[routing]\ndefault_agent = \"main\"\n")
        .config(
            "[guard.ladder.default.direct]\nsilent = [{ handoff = \"absent\" }]\nerror = [{ handoff = \"absent\" }]\n",
        )
        .start()
        .await;

    asked(&gateway, "hello", SILENT, Some("silent"), "say:silent").await;
    let reply = gateway.hook("broken", TOKEN).ask("hello").await;

    assert_eq!((reply.state(), reply.text()), ("answered", FAILED));
}

/// B1: a turn that waits for another one gets at most a deferral, and then its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_that_waits_in_line_is_deferred_and_then_answered() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => Script::replies("first").waiting(&release),
            _ => Script::replies("second"),
        })
        .await
    };
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    let first = Reply::of(hook.message_in("line", "one").header("Prefer", "wait=1")).await;
    let second = Reply::of(hook.message_in("line", "two").header("Prefer", "wait=1")).await;
    release.release_one();

    assert_eq!((first.state(), second.state()), ("deferred", "deferred"));
    assert_eq!(hook.until_settled(&first.turn()).await.text(), "first");
    assert_eq!(hook.until_settled(&second.turn()).await.text(), "second");
}

/// The gateway does not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_test_of_a_cascade_asks_its_members() {
    let agent = ScriptedAgent::start(|_, _| Script::replies("calm")).await.of_kind(AgentKind::Cascade);
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).prepare();

    let said = gateway.output_of(&["agents", "test", "main"]);
    let as_json = gateway.output_of(&["agents", "test", "main", "--json"]);

    assert!(said.contains("[first is asked]\n[it failed: ") && said.contains("[second is asked]\ncalm"), "{said}");
    assert!(said.contains("\nOutcome: reply, by second\n"), "{said}");
    let tested: serde_json::Value = serde_json::from_str(&as_json).expect("JSON");
    assert_eq!((&tested["text"], &tested["answered_by"]), (&json!("calm"), &json!("second")));
}

/// The built-in agent needs no configuration.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_configuration_the_front_desk_answers() {
    let gateway = Gateway::builder().config(&hook("")).start().await;

    let reply = gateway.hook("test", TOKEN).ask("ping").await;

    assert_eq!(reply.state(), "answered");
    assert!(reply.text().to_lowercase().contains("pong"), "{reply:?}");
}

/// C. An agent with a memory of its own hears of what is taken back, also if it could not do it at first and the gateway was killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_with_a_memory_of_its_own_hears_what_is_taken_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (heard, allowed) = (folder.path().join("heard"), folder.path().join("allowed"));
    let script = format!(
        "said=$(cat); case \"$said\" in *session_changed*) test -e {} && echo \"$said\" >> {};; *) echo Hello.;; esac",
        allowed.display(),
        heard.display()
    );
    let program = json!(["sh", "-c", script]);
    let section = format!("[agents.main]\nkind = \"command\"\nsessions = true\ncommand = {program}\n");
    let mut gateway = Gateway::builder().time_passes_faster(20).config(&hook("")).config(&section).start().await;
    let asks = async |gateway: &Gateway, said: &str| {
        Reply::of(gateway.hook("test", TOKEN).call().json(&json!({ "message": said, "conversation": "kitchen" }))).await
    };

    let hello = asks(&gateway, "Hi").await;
    assert_eq!(hello.text(), "Hello.");
    asks(&gateway, "/undo").await;
    gateway.kill();
    std::fs::write(&allowed, "").expect("it may now");
    gateway.restart().await;

    let told = rejoinder_tests::eventually("the program hears of it", async || {
        std::fs::read_to_string(&heard).ok().filter(|told| told.ends_with('\n'))
    })
    .await;
    let told: serde_json::Value = serde_json::from_str(told.lines().next().unwrap_or_default()).expect("JSON");
    assert_eq!(told["session_changed"]["change"], "turn_removed");
    assert_eq!(told["session_changed"]["turn_id"], hello.turn().as_str());
}
