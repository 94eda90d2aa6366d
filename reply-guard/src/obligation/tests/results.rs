//! Results of attempts, known and unknown.

use super::*;

fn claimed(on_unknown: OnUnknown) -> Turn {
    Turn::running_with(Policy { on_unknown, ..policy() }).after([reply("done")])
}

#[test]
fn an_unknown_result_is_resent_where_it_cannot_show_twice() {
    let mut turn = claimed(OnUnknown::Hold);
    for _ in 0..5 {
        assert_eq!(turn.lost(true), ["resend 1"]);
    }
    turn.shown_as("m1");
    assert_eq!(turn.state(), "settled");
}

/// D7, D8, H2.
#[test]
fn an_unknown_result_is_resent_until_it_is_known() {
    for (on_unknown, resend) in [(OnUnknown::Label, "resend 1 labelled"), (OnUnknown::Resend, "resend 1")] {
        let mut turn = claimed(on_unknown);
        for _ in 0..5 {
            assert_eq!(turn.lost(false), [resend]);
            assert_eq!(turn.not_sent(), no_effects());
        }
        turn.shown_as("m1");
        assert_eq!(turn.state(), "settled");
    }
}

/// H2. It ends only when attempts and lifetime are used up.
#[test]
fn an_unknown_result_that_is_too_old_is_a_dead_letter() {
    let mut turn = claimed(OnUnknown::Label);
    turn.lost(false);
    assert_eq!(turn.expired(), ["dead letter: no route"]);
}

/// K6.
#[test]
fn an_answer_that_stops_in_the_middle_says_so() {
    let begun = |on_unknown| {
        let mut turn = claimed(on_unknown);
        turn.part_delivered();
        turn
    };
    let say = ["send 2: say cut_off"];

    assert_eq!(begun(OnUnknown::Label).refused(), say);
    assert_eq!(begun(OnUnknown::Label).expired(), say);
    assert_eq!(begun(OnUnknown::Hold).lost(false), say);

    let mut turn = begun(OnUnknown::Label);
    assert_eq!(turn.lost(false), ["resend 1 labelled"]);
    assert_eq!(turn.refused(), say);
    turn.shown_as("m1");
    assert_eq!(
        turn.signal(),
        (SignalKind::Reply, &Via::Fallback { cause: Cause::Refused, rung: super::say("cut_off") })
    );
}

#[test]
fn words_about_a_cut_answer_that_are_refused_are_a_dead_letter() {
    let mut turn = claimed(OnUnknown::Label);
    turn.part_delivered();
    turn.refused();

    assert_eq!(turn.refused(), ["dead letter: refused: 403; every rung failed, the last with: 403"]);
}

/// A20. The delivered part is not edited into something else.
#[test]
fn words_about_a_cut_answer_leave_the_part_that_was_seen() {
    let mut turn = Turn::deferred();
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
    turn.part_delivered();

    assert_eq!(turn.refused(), ["send 3: say cut_off"]);
}

/// A waiting answer is sent instead of the template about the one that was cut.
#[test]
fn an_answer_that_waited_follows_one_that_was_cut() {
    let mut turn = Turn::running().after([sent("on its own")]);
    turn.part_delivered();
    assert_eq!(turn.on(reply("done")), no_effects());

    assert_eq!(turn.refused(), ["send 2: done"]);
}

#[test]
fn a_deferral_that_was_cut_leaves_the_turn_to_its_run() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);
    turn.part_delivered();

    assert_eq!(turn.refused(), no_effects());
    assert!(turn.obligation.is_running());
    assert_eq!(turn.on(reply("done")), ["send 2 for p1: done"]);
}

/// D18.
#[test]
fn an_answer_in_doubt_that_was_called_off_is_not_sent_again() {
    let mut turn = claimed(OnUnknown::Label);
    turn.lost(false);
    turn.on(cancelled());

    assert_eq!(turn.not_sent(), ["withdraw 1"]);
    assert_eq!(turn.state(), "settled");
}

#[test]
fn a_cut_answer_that_was_called_off_says_nothing_more() {
    let mut turn = claimed(OnUnknown::Label);
    turn.part_delivered();
    turn.on(cancelled());

    assert_eq!(turn.refused(), no_effects());
    assert_eq!(turn.state(), "settled");
}

