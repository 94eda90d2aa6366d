//! Calls that the homeserver rejects, and calls whose result is unknown.

use rejoinder_matrix_server::{Call, Fault, Homeserver, Proxy};
use rejoinder_tests::{ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::json;

use crate::{DEFERRAL, QUIET, SEND, through_proxy, with_ada};

const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n";

fn answering(status: u16, code: &str) -> Fault {
    Fault::Answer { status, body: json!({ "errcode": code, "error": "no" }) }
}

/// The calls that sent a message, including failed ones.
fn sends(proxy: &Proxy) -> Vec<Call> {
    proxy.calls().into_iter().filter(|call| call.method == "PUT" && call.path.contains(SEND)).collect()
}

/// B10, D7, E8, I5: a message that may have arrived is sent again with the same transaction id, and the homeserver shows it
/// once; attempts with an unknown result are counted.
#[rstest]
#[case::the_answer_was_lost(Fault::LoseAnswer, 1)]
#[case::the_answer_was_lost_twice(Fault::LoseAnswer, 2)]
#[case::an_error_before_it_was_done(answering(500, "M_UNKNOWN"), 1)]
#[case::somebody_before_the_homeserver(Fault::Answer { status: 502, body: json!("Bad Gateway") }, 2)]
#[tokio::test]
async fn what_may_have_arrived_is_sent_again_and_shown_once(#[case] fault: Fault, #[case] times: usize) {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT), &user).await;
    ada.until_joined(&room, &user).await;

    proxy.fail("PUT", SEND, times, fault);
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;
    gateway.until_settled().await;

    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
    let sends = sends(&proxy);
    assert_eq!(sends.len(), times + 1, "{sends:?}");
    assert!(sends.iter().all(|call| call.path == sends[0].path), "{sends:?}");
    let explained = gateway.explain(&gateway.only_turn());
    assert!(explained.contains("unknown"), "{explained}");
    let metrics = gateway.metrics().await;
    let counts = |line: &str| line.contains("unknown") && line.contains("matrix.test") && !line.ends_with(" 0");
    assert!(metrics.lines().any(counts), "{metrics}");
}

/// A call that is executed without a response times out, and is not executed twice.
#[tokio::test]
async fn an_answer_that_never_comes_is_not_waited_for() {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, proxy) = through_proxy(&agent, &format!("{QUIET}\nsync_timeout = \"1s\"")).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT).time_passes_faster(10), &user).await;
    ada.until_joined(&room, &user).await;

    proxy.fail("PUT", SEND, 1, Fault::KeepAnswer);
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;
    gateway.until_settled().await;

    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
    let sends = sends(&proxy);
    assert_eq!(sends.len(), 2, "{sends:?}");
    assert_eq!(sends[0].path, sends[1].path);
}

/// After 23 hours the homeserver may have forgotten the transaction id: the room is read back before anything is sent
/// again.
#[rstest]
#[case::it_arrived(Fault::LoseAnswer)]
#[case::it_did_not_arrive(answering(500, "M_UNKNOWN"))]
#[tokio::test]
async fn what_may_have_arrived_is_looked_for_once_its_transaction_is_forgotten(#[case] fault: Fault) {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let long = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n[outbox]\nlifetime = \"72h\"\n";
    let (gateway, ada, room) = with_ada(builder.config(long).own_calendar(), &user).await;
    ada.until_joined(&room, &user).await;
    let looks = || proxy.calls().iter().filter(|call| call.path.contains("/messages")).count();

    proxy.fail("PUT", SEND, 1, fault);
    proxy.fail("PUT", SEND, 10_000, answering(500, "M_UNKNOWN"));
    ada.says(&room, "hello").await;
    eventually("another attempt", async || (sends(&proxy).len() >= 2).then_some(())).await;
    let before = looks();
    gateway.set_calendar_offset(24 * 3600);
    eventually("the room is read back", async || (looks() > before).then_some(())).await;
    proxy.clear_faults();
    gateway.until_settled().await;

    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
}

