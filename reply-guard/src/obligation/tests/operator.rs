//! What the operator does: retry, redirect, discard, hold.

use super::*;

fn redirected() -> Event {
    Event::Redirected { reply: Reply::text("done, elsewhere") }
}

fn discarded() -> Event {
    Event::Cancelled { by: CancelledBy::Operator("too old".to_owned()) }
}

fn given_up(say: Option<&str>) -> Event {
    Event::GivenUp { reason: "too old".to_owned(), say: say.map(str::to_owned) }
}

/// The answer and the fallback were refused.
fn dead() -> Turn {
    let mut turn = Turn::running().after([reply("done")]);
    assert_eq!(turn.refused(), ["send 2: say refused"]);
    assert_eq!(turn.refused(), ["dead letter: refused: 403; every rung failed, the last with: 403"]);
    turn
}

#[test]
fn a_retry_sends_the_answer_and_not_the_fallback() {
    let mut turn = dead();
    assert_eq!(turn.obligation.undelivered_claim(), Some(1));

    assert_eq!(turn.on(Event::Retried), ["send again 1"]);
    turn.shown_as("m1");

    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
    assert_eq!(turn.obligation.undelivered_claim(), None);
}

#[test]
fn a_fallback_is_sent_again_if_there_was_no_answer() {
    let mut turn = Turn::running().after([failed()]);
    turn.refused();

    assert_eq!(turn.on(Event::Retried), ["send again 1"]);
}

#[test]
fn a_retry_that_fails_is_a_dead_letter_again() {
    let mut turn = dead();
    for _ in 0..3 {
        assert_eq!(turn.on(Event::Retried), ["send again 1"]);
        assert_eq!(turn.refused(), ["dead letter: 403"]);
        assert_eq!(turn.on(Event::Retried), ["send again 1"]);
        assert_eq!(turn.expired(), ["dead letter: no route"]);
    }
}

/// D7.
#[test]
fn a_retry_of_what_may_have_been_seen_says_so() {
    for (on_unknown, again) in [
        (OnUnknown::Label, "send again 1 labelled"),
        (OnUnknown::Hold, "send again 1 labelled"),
        (OnUnknown::Resend, "send again 1"),
    ] {
        let mut turn = Turn::running_with(Policy { on_unknown, ..policy() }).after([reply("done")]);
        turn.lost(false);
        turn.expired();
        assert_eq!(turn.state(), "undeliverable");

        assert_eq!(turn.on(Event::Retried), [again]);
    }
}

#[test]
fn where_a_resend_shows_once_a_retry_needs_no_label() {
    let mut turn = Turn::running().after([reply("done")]);
    turn.lost(true);
    turn.expired();

    assert_eq!(turn.on(Event::Retried), ["send again 1"]);
}

/// K6.
#[test]
fn a_retry_goes_on_after_the_part_that_was_seen() {
    let mut turn = Turn::running().after([reply("done")]);
    turn.part_delivered();
    turn.refused();
    turn.refused();

    assert_eq!(turn.on(Event::Retried), ["send again 1"]);
    turn.shown_as("m2");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
}

#[test]
fn a_turn_without_anything_to_send_is_run_again() {
    let mut turn = Turn::running_with(Policy { ladder: Ladder::empty(), ..policy() });
    assert_eq!(turn.on(silent("chosen")), ["dead letter: silent: chosen; the ladder has no rung for it"]);

    turn.now = 1000;
    assert_eq!(turn.on(Event::Retried), ["run again"]);
    assert_eq!(turn.wakes_at(), Some(1000 + SOFT));
    assert_eq!(turn.on(Event::Begin), ["run 1"]);
    assert_eq!(turn.on(reply("done")), ["send 1: done"]);
}

#[test]
fn a_redirected_answer_settles_the_turn() {
    let mut turn = Turn::deferred().after([reply("done")]);
    turn.refused();
    turn.refused();

    // The deferral's message is in the other conversation.
    assert_eq!(turn.on(redirected()), ["send 4: done, elsewhere"]);
    turn.shown_as("m4");

    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
}

#[test]
fn a_redirected_answer_that_fails_can_be_retried_where_it_was_sent() {
    let mut turn = dead();
    turn.on(redirected());
    assert_eq!(turn.refused(), ["dead letter: 403"]);

    assert_eq!(turn.on(Event::Retried), ["send again 3"]);
}

#[test]
fn a_discarded_dead_letter_is_settled() {
    let mut turn = dead();

    assert_eq!(turn.on(discarded()), no_effects());

    let by = CancelledBy::Operator("too old".to_owned());
    assert_eq!(turn.obligation.state(), &ObligationState::Settled(Settlement::Cancelled { by }));
    assert_eq!(turn.on(Event::Retried), no_effects());
}

#[test]
fn a_person_cannot_cancel_a_dead_letter() {
    let mut turn = dead();
    assert_eq!(turn.on(cancelled()), no_effects());
    assert_eq!(turn.state(), "undeliverable");
}

