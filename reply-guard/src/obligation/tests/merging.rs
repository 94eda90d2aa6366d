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
