//! What the homeserver refuses, and what it may have done or not.

use rejoinder_matrix_server::{Call, Fault, Homeserver, Proxy};
use rejoinder_tests::{ScriptedAgent, eventually};
use rstest::rstest;
use serde_json::json;

use crate::{DEFERRAL, QUIET, SEND, by_way, with_ada};

const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n";

fn answering(status: u16, code: &str) -> Fault {
    Fault::Answer { status, body: json!({ "errcode": code, "error": "no" }) }
}

/// What was sent, or tried to be.
fn sends(way: &Proxy) -> Vec<Call> {
    way.calls().into_iter().filter(|call| call.method == "PUT" && call.path.contains(SEND)).collect()
}

/// D7's counterpart, B10, E8, I5: what may have arrived is sent again as the same transaction, which the homeserver
/// shows once; an attempt whose end is not known is counted as one.
#[rstest]
#[case::the_answer_was_lost(Fault::LoseAnswer, 1)]
#[case::the_answer_was_lost_twice(Fault::LoseAnswer, 2)]
#[case::an_error_before_it_was_done(answering(500, "M_UNKNOWN"), 1)]
#[case::somebody_before_the_homeserver(Fault::Answer { status: 502, body: json!("Bad Gateway") }, 2)]
#[tokio::test]
async fn what_may_have_arrived_is_sent_again_and_shown_once(#[case] fault: Fault, #[case] times: usize) {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, way) = by_way(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT), &user).await;
    ada.until_joined(&room, &user).await;

    way.fails("PUT", SEND, times, fault);
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;
    gateway.settles().await;

    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
    let sends = sends(&way);
    assert_eq!(sends.len(), times + 1, "{sends:?}");
    assert!(sends.iter().all(|call| call.path == sends[0].path), "{sends:?}");
    let explained = gateway.explain(&gateway.only_turn());
    assert!(explained.contains("unknown"), "{explained}");
    let metrics = gateway.metrics().await;
    let counts = |line: &str| line.contains("unknown") && line.contains("matrix.test") && !line.ends_with(" 0");
    assert!(metrics.lines().any(counts), "{metrics}");
}

/// A call that is done and never answered is not waited for for ever, and not done twice.
#[tokio::test]
async fn an_answer_that_never_comes_is_not_waited_for() {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, way) = by_way(&agent, &format!("{QUIET}\nsync_timeout = \"1s\"")).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT).time_passes_faster(10), &user).await;
    ada.until_joined(&room, &user).await;

    way.fails("PUT", SEND, 1, Fault::KeepAnswer);
    ada.says(&room, "hello").await;
    ada.until_hears(&room, &user, 1).await;
    gateway.settles().await;

    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
    let sends = sends(&way);
    assert_eq!(sends.len(), 2, "{sends:?}");
    assert_eq!(sends[0].path, sends[1].path);
}

/// After 23 hours the transaction may be forgotten: the room is read back before anything is sent again.
#[rstest]
#[case::it_arrived(Fault::LoseAnswer)]
#[case::it_did_not_arrive(answering(500, "M_UNKNOWN"))]
#[tokio::test]
async fn what_may_have_arrived_is_looked_for_once_its_transaction_is_forgotten(#[case] fault: Fault) {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, way) = by_way(&agent, QUIET).await;
    let long = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n[outbox]\nlifetime = \"72h\"\n";
    let (gateway, ada, room) = with_ada(builder.config(long).own_calendar(), &user).await;
    ada.until_joined(&room, &user).await;
    let looks = || way.calls().iter().filter(|call| call.path.contains("/messages")).count();

    way.fails("PUT", SEND, 1, fault);
    way.fails("PUT", SEND, 10_000, answering(500, "M_UNKNOWN"));
    ada.says(&room, "hello").await;
    eventually("it was tried again", async || (sends(&way).len() >= 2).then_some(())).await;
    let before = looks();
    gateway.calendar_jumps(24 * 3600);
    eventually("the room is read back", async || (looks() > before).then_some(())).await;
    way.heals();
    gateway.settles().await;

    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
}

