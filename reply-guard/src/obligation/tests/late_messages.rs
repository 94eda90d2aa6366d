//! Turns that came so late that somebody is asked whether they are still to be answered.

use super::*;

/// D4.
#[test]
fn a_postponed_turn_waits_without_deadlines_and_then_goes_on_as_if_it_were_new() {
    let mut turn = Turn::owed();
    assert_eq!(turn.on(Event::Postponed), no_effects());
    assert_eq!(turn.on(Event::Begin), no_effects());
    assert!(turn.obligation.is_postponed() && !turn.obligation.is_waiting());
    assert_eq!((turn.wakes_at(), turn.obligation.overdue_at()), (None, None));
    assert_eq!(turn.ticks(10 * HARD), no_effects());

    assert_eq!(turn.on(Event::Continued), ["run again"]);
    assert_eq!(turn.wakes_at(), Some(10 * HARD + SOFT));
    assert!(turn.obligation.may_be_merged());
    assert_eq!(turn.on(Event::Continued), no_effects());
    assert_eq!(turn.on(Event::Postponed), no_effects());
    assert!(turn.obligation.is_waiting(), "nobody is asked twice");
}

#[test]
fn a_postponed_turn_can_be_left() {
    let mut turn = Turn::owed().after([Event::Postponed]);
    turn.on(cancelled());
    assert!(turn.state() == "settled" && !turn.obligation.is_postponed());
}

#[test]
fn a_turn_whose_agent_has_begun_is_not_postponed() {
    let mut turn = Turn::running();
    turn.on(Event::Postponed);
    turn.on(Event::Recovered);
    turn.on(Event::Postponed);
    assert!(!turn.obligation.is_postponed() && turn.obligation.is_waiting());
}

/// The operator's hold and the question do not end each other.
#[test]
fn a_postponed_turn_that_is_held_waits_for_both() {
    let mut turn = Turn::owed().after([Event::Postponed, Event::Held]);
    assert_eq!(turn.on(Event::Continued), no_effects());
    assert_eq!(turn.on(Event::Resumed), ["release", "run again"]);
    assert!(turn.obligation.is_waiting());
}
