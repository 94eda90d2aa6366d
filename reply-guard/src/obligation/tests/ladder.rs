//! What is tried when there is no answer.

use super::*;

fn handoff(agent: &str) -> Rung {
    Rung::Handoff(agent.to_owned())
}

/// A20, B14.
#[test]
fn a_silent_agent_is_answered_by_the_ladder_for_silence() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(silent("nothing to add")), ["send 1: say silent"]);
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Fallback { cause: Cause::Silent, rung: say("silent") }));
}

/// A5, B7, C5.
#[test]
fn a_failure_shows_the_operators_words_and_keeps_the_detail_for_the_operator() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(failed()), ["send 1: say error"]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Error, "500 from upstream")));
}

/// A9, G2.
#[test]
fn a_stuck_run_ends_at_its_deadline() {
    let mut turn = Turn::deferred();

    assert_eq!(turn.wakes_at(), Some(HARD));
    assert_eq!(turn.ticks(HARD), ["stop run", "send 2 for d1: say timeout"]);
    assert!(!turn.obligation.is_running());
    turn.shown_as("m1");
    assert_eq!(turn.state(), "settled");
}

#[test]
fn a_turn_that_cannot_be_read_is_answered_by_its_own_ladder() {
    let mut turn = Turn::owed();
    assert_eq!(turn.on(Event::Unreadable("the key never came".to_owned())), ["send 1: say unreadable"]);
    assert_eq!(turn.on(Event::Begin), no_effects());
}

#[test]
fn a_turn_whose_words_nobody_heard_is_answered_by_its_own_ladder() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(Event::Unheard("the server does not answer".to_owned())), ["send 1: say unheard"]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Unheard, "the server does not answer")));
}

/// A18.
#[test]
fn a_refused_answer_is_answered_by_the_ladder_for_refusals() {
    let mut turn = Turn::running().after([reply("done")]);

    assert_eq!(turn.refused(), ["send 2: say refused"]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Refused, "403")));
}

/// A18, D6, D10.
#[test]
fn a_turn_is_a_dead_letter_when_every_rung_was_refused() {
    let mut turn = Turn::running_with(ladder_for(
        Cause::Error,
        &[Rung::Clarify("which".to_owned()), Rung::React("😕".to_owned())],
    ));

    assert_eq!(turn.on(failed()), ["send 1: ask which"]);
    assert_eq!(turn.refused(), ["send 2: react 😕"]);
    assert_eq!(turn.refused(), ["dead letter: error: 500 from upstream; every rung failed, the last with: 403"]);
    assert_eq!(turn.state(), "undeliverable");
    assert_eq!(turn.wakes_at(), None);
}

/// A19.
#[test]
fn an_empty_ladder_ends_visibly() {
    let mut turn = Turn::running_with(ladder_for(Cause::Silent, &[]));
    assert_eq!(turn.on(silent("shy")), ["dead letter: silent: shy; the ladder has no rung for it"]);
}

#[test]
fn an_answer_that_expired_is_a_dead_letter() {
    let mut turn = Turn::running().after([reply("done")]);
    assert_eq!(turn.expired(), ["dead letter: no route"]);
}

#[test]
fn a_handoff_runs_another_agent_on_the_same_turn() {
    let mut turn = Turn::running_with(ladder_for(Cause::Silent, &[handoff("orchestrator"), say("silent")]));

    assert_eq!(turn.on(silent("shy")), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["run orchestrator 1"]);
    assert_eq!(turn.on(reply("done")), ["send 1: done"]);
    turn.shown_as("m1");
    assert_eq!(
        turn.signal(),
        (SignalKind::Reply, &Via::Fallback { cause: Cause::Silent, rung: handoff("orchestrator") })
    );
}

#[test]
fn the_agent_that_was_handed_the_turn_is_judged_by_the_same_guard() {
    for end in [silent("shy too"), failed(), reply("NO_REPLY")] {
        let mut turn = Turn::running_with(ladder_for(Cause::Silent, &[handoff("orchestrator"), say("silent")]));
        turn.on(silent("shy"));
        turn.on(Event::Begin);
        assert_eq!(turn.on(end), ["send 1: say silent"]);
    }
}