/// An edit is idempotent, so it is retried.
#[tokio::test]
async fn a_change_that_was_lost_is_made_again() {
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config("[guard]\nsoft_deadline = \"1s\"\n"), &user).await;

    ada.says(&room, "hello").await;
    ada.until("the deferral", async || (ada.hears(&room, &user).await == [DEFERRAL]).then_some(())).await;
    proxy.fail_on("m.replace", "PUT", SEND, 1, Fault::LoseAnswer);
    release.release_one();
    ada.until("the answer", async || (ada.hears(&room, &user).await == ["At last."]).then_some(())).await;
    gateway.until_settled().await;

    let said: Vec<_> = ada.sees(&room).await.into_iter().filter(|message| message.sender == user).collect();
    assert_eq!(said.iter().map(|message| (&*message.text, message.edits)).collect::<Vec<_>>(), [("At last.", 1)]);
    let changes: Vec<_> =
        sends(&proxy).into_iter().filter(|call| call.body.to_string().contains("m.replace")).collect();
    assert_eq!(changes.len(), 2, "{changes:?}");
}

/// A18, A19, D6, I2: a power level that is lost while the agent works makes the turn `undeliverable`, without retries and
/// with the reason in its record. With the power back, the next message is answered.
#[tokio::test]
async fn power_that_is_lost_ends_visibly() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("Too late.").await);
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let gateway = builder.config(PATIENT).start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("Friends", &[&user]).await;
    ada.until_joined(&room, &user).await;

    ada.says(&room, "one").await;
    agent.until_called(1).await;
    ada.lets_speak_from(&room, 50).await;
    release.release_one();
    eventually("the turn is undeliverable", async || (gateway.undeliverable() == 1).then_some(())).await;
    let explained = gateway.explain(&gateway.only_turn());
    let tried = sends(&proxy).len();
    ada.lets_speak_from(&room, 0).await;
    ada.says(&room, "two").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    assert!(explained.contains("M_FORBIDDEN"), "{explained}");
    assert!((1..=3).contains(&tried), "a permanent error was tried {tried} times");
    assert_eq!(ada.hears(&room, &user).await, ["echo two"]);
}

/// D10: after a 401 on sending, readiness reports it, calls are rare, and the answer is kept until the session is accepted.
#[tokio::test]
async fn an_answer_waits_for_a_session_that_is_accepted() {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, proxy) = through_proxy(&agent, &format!("{QUIET}\nsync_timeout = \"1s\"")).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT).time_passes_faster(10), &user).await;
    ada.until_joined(&room, &user).await;

    proxy.fail("PUT", SEND, 10_000, answering(401, "M_UNKNOWN_TOKEN"));
    ada.says(&room, "hello").await;
    let said = gateway.until_not_ready("does not accept the session").await;
    let tried = sends(&proxy).len();
    proxy.clear_faults();
    ada.until_hears(&room, &user, 1).await;

    gateway.until_settled().await;
    assert!(said.contains("matrix.test"), "{said}");
    assert!(tried <= 3, "it was tried {tried} times while the session was rejected");
    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
    eventually("the gateway is ready again", async || gateway.readiness().await.0.then_some(())).await;
}

/// B10, I3: the response to the second part of a long answer is lost: all parts are shown, each once.
#[tokio::test]
async fn a_part_that_is_lost_is_sent_again_and_no_other() {
    let paragraphs: Vec<_> = (0..60).map(|n| format!("Paragraph {n}. {}", "word ".repeat(150))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let (builder, user, proxy) = through_proxy(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT), &user).await;

    proxy.fail_after(1, "PUT", SEND, 1, Fault::LoseAnswer);
    ada.says(&room, "tell me all").await;
    let is_whole = async || ada.hears(&room, &user).await.last()?.contains("Paragraph 59.").then_some(());
    ada.until("the end", is_whole).await;
    gateway.until_settled().await;

    let said = ada.hears(&room, &user).await;
    let sends = sends(&proxy);
    assert_eq!(sends.len(), said.len() + 1, "not exactly one part was sent twice");
    assert_eq!(sends[1].path, sends[2].path);
    let said = said.join("\n");
    let places: Vec<_> = (0..60).map(|n| said.find(&format!("Paragraph {n}.")).expect("a paragraph")).collect();
    assert!(places.is_sorted(), "the parts are out of order");
    for n in 0..60 {
        assert_eq!(said.matches(&format!("Paragraph {n}.")).count(), 1, "paragraph {n}");
    }
}
