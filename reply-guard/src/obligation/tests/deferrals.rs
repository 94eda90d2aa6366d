//! A deferral is a debt.

use super::*;

/// B1, G2.
#[test]
fn the_soft_deadline_defers_and_the_answer_pays_the_debt() {
    let mut turn = Turn::running();

    assert_eq!(turn.wakes_at(), Some(SOFT));
    assert_eq!(turn.ticks(SOFT - 1), no_effects());
    assert_eq!(turn.ticks(SOFT), ["send 1: defer until 600"]);
    turn.shown_as("d1");
    assert_eq!((turn.state(), turn.obligation.due()), ("deferred", Some(at(HARD))));
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
}

/// A due time that the person is told must be the agent's own.
#[test]
fn a_deferral_says_whose_it_is() {
    let via = |turn: &Turn| match turn.obligation.state() {
        ObligationState::Claimed(claim) => claim.via.clone(),
        state => panic!("not claimed: {state:?}"),
    };
    let (mut slow, mut deferring) = (Turn::running(), Turn::running());

    slow.ticks(SOFT);
    deferring.on(defer(Some("tomorrow"), 7200));

    assert_eq!((via(&slow), via(&deferring)), (Via::Deferral, Via::Answer));
    assert_eq!((via(&slow).is_gateways(), via(&deferring).is_gateways()), (true, false));
}

/// M2.
#[test]
fn an_impatient_client_is_deferred_by_its_own_wait() {
    let policy = policy();
    let patient = |wait| Obligation::open(Expectation::Answer, &policy, wait, at(0)).wake_at();

    assert_eq!(patient(Some(secs(5))), Some(at(5)));
    assert_eq!(patient(Some(secs(50))), Some(at(SOFT)));
    assert_eq!(patient(None), Some(at(SOFT)));
}

/// B1.
#[test]
fn an_answer_takes_the_place_of_a_deferral_that_was_not_attempted() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);

    assert_eq!(turn.on(reply("done")), ["withdraw 1", "send 2: done"]);
}

/// B1, B10.
#[test]
fn an_answer_waits_for_a_deferral_that_may_be_out() {
    let deferring = || {
        let mut turn = Turn::running();
        turn.ticks(SOFT);
        turn.attempted();
        assert_eq!(turn.on(reply("done")), no_effects());
        turn
    };

    assert_eq!(deferring().shown_as("d1"), ["send 2 for d1: done"]);
    assert_eq!(deferring().refused(), ["send 2: done"]);
    assert_eq!(deferring().expired(), ["send 2: done"]);
    assert_eq!(deferring().not_sent(), ["withdraw 1", "send 2: done"]);
    assert_eq!(deferring().lost(true), ["resend 1"]);
    assert_eq!(deferring().lost(false), ["withdraw 1", "send 2: done"]);
}

