//! Edits, deletions, and messages that arrive in parts.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, AgentTurn, Amends, Attachment, Clock, EventId, InboundEvent, TurnId,
    conformance::scripted::Script,
    store::{NewEvent, Stored, TurnStatus},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, said, secs},
    life::Crash,
};

const PAUSE: Duration = secs(1);

fn edit(event: &InboundEvent, revision: i64, text: &str) -> InboundEvent {
    InboundEvent { revision, amends: Some(Amends::Replaces), text: text.to_owned(), ..event.clone() }
}

/// A gateway whose agent replies with the turn's text after 5 s.
async fn echo() -> TestGateway {
    let echo = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(5));
    GatewaySetup::new().agent("main", echo).start().await
}

/// The texts and the numbers of files that the agent was given, run by run.
fn given(gateway: &TestGateway) -> Vec<(String, usize)> {
    let runs = gateway.agent("main").runs();
    runs.into_iter().map(|run| (run.turn.message.text, run.turn.message.attachments.len())).collect()
}

fn turn_of(accepted: &Accepted) -> TurnId {
    match accepted {
        Accepted::Turn(turn) | Accepted::Amended(turn) => *turn,
        other => panic!("no turn: {other:?}"),
    }
}

/// Part `number` of the album `name`.
fn part(gateway: &TestGateway, name: &str, number: i64, text: &str) -> InboundEvent {
    let file = format!("{number}.jpg");
    InboundEvent {
        attachments: vec![Attachment { url: format!("file:{file}"), name: file, media_type: "image/jpeg".to_owned() }],
        part_of: Some(name.to_owned()),
        more_within: Some(PAUSE),
        received_at: gateway.clock.now(),
        ..said(&chat("ada"), text)
    }
}

#[tokio::test]
async fn an_edit_of_what_waits_takes_the_place_of_its_words() {
    let gateway = echo().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let event = said(&chat("ada"), "tow");
    let turn = gateway.receives(event.clone()).await;

    let edited = comes_in(&gateway, edit(&event, 1, "two")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(edited, Accepted::Amended(turn));
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    assert_eq!(gateway.dossier(turn).await.turn.event.text, "two");
    gateway.at_rest().await;
}

/// B10, E6. After the run has begun, the original text is answered; the edit is stored and opens no turn.
#[tokio::test]
async fn an_edit_of_what_runs_or_has_ended_is_kept() {
    let gateway = echo().await;
    let event = said(&chat("ada"), "one");
    gateway.receives(event.clone()).await;

    assert_eq!(comes_in(&gateway, edit(&event, 1, "two")).await, Accepted::Kept);
    gateway.advance(secs(10)).await;
    assert_eq!(comes_in(&gateway, edit(&event, 2, "three")).await, Accepted::Kept);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    assert_eq!(gateway.turns().await.len(), 1);
    gateway.at_rest().await;
}

/// An older edit that arrives after a newer one changes nothing.
#[tokio::test]
async fn an_earlier_edit_that_comes_later_changes_nothing() {
    let gateway = echo().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let event = said(&chat("ada"), "a");
    gateway.receives(event.clone()).await;

    comes_in(&gateway, edit(&event, 20, "abc")).await;
    assert_eq!(comes_in(&gateway, edit(&event, 10, "ab")).await, Accepted::Kept);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "abc"]);
    gateway.at_rest().await;
}

/// The command is executed at once, and the earlier text is not put before the agent.
#[tokio::test]
async fn an_edit_of_what_waits_into_a_command_is_the_command() {
    for (command, answer) in [("/status", "Running for 0 s: one"), ("/stop", "Stopped.")] {
        let gateway = echo().await;
        let running = gateway.receives(said(&chat("ada"), "one")).await;
        let event = said(&chat("ada"), "/sotp");
        let waiting = gateway.receives(event.clone()).await;

        let edited = comes_in(&gateway, edit(&event, 1, command)).await;
        let late = comes_in(&gateway, edit(&event, 2, "never mind")).await;
        assert_eq!(gateway.visible(&chat("ada")), [answer]);
        gateway.advance(secs(20)).await;

        assert_ne!(turn_of(&edited), waiting);
        assert_eq!(late, Accepted::Kept, "a command is complete with its first text");
        assert_eq!(gateway.status(waiting).await, TurnStatus::Cancelled);
        let is_stopped = gateway.status(running).await == TurnStatus::Cancelled;
        assert_eq!(is_stopped, command == "/stop");
        assert_eq!(given(&gateway), [("one".to_owned(), 0)]);
        let explained = gateway.explained(waiting).await;
        assert!(explained.contains(&turn_of(&edited).to_string()), "{explained}");
        gateway.at_rest().await;
    }
}

