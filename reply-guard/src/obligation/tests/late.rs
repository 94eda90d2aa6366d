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