/// B1.
#[test]
fn a_turn_that_waits_in_line_is_deferred_and_then_run() {
    let mut turn = Turn::owed();
    assert_eq!(turn.ticks(SOFT), ["send 1: defer until 620"]);
    turn.shown_as("d1");

    turn.now = 100;
    assert_eq!(turn.on(Event::Begin), ["run 1"]);
    assert_eq!(turn.obligation.due(), Some(at(100 + HARD)));
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

#[test]
fn a_turn_is_run_while_its_deferral_is_on_its_way() {
    let mut turn = Turn::owed();
    turn.ticks(SOFT);
    turn.now = 100;

    assert_eq!(turn.on(Event::Begin), ["run 1"]);
    turn.shown_as("d1");
    assert_eq!(turn.obligation.due(), Some(at(100 + HARD)));
}

/// G3.
#[test]
fn an_agent_may_put_the_answer_off() {
    let mut turn = Turn::running();

    assert_eq!(
        turn.on(defer(Some("Waiting for your approval."), 900)),
        ["send 1: Waiting for your approval. until 900"]
    );
    turn.shown_as("d1");
    assert_eq!(turn.wakes_at(), Some(900));
    assert_eq!(turn.on(reply("approved")), ["send 2 for d1: approved"]);
}

#[test]
fn an_agent_may_not_put_the_answer_off_for_longer_than_the_operator_allows() {
    let mut turn = Turn::running();
    let day = 24 * 60 * 60;
    assert_eq!(turn.on(defer(None, 10 * day)), [format!("send 1: defer until {day}")]);
    assert_eq!(Turn::running().on(defer(None, -5)), ["send 1: defer until 0"]);
}

/// The person reads the agent's own words, and the agent is asked when it said.
#[test]
fn what_an_agent_puts_off_takes_the_place_of_the_gateways_own_deferral() {
    let mut unsent = Turn::running();
    unsent.ticks(SOFT);
    assert_eq!(unsent.on(defer(Some("tomorrow"), 7200)), ["withdraw 1", "send 2: tomorrow until 7200"]);

    let attempted = || {
        let mut turn = Turn::running();
        turn.ticks(SOFT);
        turn.attempted();
        assert_eq!(turn.on(defer(Some("tomorrow"), 7200)), no_effects());
        assert_eq!(turn.wakes_at(), Some(7200));
        turn
    };
    let note = "send 2: tomorrow until 7200";
    assert_eq!(attempted().not_sent(), ["withdraw 1", note]);
    assert_eq!(attempted().refused(), [note]);
    assert_eq!(attempted().lost(false), ["withdraw 1", note]);
    let mut turn = attempted();
    assert_eq!(turn.shown_as("d1"), ["send 2 for d1: tomorrow until 7200"]);
    turn.shown_as("d1");
    assert_eq!((turn.obligation.due(), turn.obligation.shown_deferrals()), (Some(at(7200)), 2));
}

/// A channel may be down for longer than that.
#[test]
fn the_agent_is_asked_at_its_time_though_its_note_is_still_on_its_way() {
    let mut turn = Turn::running().after([defer(Some("soon"), 60)]);

    assert_eq!((turn.wakes_at(), turn.obligation.may_be_hurried()), (Some(60), true));
    assert_eq!(turn.ticks(60), ["withdraw 1", "run again"], "the note is not true any more");
    assert_eq!((turn.state(), turn.wakes_at()), ("open", Some(60 + SOFT)));
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
    assert_eq!(turn.on(reply("done")), ["send 2: done"]);
}

/// Nobody knows of the promise: the turn is as it was when it was accepted.
#[test]
fn a_turn_whose_note_nobody_saw_has_its_deadlines_and_drafts_again() {
    let promised = || Turn::running().after([defer(Some("soon"), 60)]);
    let (unsent, mut refused) = (promised(), promised());
    refused.refused();

    for mut turn in [unsent, refused] {
        assert_eq!(turn.obligation.overdue_at(), Some(at(SOFT + 5)), "the person has seen nothing");
        turn.ticks(60);
        turn.on(Event::Begin);
        assert_eq!(turn.obligation.overdue_at(), Some(at(60 + SOFT + 5)));
        assert_eq!((turn.obligation.due(), turn.obligation.draft_target()), (None, DraftTarget::New));
        assert_eq!(turn.ticks(60 + SOFT), [format!("send 2: defer until {}", 60 + HARD)]);
    }
}

#[test]
fn a_promise_that_nobody_saw_where_nothing_was_owed_is_none() {
    let promised = || Turn::ambient().after([Event::Begin, defer(None, 60)]);
    let (unsent, mut refused) = (promised(), promised());
    refused.refused();

    for mut turn in [unsent, refused] {
        turn.ticks(60);
        turn.on(Event::Begin);
        assert_eq!(turn.wakes_at(), Some(60 + HARD));
        assert_eq!(turn.on(silent("chosen")), no_effects());
        assert_eq!(turn.state(), "settled");
    }
}

/// The gateway was down at the time, and learns of the attempt before the clock is looked at.
#[test]
fn a_note_that_has_waited_past_its_time_is_not_sent() {
    let late = || {
        let mut turn = Turn::running();
        turn.ticks(SOFT);
        turn.attempted();
        turn.on(defer(Some("soon"), 60));
        turn.now = 100;
        turn
    };
    let dropped = "suppress Deferral soon: the agent is asked before it could be sent";

    assert_eq!(late().lost(false), ["withdraw 1", dropped, "run again"]);
    assert_eq!(late().not_sent(), ["withdraw 1", dropped, "run again"]);
    assert_eq!(late().shown_as("d1"), [dropped, "run again"]);
    let mut held = late().after([Event::Held]);
    assert_eq!(held.shown_as("d1"), [dropped]);
    assert_eq!(held.obligation.agents_deferrals(), 1);
    assert_eq!(held.on(Event::Resumed), ["release", "run again"]);
}

#[test]
fn a_note_that_arrives_during_the_run_that_pays_is_replaced() {
    let mut turn = Turn::running().after([defer(Some("soon"), 60)]);
    turn.attempted();
    assert_eq!(turn.ticks(60), ["run again"]);
    turn.on(Event::Begin);
    turn.shown_as("d1");

    assert_eq!(turn.obligation.due(), Some(at(60 + HARD)));
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

/// The result of an attempt may be long in coming.
#[test]
fn the_agent_is_asked_at_its_time_though_its_note_waits_for_another_one() {
    let mut turn = Turn::running_with(Policy { max_runs: 1, ..policy() });
    turn.ticks(SOFT);
    turn.attempted();
    turn.on(defer(Some("soon"), 60));

    assert_eq!(turn.ticks(60), ["suppress Deferral soon: the agent is asked before it could be sent", "run again"]);
    assert_eq!((turn.obligation.agents_deferrals(), turn.obligation.named_time()), (1, Some(at(60))));
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
    assert_eq!(turn.on(reply("done")), no_effects());
    assert_eq!(turn.shown_as("d1"), ["send 2 for d1: done"]);
}

/// A15. Also where no note arrives.
#[test]
fn an_agent_that_only_defers_ends_on_the_ladder_on_a_channel_that_is_down() {
    let mut turn = Turn::running();
    for n in 1..=3 {
        let due = turn.now + 60;
        turn.on(defer(None, due));
        assert_eq!(turn.ticks(due), [format!("withdraw {n}"), "run again".to_owned()]);
        turn.on(Event::Begin);
    }
    assert_eq!(turn.on(defer(None, turn.now + 60)), ["send 4: say timeout"]);
}

/// A15. What the gateway says by itself is no promise of the agent's.
#[test]
fn the_gateways_own_deferral_costs_the_agent_none_of_its_own() {
    let policy = Policy { max_deferrals: 1, ..policy() };
    let mut turn = Turn::deferred_with(policy.clone());
    assert_eq!((turn.obligation.deferrals(), turn.obligation.deferrals_left(&policy)), (1, 1));

    assert_eq!(turn.on(defer(Some("tomorrow"), 7200)), ["send 2 for d1: tomorrow until 7200"]);
    turn.shown_as("d1");
    assert_eq!(turn.obligation.deferrals_left(&policy), 0);
    assert_eq!(turn.ticks(7200), ["run again"]);
    turn.on(Event::Begin);
    assert_eq!(turn.on(defer(None, 9000)), ["send 3 for d1: say timeout"]);
}

#[test]
fn a_debt_that_falls_due_runs_the_agent_again() {
    let mut turn = Turn::running().after([defer(None, 900)]);
    turn.shown_as("d1");

    assert_eq!(turn.ticks(900), ["run again"]);
    assert!(turn.obligation.is_waiting());
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

#[test]
fn an_agent_is_asked_before_its_time_if_somebody_wants_the_answer_now() {
    let mut turn = Turn::running().after([defer(None, 900)]);
    turn.shown_as("d1");
    turn.now = 100;

    assert!(turn.obligation.may_be_hurried());
    assert_eq!(turn.on(Event::Hurried), ["run again"]);
    assert_eq!(turn.obligation.due(), Some(at(100 + HARD)));
    assert!(turn.obligation.is_waiting() && !turn.obligation.may_be_hurried());
    assert_eq!(turn.on(Event::Hurried), no_effects(), "it is asked once");

    turn.now = 200;
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
    assert_eq!((turn.obligation.due(), turn.wakes_at()), (Some(at(200 + HARD)), Some(200 + HARD)));
    assert_eq!(turn.ticks(790), no_effects());
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

#[test]
fn only_a_turn_that_waits_for_its_time_is_hurried() {
    let held = || {
        let mut turn = Turn::running().after([defer(None, 900)]);
        turn.shown_as("d1");
        turn.after([Event::Held])
    };
    let mut asking = Turn::running().after([approval("pay")]);
    asking.shown_as("d1");
    let settled = Turn::running().after([reply("done")]);

    for mut turn in [Turn::owed(), Turn::running(), Turn::deferred(), held(), asking, settled] {
        let before = turn.obligation.clone();
        assert!(!turn.obligation.may_be_hurried(), "{before:?}");
        assert_eq!(turn.on(Event::Hurried), no_effects());
        assert_eq!(turn.obligation, before);
    }
}

/// A15.
#[test]
fn an_agent_that_only_defers_ends_on_the_ladder() {
    let mut turn = Turn::running();
    for n in 1..=3 {
        assert_eq!(turn.obligation.deferrals(), n - 1);
        let due = turn.now + 60;
        turn.on(defer(None, due));
        turn.shown_as("d1");
        turn.ticks(due);
        turn.on(Event::Begin);
    }

    assert_eq!(turn.on(defer(None, turn.now + 60)), ["send 4 for d1: say timeout"]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Timeout, "deferred 3 times already")));
}

/// A15. An agent that deferred is run again, whatever `max_runs` is.
#[test]
fn a_promise_costs_no_run() {
    let mut turn = Turn::running_with(Policy { max_runs: 1, ..policy() }).after([defer(None, 60)]);
    turn.shown_as("d1");
    assert_eq!(turn.ticks(60), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["run 2"]);

    assert_eq!(turn.on(Event::Recovered), ["run again"]);
    let why = "no answer after run 2";
    assert_eq!(turn.on(Event::Begin), ["send 2 for d1: say error"]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Error, why)));
}