/// G2.
#[test]
fn the_end_of_the_run_before_is_no_end_of_the_run_after_a_handoff() {
    let handed_over = || {
        let mut turn = Turn::running_with(ladder_for(Cause::Timeout, &[handoff("orchestrator"), say("timeout")]));
        turn.policy.max_deferrals = 0;
        assert_eq!(turn.ticks(HARD), ["stop run", "run again"]);
        turn
    };

    let mut turn = handed_over();
    assert_eq!(turn.on(failed()).len(), 1, "it is recorded");
    assert_eq!(turn.on(Event::Begin), ["run orchestrator 1"]);

    let mut turn = handed_over();
    assert_eq!(turn.on(reply("done after all")), ["send 1: done after all"]);
    assert_eq!(turn.on(Event::Begin), no_effects());
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
}

#[test]
fn the_deferral_of_a_turn_that_was_handed_over_is_paid_too() {
    let mut turn = Turn::deferred_with(ladder_for(Cause::Error, &[handoff("orchestrator")]));
    assert_eq!(turn.on(failed()), ["run again"]);
    assert_eq!(turn.state(), "deferred");
    turn.on(Event::Begin);
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

#[test]
fn the_agent_that_is_handed_an_overdue_turn_gets_time_for_it() {
    let rungs = [handoff("orchestrator"), say("timeout")];
    let mut turn = Turn::deferred_with(ladder_for(Cause::Timeout, &rungs));

    assert_eq!(turn.ticks(HARD), ["stop run", "run again"]);
    assert_eq!(turn.wakes_at(), None);
    turn.now = 3 * HARD;
    assert_eq!(turn.on(Event::Begin), ["run orchestrator 1"]);
    assert_eq!(turn.wakes_at(), Some(4 * HARD));
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

/// B8.
#[test]
fn the_ladder_is_climbed_once_whatever_else_ends() {
    for end in [silent("cancelled"), failed(), reply(""), defer(None, 60)] {
        let mut turn = Turn::running();
        turn.ticks(HARD);
        let effects = turn.on(end);
        assert!(effects.iter().all(|effect| effect.starts_with("suppress")), "{effects:?}");
        assert_eq!(turn.state(), "claimed");
    }
}

/// Where nobody waits, a failure is the operator's, and no template is sent. A handoff is tried.
#[test]
fn where_only_the_agents_words_go_no_template_is_sent() {
    let policy = Policy { only_agents_words: true, ..ladder_for(Cause::Error, &[say("failed")]) };
    let running = || Turn::running_with(policy.clone());

    assert_eq!(running().on(failed()), ["dead letter: error: 500 from upstream; the ladder has no rung for it"]);
    let nothing = ["dead letter: silent: nothing to add; the ladder has no rung for it"];
    assert_eq!(running().on(silent("nothing to add")), nothing);
    let mut cut_short = running().after([reply("a long answer")]);
    cut_short.part_delivered();
    assert_eq!(cut_short.refused(), ["dead letter: 403"]);
    let mut given_up = running();
    let given_up_for = Event::GivenUp { reason: "too old".to_owned(), say: None };
    assert_eq!(given_up.on(given_up_for), ["stop run"]);
    assert_eq!(given_up.state(), "settled");
    let handed_over = Policy { ladder: ladder().with(Cause::Error, vec![handoff("other"), say("failed")]), ..policy };
    let mut handed_over = Turn::running_with(handed_over);
    assert_eq!(handed_over.on(failed()), ["run again"]);
    assert_eq!(handed_over.on(Event::Begin), ["run other 1"]);
    assert_eq!(handed_over.on(reply("noted")), ["send 1: noted"]);
}

#[test]
fn an_agent_that_cannot_be_reached_has_a_ladder_of_its_own() {
    let mut turn = Turn::running_with(ladder_for(Cause::Unreachable, &[say("unreachable")]));

    assert_eq!(turn.on(Event::Unreachable("refused".to_owned())), ["send 1: say unreachable"]);

    assert_eq!(turn.obligation.fallback(), Some((Cause::Unreachable, "refused")));
}

#[test]
fn without_one_it_has_that_of_errors() {
    let ladder = Ladder::empty().with(Cause::Error, vec![say("failed")]);
    let mut turn = Turn::running_with(Policy { ladder, ..policy() });

    assert_eq!(turn.on(Event::Unreachable("refused".to_owned())), ["send 1: say failed"]);

    assert_eq!(turn.obligation.fallback(), Some((Cause::Unreachable, "refused")));
}