/// A change is the same when it is made twice: nothing is doubled.
#[tokio::test]
async fn a_change_that_was_lost_is_made_again() {
    let (agent, release) = ScriptedAgent::holding("At last.").await;
    let (builder, user, way) = by_way(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config("[guard]\nsoft_deadline = \"1s\"\n"), &user).await;

    ada.says(&room, "hello").await;
    ada.until("the deferral", async || (ada.hears(&room, &user).await == [DEFERRAL]).then_some(())).await;
    way.fails_on("m.replace", "PUT", SEND, 1, Fault::LoseAnswer);
    release.lets_one_through();
    ada.until("the answer", async || (ada.hears(&room, &user).await == ["At last."]).then_some(())).await;
    gateway.settles().await;

    let said: Vec<_> = ada.sees(&room).await.into_iter().filter(|message| message.sender == user).collect();
    assert_eq!(said.iter().map(|message| (&*message.text, message.edits)).collect::<Vec<_>>(), [("At last.", 1)]);
    let changes: Vec<_> = sends(&way).into_iter().filter(|call| call.body.to_string().contains("m.replace")).collect();
    assert_eq!(changes.len(), 2, "{changes:?}");
}

/// A18, A19, D6, I2: power that is lost while the agent works ends visibly, is not tried again, and the turn says why;
/// with the power back, the next one is answered.
#[tokio::test]
async fn power_that_is_lost_ends_visibly() {
    let (homeserver, (agent, release)) = (Homeserver::shared().await, ScriptedAgent::holding("Too late.").await);
    let (builder, user, way) = by_way(&agent, QUIET).await;
    let gateway = builder.config(PATIENT).start().await;
    let ada = homeserver.person("ada").await;
    let room = ada.room("Friends", &[&user]).await;
    ada.until_joined(&room, &user).await;

    ada.says(&room, "one").await;
    agent.called(1).await;
    ada.lets_speak_from(&room, 50).await;
    release.lets_one_through();
    eventually("it is given up", async || (gateway.undeliverable() == 1).then_some(())).await;
    let explained = gateway.explain(&gateway.only_turn());
    let tried = sends(&way).len();
    ada.lets_speak_from(&room, 0).await;
    ada.says(&room, "two").await;
    ada.until_hears(&room, &user, 1).await;

    gateway.settles().await;
    assert!(explained.contains("M_FORBIDDEN"), "{explained}");
    assert!((1..=3).contains(&tried), "a refusal was tried {tried} times");
    assert_eq!(ada.hears(&room, &user).await, ["echo two"]);
}

/// D10: 401 to what is sent: readiness says so, nothing is hammered, and the answer is kept for when it is heard again.
#[tokio::test]
async fn an_answer_waits_for_a_session_that_is_accepted() {
    let agent = ScriptedAgent::replying("Hello.").await;
    let (builder, user, way) = by_way(&agent, &format!("{QUIET}\nsync_timeout = \"1s\"")).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT).time_passes_faster(10), &user).await;
    ada.until_joined(&room, &user).await;

    way.fails("PUT", SEND, 10_000, answering(401, "M_UNKNOWN_TOKEN"));
    ada.says(&room, "hello").await;
    let said = gateway.complains("does not accept the session").await;
    let tried = sends(&way).len();
    way.heals();
    ada.until_hears(&room, &user, 1).await;

    gateway.settles().await;
    assert!(said.contains("matrix.test"), "{said}");
    assert!(tried <= 3, "it was tried {tried} times while the session was refused");
    assert_eq!(ada.hears(&room, &user).await, ["Hello."]);
    eventually("it is ready again", async || gateway.readiness().await.0.then_some(())).await;
}

/// B10, I3: a long answer whose second part is lost on its way comes whole, and no part twice.
#[tokio::test]
async fn a_part_that_is_lost_is_sent_again_and_no_other() {
    let paragraphs: Vec<_> = (0..60).map(|n| format!("Paragraph {n}. {}", "word ".repeat(150))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let (builder, user, way) = by_way(&agent, QUIET).await;
    let (gateway, ada, room) = with_ada(builder.config(PATIENT), &user).await;

    way.fails_after(1, "PUT", SEND, 1, Fault::LoseAnswer);
    ada.says(&room, "tell me all").await;
    let is_whole = async || ada.hears(&room, &user).await.last()?.contains("Paragraph 59.").then_some(());
    ada.until("the end", is_whole).await;
    gateway.settles().await;

    let said = ada.hears(&room, &user).await;
    let sends = sends(&way);
    assert_eq!(sends.len(), said.len() + 1, "no part was lost, or another one");
    assert_eq!(sends[1].path, sends[2].path);
    let said = said.join("\n");
    let places: Vec<_> = (0..60).map(|n| said.find(&format!("Paragraph {n}.")).expect("it is there")).collect();
    assert!(places.is_sorted(), "the parts are out of order");
    for n in 0..60 {
        assert_eq!(said.matches(&format!("Paragraph {n}.")).count(), 1, "paragraph {n}");
    }
}
