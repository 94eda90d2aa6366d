//! An answer that comes when a fallback was already claimed.

use super::*;

fn timed_out(late_answer: LateAnswer) -> Turn {
    let mut turn = Turn::running_with(Policy { late_answer, soft_deadline: None, ..policy() });
    assert_eq!(turn.ticks(HARD), ["stop run", "send 1: say timeout"]);
    turn
}

#[test]
fn a_late_answer_beats_a_fallback_that_was_not_attempted() {
    assert_eq!(timed_out(LateAnswer::Record).on(reply("done")), ["withdraw 1", "send 2: done"]);
    assert_eq!(timed_out(LateAnswer::Record).on(react("👍")), ["withdraw 1", "send 2: react 👍"]);
    assert_eq!(timed_out(LateAnswer::Record).on(sent("done")), ["withdraw 1", "send 2: done"]);
}

#[test]
fn a_late_answer_beats_a_fallback_that_could_not_be_sent() {
    let waiting = |late_answer| {
        let mut turn = timed_out(late_answer);
        turn.attempted();
        assert_eq!(turn.on(reply("done")), no_effects());
        turn
    };

    assert_eq!(waiting(LateAnswer::Record).not_sent(), ["withdraw 1", "send 2: done"]);
    assert_eq!(waiting(LateAnswer::Record).refused(), ["send 2: done"]);
    assert_eq!(waiting(LateAnswer::Record).expired(), ["send 2: done"]);
}

#[test]
fn a_late_answer_is_recorded_after_a_fallback_was_sent() {
    let mut turn = timed_out(LateAnswer::Record);
    turn.shown_as("m1");
    assert_eq!(turn.on(reply("done")), ["suppress Outcome done: a fallback had already been sent"]);

    let mut turn = timed_out(LateAnswer::Record);
    turn.attempted();
    turn.on(reply("done"));
    assert_eq!(turn.shown_as("m1"), ["suppress Outcome done: a fallback had already been sent"]);
}

#[test]
fn a_late_answer_is_delivered_once_where_the_operator_wants_it() {
    let mut turn = timed_out(LateAnswer::Deliver);
    turn.shown_as("m1");

    assert_eq!(turn.on(reply("done")), ["send late 2: done"]);
    assert_eq!(turn.on(reply("done again")), ["suppress Outcome done again: the turn was already settled"]);
    assert_eq!(turn.shown_as("m2"), no_effects());
    assert_eq!(turn.signal().1, &Via::Fallback { cause: Cause::Timeout, rung: say("timeout") });
}

#[test]
fn only_an_answer_is_worth_sending_late() {
    for end in [failed(), defer(None, 900), silent("shy")] {
        let mut turn = timed_out(LateAnswer::Deliver);
        turn.shown_as("m1");
        let effects = turn.on(end);
        assert!(effects.iter().all(|effect| effect.starts_with("suppress")), "{effects:?}");
    }
}

#[test]
fn no_late_answer_after_the_answer_of_the_agent_that_was_handed_the_turn() {
    let rungs = [Rung::Handoff("orchestrator".to_owned())];
    let policy = Policy { late_answer: LateAnswer::Deliver, ..ladder_for(Cause::Error, &rungs) };
    let mut turn = Turn::running_with(policy).after([failed(), Event::Begin, reply("done")]);
    turn.shown_as("m1");

    assert_eq!(turn.on(reply("me too")), ["suppress Outcome me too: the turn was already settled"]);
}

/// D7.
#[test]
fn a_late_answer_of_unknown_fate_is_resent_like_any_other() {
    let late = || {
        let mut turn = timed_out(LateAnswer::Deliver);
        turn.shown_as("m1");
        turn.on(reply("done"));
        turn
    };

    assert_eq!(late().lost(true), ["resend 2"]);
    assert_eq!(late().refused(), ["suppress Outcome -: 403"]);
    let mut turn = late();
    assert_eq!(turn.lost(false), ["resend 2 labelled"]);
    assert_eq!(turn.lost(false), ["resend 2 labelled"]);
    assert_eq!(turn.expired(), ["suppress Outcome -: no route"]);
    assert_eq!(turn.lost(false), no_effects());
}

/// A run that passed its deadline a moment ago, and goes on for a minute.
fn goes_on(late_answer: LateAnswer) -> Turn {
    let mut turn = Turn::running_with(Policy { late_answer, late_window: secs(60), soft_deadline: None, ..policy() });
    assert_eq!(turn.ticks(HARD), ["run goes on", "send 1: say timeout"]);
    turn
}

#[test]
fn a_run_goes_on_after_its_deadline_and_its_answer_is_delivered_or_recorded() {
    let mut turn = goes_on(LateAnswer::Deliver);
    turn.shown_as("m1");
    assert_eq!(turn.on(reply("done")), ["send late 2: done"]);
    assert_eq!(turn.wakes_at(), None);

    let mut turn = goes_on(LateAnswer::Record);
    turn.shown_as("m1");
    assert_eq!(turn.on(reply("done")), ["suppress Outcome done: a fallback had already been sent"]);
}

#[test]
fn a_late_run_is_stopped_at_the_end_of_its_window() {
    let mut turn = goes_on(LateAnswer::Deliver);
    turn.shown_as("m1");

    assert_eq!(turn.wakes_at(), Some(HARD + 60));
    assert_eq!(turn.ticks(HARD + 60), ["stop run"]);
    assert_eq!(turn.wakes_at(), None);
}