/// The process dies after the edit was stored.
#[tokio::test]
async fn an_edit_into_a_command_survives_a_crash() {
    let mut gateway = echo().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let event = said(&chat("ada"), "/halp");
    let waiting = gateway.receives(event.clone()).await;
    gateway.life.crash_at(1, Crash::After);
    let accepting = gateway.intake();
    let edited = edit(&event, 1, "/help");
    let accepting = tokio::spawn(async move { accepting.accept(edited).await });
    gateway.settle().await;
    assert!(gateway.life.is_over());

    gateway.restart().await;
    accepting.abort();
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Say what you like.", "one"]);
    assert_eq!(gateway.status(waiting).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// An edit into a command that comes when its message is before the agent changes nothing, like any other edit.
#[tokio::test]
async fn an_edit_of_what_runs_into_a_command_is_kept() {
    let gateway = echo().await;
    let event = said(&chat("ada"), "one");
    gateway.receives(event.clone()).await;

    assert_eq!(comes_in(&gateway, edit(&event, 1, "/stop")).await, Accepted::Kept);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    assert_eq!(gateway.turns().await.len(), 1);
    gateway.at_rest().await;
}

fn deletion_of(event: &InboundEvent, revision: i64) -> InboundEvent {
    InboundEvent { revision, amends: Some(Amends::Withdraws), text: String::new(), ..event.clone() }
}

/// A message deleted before its run is owed nothing; the turns behind it continue.
#[tokio::test]
async fn what_is_taken_back_while_it_waits_is_not_answered() {
    let gateway = echo().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let event = said(&chat("ada"), "two");
    let turn = gateway.receives(event.clone()).await;
    gateway.receives(said(&chat("ada"), "three")).await;

    assert_eq!(comes_in(&gateway, deletion_of(&event, 1)).await, Accepted::Amended(turn));
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "three"]);
    assert_eq!(given(&gateway).len(), 2);
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("The message was deleted"), "{explained}");
    gateway.at_rest().await;
}

/// Another node stored the deletion, and was lost before it could cancel the turn. The turn that waits is in memory here.
#[tokio::test]
async fn what_is_deleted_while_it_waits_for_a_promised_permit_is_not_put_before_the_agent() {
    const TAKES: Duration = Duration::from_millis(10);
    let echo = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(TAKES);
    let gateway = GatewaySetup::new().slots(4).agent("main", echo).start().await;
    let events: Vec<_> = (0..100).map(|number| said(&chat(&format!("c{number}")), &number.to_string())).collect();
    for event in &events {
        gateway.accepts(event.clone()).await;
    }
    // The agent is known to be fast by then: all that wait are promised permits.
    for _ in 0..18 {
        gateway.advance(TAKES).await;
    }

    let event = deletion_of(&events[99], 1);
    let id = EventId::new(event.received_at);
    let deleted = NewEvent { id, event: Arc::new(event), turn: None, only_if_known: false, files: Vec::new() };
    let stored = gateway.store.accept(vec![deleted], None).await.expect("it is accepted");
    assert!(matches!(stored[..], [Stored::Amended { .. }]), "{stored:?}");
    gateway.advance(secs(2)).await;

    let texts: Vec<_> = given(&gateway).into_iter().map(|(text, _)| text).collect();
    assert_eq!((texts.len(), texts.contains(&"99".to_owned())), (99, false));
    gateway.at_rest().await;
}

/// B8. A message deleted during its run is answered.
#[tokio::test]
async fn what_is_taken_back_while_it_runs_is_answered() {
    let gateway = echo().await;
    let event = said(&chat("ada"), "one");
    gateway.receives(event.clone()).await;

    assert_eq!(comes_in(&gateway, deletion_of(&event, 1)).await, Accepted::Kept);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.at_rest().await;
}

