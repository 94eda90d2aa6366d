//! A chat gets another id while it has open turns.

use std::sync::Arc;

use rejoinder_core::{
    Accepted, AgentTurn, ConversationRef, EventKind, InboundEvent, SenderKind,
    conformance::scripted::{Fault, Gate, Script, ScriptedTranscriber},
    store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, chat, mention, secs},
    texts::DEFERRAL,
    voice::spoken,
};

fn old() -> ConversationRef {
    chat("old")
}

fn new() -> ConversationRef {
    chat("new")
}

/// Moves the chat on the platform and notifies the gateway.
async fn moves(gateway: &TestGateway) {
    gateway.platform.move_chat(&old(), "new");
    is_told(gateway).await;
}

async fn is_told(gateway: &TestGateway) {
    let mut event = InboundEvent { kind: EventKind::Moved { chat: "new".to_owned() }, ..mention(&old(), "") };
    event.sender.kind = SenderKind::Ourselves;
    assert_eq!(gateway.intake().accept(event).await.expect("accepted"), Accepted::Kept);
    gateway.settle().await;
}

/// A gateway whose agent replies with the turn's text after 5 s.
async fn echo() -> TestGateway {
    let echo = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(5));
    GatewaySetup::new().agent("main", echo).start().await
}

/// L2, B11. Running and waiting turns are answered in the new chat, in order, and are in its history.
#[tokio::test]
async fn what_runs_and_what_waits_goes_on_in_the_new_chat() {
    let gateway = echo().await;
    gateway.receives(mention(&old(), "one")).await;
    gateway.receives(mention(&old(), "two")).await;

    moves(&gateway).await;
    gateway.receives(mention(&new(), "three")).await;
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.visible(&new()), ["one", "two", "three"]);
    assert!(gateway.visible(&old()).is_empty());
    let runs = gateway.agent("main").runs();
    assert!(runs.iter().all(|run| run.turn.place.session == runs[0].turn.place.session));
    assert_eq!(runs[2].turn.past.history.len(), 4);
    gateway.at_rest().await;
}

/// A new turn waits for a run that began under the old id.
#[tokio::test]
async fn the_new_chat_does_not_overtake_the_old_one() {
    let gateway = echo().await;
    gateway.receives(mention(&old(), "one")).await;
    moves(&gateway).await;
    gateway.advance(secs(3)).await;

    gateway.receives(mention(&new(), "two")).await;

    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.advance(secs(20)).await;
    assert_eq!(gateway.visible(&new()), ["one", "two"]);
    gateway.at_rest().await;
}

/// What somebody chose for the chat holds for a run that began under the old id.
#[tokio::test]
async fn what_steers_in_the_new_chat_goes_into_the_run_of_the_old_one() {
    let gate = Gate::default();
    let script = Script::replies("done").waiting(&gate).listening();
    let gateway = GatewaySetup::new().always(script).start().await;
    gateway.receives(mention(&old(), "/queue steer")).await;
    gateway.receives(mention(&old(), "one")).await;
    moves(&gateway).await;
    gateway.receives(mention(&new(), "two")).await;
    gate.open();
    gateway.advance(secs(20)).await;

    assert_eq!(gateway.agent("main").runs()[0].heard, ["two"]);
    gateway.at_rest().await;
}

/// L2. It is not said that the words cannot be stored.
#[tokio::test]
async fn the_words_of_a_voice_note_follow_their_chat() {
    let gate = Gate::default();
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["hello"]).waiting_at(&gate));
    let setup = GatewaySetup { transcriber: Some(transcriber), ..GatewaySetup::new() };
    let gateway = setup.agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text)).start().await;
    gateway.life.files.open();
    let InboundEvent { attachments, voice, .. } = spoken();
    gateway.receives(InboundEvent { attachments, voice, ..mention(&old(), "") }).await;

    moves(&gateway).await;
    gate.open();
    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&new()), ["hello"]);
    gateway.at_rest().await;
}

/// E8. The platform reports the move in response to a send.
#[tokio::test]
async fn an_answer_that_finds_its_chat_moved_follows_it_at_once() {
    let gateway = echo().await;
    let turn = gateway.receives(mention(&old(), "one")).await;
    gateway.platform.move_chat(&old(), "new");

    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&new()), ["one"]);
    let dossier = gateway.dossier(turn).await;
    let results: Vec<_> = dossier.attempts.iter().map(|attempt| attempt.result.as_deref()).collect();
    assert_eq!(results, [Some("moved"), Some("delivered")]);
    assert_eq!(dossier.deliveries[0].attempts, 1, "it costs no attempt");
    // A later notification changes nothing.
    is_told(&gateway).await;
    gateway.receives(mention(&new(), "two")).await;
    gateway.advance(secs(5)).await;
    assert_eq!(gateway.visible(&new()), ["one", "two"]);
    gateway.at_rest().await;
}

/// The move is reported while a send is in flight, which then fails.
#[tokio::test]
async fn an_answer_that_was_on_its_way_is_tried_again_in_the_new_chat() {
    let gateway = echo().await;
    gateway.platform.queue_fault(Fault::NotSent);
    gateway.platform.hold(true);
    gateway.receives(mention(&old(), "one")).await;
    gateway.advance(secs(5)).await;

    moves(&gateway).await;
    gateway.platform.hold(false);
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&new()), ["one"]);
    gateway.at_rest().await;
}