#[test]
fn only_a_dead_letter_is_retried_or_redirected() {
    let mut turn = Turn::running();
    for event in [Event::Retried, redirected()] {
        assert_eq!(turn.on(event), no_effects());
    }
    turn.on(reply("done"));
    for event in [Event::Retried, redirected()] {
        assert_eq!(turn.on(event), no_effects());
    }
    turn.shown_as("m1");
    for event in [Event::Retried, redirected(), discarded(), Event::Held] {
        assert_eq!(turn.on(event), no_effects());
    }
}

#[test]
fn a_turn_that_is_held_waits_until_it_is_resumed() {
    let mut turn = Turn::owed();
    assert_eq!(turn.on(Event::Held), ["hold"]);
    assert_eq!(turn.on(Event::Held), no_effects());
    assert_eq!(turn.on(Event::Begin), no_effects());
    assert!(!turn.obligation.is_waiting() && turn.wakes_at().is_none());
    assert_eq!(turn.ticks(SOFT), no_effects());

    assert_eq!(turn.on(Event::Resumed), ["release", "run again"]);
    assert_eq!(turn.ticks(SOFT + 1), [format!("send 1: defer until {}", SOFT + 1 + HARD)]);
    assert_eq!(turn.on(Event::Resumed), no_effects());
}

#[test]
fn the_run_of_a_held_turn_ends_in_time_and_what_it_says_is_kept() {
    let mut turn = Turn::running();
    turn.on(Event::Held);
    assert_eq!(turn.wakes_at(), Some(HARD));
    assert_eq!(turn.ticks(HARD), ["stop run", "send 1: say timeout"]);
    assert!(turn.obligation.is_held());

    assert_eq!(turn.on(Event::Resumed), ["release"]);
    turn.shown_as("m1");
    assert_eq!(turn.state(), "settled");
}

/// The result of its attempt may never come: nothing else is sent in any case.
#[test]
fn the_operator_gives_up_what_may_have_been_seen_without_waiting_for_its_result() {
    let mut turn = Turn::running().after([reply("done")]);
    turn.lost(false);
    turn.on(Event::Held);

    assert_eq!(turn.on(discarded()), ["withdraw 1"]);
    assert_eq!((turn.state(), turn.obligation.is_held()), ("settled", false));
    assert_eq!(turn.on(Event::Delivered { claim: 1, messages: vec!["m1".to_owned()] }), no_effects());
}

#[test]
fn the_operator_gives_up_a_turn_that_another_turn_cancels_once_its_result_is_known() {
    let mut turn = Turn::running().after([reply("done"), Event::Attempted { claim: 1 }]);
    turn.on(Event::Cancelled { by: CancelledBy::Turn("t9".to_owned()) });
    assert_eq!(turn.state(), "claimed");

    turn.on(discarded());
    assert_eq!(turn.state(), "settled");
}

#[test]
fn a_held_turn_shows_no_drafts() {
    let mut turn = Turn::running();
    assert!(turn.obligation.may_draft());
    turn.on(Event::Held);
    assert!(!turn.obligation.may_draft());
}

#[test]
fn a_held_turn_can_be_given_up() {
    let mut turn = Turn::running().after([reply("done"), Event::Held]);
    assert_eq!(turn.on(discarded()), ["withdraw 1"]);
    assert!(!turn.obligation.is_held() && turn.state() == "settled");
}

fn elsewhere() -> Event {
    Event::SentElsewhere { reply: Reply::text("done, elsewhere") }
}

/// A18.
#[test]
fn an_answer_goes_elsewhere_once() {
    let mut turn = dead();
    assert!(turn.obligation.may_go_elsewhere());
    assert_eq!(turn.on(elsewhere()), ["send 3: done, elsewhere"]);
    assert!(turn.on(elsewhere()).is_empty(), "it is on its way");
    assert_eq!(turn.refused(), ["dead letter: 403"]);

    assert!(!turn.obligation.may_go_elsewhere());
    assert!(turn.on(elsewhere()).is_empty());
    assert_eq!(turn.on(redirected()), ["send 4: done, elsewhere"], "the operator may still redirect it");
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
}

/// A18. What the person may have seen, and what says only that there is no answer, stays where it is.
#[test]
fn only_an_answer_that_nobody_saw_goes_elsewhere() {
    let mut failed_turn = Turn::running().after([failed()]);
    failed_turn.refused();
    let held = || Turn::running_with(Policy { on_unknown: OnUnknown::Hold, ..policy() }).after([reply("done")]);
    let (mut answer, mut fallback) = (held(), held());
    assert_eq!(fallback.refused(), ["send 2: say refused"]);
    for (turn, claim) in [(&mut answer, 1), (&mut fallback, 2)] {
        turn.on(Event::Attempted { claim });
        turn.on(Event::Lost { claim, idempotent: false });
    }
    let mut turn = Turn::running().after([reply("done")]);
    assert!(turn.on(elsewhere()).is_empty(), "it can still be delivered");

    for mut turn in [failed_turn, answer, fallback] {
        assert!(matches!(turn.obligation.state(), ObligationState::Undeliverable { .. }));
        assert!(!turn.obligation.may_go_elsewhere());
        assert!(turn.on(elsewhere()).is_empty());
    }
}

