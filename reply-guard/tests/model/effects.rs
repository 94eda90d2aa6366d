//! The effects of a decision in the world, and of what happens to its deliveries.

use rejoinder_guard::{Body, Cause, Decision, Draft, Effect, End, Event, OnUnknown, SignalKind, Via};

use crate::{
    moment::{Moment, Row, Run, Status},
    world::{Bug, QUESTION, World},
};

impl World {
    #[expect(clippy::too_many_lines, reason = "a flat list of effects")]
    pub(crate) fn carry_out(&self, moment: &mut Moment, decision: Decision) {
        for effect in decision.effects {
            match effect {
                Effect::Send(cleared) => {
                    let signal = cleared.get();
                    if matches!(signal.body, Body::Reply(_) | Body::React(_)) && rung_of(&signal.via).is_none() {
                        moment.answers_handled += 1;
                    }
                    let is_reply = matches!(signal.body, Body::Reply(_));
                    let is_wait = matches!(signal.body, Body::Wait(_) | Body::Question { .. });
                    moment.rows.push(Row {
                        claim: signal.claim,
                        kind: signal.kind(),
                        fallback: rung_of(&signal.via),
                        in_place: !signal.replaces.is_empty(),
                        asks: self.questions && is_wait,
                        replaces_question: signal.replaces.iter().any(|message| message == QUESTION),
                        parts_left: if is_reply { self.parts - 1 } else { 0 },
                        arrived: 0,
                        status: Status::Waiting,
                        withdrawn: false,
                        labelled: false,
                        held: moment.obligation.is_held() && !self.has(Bug::ForgetsTheHold),
                        is_farewell: matches!(signal.via, Via::GivenUp { .. }),
                        redirected: false,
                        seen: (0, 0),
                    });
                    if self.has(Bug::SettlesOnAdmission) {
                        let messages = vec!["queued".to_owned()];
                        self.decide(moment, Event::Delivered { claim: moment.obligation.claims(), messages });
                    }
                }
                Effect::Draft(_) => moment.rows.push(Row {
                    claim: Draft::CLAIM,
                    kind: SignalKind::Reply,
                    fallback: None,
                    in_place: false,
                    asks: false,
                    replaces_question: false,
                    parts_left: 0,
                    arrived: 0,
                    status: Status::Waiting,
                    withdrawn: false,
                    labelled: false,
                    held: moment.obligation.is_held(),
                    is_farewell: false,
                    redirected: false,
                    seen: (0, 0),
                }),
                Effect::Withdraw { claim } if !self.has(Bug::SkipsWithdraw) => {
                    for row in of_claim(moment, claim) {
                        row.withdrawn = true;
                        if row.status != Status::InFlight {
                            row.status = Status::Dead;
                        }
                    }
                }
                Effect::Resend { claim, labelled } => {
                    for row in of_claim(moment, claim).filter(|row| !row.withdrawn) {
                        row.status = Status::Waiting;
                        row.labelled = labelled;
                    }
                }
                Effect::SendAgain { claim, .. } if self.has(Bug::RetriesAsNew) => {
                    let row = *of_claim(moment, claim).next().expect("there is a delivery to retry");
                    moment.rows.push(Row { status: Status::Waiting, withdrawn: false, seen: (0, 0), ..row });
                }
                Effect::SendAgain { claim, labelled } => {
                    for row in of_claim(moment, claim) {
                        (row.status, row.withdrawn, row.held) = (Status::Waiting, false, false);
                        row.labelled |= labelled;
                    }
                }
                Effect::Hold if self.has(Bug::ForgetsTheHold) => {}
                Effect::Hold => moment.rows.iter_mut().for_each(|row| row.held = true),
                Effect::Release => moment.rows.iter_mut().for_each(|row| row.held = false),
                Effect::DeadLetter { .. } => {
                    let ended = moment.rows.iter_mut().filter(|row| !row.is_draft() && row.status != Status::Delivered);
                    ended.for_each(|row| row.status = Status::Dead);
                }
                Effect::Run { agent, attempt } => {
                    (moment.run, moment.has_run) = (Run::Going, true);
                    moment.earlier = moment.latest.replace((agent, attempt)).filter(|_| self.suspends);
                }
                Effect::RunContinues if moment.run != Run::Suspended || self.has(Bug::ForgetsTheSuspended) => {}
                Effect::RunContinues => moment.run = Run::Resuming,
                Effect::StopRun => moment.run = Run::Stopped,
                Effect::AskApproval { until, .. } => moment.is_approval_open = until.is_some(),
                Effect::ApprovalExpired => moment.is_approval_open = false,
                Effect::ApprovalDropped => moment.is_approval_open = self.has(Bug::KeepsDroppedApprovals),
                Effect::Suppress(suppressed) if suppressed.what == End::Outcome => moment.answers_handled += 1,
                Effect::ToMerged { event, .. } if !self.has(Bug::ForgetsTheMerged) => {
                    if let Some(second) = &mut moment.second {
                        let _ = second.on(event, &self.policy, moment.now);
                    }
                }
                Effect::ToMerged { .. }
                | Effect::RunAgain
                | Effect::RunGoesOn
                | Effect::Suppress(_)
                | Effect::Withdraw { .. } => {}
            }
        }
    }