/// A15. A deferral that comes without a run adds none to `max_runs`.
#[test]
fn a_promise_without_a_run_gives_no_run() {
    let mut turn = Turn::with(Policy { max_runs: 1, ..policy() }).after([defer(None, 60)]);
    turn.shown_as("d1");
    assert_eq!(turn.ticks(60), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["run 1"]);
    assert_eq!(turn.on(Event::Recovered), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["send 2 for d1: say error"]);
}

#[test]
fn every_promise_that_an_agent_may_give_is_asked_for() {
    let mut turn = Turn::running();
    for n in 1..=3 {
        let due = turn.now + 60;
        turn.on(defer(None, due));
        turn.shown_as("d1");
        assert_eq!(turn.ticks(due), ["run again"], "after promise {n}");
        turn.on(Event::Begin);
    }
    assert_eq!(turn.on(reply("done")), ["send 4 for d1: done"]);
}

/// B1, D3. A waiting turn is not timed out, and is deferred once.
#[test]
fn a_turn_that_waits_past_its_due_date_is_run_all_the_same() {
    let mut turn = Turn::with(Policy { max_deferrals: 1, ..policy() });
    turn.ticks(SOFT);
    turn.shown_as("d1");
    assert_eq!(turn.wakes_at(), None);
    assert_eq!(turn.ticks(620), no_effects());
    assert_eq!(turn.ticks(100_000), no_effects());

    assert_eq!(turn.on(Event::Begin), ["run 1"]);
    assert_eq!(turn.obligation.due(), Some(at(100_000 + HARD)));
    assert_eq!(turn.ticks(100_000 + HARD - 1), no_effects());
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
}

