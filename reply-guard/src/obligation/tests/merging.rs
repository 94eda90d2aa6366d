//! Merged turns: another turn answers for them.

use super::*;

fn merged() -> Event {
    Event::Merged { into: "turn-2".to_owned() }
}

/// B2.
#[test]
fn a_merged_turn_settles_with_the_one_it_was_merged_into() {
    let mut turn = Turn::owed();

    assert_eq!(turn.on(merged()), no_effects());
    assert_eq!((turn.state(), turn.wakes_at()), ("merged", None));
    assert_eq!(turn.on(Event::Begin), no_effects());
    assert_eq!(turn.on(Event::MergeSettled), no_effects());
    assert_eq!(turn.obligation.state(), &ObligationState::Settled(Settlement::Merged { into: "turn-2".to_owned() }));
}

/// B2.
#[test]
fn a_merged_turn_is_a_dead_letter_with_the_one_it_was_merged_into() {
    let mut turn = Turn::owed().after([merged()]);
    assert_eq!(turn.on(Event::MergeGivenUp { reason: "blocked".to_owned() }), ["dead letter: blocked"]);
    assert_eq!(turn.state(), "undeliverable");
}

/// B1, B2.
#[test]
fn a_merged_turn_takes_its_deferral_back() {
    let mut turn = Turn::owed();
    turn.ticks(SOFT);
    assert_eq!(turn.on(merged()), ["withdraw 1"]);
    assert_eq!(turn.state(), "merged");
}

fn absorbed(turn: &str, owed: Expectation) -> Event {
    Event::Absorbed { turns: vec![MergedTurn { turn: turn.to_owned(), place: 2 }], owed }
}

/// A turn that answers for `turn-2` as well, and runs.
fn leader() -> Turn {
    Turn::owed().after([absorbed("turn-2", Expectation::Answer), Event::Begin])
}

/// B2.
#[test]
fn a_turn_that_answers_for_another_tells_it_how_it_ended() {
    let mut settled = leader().after([reply("for both")]);
    assert_eq!(settled.shown_as("a1"), ["to turn-2: MergeSettled"]);

    let mut stopped = leader();
    assert_eq!(stopped.on(cancelled()), ["stop run", "to turn-2: MergeCancelled { by: Turn(\"turn-9\") }"]);

    let mut deleted = leader();
    assert_eq!(deleted.on(Event::Cancelled { by: CancelledBy::Deletion }), ["stop run", "to turn-2: Unmerged"]);
}

/// B2: a dead letter that is delivered in the end has answered for both.
#[test]
fn dead_letters_that_were_merged_end_together() {
    let mut turn = Turn::owed().after([merged(), Event::MergeGivenUp { reason: "blocked".to_owned() }]);
    assert_eq!(turn.state(), "undeliverable");

    assert_eq!(turn.on(Event::MergeSettled), no_effects());
    assert_eq!(turn.obligation.state(), &ObligationState::Settled(Settlement::Merged { into: "turn-2".to_owned() }));
}

#[test]
fn a_dead_letter_that_the_operator_retries_by_itself_is_not_merged_any_more() {
    let mut turn = Turn::owed().after([merged(), Event::MergeGivenUp { reason: "blocked".to_owned() }]);
    assert_eq!(turn.on(Event::Retried), ["run again"]);

    assert_eq!(turn.on(Event::MergeSettled), no_effects());
    assert_eq!(turn.state(), "open");
}

/// What it was merged into was cancelled by itself.
#[test]
fn a_turn_that_is_unmerged_waits_for_a_run_of_its_own() {
    let mut turn = Turn::owed().after([merged()]);
    assert_eq!(turn.on(Event::Unmerged), ["run again"]);
    assert_eq!(turn.state(), "open");
    assert_eq!(turn.on(Event::Begin), ["run 1"]);
}

#[test]
fn a_merged_turn_that_is_cancelled_by_itself_stays_cancelled() {
    let mut turn = Turn::owed().after([merged(), Event::Cancelled { by: CancelledBy::Deletion }]);
    turn.on(Event::MergeSettled);
    let cancelled = Settlement::Cancelled { by: CancelledBy::Deletion };
    assert_eq!(turn.obligation.state(), &ObligationState::Settled(cancelled));
}

#[test]
fn a_turn_that_owes_nothing_owes_an_answer_with_one_that_does() {
    let mut turn = Turn::ambient();
    turn.on(absorbed("turn-2", Expectation::Answer));
    assert_eq!(turn.obligation.expectation(), Expectation::Answer);
    assert!(turn.obligation.overdue_at().is_some());
}

#[test]
fn a_turn_that_has_ended_answers_for_no_other() {
    let mut turn = Turn::running().after([reply("done")]);
    turn.on(absorbed("turn-2", Expectation::Answer));
    assert_eq!(turn.obligation.merged_turns(), []);
}

/// The queue mode `interrupt`.
#[test]
fn a_run_that_is_superseded_is_stopped_and_does_not_count() {
    let mut turn = Turn::running();
    for attempt in 2..6 {
        assert_eq!(turn.on(Event::Superseded), ["stop run", "run again"]);
        assert_eq!(turn.on(Event::Begin), [format!("run {attempt}")]);
    }
    let mut sending = Turn::running().after([sent("already")]);
    assert_eq!(sending.on(Event::Superseded), no_effects());
}

#[test]
fn only_a_turn_that_waits_is_merged() {
    let mut deferring = Turn::owed();
    deferring.ticks(SOFT);
    deferring.attempted();
    let answered = Turn::running().after([reply("done")]);
    for mut turn in [Turn::running(), deferring, answered] {
        let before = turn.obligation.clone();
        assert_eq!(turn.on(merged()), no_effects());
        assert_eq!(turn.obligation, before);
    }
}

#[test]
fn a_merge_that_did_not_happen_settles_nothing() {
    let mut turn = Turn::running();
    turn.on(Event::MergeSettled);
    turn.on(Event::MergeGivenUp { reason: "blocked".to_owned() });
    assert_eq!(turn.state(), "open");
}