    /// Addresses the first part of a row: it edits the draft, or is labelled if the draft was lost.
    pub(crate) fn address(&self, moment: &mut Moment, index: usize) {
        let (message, is_lost) = (moment.obligation.draft_message().is_some(), moment.obligation.has_lost_message());
        let row = &mut moment.rows[index];
        if row.is_draft() || row.kind == SignalKind::Reaction || row.arrived > 0 {
            return;
        }
        row.in_place |= message;
        row.labelled |= is_lost && row.is_final() && self.policy.on_unknown == OnUnknown::Label;
    }

    /// The platform performs the row's delivery.
    pub(crate) fn execute(&self, row: &mut Row) {
        // An edit may be repeated any number of times.
        let is_again = row.is_seen() && row.arrived == 0;
        if is_again && (self.idempotent || row.in_place) {
            return;
        }
        if row.arrived > 0 {
            // Only the first part is counted.
            return;
        }
        if row.labelled {
            row.seen.1 += 1;
        } else {
            row.seen.0 += 1;
        }
    }

    pub(crate) fn crash(&self, moment: &mut Moment, executed: bool) {
        let stored = serde_json::to_string(&moment.obligation).expect("an obligation is plain data");
        moment.obligation = serde_json::from_str(&stored).expect("a stored obligation can be read");
        moment.run = Run::None;
        if self.has(Bug::ForgetsDrafts) {
            moment.rows.iter_mut().filter(|row| row.is_draft()).for_each(|row| {
                if executed && row.status == Status::InFlight {
                    self.execute(row);
                }
                row.status = Status::Dead;
            });
            self.decide(moment, Event::Refused { claim: Draft::CLAIM, reason: "forgotten".to_owned() });
        }
        moment.deciding = None;
        for row in &mut moment.rows {
            if row.status == Status::InFlight {
                if executed {
                    self.execute(row);
                }
                row.status = if self.has(Bug::ForgetsAttempts) { Status::Waiting } else { Status::Unknown };
            } else if row.status == Status::Waiting && self.has(Bug::SplitsTheTransaction) {
                row.status = Status::Dead;
            }
        }
        if !(moment.obligation.is_suspended() && self.has(Bug::ForgetsTheSuspendedInACrash)) {
            self.decide(moment, Event::Recovered);
        }
    }
}

/// The cause of a fallback that the ladder sends itself; `None` for answers and handoffs.
const fn rung_of(via: &Via) -> Option<Cause> {
    match via {
        Via::Fallback { rung: rejoinder_guard::Rung::Handoff(_), .. } => None,
        Via::Fallback { cause, .. } => Some(*cause),
        _ => None,
    }
}

fn of_claim(moment: &mut Moment, claim: u32) -> impl Iterator<Item = &mut Row> {
    moment.rows.iter_mut().filter(move |row| row.claim == claim && row.status != Status::Delivered)
}