#[test]
fn a_turn_that_waits_for_the_run_that_pays_its_debt_is_not_given_up() {
    let mut turn = Turn::running().after([defer(None, 60)]);
    turn.shown_as("d1");
    assert_eq!(turn.ticks(60), ["run again"]);

    assert_eq!(turn.ticks(60 + 5 * HARD), no_effects());
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
}

/// A20. The deferral may stay beside the answer, which is labelled.
#[test]
fn an_answer_after_a_deferral_in_doubt_may_look_like_a_second_one() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);
    assert!(!turn.obligation.has_lost_message());
    turn.lost(false);
    turn.shown_as("d2");

    assert!(turn.obligation.has_lost_message());
    assert_eq!(turn.obligation.draft_target(), DraftTarget::Message("d2"));
    assert_eq!(turn.on(reply("done")), ["send 2 for d2: done"]);
}

/// B1.
#[test]
fn a_deferral_in_doubt_holds_up_no_answer() {
    let in_doubt = || {
        let mut turn = Turn::running();
        turn.ticks(SOFT);
        assert_eq!(turn.lost(false), ["resend 1 labelled"]);
        turn
    };

    // Between two attempts.
    assert_eq!(in_doubt().on(reply("done")), ["withdraw 1", "send 2: done"]);
    // During the second one, which was not sent.
    let mut turn = in_doubt();
    turn.attempted();
    assert_eq!(turn.on(reply("done")), no_effects());
    assert_eq!(turn.not_sent(), ["withdraw 1", "send 2: done"]);
}

