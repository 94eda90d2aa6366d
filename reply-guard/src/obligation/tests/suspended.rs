//! A run that waits for an approval itself.

use super::*;

/// How long an approval is waited for.
const WAIT: i64 = 7 * 24 * 60 * 60;

fn suspend(action: &str) -> Event {
    Event::Suspended(request(action))
}

fn resumed(attempt: u32) -> Event {
    Event::RunResumed { agent: None, attempt }
}

fn taken_back(attempt: u32) -> Event {
    Event::TakenBack { agent: None, attempt }
}

fn ask_person() -> Event {
    let choices = Choices { options: vec!["Red".to_owned(), "Blue".to_owned()], free_text: false, expires: None };
    Event::Suspended(ApprovalRequest::question("Which?", choices))
}

/// The run asks ten seconds after it has begun, and the person is told.
fn suspended() -> Turn {
    let mut turn = Turn::running();
    turn.now = 10;
    let until = 10 + WAIT;
    assert_eq!(
        turn.on(suspend("pay")),
        [format!("ask approval of pay until {until}"), "send 1: wait for pay".to_owned()]
    );
    turn.shown_as("d1");
    turn
}

/// G3.
#[test]
fn its_deadline_stands_still() {
    let mut turn = suspended();
    assert!(turn.obligation.is_suspended() && turn.obligation.is_running() && !turn.obligation.is_put_off());
    assert_eq!(turn.ticks(HARD * 10), no_effects());
    turn.now = 5000;

    assert_eq!(turn.on(Event::Decided), ["run continues"]);
    assert_eq!(turn.on(Event::Decided), no_effects(), "once");
    assert_eq!(turn.ticks(9000), no_effects(), "it waits for its permit");
    assert_eq!(turn.on(resumed(1)), no_effects());
    assert_eq!(turn.wakes_at(), Some(9000 + HARD - 10));
    assert_eq!(turn.obligation.due(), Some(at(9000 + HARD - 10)));
    assert_eq!(turn.on(reply("paid")), ["send 2 for d1: paid"]);
}

#[test]
fn the_next_turn_does_not_wait_for_a_run_that_waits() {
    let mut turn = Turn::running();
    assert!(turn.obligation.holds_slot());

    turn.on(suspend("pay"));
    assert!(turn.obligation.is_running() && !turn.obligation.holds_slot());
    turn.on(Event::Decided);
    assert!(turn.obligation.is_resuming() && !turn.obligation.holds_slot(), "it waits for its permit");
}

/// A question to the person takes the place of the deferral, and stays in the chat: also as a part, and where it was a draft.
#[test]
fn no_answer_takes_the_place_of_a_question() {
    let until = WAIT;
    let mut turn = Turn::running();
    let asked = turn.on(ask_person());
    assert_eq!(asked, [format!("ask approval of Which? until {until}"), "send 1: ask Which? Red|Blue".to_owned()]);
    turn.on(Event::PartDelivered { claim: 1, messages: vec!["d1".to_owned()] });
    turn.on(Event::Delivered { claim: 1, messages: vec!["d1".to_owned(), "d2".to_owned()] });
    assert_eq!(turn.obligation.unfinished_messages().count(), 0);
    assert_eq!(turn.on(Event::Decided), ["run continues"]);
    turn.on(resumed(1));
    assert_eq!(turn.on(reply("painted")), ["send 2: painted"]);

    let mut drafting = Turn::running();
    drafting.on(Event::Draft { text: "I".to_owned() });
    drafting.on(Event::Delivered { claim: Draft::CLAIM, messages: vec!["m".to_owned()] });
    assert_eq!(drafting.on(ask_person())[1], "send 1 for m: ask Which? Red|Blue");
    drafting.on(Event::Delivered { claim: 1, messages: vec!["m".to_owned()] });
    drafting.on(Event::Decided);
    drafting.on(resumed(1));
    assert_eq!(drafting.on(reply("painted")), ["send 2: painted"]);
}

