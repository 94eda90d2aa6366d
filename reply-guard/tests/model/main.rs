//! An exhaustive check of the promise: every order of what an agent, a clock, a person, a crash and a platform
//! (which delivers, refuses, loses and repeats) can do, within small bounds.

mod effects;
mod moment;
mod promises;
mod world;

use std::time::Duration;

use rejoinder_guard::{Cause, Expectation, Ladder, LateAnswer, OnUnknown, Policy, Rung};
use stateright::{Checker, HasDiscoveries, Model};

use world::{Bug, World};

fn ladder(rungs: &[Rung]) -> Ladder {
    Cause::ALL.into_iter().fold(Ladder::empty(), |ladder, cause| ladder.with(cause, rungs.to_vec()))
}

fn say() -> Rung {
    Rung::Say("sorry".to_owned())
}

fn react() -> Rung {
    Rung::React("😕".to_owned())
}

fn handoff() -> Rung {
    Rung::Handoff("orchestrator".to_owned())
}

fn world() -> World {
    World {
        owed: Expectation::Answer,
        policy: Policy {
            soft_deadline: Some(Duration::from_secs(10)),
            hard_deadline: Duration::from_secs(40),
            max_runs: 2,
            max_deferrals: 1,
            approval_wait: Duration::from_secs(90),
            max_approvals: 1,
            late_window: Duration::ZERO,
            ladder: ladder(&[say()]),
            ..Policy::default()
        },
        idempotent: true,
        mishaps: 2,
        oddities: 1,
        operations: 0,
        drafts: false,
        parts: 1,
        deferrals: 1,
        merges: false,
        approvals: false,
        suspends: false,
        questions: false,
        postpones: false,
        bug: None,
    }
}

/// A platform that cannot tell a resend from a new message.
fn ambiguous(on_unknown: OnUnknown) -> World {
    let world = world();
    World { idempotent: false, policy: Policy { on_unknown, ..world.policy }, ..world }
}

fn laddered(rungs: &[Rung]) -> World {
    let world = world();
    World { policy: Policy { ladder: ladder(rungs), ..world.policy }, ..world }
}