#[test]
fn a_turn_whose_deferral_may_have_been_seen_is_not_merged() {
    let mut turn = Turn::owed();
    turn.ticks(SOFT);
    turn.lost(false);

    assert_eq!(turn.on(Event::Merged { into: "turn-2".to_owned() }), no_effects());
    assert_eq!(turn.state(), "claimed");
}

#[test]
fn a_refused_deferral_leaves_the_turn_to_its_run() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);

    assert_eq!(turn.refused(), no_effects());
    assert_eq!((turn.state(), turn.wakes_at()), ("open", Some(HARD)));
    assert_eq!(turn.on(reply("done")), ["send 2: done"]);
}

/// A18. The promise holds without its note.
#[test]
fn an_agent_is_asked_at_its_time_though_the_person_could_not_be_told() {
    let promised = || Turn::running().after([defer(Some("soon"), 60)]);
    let (mut refused, mut expired, mut held) = (promised(), promised(), promised());
    held.policy.on_unknown = OnUnknown::Hold;

    assert_eq!(refused.refused(), no_effects());
    assert_eq!(expired.expired(), no_effects());
    assert_eq!(held.lost(false), ["withdraw 1"]);
    for mut turn in [refused, expired, held] {
        assert_eq!((turn.state(), turn.wakes_at(), turn.obligation.shown_deferrals()), ("deferred", Some(60), 0));
        assert_eq!(turn.ticks(60), ["run again"]);
        assert_eq!(turn.on(Event::Begin), ["run 2"]);
        assert_eq!(turn.on(reply("done")), ["send 2: done"]);
    }
}

#[test]
fn a_second_deferral_that_is_refused_leaves_the_first_in_the_chat() {
    let mut turn = Turn::running().after([defer(Some("soon"), 60)]);
    turn.shown_as("d1");
    turn.ticks(60);
    turn.on(Event::Begin);
    turn.on(defer(Some("later"), 120));

    assert_eq!(turn.refused(), no_effects());
    assert_eq!((turn.wakes_at(), turn.obligation.shown_deferrals()), (Some(120), 1));
    turn.ticks(120);
    turn.on(Event::Begin);
    assert_eq!(turn.on(reply("done")), ["send 3 for d1: done"]);
}

#[test]
fn a_deferral_is_a_debt_even_where_nothing_was_owed() {
    let mut turn = Turn::ambient().after([Event::Begin, defer(None, 60)]);
    turn.shown_as("d1");
    turn.ticks(60);
    turn.on(Event::Begin);

    assert_eq!(turn.on(failed()), ["dead letter: error: 500 from upstream; the ladder has no rung for it"]);
}