/// D9. An edit is durable.
#[tokio::test]
async fn an_edit_survives_a_restart() {
    let mut gateway = echo().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    let event = said(&chat("ada"), "tow");
    gateway.receives(event.clone()).await;
    comes_in(&gateway, edit(&event, 1, "two")).await;

    gateway.restart().await;
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// B10. The parts of an album have one answer.
#[tokio::test]
async fn what_follows_in_time_is_part_of_the_turn() {
    let gateway = echo().await;
    let first = comes_in(&gateway, part(&gateway, "album", 1, "look")).await;
    gateway.advance(Duration::from_millis(400)).await;
    let batch = vec![part(&gateway, "album", 2, ""), part(&gateway, "album", 3, "there")];
    let more = gateway.intake().accept_all(batch, Some(("updates", "3".to_owned()))).await.expect("accepted");
    assert!(given(&gateway).is_empty(), "more may follow");

    gateway.advance(secs(10)).await;

    for part in std::iter::once(&first).chain(&more) {
        assert_eq!(gateway.status(turn_of(part)).await, TurnStatus::Answered);
    }
    assert_eq!(given(&gateway), [("look\nthere".to_owned(), 3)]);
    assert_eq!(gateway.visible(&chat("ada")), ["look\nthere"]);
    gateway.at_rest().await;
}

/// The parts arrive in one batch, as from a poll.
#[tokio::test]
async fn parts_that_come_together_are_answered_together() {
    let gateway = echo().await;
    let batch = (1..=3).map(|number| part(&gateway, "album", number, "")).collect();

    gateway.intake().accept_all(batch, None).await.expect("accepted");
    gateway.advance(secs(10)).await;

    assert_eq!(given(&gateway), [(String::new(), 3)]);
    gateway.at_rest().await;
}

/// When the turn before an album ends, the album still waits for its remaining parts.
#[tokio::test]
async fn what_waits_in_line_waits_for_what_follows_as_well() {
    let gateway = echo().await;
    gateway.receives(said(&chat("ada"), "before")).await;
    gateway.advance(Duration::from_millis(4_800)).await;
    comes_in(&gateway, part(&gateway, "album", 1, "look")).await;
    gateway.advance(Duration::from_millis(600)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["before"]);

    comes_in(&gateway, part(&gateway, "album", 2, "")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(given(&gateway)[1..], [("look".to_owned(), 2)]);
    gateway.at_rest().await;
}

/// D9. An album is complete although the gateway crashes between its parts.
#[tokio::test]
async fn an_album_survives_a_restart() {
    let mut gateway = echo().await;
    comes_in(&gateway, part(&gateway, "album", 1, "look")).await;

    gateway.restart().await;
    comes_in(&gateway, part(&gateway, "album", 2, "")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(given(&gateway), [("look".to_owned(), 2)]);
    gateway.at_rest().await;
}

/// Parts that arrive after the run has begun are answered by themselves, together.
#[tokio::test]
async fn what_follows_too_late_is_answered_by_itself() {
    let gateway = echo().await;
    let first = comes_in(&gateway, part(&gateway, "album", 1, "look")).await;
    gateway.advance(secs(2)).await;

    let late = comes_in(&gateway, part(&gateway, "album", 2, "and this")).await;
    let more = comes_in(&gateway, part(&gateway, "album", 3, "")).await;
    gateway.advance(secs(20)).await;

    let explained = gateway.explained(turn_of(&more)).await;
    assert!(explained.contains(&turn_of(&late).to_string()), "{explained}");
    assert_ne!(turn_of(&first), turn_of(&late));
    assert_eq!(given(&gateway), [("look".to_owned(), 1), ("and this".to_owned(), 2)]);
    assert_eq!(gateway.visible(&chat("ada")), ["look", "and this"]);
    gateway.at_rest().await;
}

/// A wrong time from the platform, in the future, does not delay the turn.
#[tokio::test]
async fn a_time_in_the_future_holds_nothing_up() {
    let gateway = echo().await;
    let event = part(&gateway, "album", 1, "look");
    let later = InboundEvent { received_at: event.received_at + secs(3600), ..event };

    comes_in(&gateway, later).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["look"]);
    gateway.at_rest().await;
}

/// D18. A command in an album's caption is executed at once; later parts of the album are not turns.
#[tokio::test]
async fn an_album_captioned_with_a_command_is_the_command() {
    let gateway = TestGateway::with(Script::hangs()).await;
    let running = gateway.receives(said(&chat("ada"), "work")).await;

    let stop = comes_in(&gateway, part(&gateway, "album", 1, "/stop")).await;
    let rest = vec![part(&gateway, "album", 2, ""), part(&gateway, "album", 3, "")];
    let rest = gateway.intake().accept_all(rest, None).await.expect("accepted");

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    assert_eq!(gateway.status(running).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(turn_of(&stop)).await, TurnStatus::Answered);
    assert_eq!(rest, [Accepted::Kept, Accepted::Kept]);
    assert_eq!(given(&gateway).len(), 1, "the agent is given none of it");
    gateway.at_rest().await;
}

/// All parts arrive in one batch. Later messages in the chat are answered.
#[tokio::test]
async fn after_an_album_captioned_with_a_command_the_chat_goes_on() {
    let mut gateway = echo().await;
    let batch = (1..=2).map(|number| part(&gateway, "album", number, if number == 1 { "/help" } else { "" })).collect();
    gateway.intake().accept_all(batch, None).await.expect("accepted");
    gateway.settle().await;
    assert_eq!(gateway.visible(&chat("ada")), ["Say what you like."]);

    gateway.restart().await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Say what you like.", "one", "two"]);
    gateway.at_rest().await;
}