/// What the agent promised before counts no more, unless the person saw it.
#[test]
fn a_turn_that_starts_over_is_deferred_as_often_as_a_new_one() {
    let policy = Policy { max_deferrals: 1, ladder: Ladder::empty(), ..policy() };
    let given_up = |is_seen: bool| {
        let mut turn = Turn::running_with(policy.clone()).after([defer(Some("soon"), 60)]);
        if is_seen {
            turn.shown_as("d1");
        } else {
            turn.refused();
        }
        turn.on(Event::Unreadable("no key".to_owned()));
        assert_eq!(turn.state(), "undeliverable");
        turn
    };

    let mut unseen = given_up(false);
    assert_eq!(unseen.on(Event::Retried), ["run again"]);
    assert_eq!((unseen.state(), unseen.wakes_at()), ("open", Some(SOFT)));
    assert_eq!((unseen.obligation.deferrals_left(&policy), unseen.obligation.named_time()), (1, None));

    let mut seen = given_up(true);
    assert_eq!(seen.on(Event::Retried), ["run again"]);
    assert_eq!((seen.state(), seen.obligation.deferrals_left(&policy)), ("deferred", 1));
}

fn is_told(turn: &Turn) -> bool {
    matches!(turn.obligation.state(), ObligationState::Settled(Settlement::Signal { via: Via::GivenUp { .. }, .. }))
}

#[test]
fn a_turn_that_is_given_up_says_so_in_place_of_its_deferral() {
    let mut turn = Turn::deferred();
    assert_eq!(turn.on(given_up(None)), ["stop run", "send 2 for d1: say given_up"]);
    turn.shown_as("d1");
    assert!(is_told(&turn));

    let mut turn = Turn::running();
    assert_eq!(turn.on(given_up(Some("Not today."))), ["stop run", "send 1: Not today."]);
    assert!(turn.on(reply("done")).iter().all(|effect| !effect.starts_with("send")));
}

/// An attempt that is under way may be the answer. Once it is known that it is not, the person is told.
#[test]
fn what_is_being_sent_when_a_turn_is_given_up_is_waited_for() {
    let sending = || {
        let mut turn = Turn::running().after([reply("done"), Event::Attempted { claim: 1 }]);
        assert_eq!(turn.on(given_up(None)), no_effects());
        turn
    };
    let mut arrived = sending();
    arrived.shown_as("m1");
    assert_eq!(arrived.signal(), (SignalKind::Reply, &Via::Answer));

    for ended in [Event::NotSent { claim: 1 }, Event::Lost { claim: 1, idempotent: true }] {
        assert_eq!(sending().on(ended), ["withdraw 1", "send 2: say given_up"]);
    }
    assert_eq!(sending().refused(), ["send 2: say given_up"]);
}

#[test]
fn a_turn_whose_answer_may_have_been_seen_is_given_up_at_once() {
    let mut turn = Turn::running().after([reply("done")]);
    turn.lost(false);
    assert_eq!(turn.on(given_up(None)), ["withdraw 1", "send 2: say given_up"]);

    let mut turn = Turn::running().after([reply("done")]);
    turn.part_delivered();
    assert_eq!(turn.on(given_up(None)), ["withdraw 1", "send 2: say given_up"]);
}

#[test]
fn a_turn_that_cannot_be_told_that_it_is_given_up_is_a_dead_letter() {
    let mut turn = Turn::running().after([given_up(None)]);
    assert_eq!(turn.refused(), ["dead letter: 403"]);
    assert_eq!(turn.on(given_up(None)), no_effects());
    assert_eq!(turn.state(), "settled");
}

#[test]
fn a_turn_that_owes_nothing_is_given_up_without_a_word() {
    let mut turn = Turn::ambient();
    assert_eq!(turn.on(given_up(None)), no_effects());
    assert_eq!(turn.state(), "settled");
}

#[test]
fn a_held_turn_that_is_given_up_says_so() {
    let mut turn = Turn::running().after([reply("done"), Event::Held]);
    assert_eq!(turn.on(given_up(None)), ["withdraw 1", "send 2: say given_up", "release"]);
    assert!(!turn.obligation.is_held());
}

#[test]
fn an_approval_is_dropped_with_the_turn_that_is_given_up() {
    let mut turn = Turn::running().after([approval("pay")]);
    turn.shown_as("d1");
    assert_eq!(turn.on(given_up(None)), ["send 2 for d1: say given_up", "approval dropped"]);
}