#[test]
fn a_late_window_that_ends_early_stops_a_late_run_and_no_other() {
    let mut turn = goes_on(LateAnswer::Deliver);
    turn.shown_as("m1");

    assert_eq!(turn.on(Event::LateWindowEnded), ["stop run"]);
    assert_eq!(turn.wakes_at(), None);
    assert_eq!(Turn::running().on(Event::LateWindowEnded), no_effects());
}

#[test]
fn a_late_run_shows_no_drafts() {
    let turn = goes_on(LateAnswer::Deliver);
    assert!(turn.obligation.is_running() && !turn.obligation.may_draft());
}

#[test]
fn the_next_turn_does_not_wait_for_a_late_run() {
    assert!(Turn::running().obligation.holds_slot());
    let late = goes_on(LateAnswer::Deliver);
    assert!(late.obligation.is_running() && !late.obligation.holds_slot());
    assert!(!Turn::owed().obligation.holds_slot(), "it waits");
    assert!(!Turn::running().after([reply("done")]).obligation.holds_slot(), "it has ended");
}

#[test]
fn a_late_run_ends_when_another_agent_is_handed_the_turn() {
    let rungs = [Rung::Handoff("orchestrator".to_owned())];
    let policy = Policy { late_window: secs(60), ..ladder_for(Cause::Timeout, &rungs) };
    let mut turn = Turn::running_with(Policy { soft_deadline: None, ..policy });

    assert_eq!(turn.ticks(HARD), ["run goes on", "stop run", "run again"]);
    assert_eq!(turn.on(Event::Begin), ["run orchestrator 1"]);
}

#[test]
fn a_late_run_is_not_run_again_after_a_restart() {
    for event in [Event::Recovered, Event::Interrupted] {
        let mut turn = goes_on(LateAnswer::Deliver);
        assert_eq!(turn.on(event), no_effects());
        turn.shown_as("m1");
        assert!(turn.obligation.state().is_final() && !turn.obligation.is_running());
        assert_eq!(turn.wakes_at(), None);
    }
}

#[test]
fn a_cancel_stops_a_late_run() {
    let mut turn = goes_on(LateAnswer::Deliver);
    turn.shown_as("m1");
    assert_eq!(turn.on(cancelled()), ["stop run"]);
    assert_eq!(turn.signal().1, &Via::Fallback { cause: Cause::Timeout, rung: say("timeout") });
}

#[test]
fn a_late_run_behind_a_refused_fallback_does_not_stop_the_ladder() {
    let policy =
        Policy { late_window: secs(60), soft_deadline: None, ..ladder_for(Cause::Timeout, &[say("a"), say("b")]) };
    let mut turn = Turn::running_with(policy);
    assert_eq!(turn.ticks(HARD), ["run goes on", "send 1: say a"]);
    assert_eq!(turn.refused(), ["send 2: say b"]);
}

#[test]
fn a_run_that_owes_nothing_has_no_late_window() {
    let mut turn = Turn::ambient().after([Event::Begin]);
    turn.policy.late_window = secs(60);
    assert_eq!(turn.ticks(HARD), ["stop run"]);
    assert_eq!(turn.state(), "settled");
}

/// G5.
#[test]
fn a_clock_that_is_set_ahead_ends_no_run() {
    let mut turn = Turn::running_with(Policy { late_window: secs(60), soft_deadline: None, ..policy() });
    let year = 365 * 24 * 3600;

    turn.now = year;
    assert_eq!(turn.on(Event::Tick { ran: Some(secs(4)) }), no_effects());
    assert_eq!(turn.wakes_at(), Some(year + HARD - 4));

    turn.now = year + HARD - 4;
    assert_eq!(turn.on(Event::Tick { ran: Some(secs(600)) }), ["run goes on", "send 1: say timeout"]);
    turn.shown_as("m1");
    turn.now = 2 * year;
    assert_eq!(turn.on(Event::Tick { ran: Some(secs(630)) }), no_effects());
    assert_eq!(turn.wakes_at(), Some(2 * year + 30));
}

/// G5.
#[test]
fn a_debt_moves_with_the_run_that_pays_it_when_the_clock_is_set_ahead() {
    let mut turn = Turn::deferred();
    let year = 365 * 24 * 3600;

    turn.now = year;
    assert_eq!(turn.on(Event::Tick { ran: Some(secs(100)) }), no_effects());
    assert_eq!(turn.wakes_at(), Some(year + HARD - 100));
}

/// A fallback of unknown fate that is held gives way to the answer, if the operator wants late answers.
#[test]
fn an_answer_follows_a_fallback_that_is_held() {
    let held = |late_answer| {
        let policy =
            Policy { on_unknown: OnUnknown::Hold, late_answer, late_window: secs(60), soft_deadline: None, ..policy() };
        let mut turn = Turn::running_with(policy);
        turn.ticks(HARD);
        turn.attempted();
        turn.on(reply("done"));
        turn
    };

    assert_eq!(held(LateAnswer::Deliver).lost(false), ["withdraw 1", "send 2: done"]);
    let effects = held(LateAnswer::Record).lost(false);
    assert!(effects.iter().any(|effect| effect.starts_with("dead letter")), "{effects:?}");
}
