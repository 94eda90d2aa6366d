//! Drafts and typing: shown on the way, gone at the end, never in the way.

use std::time::Duration;

use rejoinder_core::{
    Action, Capabilities, Support,
    conformance::scripted::{Script, Seen},
};

use crate::gateway::{HARD_DEADLINE, LATE, Made, TestGateway, chat, said, secs};

fn showing(it: &mut Capabilities) {
    (it.drafts, it.draft_interval) = (Support::Full, Duration::from_millis(500));
    (it.typing, it.typing_interval) = (Support::Full, secs(4));
}

fn drafts(gateway: &TestGateway) -> Vec<String> {
    let text = |seen: Seen| match seen.action {
        Action::Draft { text, .. } => Some(text),
        _ => None,
    };
    gateway.platform.seen().into_iter().filter_map(text).collect()
}

fn typing(gateway: &TestGateway) -> Vec<bool> {
    let on = |seen: Seen| match seen.action {
        Action::Typing { on } => Some(on),
        _ => None,
    };
    gateway.platform.seen().into_iter().filter_map(on).collect()
}

/// A7. Drafts grow with the stream, no faster than the channel allows.
#[tokio::test]
async fn a_stream_is_shown_as_it_grows() {
    let script = Script::replies("one two three")
        .streaming("one")
        .taking(secs(1))
        .streaming(" two")
        .streaming(" three")
        .taking(secs(1));
    let gateway = Made::new().capable(showing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(3)).await;

    assert_eq!(drafts(&gateway).last().map(String::as_str), Some("one two three"));
    assert!(drafts(&gateway).len() <= 3);
    assert_eq!(gateway.visible(&chat("ada")), ["one two three"]);
    gateway.at_rest().await;
}

/// B13. The scripted platform notes every draft that comes after a final signal; rest finds it.
#[tokio::test]
async fn no_draft_comes_after_an_agents_own_send() {
    let script = Script::replies("done")
        .streaming("thinking")
        .sending("here")
        .streaming(" and more")
        .taking(secs(2))
        .streaming(" and more")
        .taking(secs(2));
    let gateway = Made::new().capable(showing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["here"]);
    gateway.at_rest().await;
}

/// B13. Nor after the ladder's words.
#[tokio::test]
async fn no_draft_comes_after_the_ladders_words() {
    let script = (0..700).fold(Script::hangs(), |script, _| script.streaming("x ").taking(secs(1)));
    let gateway = Made::new().capable(showing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HARD_DEADLINE + secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    gateway.at_rest().await;
}

/// G1.
#[tokio::test]
async fn typing_is_renewed_and_ends_with_the_turn() {
    let gateway = Made::new().capable(showing).always(Script::replies("done").taking(secs(10))).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(11)).await;

    assert_eq!(typing(&gateway), [true, true, true, false]);
    gateway.at_rest().await;
}

/// A platform that does not come back from a hint delays an answer, and loses none.
#[tokio::test]
async fn a_hint_that_hangs_does_not_keep_the_answer() {
    let gateway = Made::new().capable(showing).always(Script::replies("done").taking(secs(1))).start().await;
    gateway.platform.hold(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(60)).await;
    gateway.platform.hold(false);
    gateway.advance(secs(200)).await;

    assert!(gateway.visible(&chat("ada")).iter().any(|text| text.ends_with("done")));
    gateway.at_rest().await;
}
