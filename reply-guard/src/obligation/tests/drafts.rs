//! A draft that is a message is sent like a signal and settles nothing.

use super::*;

fn draft(text: &str) -> Event {
    Event::Draft { text: text.to_owned() }
}

const CLAIM: u32 = Draft::CLAIM;

fn shown(message: &str) -> Event {
    Event::Delivered { claim: CLAIM, messages: vec![message.to_owned()] }
}

fn attempted() -> Event {
    Event::Attempted { claim: CLAIM }
}

fn lost(idempotent: bool) -> Event {
    Event::Lost { claim: CLAIM, idempotent }
}

/// A running turn with a draft in flight.
fn drafting() -> Turn {
    Turn::running().after([draft("on"), attempted()])
}

/// B13.
#[test]
fn the_first_text_is_a_delivery_and_what_follows_changes_its_message() {
    let mut turn = Turn::running();
    assert_eq!(turn.obligation.draft_target(), DraftTarget::New);

    assert_eq!(turn.on(draft("on")), ["draft on"]);
    assert_eq!(turn.obligation.draft_target(), DraftTarget::Nowhere);
    assert_eq!(turn.on(draft("one")), no_effects());
    turn.on(attempted());
    assert_eq!(turn.on(shown("m1")), no_effects());
    assert_eq!(turn.obligation.draft_target(), DraftTarget::Message("m1"));
    assert_eq!(turn.state(), "open");
    assert_eq!(turn.on(reply("one two")), ["send 1 for m1: one two"]);
}

#[test]
fn markers_and_thoughts_are_no_draft() {
    let mut turn = Turn::running();
    assert_eq!(turn.on(draft("NO_RE")), no_effects());
    assert_eq!(turn.on(draft("<think>hm")), no_effects());
    assert_eq!(turn.obligation.draft_target(), DraftTarget::New);
}

#[test]
fn there_is_no_draft_without_a_run() {
    let mut turn = Turn::owed();
    assert_eq!(turn.on(draft("on")), no_effects());

    let mut turn = Turn::running().after([reply("done")]);
    assert_eq!(turn.on(draft("on")), no_effects());
}

/// B1. One message: the draft edits the deferral.
#[test]
fn with_a_deferral_in_the_chat_a_draft_is_no_message_of_its_own() {
    let mut turn = Turn::deferred();

    assert_eq!(turn.on(draft("on")), no_effects());
    assert_eq!(turn.obligation.draft_target(), DraftTarget::Message("d1"));
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

#[test]
fn a_draft_waits_for_a_deferral_on_its_way() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);
    turn.attempted();

    assert_eq!(turn.obligation.draft_target(), DraftTarget::Nowhere);
}

/// G2. Another text would replace the answer so far.
#[test]
fn a_draft_in_the_chat_is_the_deferral() {
    let mut turn = drafting().after([shown("m1")]);

    assert_eq!(turn.ticks(SOFT), ["suppress Deferral -: the answer so far is in the chat"]);
    assert_eq!((turn.state(), turn.wakes_at()), ("deferred", Some(HARD)));
    assert_eq!(turn.obligation.draft_target(), DraftTarget::Message("m1"));
    assert_eq!(turn.on(reply("done")), ["send 1 for m1: done"]);
}

#[test]
fn a_draft_on_its_way_holds_up_the_deferral() {
    let mut turn = drafting();
    assert_eq!((turn.ticks(SOFT), turn.wakes_at()), (no_effects(), Some(HARD)));
    turn.on(shown("m1"));
    assert_eq!(turn.wakes_at(), Some(SOFT));
    assert_eq!(turn.ticks(SOFT), ["suppress Deferral -: the answer so far is in the chat"]);

    let mut turn = drafting();
    turn.ticks(SOFT);
    turn.on(Event::Refused { claim: Draft::CLAIM, reason: "403".to_owned() });
    assert_eq!(turn.ticks(SOFT), ["send 1: defer until 600"]);
}

#[test]
fn a_draft_that_has_not_gone_out_gives_way_to_the_signal() {
    let mut turn = Turn::running().after([draft("on")]);
    assert_eq!(turn.on(reply("done")), ["send 1: done", "withdraw 0"]);

    let mut turn = Turn::running().after([draft("on")]);
    assert_eq!(turn.on(cancelled()), ["stop run", "withdraw 0"]);
}

#[test]
fn a_draft_that_was_not_sent_is_not_tried_again() {
    let mut turn = drafting();

    assert_eq!(turn.on(Event::NotSent { claim: CLAIM }), ["withdraw 0"]);
    assert_eq!(turn.on(draft("one")), ["draft one"]);
}

#[test]
fn a_draft_that_was_refused_stands_nowhere() {
    let mut turn = drafting();

    assert_eq!(turn.on(Event::Refused { claim: CLAIM, reason: "403".to_owned() }), no_effects());
    assert_eq!(turn.obligation.draft_message(), None);
    assert!(!turn.obligation.has_lost_message());
}

/// D7. The platform says which message it is.
#[test]
fn a_draft_of_unknown_fate_is_found_again_where_it_cannot_show_twice() {
    let mut turn = drafting();
    assert_eq!(turn.on(lost(true)), ["resend 0"]);
    assert_eq!(turn.on(Event::NotSent { claim: CLAIM }), no_effects());
    assert_eq!(turn.on(reply("done")), ["send 1: done"]);
    assert!(turn.obligation.is_draft_pending());

    turn.on(shown("m1"));
    assert_eq!(turn.obligation.draft_message(), Some("m1"));
}

/// D7. If it could, no second one is sent, and the answer is labelled as a possible copy.
#[test]
fn a_draft_of_unknown_fate_is_lost_where_it_could_show_twice() {
    let mut turn = drafting();
    assert_eq!(turn.on(lost(false)), no_effects());

    assert!(turn.obligation.has_lost_message());
    assert_eq!(turn.obligation.draft_target(), DraftTarget::Nowhere);
    assert_eq!(turn.on(reply("done")), ["send 1: done"]);
    assert!(turn.obligation.has_lost_message());
}

#[test]
fn a_draft_in_doubt_that_is_not_sent_again_is_lost() {
    for end in [
        Event::Expired { claim: CLAIM, reason: "no route".to_owned() },
        Event::Refused { claim: CLAIM, reason: "403".to_owned() },
    ] {
        let mut turn = drafting().after([lost(true), end.clone()]);
        assert!(turn.obligation.has_lost_message());
        turn.on(end);
        assert!(turn.obligation.has_lost_message());
    }
}

/// D1.
#[test]
fn a_draft_outlives_a_crash() {
    let mut turn = drafting();
    turn.on(Event::Recovered);
    turn.on(lost(true));
    turn.on(Event::Begin);
    assert_eq!(turn.on(draft("on")), no_effects());
    turn.on(shown("m1"));

    assert_eq!(turn.obligation.draft_target(), DraftTarget::Message("m1"));
    assert_eq!(turn.on(reply("done")), ["send 1 for m1: done"]);
}

#[test]
fn the_ladders_words_take_the_place_of_a_draft() {
    let mut turn = drafting().after([shown("m1")]);
    assert_eq!(turn.on(failed()), ["send 1 for m1: say error"]);
}

/// A20.
#[test]
fn words_about_a_cut_answer_leave_the_draft_that_became_it() {
    let mut turn = drafting().after([shown("m1"), reply("done")]);
    turn.part_delivered();

    assert_eq!(turn.refused(), ["send 2: say cut_off"]);
}
