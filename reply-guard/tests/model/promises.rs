//! What must hold in every state of the model.

use rejoinder_guard::{
    CancelledBy, Cause, Event, Expectation, LateAnswer, ObligationState, OnUnknown, Settlement, SignalKind,
};
use stateright::Property;

use crate::{
    moment::{Moment, Row, Run, Status},
    world::World,
};

/// Every property that is checked.
pub(crate) fn all() -> Vec<Property<World>> {
    vec![
        Property::always("never two", never_two),
        Property::always("never none at rest", never_none_at_rest),
        Property::always("settled means seen", settled_means_seen),
        Property::always("a dead letter has an external cause", dead_letters_are_the_platforms),
        Property::always("every debt is paid or a dead letter", debts_are_paid),
        Property::always("no answer is dropped silently", no_answer_is_dropped),
        Property::always("a draft leaves no copy without a label", drafts_leave_no_copy),
        Property::always("a waiting turn is not given up", waiting_ends_no_turn),
        Property::always("an answer that stops in the middle says so", no_answer_stops_silently),
        Property::always("every run ends", every_run_ends),
        Property::always("nothing follows a cancelled answer", cancelled_is_cancelled),
        Property::always("a deferral of a cancelled turn is removed", cancelled_deferrals_are_removed),
        Property::always("a question stays in the chat", questions_stay),
        Property::always("no question is asked in vain", no_question_is_asked_in_vain),
        Property::always("the wake time is never in the past", wakes_are_served),
        Property::always("nothing begins while the turn is held", nothing_begins_while_held),
        Property::always("merged turns end together", merged_turns_end_together),
        Property::always("what is given up is said", given_up_is_said),
        Property::always("an approval is open while its turn waits for it", approvals_are_waited_for),
        Property::always("a run is suspended while its turn is", suspended_runs_wait),
        Property::always("the time of a run stands still until it has its permit", time_stands_still),
    ]
}

/// At most one signal is seen; twice only where the platform does not recognise a resend, and then as `on_unknown` says.
/// An answer may follow a fallback if `late_answer` is `Deliver`, or when the operator has it sent again.
fn never_two(world: &World, moment: &Moment) -> bool {
    let seen = |fallback: bool| {
        moment.rows.iter().filter(move |row| row.is_final() && row.is_seen() && row.fallback.is_some() == fallback)
    };
    // Of a cut answer only a part was seen: the signal is what comes after it.
    let was_cut = |row: &&Row| row.status == Status::Dead && row.arrived > 0;
    // What was given up may have been seen.
    let is_here = |row: &&Row| !row.redirected && !row.is_farewell && !was_cut(row);
    let (fallbacks, answers) = (seen(true).filter(is_here).count(), seen(false).filter(is_here).count());
    let was_operated = moment.operations_left < world.operations;
    let may_follow = world.policy.late_answer == LateAnswer::Deliver || was_operated;
    let copies = |row: &Row| match world.policy.on_unknown {
        // The one copy has a label if a draft may be beside it.
        _ if world.idempotent => row.seen.0 + row.seen.1 == 1,
        OnUnknown::Label => row.seen.0 <= 1,
        OnUnknown::Hold if was_operated => row.seen.0 <= 1,
        OnUnknown::Hold => row.seen.0 + row.seen.1 == 1,
        OnUnknown::Resend => row.seen.1 == 0,
    };
    moment.rows.iter().filter(|row| row.is_farewell && !row.redirected && row.is_seen()).count() <= 1
        && fallbacks <= 1
        && answers <= 1
        && (may_follow || fallbacks + answers <= 1)
        && seen(true).chain(seen(false)).all(copies)
}

/// A draft that nothing replaced is followed by an answer that is labelled as a possible copy.
fn drafts_leave_no_copy(world: &World, moment: &Moment) -> bool {
    // A question is no copy of the answer.
    let is_deferral_left = |row: &Row| !row.is_final() && !row.is_draft() && !row.asks && row.status == Status::Dead;
    let is_orphan = moment.rows.iter().any(|row| (row.is_draft() || is_deferral_left(row)) && row.is_seen());
    let is_beside = |row: &Row| !row.in_place || moment.obligation.has_lost_message();
    let unlabelled = |row: &Row| row.is_final() && row.kind == SignalKind::Reply && is_beside(row) && row.seen.0 > 0;
    let may_be = world.policy.on_unknown != OnUnknown::Label && !world.idempotent;
    let was_cut = moment.rows.iter().any(|row| row.arrived > 0);
    !is_orphan || may_be || was_cut || !moment.rows.iter().any(unlabelled)
}

/// A turn does not time out before any run has begun.
fn waiting_ends_no_turn(_: &World, moment: &Moment) -> bool {
    let is_called_off = |state: &ObligationState| matches!(state, ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Turn(by) }) if by == "the clock");
    moment.has_run
        || !(moment.rows.iter().any(|row| row.fallback == Some(Cause::Timeout))
            || is_called_off(moment.obligation.state()))
}

/// A signal whose later parts are missing never settles the turn.
fn no_answer_stops_silently(_: &World, moment: &Moment) -> bool {
    let is_cut = |row: &Row| row.is_final() && row.status == Status::Delivered && row.parts_left > 0;
    !(matches!(moment.obligation.state(), ObligationState::Settled(Settlement::Signal { .. }))
        && moment.rows.iter().any(is_cut))
}

/// At rest, when nothing has to happen any more, nothing is owed.
fn never_none_at_rest(world: &World, moment: &Moment) -> bool {
    moment.obligation.state().is_final() || !world.is_at_rest(moment)
}

