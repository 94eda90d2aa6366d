//! A turn that waits for an approval.

use super::*;

/// How long an approval is waited for.
const WAIT: i64 = 7 * 24 * 60 * 60;

fn asking() -> Turn {
    let mut turn = Turn::running();
    assert_eq!(
        turn.on(approval("pay")),
        [format!("ask approval of pay until {WAIT}"), "send 1: wait for pay".to_owned()]
    );
    turn
}

/// G3.
#[test]
fn a_turn_waits_for_its_approval_and_not_for_a_deadline() {
    let mut turn = asking();
    turn.shown_as("d1");

    assert_eq!((turn.state(), turn.wakes_at()), ("deferred", Some(WAIT)));
    assert_eq!(turn.ticks(HARD * 10), no_effects());
    assert_eq!(turn.obligation.overdue_at(), Some(at(WAIT + 5)));
    assert!(!turn.obligation.is_waiting());
}

/// G3.
#[test]
fn the_agent_runs_again_once_it_is_decided_and_its_answer_pays() {
    let mut turn = asking();
    turn.shown_as("d1");
    turn.now = 5000;

    assert_eq!(turn.on(Event::Decided), ["run again"]);
    assert_eq!(turn.on(Event::Decided), no_effects(), "once");
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
    assert_eq!(turn.obligation.due(), Some(at(5000 + HARD)));
    assert_eq!(turn.on(reply("paid")), ["send 2 for d1: paid"]);
}

#[test]
fn what_nobody_decides_in_time_puts_the_turn_before_its_agent_again() {
    let mut turn = asking();
    turn.shown_as("d1");

    assert_eq!(turn.ticks(WAIT - 1), no_effects());
    assert_eq!(turn.ticks(WAIT), ["approval expired", "run again"]);
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
}

/// G2, G3.
#[test]
fn it_takes_the_place_of_a_deferral_of_the_gateways_own() {
    let mut unsent = Turn::running();
    unsent.ticks(SOFT);
    assert_eq!(unsent.on(approval("pay"))[0], "withdraw 1");

    let mut attempted = Turn::running();
    attempted.ticks(SOFT);
    attempted.attempted();
    let until = SOFT + WAIT;
    assert_eq!(attempted.on(approval("pay")), [format!("ask approval of pay until {until}")]);
    assert_eq!(attempted.shown_as("d1"), ["send 2 for d1: wait for pay"]);
}

#[test]
fn it_may_be_decided_before_the_person_is_told_that_it_waits() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);
    turn.attempted();
    turn.on(approval("pay"));

    assert_eq!(turn.on(Event::Decided), ["run again"]);
    assert_eq!(turn.shown_as("d1"), no_effects());
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
}

#[test]
fn what_was_decided_before_the_person_was_told_is_not_told() {
    let mut turn = asking();
    turn.now = 100;

    assert_eq!(turn.on(Event::Decided), ["withdraw 1", "run again"]);
    assert_eq!((turn.state(), turn.wakes_at()), ("open", Some(100 + SOFT)));
}

/// B3.
#[test]
fn whoever_cancels_the_turn_closes_the_approval() {
    let mut turn = asking();
    turn.shown_as("d1");

    assert_eq!(turn.on(cancelled()), ["approval dropped"]);
    assert_eq!(turn.on(Event::Decided), no_effects());
    assert_eq!(turn.state(), "settled");
}

/// A18.
#[test]
fn a_person_who_cannot_be_told_gets_the_ladder() {
    let mut turn = asking();

    assert_eq!(turn.refused(), ["send 2: say refused", "approval dropped"]);
}

#[test]
fn an_answer_that_comes_meanwhile_closes_the_approval() {
    let mut turn = asking();
    turn.shown_as("d1");

    assert_eq!(turn.on(sent("never mind")), ["send 2 for d1: never mind", "approval dropped"]);
}

#[test]
fn a_rule_decides_without_a_word_to_the_person() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(Event::DecidedByRule(request("pay"))), ["a rule decided pay", "run again"]);
    assert_eq!((turn.on(Event::Begin), turn.obligation.runs.begun), (vec!["run 2".to_owned()], 2));
}

/// An agent that asks and asks is no way around `max_runs`.
#[test]
fn an_agent_may_ask_only_so_often() {
    let mut turn = Turn::running_with(Policy { max_approvals: 2, max_runs: 1, ..policy() });
    turn.on(Event::DecidedByRule(request("pay")));
    turn.on(Event::Begin);
    turn.on(approval("pay"));
    turn.on(Event::Decided);
    assert_eq!(turn.on(Event::Begin), ["run 3"]);

    assert_eq!(turn.on(Event::DecidedByRule(request("pay"))), ["send 2: say error"]);
}

#[test]
fn a_turn_that_is_held_runs_when_it_is_resumed() {
    let mut turn = asking();
    turn.shown_as("d1");
    turn.on(Event::Held);

    assert_eq!(turn.ticks(WAIT * 2), no_effects());
    assert_eq!(turn.on(Event::Decided), no_effects());
    assert_eq!(turn.on(Event::Resumed), ["release", "run again"]);
}

#[test]
fn an_approval_of_nothing_is_silence() {
    assert_eq!(Turn::running().on(approval(" ")), ["send 1: say silent"]);
    assert_eq!(Turn::running().on(Event::DecidedByRule(request(""))), ["send 1: say silent"]);
}