fn holds(world: World) {
    let checker = world.checker().threads(2).spawn_dfs().join();
    println!("{} states, at most {} steps", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

/// The checker finds an order of events in which `bug` breaks the property.
fn breaks(property: &'static str, bug: Bug, world: World) {
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = World { bug: Some(bug), ..world }.checker().finish_when(found).spawn_bfs().join();
    println!("{bug:?}: {:?}", checker.assert_any_discovery(property).into_actions());
}

/// A15, D1, G2, G5.
#[test]
fn where_a_resend_cannot_show_twice() {
    let world = || World { deferrals: 2, ..world() };
    holds(world());
    holds(World { mishaps: 3, oddities: 0, ..world() });
    holds(World { mishaps: 0, oddities: 3, ..world() });
}

/// D7.
#[test]
fn where_a_resend_could_show_twice() {
    holds(ambiguous(OnUnknown::Label));
    holds(ambiguous(OnUnknown::Hold));
    holds(ambiguous(OnUnknown::Resend));
}

#[test]
fn where_late_answers_are_delivered() {
    for world in [world(), ambiguous(OnUnknown::Label)] {
        holds(World { policy: Policy { late_answer: LateAnswer::Deliver, ..world.policy }, ..world });
    }
}

/// D3.
#[test]
fn where_a_run_goes_on_after_its_deadline() {
    let late = |late_answer, world: World| {
        let policy = Policy { late_answer, late_window: Duration::from_secs(30), ..world.policy };
        World { policy, oddities: 0, ..world }
    };
    for late_answer in [LateAnswer::Deliver, LateAnswer::Record] {
        holds(late(late_answer, world()));
        holds(late(late_answer, ambiguous(OnUnknown::Label)));
        holds(late(late_answer, laddered(&[handoff(), say()])));
        holds(World { oddities: 2, mishaps: 0, ..late(late_answer, world()) });
    }
}

/// A18.
#[test]
fn where_the_ladder_has_several_rungs() {
    holds(laddered(&[react(), say()]));
    holds(World { oddities: 0, ..laddered(&[handoff(), say()]) });
    holds(World { mishaps: 0, oddities: 2, ..laddered(&[handoff(), say()]) });
}

/// D7, B13.
#[test]
fn where_drafts_are_messages() {
    holds(World { drafts: true, ..world() });
    holds(World { drafts: true, ..ambiguous(OnUnknown::Label) });
    holds(World { drafts: true, oddities: 0, ..laddered(&[handoff(), say()]) });
}

/// K6.
#[test]
fn where_answers_take_several_messages() {
    holds(World { parts: 2, ..world() });
    holds(World { parts: 2, ..ambiguous(OnUnknown::Label) });
    holds(World { parts: 2, ..ambiguous(OnUnknown::Hold) });
}

/// D11.
#[test]
fn where_deferrals_are_repeated() {
    let world = World { deferrals: 3, ..world() };
    holds(World { policy: Policy { max_deferrals: 2, max_runs: 3, ..world.policy }, oddities: 0, ..world });
}

/// A15, G2. The gateway defers by itself, and then its agent.
#[test]
fn where_both_defer() {
    let both = |world: World| World { deferrals: 2, mishaps: 1, oddities: 0, ..world };
    holds(both(ambiguous(OnUnknown::Label)));
    holds(both(ambiguous(OnUnknown::Hold)));
    holds(both(World { drafts: true, ..world() }));
    holds(both(World { drafts: true, ..ambiguous(OnUnknown::Label) }));
    holds(both(World { owed: Expectation::Nothing, ..ambiguous(OnUnknown::Label) }));
    holds(both(laddered(&[handoff(), say()])));
}

/// A15, G2.
#[test]
fn where_both_defer_and_nothing_fails() {
    let both = |world: World| World { deferrals: 2, mishaps: 0, ..world };
    let late = Policy { late_window: Duration::from_secs(30), late_answer: LateAnswer::Deliver, ..world().policy };
    holds(both(World { policy: late, ..world() }));
    holds(both(World { parts: 2, ..world() }));
    holds(both(World { operations: 2, oddities: 0, ..world() }));
    holds(both(World { merges: true, ..world() }));
    holds(both(World { approvals: true, ..world() }));
}

/// B5.
#[test]
fn where_nothing_is_owed() {
    holds(World { owed: Expectation::Nothing, ..laddered(&[]) });
    holds(World { owed: Expectation::Nothing, mishaps: 1, ..ambiguous(OnUnknown::Label) });
}

fn operated(world: World) -> World {
    World { operations: 2, oddities: 0, ..world }
}

#[test]
fn where_the_operator_steps_in() {
    holds(operated(world()));
    holds(operated(ambiguous(OnUnknown::Label)));
    holds(operated(ambiguous(OnUnknown::Hold)));
}

#[test]
#[ignore = "takes minutes: `.ci/weekly` runs it"]
fn where_the_operator_steps_in_between() {
    holds(operated(ambiguous(OnUnknown::Resend)));
    holds(operated(laddered(&[handoff(), say()])));
    holds(operated(World { parts: 2, ..world() }));
    holds(World { oddities: 1, mishaps: 1, ..operated(World { drafts: true, ..world() }) });
}

/// B2, G3.
#[test]
fn where_a_second_message_is_merged() {
    let merging = |world: World| World { merges: true, ..world };
    holds(merging(World { mishaps: 1, ..world() }));
    holds(merging(World { mishaps: 0, oddities: 2, ..world() }));
    holds(merging(World { mishaps: 1, ..ambiguous(OnUnknown::Label) }));
    holds(merging(World { owed: Expectation::Nothing, mishaps: 1, ..laddered(&[]) }));
    holds(merging(World { operations: 2, oddities: 0, mishaps: 1, ..world() }));
}

/// G3.
#[test]
fn where_the_agent_asks_for_approval() {
    let asking = |world: World| World { approvals: true, ..world };
    holds(asking(World { mishaps: 1, ..world() }));
    holds(asking(World { oddities: 0, ..world() }));
    holds(asking(World { mishaps: 1, ..ambiguous(OnUnknown::Label) }));
    holds(asking(World { mishaps: 1, ..ambiguous(OnUnknown::Hold) }));
    holds(asking(World { mishaps: 0, oddities: 0, ..laddered(&[handoff(), say()]) }));
    holds(asking(World { owed: Expectation::Nothing, mishaps: 1, ..laddered(&[]) }));
    holds(asking(World { operations: 1, oddities: 0, mishaps: 1, ..world() }));
    holds(asking(World { merges: true, mishaps: 0, ..world() }));
    holds(asking(World { drafts: true, mishaps: 1, oddities: 0, ..world() }));
}

/// A second run may wait for an approval while the first is still to be stored.
fn suspended_twice() -> World {
    let policy = Policy { max_approvals: 2, ..world().policy };
    World { policy, merges: true, suspends: true, oddities: 2, mishaps: 0, ..world() }
}

fn suspending(world: World) -> World {
    World { suspends: true, ..world }
}

/// G3.
#[test]
fn where_a_run_waits_for_an_approval() {
    let suspending = |world: World| suspending(World { oddities: 0, ..world });
    holds(suspending(World { mishaps: 1, ..world() }));
    holds(suspending(World { mishaps: 1, ..ambiguous(OnUnknown::Label) }));
    holds(suspending(World { mishaps: 0, ..laddered(&[handoff(), say()]) }));
    holds(suspending(World { owed: Expectation::Nothing, mishaps: 1, ..laddered(&[]) }));
    holds(suspending(World { operations: 1, mishaps: 0, ..world() }));
    holds(suspending(World { merges: true, mishaps: 0, ..world() }));
    let late = Policy { late_window: Duration::from_secs(30), ..world().policy };
    holds(suspending(World { policy: late, mishaps: 0, ..world() }));
    holds(World { suspends: true, mishaps: 0, ..world() });
}

/// G3.
#[test]
#[ignore = "takes minutes: `.ci/weekly` runs it"]
fn where_a_run_waits_for_an_approval_and_more_happens() {
    holds(suspending(World { mishaps: 1, ..world() }));
    holds(suspending(World { oddities: 0, ..world() }));
    holds(suspending(World { mishaps: 1, ..ambiguous(OnUnknown::Hold) }));
    holds(suspending(World { operations: 1, oddities: 0, mishaps: 1, ..world() }));
    holds(suspending(World { merges: true, mishaps: 0, ..world() }));
    holds(suspending(World { drafts: true, mishaps: 1, oddities: 0, ..world() }));
    let twice = Policy { max_approvals: 2, ..world().policy };
    holds(suspending(World { approvals: true, policy: twice, mishaps: 1, oddities: 0, ..world() }));
    let late = Policy { late_window: Duration::from_secs(30), ..world().policy };
    holds(suspending(World { policy: late, mishaps: 1, ..world() }));
    holds(suspended_twice());
}

/// G3. A question to the person, in place of an approval.
#[test]
fn where_a_run_asks_the_person() {
    let asking = |world: World| World { questions: true, oddities: 0, ..suspending(world) };
    holds(asking(World { mishaps: 1, ..world() }));
    holds(asking(World { mishaps: 1, ..ambiguous(OnUnknown::Label) }));
    holds(asking(World { mishaps: 0, drafts: true, ..world() }));
    holds(asking(World { mishaps: 0, oddities: 1, ..world() }));
}

/// G3.
#[test]
fn a_question_that_is_sent_although_nobody_needs_an_answer_is_found() {
    let world = World { questions: true, mishaps: 0, ..suspending(world()) };
    breaks("no question is asked in vain", Bug::SkipsWithdraw, world);
}

/// G3.
#[test]
fn a_question_in_whose_place_the_answer_comes_is_found() {
    let world = World { questions: true, mishaps: 0, ..suspending(world()) };
    breaks("a question stays in the chat", Bug::AsksForApproval, world);
}

/// G3.
#[test]
fn a_suspended_run_that_is_not_told_is_found() {
    breaks("a run is suspended while its turn is", Bug::ForgetsTheSuspended, suspending(world()));
}

/// G3.
#[test]
fn a_suspended_run_that_is_forgotten_in_a_crash_is_found() {
    breaks("a run is suspended while its turn is", Bug::ForgetsTheSuspendedInACrash, suspending(world()));
}

/// G3.
#[test]
fn a_run_that_goes_on_in_place_of_another_is_found() {
    breaks("the time of a run stands still until it has its permit", Bug::ResumesAnyRun, suspended_twice());
}

/// G3.
#[test]
fn an_approval_that_nobody_decides_and_nobody_ends_is_found() {
    breaks("never none at rest", Bug::ForgetsApprovals, World { approvals: true, ..world() });
}

/// N2.
#[test]
fn an_approval_that_can_be_decided_after_its_turn_is_found() {
    let world = World { approvals: true, ..world() };
    breaks("an approval is open while its turn waits for it", Bug::KeepsDroppedApprovals, world);
}

/// D4.
#[test]
fn where_somebody_is_asked_about_a_late_turn() {
    let postponing = |world: World| World { postpones: true, ..world };
    holds(postponing(World { mishaps: 1, ..world() }));
    holds(postponing(World { mishaps: 1, oddities: 0, operations: 1, ..world() }));
    holds(postponing(World { merges: true, mishaps: 1, oddities: 0, ..world() }));
    holds(postponing(World { mishaps: 1, ..ambiguous(OnUnknown::Label) }));
    holds(postponing(World { owed: Expectation::Nothing, mishaps: 1, ..laddered(&[]) }));
}

/// D4.
#[test]
fn a_postponed_turn_that_nobody_decides_about_is_found() {
    breaks("never none at rest", Bug::ForgetsThePostponed, World { postpones: true, ..world() });
}

/// B2.
#[test]
fn a_merged_turn_that_is_forgotten_is_found() {
    breaks("merged turns end together", Bug::ForgetsTheMerged, World { merges: true, ..world() });
}

/// The platform recognises a delivery that is sent again, and not a copy of it.
#[test]
fn a_dead_letter_that_is_sent_again_as_a_new_message_is_found() {
    breaks("never two", Bug::RetriesAsNew, World { operations: 1, oddities: 0, ..laddered(&[]) });
}

#[test]
fn a_hold_that_is_forgotten_is_found() {
    let world = World { operations: 1, mishaps: 0, ..world() };
    breaks("nothing begins while the turn is held", Bug::ForgetsTheHold, world);
}

#[test]
fn a_turn_that_is_given_up_in_silence_is_found() {
    let world = World { operations: 1, mishaps: 0, oddities: 0, ..world() };
    breaks("what is given up is said", Bug::GivesUpInSilence, world);
}

#[test]
fn a_claim_that_is_sent_after_it_was_taken_back_is_found() {
    breaks("never two", Bug::SkipsWithdraw, World { mishaps: 0, ..world() });
}

#[test]
fn a_decision_without_compare_and_swap_is_found() {
    breaks("never two", Bug::SkipsCompareAndSwap, World { mishaps: 0, ..world() });
}

/// A3.
#[test]
fn a_signal_that_counts_when_it_is_queued_is_found() {
    breaks("settled means seen", Bug::SettlesOnAdmission, world());
}

/// D7.
#[test]
fn an_attempt_that_is_forgotten_in_a_crash_is_found() {
    breaks("never two", Bug::ForgetsAttempts, ambiguous(OnUnknown::Label));
}

/// D1.
#[test]
fn a_claim_that_is_stored_without_its_deliveries_is_found() {
    breaks("never none at rest", Bug::SplitsTheTransaction, world());
}

/// G2.
#[test]
fn a_stuck_run_without_a_deadline_is_found() {
    breaks("never none at rest", Bug::ForgetsTheClock, world());
}

/// D7.
#[test]
fn a_draft_without_a_row_is_found() {
    breaks(
        "a draft leaves no copy without a label",
        Bug::ForgetsDrafts,
        World { drafts: true, oddities: 0, ..ambiguous(OnUnknown::Label) },
    );
}

/// B1, D3.
#[test]
fn a_turn_that_is_given_up_while_it_waits_is_found() {
    breaks("a waiting turn is not given up", Bug::TimesOutWaitingTurns, World { mishaps: 0, ..world() });
}

/// K6.
#[test]
fn an_answer_that_stops_in_the_middle_without_a_word_is_found() {
    breaks("an answer that stops in the middle says so", Bug::SettlesOnFirstPart, World { parts: 2, ..world() });
}

#[test]
fn a_late_run_that_nobody_ends_is_found() {
    let world = world();
    let policy = Policy { late_window: Duration::from_secs(30), ..world.policy };
    breaks("every run ends", Bug::ForgetsLateRuns, World { policy, ..world });
}

#[test]
fn a_debt_that_nobody_collects_is_found() {
    breaks("every debt is paid or a dead letter", Bug::ForgetsDebts, world());
}

/// A18.
#[test]
fn a_refusal_that_counts_as_a_receipt_is_found() {
    breaks("settled means seen", Bug::ReportsRefusalsAsReceipts, world());
}