fn every_run_ends(world: &World, moment: &Moment) -> bool {
    !matches!(moment.run, Run::Going | Run::Suspended | Run::Resuming) || !world.is_at_rest(moment)
}

/// No part of an answer is sent after it was cancelled. A draft may be: to find it and delete it.
fn cancelled_is_cancelled(_: &World, moment: &Moment) -> bool {
    let is_cancelled = matches!(moment.obligation.state(), ObligationState::Settled(Settlement::Cancelled { .. }));
    !(is_cancelled && moment.rows.iter().any(|row| !row.is_draft() && row.status == Status::Waiting))
}

/// What a cancelled turn has promised does not stay in the chat, once the platform has said which message it is.
fn cancelled_deferrals_are_removed(_: &World, moment: &Moment) -> bool {
    let is_cancelled = matches!(moment.obligation.state(), ObligationState::Settled(Settlement::Cancelled { .. }));
    let latest = moment.rows.iter().rfind(|row| !row.is_draft());
    let is_promise = |row: &Row| row.kind == SignalKind::Deferral && !row.asks;
    let is_shown = latest.is_some_and(|row| is_promise(row) && row.status == Status::Delivered);
    !(is_cancelled && is_shown) || moment.obligation.unfinished_messages().next().is_some()
}

/// No signal takes the place of a question for whose answer a run waits.
fn questions_stay(_: &World, moment: &Moment) -> bool {
    !moment.rows.iter().any(|row| row.replaces_question)
}

/// No question is sent, or sent again, for whose answer nothing waits any more.
fn no_question_is_asked_in_vain(_: &World, moment: &Moment) -> bool {
    moment.obligation.decide_by().is_some() || !moment.rows.iter().any(|row| row.asks && row.status == Status::Waiting)
}

/// A turn that the operator gives up ends without a word only if nothing was owed, or that was chosen.
fn given_up_is_said(world: &World, moment: &Moment) -> bool {
    let is_silent = matches!(
        moment.obligation.state(),
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Operator(_) })
    );
    !is_silent || moment.is_silenced || world.owed == Expectation::Nothing
}

fn settled_means_seen(world: &World, moment: &Moment) -> bool {
    match moment.obligation.state() {
        ObligationState::Settled(Settlement::Signal { .. }) => {
            moment.rows.iter().any(|row| row.is_final() && row.is_seen())
        }
        ObligationState::Settled(Settlement::Silence { .. }) => {
            world.owed == Expectation::Nothing && moment.obligation.merged_turns().is_empty()
        }
        _ => true,
    }
}

/// With a ladder and without mishaps, no turn becomes a dead letter.
fn dead_letters_are_the_platforms(world: &World, moment: &Moment) -> bool {
    let untroubled = moment.mishaps_left == world.mishaps;
    let is_dead = matches!(moment.obligation.state(), ObligationState::Undeliverable { .. });
    !(untroubled && is_dead && world.owed == Expectation::Answer)
}

/// What the person saw of a deferral is a debt, also where the platform did not say so.
fn debts_are_paid(world: &World, moment: &Moment) -> bool {
    let is_deferral = |row: &Row| row.kind == SignalKind::Deferral && row.is_seen();
    let deferred = moment.rows.iter().any(is_deferral);
    let paid = moment.rows.iter().any(|row| row.is_final() && row.is_seen());
    let ended = matches!(
        moment.obligation.state(),
        ObligationState::Undeliverable { .. } | ObligationState::Settled(Settlement::Cancelled { .. })
    );
    !deferred || paid || ended || !world.is_at_rest(moment)
}

fn no_answer_is_dropped(world: &World, moment: &Moment) -> bool {
    moment.answers_handled >= moment.answers || !world.is_at_rest(moment)
}

fn nothing_begins_while_held(_: &World, moment: &Moment) -> bool {
    !moment.began_while_held
}

/// What is merged waits only while the turn that answers for it is open, and counts as answered only if that one was.
fn merged_turns_end_together(_: &World, moment: &Moment) -> bool {
    let (Some(second), first) = (&moment.second, moment.obligation.state()) else { return true };
    match second.state() {
        ObligationState::Merged { .. } => !first.is_final(),
        ObligationState::Settled(Settlement::Merged { .. }) => {
            matches!(first, ObligationState::Settled(Settlement::Signal { .. } | Settlement::Silence { .. }))
        }
        _ => true,
    }
}

/// What somebody decides is told to the agent; and a turn waits for nothing that nobody can decide, and does not run meanwhile.
fn approvals_are_waited_for(_: &World, moment: &Moment) -> bool {
    let (waits, is_suspended) = (moment.obligation.decide_by().is_some(), moment.obligation.is_suspended());
    let runs = moment.obligation.is_waiting() || (moment.obligation.is_running() && !is_suspended);
    moment.is_approval_open == waits && !(waits && runs)
}

/// A run waits for a decision exactly as long as the turn does. One that is told to stop does so by itself.
fn suspended_runs_wait(_: &World, moment: &Moment) -> bool {
    moment.deciding.is_some() || (moment.run == Run::Suspended) == moment.obligation.is_suspended()
}

/// The time of a run goes on with the run, and not before.
fn time_stands_still(_: &World, moment: &Moment) -> bool {
    moment.deciding.is_some() || (moment.run == Run::Resuming) == moment.obligation.is_resuming()
}

fn wakes_are_served(world: &World, moment: &Moment) -> bool {
    let Some(at) = moment.obligation.wake_at() else { return true };
    let mut ticked = moment.obligation.clone();
    let now = moment.now.max(at);
    let _ = ticked.on(Event::Tick { ran: None }, &world.policy, now);
    ticked.wake_at().is_none_or(|next| next > now)
}