/// Nobody knows whether the question is in the chat: the answer is none of its copies, and has no label.
#[test]
fn an_answer_after_a_question_that_may_be_lost_has_no_label() {
    let choices = Choices { options: Vec::new(), free_text: true, expires: None };
    let mut turn = Turn::running();
    turn.on(Event::Suspended(ApprovalRequest::question("Which?", choices)));
    turn.on(Event::Attempted { claim: 1 });
    turn.on(Event::Lost { claim: 1, idempotent: false });

    assert!(!turn.obligation.has_lost_message());
    turn.on(Event::Decided);
    turn.on(resumed(1));
    assert_eq!(turn.on(reply("painted")), ["send 2: painted"]);
    assert!(!turn.obligation.has_lost_message());
}

/// What was to be stored of an earlier run comes late.
#[test]
fn only_its_own_permit_lets_its_time_go_on() {
    let mut turn = suspended();
    turn.on(Event::Decided);
    turn.on(Event::Superseded);
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
    turn.on(suspend("pay"));
    turn.on(Event::Decided);
    let of_another = Event::RunResumed { agent: Some("boss".to_owned()), attempt: 2 };

    for early in [resumed(1), of_another] {
        turn.on(early);
        assert!(turn.obligation.is_resuming());
    }
    turn.on(resumed(2));
    assert!(!turn.obligation.is_resuming());
}

/// G2, G3.
#[test]
fn the_turn_runs_again_with_the_decision_if_the_process_dies() {
    let mut turn = suspended();
    assert_eq!(turn.on(Event::Recovered), no_effects());
    assert!(!turn.obligation.is_running() && turn.obligation.is_put_off());

    assert_eq!(turn.on(Event::Decided), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["run 2"]);
}

#[test]
fn the_run_does_not_count_if_the_gateway_stops() {
    let mut turn = suspended();
    for attempt in 2..5 {
        assert_eq!(turn.on(Event::Interrupted), no_effects());
        turn.on(Event::Decided);
        assert_eq!(turn.on(Event::Begin), [format!("run {attempt}")]);
        turn.on(suspend("pay"));
    }
}

/// D13. It was told nothing of the decision.
#[test]
fn a_run_that_waits_for_its_permit_at_a_stop_is_left_out_once() {
    let mut turn = Turn::running_with(Policy { max_runs: 2, ..policy() });
    turn.on(Event::Recovered);
    turn.on(Event::Begin);
    turn.on(suspend("pay"));
    turn.on(Event::Decided);
    assert_eq!(turn.on(Event::Interrupted), ["run again"]);
    assert_eq!(turn.on(Event::Begin), ["run 3"]);

    turn.on(Event::Recovered);
    assert_ne!(turn.on(Event::Begin), ["run 4"], "two have crashed");
}

#[test]
fn it_may_leave_what_it_asked_for_behind() {
    let mut turn = suspended();
    assert_eq!(turn.on(Event::LeftSuspended), no_effects());
    assert_eq!(turn.on(Event::Decided), ["run again"]);

    let mut decided = suspended();
    decided.on(Event::Decided);
    assert_eq!(decided.on(Event::LeftSuspended), ["stop run", "run again"]);
    assert_eq!(decided.on(Event::Begin), ["run 2"]);
}

#[test]
fn it_may_take_back_what_it_asked_for() {
    let mut turn = suspended();
    turn.now = 5000;
    assert_eq!(turn.on(taken_back(1)), ["run continues", "approval dropped"]);
    assert_eq!(turn.on(Event::Decided), no_effects(), "nobody needs to decide it");
    assert_eq!(turn.on(resumed(1)), no_effects());
    assert_eq!(turn.on(reply("paid")), ["send 2 for d1: paid"]);

    let mut decided = suspended();
    decided.on(Event::Decided);
    assert_eq!(decided.on(taken_back(1)), no_effects());
    let mut gone = suspended();
    gone.on(Event::Recovered);
    assert_eq!(gone.on(taken_back(1)), no_effects(), "it has no run");
    gone.on(Event::Decided);
    gone.on(Event::Begin);
    gone.on(suspend("pay"));
    assert_eq!(gone.on(taken_back(1)), no_effects(), "another run asks");
    assert_eq!(gone.on(taken_back(2)), ["withdraw 2", "run continues", "approval dropped"]);
}

