//! After a restart, what was owed is still owed.

use super::*;

/// D1, A10.
#[test]
fn a_run_that_died_is_run_again() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(Event::Recovered), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
    assert_eq!(turn.on(reply("done")), ["send 1: done"]);
}

/// A15, D11, D13.
#[test]
fn a_poison_turn_is_given_its_fallback_after_the_last_run() {
    let mut turn = Turn::owed();
    for _ in 0..3 {
        turn.on(Event::Begin);
        assert_eq!(turn.on(Event::Recovered), ["run again"]);
    }

    assert_eq!(turn.on(Event::Begin), ["send 1: say error"]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Error, "no answer after run 3")));
    assert_eq!(turn.on(Event::Recovered), no_effects());
}

/// D11, D13. A run stopped by a clean shutdown does not count towards `max_runs`; one that crashed does.
#[test]
fn a_run_that_was_taken_back_does_not_count() {
    let mut turn = Turn::owed();
    for number in 1..=5 {
        assert_eq!(turn.on(Event::Begin), [format!("run {number}")]);
        assert_eq!(turn.on(Event::Interrupted), ["run again"]);
    }
    for number in 6..=8 {
        assert_eq!(turn.on(Event::Begin), [format!("run {number}")]);
        assert_eq!(turn.on(Event::Recovered), ["run again"]);
    }

    assert_eq!(turn.on(Event::Begin), ["send 1: say error"]);
    assert_eq!(turn.on(Event::Interrupted), no_effects());
}

/// D1.
#[test]
fn a_restart_changes_nothing_that_was_not_running() {
    let claimed = Turn::running().after([reply("done")]);
    let settled = {
        let mut turn = Turn::running().after([reply("done")]);
        turn.shown_as("m1");
        turn
    };
    for mut turn in [Turn::owed(), claimed, settled] {
        let before = turn.obligation.clone();
        assert_eq!(turn.on(Event::Recovered), no_effects());
        assert_eq!(turn.obligation, before);
    }
}

#[test]
fn a_run_that_died_after_it_had_answered_is_not_run_again() {
    let mut turn = Turn::running().after([sent("hello")]);
    turn.shown_as("m1");
    assert_eq!(turn.on(Event::Recovered), no_effects());
    assert!(!turn.obligation.is_waiting() && !turn.obligation.is_running());
}

#[test]
fn a_run_that_died_while_its_own_send_was_on_its_way_waits_for_the_result() {
    let recovered = || Turn::running().after([sent("hello"), Event::Recovered, Event::Begin]);
    assert_eq!(Turn::running().after([sent("hello")]).on(Event::Recovered), no_effects());

    let mut turn = recovered();
    turn.shown_as("m1");
    assert!(!turn.obligation.is_waiting());
    let mut turn = recovered();
    assert_eq!(turn.refused(), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
}

/// D1.
#[test]
fn a_debt_survives_a_restart() {
    let mut turn = Turn::deferred();
    let stored = serde_json::to_string(&turn.obligation).expect("an obligation is plain data");
    turn.obligation = serde_json::from_str(&stored).expect("a stored obligation can be read");

    assert_eq!(turn.on(Event::Recovered), ["run again"]);
    assert_eq!((turn.state(), turn.obligation.due()), ("deferred", Some(at(HARD))));
    turn.on(Event::Begin);
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

/// D1.
#[test]
fn an_answer_that_waited_for_a_result_survives_a_restart() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);
    turn.attempted();
    turn.on(reply("done"));
    let stored = serde_json::to_string(&turn.obligation).expect("an obligation is plain data");
    turn.obligation = serde_json::from_str(&stored).expect("a stored obligation can be read");

    assert_eq!(turn.on(Event::Recovered), no_effects());
    assert_eq!(turn.shown_as("d1"), ["send 2 for d1: done"]);
}