#[test]
fn an_unknown_result_is_held_where_the_operator_wants_it() {
    let mut turn = claimed(OnUnknown::Hold);
    assert_eq!(turn.lost(false), ["dead letter: the platform may or may not have accepted it; held for review"]);
}

/// B10.
#[test]
fn nothing_else_is_said_after_an_answer_that_may_have_been_seen() {
    let mut turn = claimed(OnUnknown::Label);
    turn.lost(false);
    assert_eq!(turn.refused(), ["dead letter: 403; an earlier attempt may have been accepted"]);
}

#[test]
fn an_attempt_that_was_not_sent_leaves_no_doubt_unless_there_was_one_before() {
    let attempted = |turn: &Turn| matches!(turn.obligation.state(), ObligationState::Claimed(claim) if claim.attempted);

    let mut turn = claimed(OnUnknown::Label);
    turn.attempted();
    assert!(attempted(&turn));
    turn.not_sent();
    assert!(!attempted(&turn));
    turn.lost(false);
    turn.not_sent();
    assert!(attempted(&turn));
}

#[test]
fn a_deferral_of_unknown_fate_never_costs_the_answer() {
    let deferring = |on_unknown| {
        let mut turn = Turn::running_with(Policy { on_unknown, ..policy() });
        turn.ticks(SOFT);
        turn
    };

    let mut turn = deferring(OnUnknown::Hold);
    assert_eq!(turn.lost(false), ["withdraw 1"]);
    assert!(turn.obligation.is_running());
    assert_eq!(turn.on(reply("done")), ["send 2: done"]);

    let mut turn = deferring(OnUnknown::Label);
    turn.attempted();
    assert_eq!(turn.on(reply("done")), no_effects());
    assert_eq!(turn.lost(false), ["withdraw 1", "send 2: done"]);
}

#[test]
fn an_answer_that_waited_behind_a_fallback_of_unknown_fate_is_kept() {
    let doubtful = |late_answer| {
        let mut turn = Turn::running_with(Policy { late_answer, ..policy() }).after([failed()]);
        turn.attempted();
        assert_eq!(turn.on(sent("done")), no_effects());
        assert_eq!(turn.lost(false), ["resend 1 labelled"]);
        turn
    };

    let reason = "403; an earlier attempt may have been accepted";
    assert_eq!(
        doubtful(LateAnswer::Record).refused(),
        [format!("suppress Outcome done: {reason}"), format!("dead letter: {reason}")]
    );
    assert_eq!(doubtful(LateAnswer::Deliver).refused(), ["send 2: done"]);
    assert_eq!(
        doubtful(LateAnswer::Record).shown_as("m1"),
        ["suppress Outcome done: a fallback had already been sent"]
    );
}

#[test]
fn an_answer_that_waited_does_not_follow_a_fallback_that_may_have_been_seen() {
    let mut turn = Turn::running().after([failed()]);
    turn.lost(true);
    turn.on(reply("done"));

    assert_eq!(turn.not_sent(), no_effects());
    let reason = "no route; an earlier attempt may have been accepted";
    assert_eq!(turn.expired(), [format!("suppress Outcome done: {reason}"), format!("dead letter: {reason}")]);
}

#[test]
fn a_refusal_of_a_resend_that_cannot_show_twice_is_answered_by_the_ladder() {
    let mut turn = claimed(OnUnknown::Label);
    turn.lost(true);
    assert_eq!(turn.refused(), ["send 2: say refused"]);
}

/// E8.
#[test]
fn results_of_another_claim_change_nothing() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);
    turn.on(reply("done"));
    let before = turn.obligation.clone();

    for event in [
        Event::Attempted { claim: 1 },
        Event::NotSent { claim: 1 },
        Event::Delivered { claim: 1, messages: vec!["d1".to_owned()] },
        Event::Refused { claim: 1, reason: "403".to_owned() },
        Event::Expired { claim: 1, reason: "no route".to_owned() },
        Event::Lost { claim: 1, idempotent: true },
    ] {
        assert_eq!(turn.on(event), no_effects());
        assert_eq!(turn.obligation, before);
    }
}