/// J1.
#[test]
fn a_question_that_needs_no_answer_is_not_sent_again() {
    let asked = || {
        let mut turn = Turn::running();
        turn.on(ask_person());
        turn.on(Event::Attempted { claim: 1 });
        assert_eq!(turn.on(taken_back(1)), ["run continues", "approval dropped"]);
        turn
    };
    for idempotent in [true, false] {
        let mut lost = asked();
        assert_eq!(lost.on(Event::Lost { claim: 1, idempotent }), ["withdraw 1"]);
        assert_eq!(lost.state(), "open");
        lost.on(resumed(1));
        assert_eq!(lost.on(reply("painted")), ["send 2: painted"]);
    }
    let mut resent = Turn::running();
    resent.on(ask_person());
    resent.on(Event::Attempted { claim: 1 });
    resent.on(Event::Lost { claim: 1, idempotent: true });
    assert_eq!(resent.on(taken_back(1)), ["withdraw 1", "run continues", "approval dropped"]);

    let mut not_sent = asked();
    assert_eq!(not_sent.on(Event::NotSent { claim: 1 }), ["withdraw 1"]);
    not_sent.on(resumed(1));
    assert_eq!(not_sent.on(reply("painted")), ["send 2: painted"]);

    let mut begun = asked();
    let part = Event::PartDelivered { claim: 1, messages: vec!["d1".to_owned()] };
    assert_eq!(begun.on(part), ["withdraw 1"], "its rest is not sent");
    assert_eq!((begun.state(), begun.obligation.unfinished_messages().count()), ("deferred", 0));
}

#[test]
fn what_nobody_decides_in_time_lets_it_go_on() {
    let mut turn = suspended();

    assert_eq!(turn.ticks(10 + WAIT), ["approval expired", "run continues"]);
    assert!(turn.obligation.is_running() && !turn.obligation.is_suspended());
}

/// B3.
#[test]
fn a_cancel_stops_it_and_closes_the_approval() {
    let mut turn = suspended();

    assert_eq!(turn.on(cancelled()), ["stop run", "approval dropped"]);
    assert_eq!((turn.state(), turn.on(Event::Decided)), ("settled", no_effects()));
}

#[test]
fn an_answer_that_comes_meanwhile_closes_the_approval() {
    let mut turn = suspended();
    assert_eq!(turn.on(sent("never mind")), ["send 2 for d1: never mind", "run continues", "approval dropped"]);

    let mut ended = suspended();
    assert_eq!(ended.on(reply("never mind")), ["send 2 for d1: never mind", "approval dropped"]);
}

/// A18.
#[test]
fn a_run_that_fails_meanwhile_closes_the_approval() {
    let mut turn = suspended();

    assert_eq!(turn.on(failed()), ["send 2 for d1: say error", "approval dropped"]);
}

#[test]
fn a_rule_decides_without_a_pause() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(Event::SuspendedByRule(request("pay"))), ["a rule decided pay"]);
    assert_eq!((turn.obligation.is_suspended(), turn.wakes_at()), (false, Some(SOFT)));
    assert_eq!(turn.on(reply("paid")), ["send 1: paid"]);
}

#[test]
fn a_run_that_asks_too_often_is_not_suspended() {
    let mut turn = Turn::running();
    for _ in 0..policy().max_approvals {
        turn.on(suspend("pay"));
        turn.on(Event::Decided);
        turn.on(resumed(1));
    }

    assert_eq!(turn.on(suspend("pay")), no_effects());
    assert_eq!(turn.on(Event::SuspendedByRule(request("pay"))), no_effects());
    assert!(!turn.obligation.is_suspended());
}