/// B3. It says that an answer comes, and none does.
#[test]
fn a_note_that_arrives_after_its_turn_was_cancelled_is_removed() {
    let mut turn = Turn::running().after([defer(Some("soon"), 60)]);
    turn.attempted();
    assert_eq!(turn.on(cancelled()), ["withdraw 1"]);

    let receipt = || Event::Delivered { claim: 1, messages: vec!["d1".to_owned()] };
    assert_eq!(turn.on(receipt()), no_effects());
    assert_eq!((turn.state(), turn.wakes_at()), ("settled", None));
    assert_eq!(turn.obligation.unfinished_messages().collect::<Vec<_>>(), ["d1"]);

    turn.on(Event::MessageGone { message: "d1".to_owned() });
    turn.on(receipt());
    assert_eq!(turn.obligation.unfinished_messages().count(), 0, "it is reported twice");
}

/// B3.
#[test]
fn a_note_that_is_cancelled_between_its_parts_is_removed() {
    let mut turn = Turn::running().after([defer(Some("a long note"), 60)]);
    turn.part_delivered();
    turn.on(cancelled());

    assert_eq!(turn.obligation.unfinished_messages().collect::<Vec<_>>(), ["p1"]);
}

/// K6. The person has read the beginning.
#[test]
fn a_note_whose_later_part_fails_was_shown() {
    let begun = || {
        let mut turn = Turn::ambient().after([Event::Begin, defer(Some("a long note"), 60)]);
        turn.policy.ladder = ladder();
        turn.part_delivered();
        turn
    };
    let (mut refused, mut held) = (begun(), begun());
    held.policy.on_unknown = OnUnknown::Hold;
    refused.refused();
    held.lost(false);

    for mut turn in [refused, held] {
        assert_eq!((turn.state(), turn.wakes_at(), turn.obligation.shown_deferrals()), ("deferred", Some(60), 1));
        assert_eq!(turn.ticks(60), ["run again"]);
        turn.on(Event::Begin);
        assert_eq!(turn.on(silent("chosen")), ["send 2 for p1: say silent"]);
    }
    let mut asked = begun();
    asked.ticks(60);
    asked.on(Event::Begin);
    asked.on(silent("chosen"));
    assert_eq!(asked.refused(), ["send 2 for p1: say silent"]);
}

/// The operator does not wait for the result of the answer, and what is in the chat stays there.
#[test]
fn an_answer_that_arrives_after_its_turn_was_given_up_is_not_removed() {
    let mut turn = Turn::deferred().after([reply("done")]);
    turn.attempted();
    turn.on(Event::Cancelled { by: CancelledBy::Operator("old".to_owned()) });

    turn.on(Event::Delivered { claim: 2, messages: vec!["m1".to_owned()] });
    assert!(!turn.obligation.unfinished_messages().any(|message| message == "m1"));
}

/// The person may have read the note.
#[test]
fn a_note_that_may_have_been_seen_is_a_debt_even_where_nothing_was_owed() {
    let policy = Policy { ladder: ladder(), ..policy() };
    let lost = || {
        let mut turn = Turn::ambient().after([Event::Begin, defer(Some("soon"), 60)]);
        turn.policy = policy.clone();
        assert_eq!(turn.lost(false), ["resend 1 labelled"]);
        turn
    };
    let asked = |mut turn: Turn| {
        turn.ticks(60);
        turn.after([Event::Begin])
    };

    let mut silenced = asked(lost());
    assert!(silenced.on(silent("chosen")).contains(&"send 2: say silent".to_owned()));
    let mut broken = asked(lost());
    assert!(broken.on(failed()).contains(&"send 2: say error".to_owned()));
    let mut refused = lost();
    refused.refused();
    assert_eq!(asked(refused).on(silent("chosen")), ["send 2: say silent"]);
}

#[test]
fn no_deferral_where_the_operator_wants_none() {
    let mut turn = Turn::running_with(Policy { max_deferrals: 0, ..policy() });
    assert_eq!(turn.ticks(SOFT), no_effects());
    assert_eq!(turn.wakes_at(), Some(HARD));

    let turn = Turn::running_with(Policy { soft_deadline: None, ..policy() });
    assert_eq!(turn.wakes_at(), Some(HARD));
}