/// H2. A delivery that waits for its next attempt is sent to the new chat.
#[tokio::test]
async fn an_answer_that_waits_for_its_next_try_moves_along() {
    let gateway = echo().await;
    for _ in 0..4 {
        gateway.platform.queue_fault(Fault::NotSent);
    }
    gateway.receives(mention(&old(), "one")).await;
    gateway.advance(secs(6)).await;

    moves(&gateway).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&new()), ["one"]);
    gateway.at_rest().await;
}

/// A message in the old chat cannot be edited any more, so the answer is a new message.
#[tokio::test]
async fn a_deferral_that_stayed_behind_is_paid_in_the_new_chat() {
    let gateway = GatewaySetup::new().always(Script::replies("done").taking(SOFT_DEADLINE + secs(5))).start().await;
    gateway.receives(mention(&old(), "one")).await;
    gateway.advance(SOFT_DEADLINE).await;

    moves(&gateway).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&old()), [DEFERRAL]);
    assert_eq!(gateway.visible(&new()), ["done"]);
    gateway.at_rest().await;
}

/// Messages arrive under the new id before the move is reported.
#[tokio::test]
async fn two_conversations_that_turn_out_to_be_one_go_on_as_the_older() {
    let gateway = echo().await;
    for text in ["one", "two", "three"] {
        gateway.receives(mention(&old(), text)).await;
    }
    gateway.platform.move_chat(&old(), "new");
    for text in ["four", "five"] {
        gateway.receives(mention(&new(), text)).await;
    }

    is_told(&gateway).await;
    gateway.advance(secs(60)).await;
    gateway.receives(mention(&new(), "six")).await;
    gateway.advance(secs(10)).await;

    let mut visible = gateway.visible(&new());
    assert_eq!(visible.pop().as_deref(), Some("six"));
    visible.sort();
    assert_eq!(visible, ["five", "four", "one", "three", "two"]);
    let first = gateway.agent("main").runs()[0].turn.place.session;
    assert_eq!(gateway.agent("main").runs()[5].turn.place.session, first, "it remembers what was said before");
    gateway.at_rest().await;
}

/// Deliveries in flight in both chats when the move is reported are sent once.
#[tokio::test]
async fn nothing_is_sent_twice_when_two_conversations_become_one() {
    let gateway = echo().await;
    gateway.receives(mention(&old(), "one")).await;
    gateway.advance(secs(1)).await;
    gateway.receives(mention(&new(), "two")).await;
    gateway.platform.hold(true);
    gateway.advance(secs(5)).await;

    moves(&gateway).await;
    gateway.advance(secs(5)).await;
    gateway.platform.hold(false);
    gateway.advance(secs(30)).await;

    let mut visible = [gateway.visible(&old()), gateway.visible(&new())].concat();
    visible.sort();
    assert_eq!(visible, ["one", "two"]);
    gateway.at_rest().await;
}

/// Messages arrive under the old id after the move, which is then reported again.
#[tokio::test]
async fn what_comes_late_under_the_old_id_is_answered_in_the_new_chat() {
    let gateway = echo().await;
    moves(&gateway).await;
    gateway.receives(mention(&new(), "one")).await;
    gateway.receives(mention(&old(), "two")).await;
    gateway.receives(mention(&old(), "three")).await;

    let mut event = InboundEvent { kind: EventKind::Moved { chat: "new".to_owned() }, ..mention(&old(), "") };
    event.sender.kind = SenderKind::Ourselves;
    gateway.intake().accept(event.clone()).await.expect("accepted");
    gateway.intake().accept(event).await.expect("accepted");
    gateway.receives(mention(&old(), "four")).await;
    gateway.advance(secs(60)).await;

    let mut visible = gateway.visible(&new());
    visible.sort();
    assert_eq!(visible, ["four", "one", "three", "two"]);
    gateway.at_rest().await;
}

/// D18. A stop reaches a run that began under the old id.
#[tokio::test]
async fn a_stop_in_the_new_chat_ends_what_began_in_the_old_one() {
    let gateway = GatewaySetup::new()
        .slots(1)
        .agent("main", |turn: &AgentTurn| match &*turn.message.text {
            "stuck" => Script::hangs(),
            _ => Script::replies("fine"),
        })
        .start()
        .await;
    let stuck = gateway.receives(mention(&old(), "stuck")).await;
    moves(&gateway).await;

    gateway.receives(mention(&new(), "/stop")).await;
    gateway.receives(mention(&new(), "and now?")).await;

    assert_eq!(gateway.status(stuck).await, TurnStatus::Cancelled);
    assert_eq!(gateway.dossier(stuck).await.runs[0].end.as_deref(), Some("stopped"));
    assert_eq!(gateway.visible(&new()), ["Stopped by ada.", "fine"], "its slot is free");
    gateway.at_rest().await;
}

/// D1. After a crash at any write the turns are answered in the new chat.
#[tokio::test]
async fn a_move_survives_a_restart() {
    for number in 1..8 {
        let mut gateway = echo().await;
        gateway.receives(mention(&old(), "one")).await;
        gateway.receives(mention(&old(), "two")).await;
        gateway.platform.move_chat(&old(), "new");
        gateway.life.crash_at(number, crate::life::Crash::Before);
        gateway.advance(secs(5)).await;

        gateway.restart().await;
        gateway.advance(secs(30)).await;

        let visible = gateway.visible(&new());
        let mut texts: Vec<&str> = visible.iter().map(|text| text.trim_start_matches("(again) ")).collect();
        texts.dedup();
        assert_eq!(texts, ["one", "two"], "at write {number}");
        assert!(gateway.visible(&old()).is_empty());
        assert_eq!(gateway.store.conversation(&old()).await.expect("readable"), None);
        gateway.at_rest().await;
    }
}
