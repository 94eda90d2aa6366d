//! Explains a turn in sentences: what was owed, what was tried, what the platform answered, and what happens next.
//!
//! Pure: it turns a [`Dossier`] into text. The text is for the operator and is never sent to a channel. It quotes the
//! beginning of messages.
//!
//! To explain something new, add an entry to the timeline in `timeline.rs`, or a sentence here.

mod entry;
mod initiator;
pub(crate) mod text;
mod timeline;

#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use rejoinder_guard::{CancelledBy, Cause, Claim, Expectation, ObligationState, Rung, Settlement, Timestamp, Via};

use self::{
    entry::cause_text,
    text::{clip, span, until},
};
use crate::{
    base::words::rfc3339,
    model::{ChannelId, DeliveryRecord, DeliveryState, Directed, SenderKind, TurnId},
    ports::{Dossier, Pause},
    questions::digest::FROM_DIGEST,
};

pub use self::{entry::Entry, initiator::Initiator};

/// The explanation of a turn, in full sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The id of the explained turn.
    pub turn: TurnId,
    /// The current state, in one sentence.
    pub headline: String,
    /// What was owed, and why.
    pub owed: String,
    /// The events of the turn, oldest first.
    pub timeline: Vec<Entry>,
    /// What happens next, and what the operator can do.
    pub next: String,
}

/// Explains a turn. `now` is what remaining and overdue times are measured from.
pub fn explain(dossier: &Dossier, now: Timestamp) -> Explanation {
    Explanation {
        turn: dossier.turn.id,
        headline: headline(dossier),
        owed: owed(dossier),
        timeline: timeline::timeline(dossier),
        next: next(dossier, now),
    }
}

impl fmt::Display for Explanation {
    /// Formats the explanation for a terminal, without a final line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\nOwed: {}\n", self.headline, self.owed)?;
        for Entry { at, text } in &self.timeline {
            writeln!(f, "  {}  {text}", rfc3339(*at))?;
        }
        write!(f, "\nNext: {}", self.next)
    }
}

fn headline(dossier: &Dossier) -> String {
    let took = dossier.ended_at.map(|at| span(at.since(dossier.accepted_at))).unwrap_or_default();
    let obligation = &dossier.turn.obligation;
    let initiator = Initiator::of(&dossier.turn.event);
    let began = initiator.began();
    if dossier.absent && dossier.ended_at.is_none() {
        return format!("The turn waits: its channel {} is not configured.", channel(dossier));
    }
    match obligation.state() {
        _ if obligation.is_held() => "The turn is held by the operator.".to_owned(),
        _ if obligation.is_postponed() => {
            "The message came late: the chat is asked whether it is to be answered.".to_owned()
        }
        ObligationState::Settled(Settlement::Signal { signal, via, .. }) => match via {
            Via::GivenUp { reason } => {
                let by = giver(dossier);
                format!("Given up by {by}, {took} after {began}: {}. The person was told.", clip(reason))
            }
            _ if dossier.turn.handler.is_gateway() && initiator != Initiator::Person => {
                format!("Delivered, {took} after {began}.")
            }
            _ if dossier.turn.handler.is_gateway() => {
                format!("Answered by the gateway itself, {took} after {began}.")
            }
            Via::Answer | Via::AgentSend | Via::LateAnswer | Via::Deferral | Via::Draft => {
                format!("Answered with a {signal} by the agent, {took} after {began}.")
            }
            Via::Fallback { cause, rung: Rung::Handoff(agent) } => {
                format!(
                    "{}: the ladder handed it to `{agent}`, which answered, {took} after {began}.",
                    because(*cause, dossier)
                )
            }
            Via::Fallback { cause, rung } => {
                format!("{}: the ladder answered ({rung}), {took} after {began}.", because(*cause, dossier))
            }
        },
        ObligationState::Settled(Settlement::Silence { .. }) => "Nothing was owed, and nothing was sent.".to_owned(),
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Deletion }) => {
            format!("The message was deleted, {took} after it was accepted.")
        }
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Turn(by) | CancelledBy::Edit(by) }) => {
            format!("Cancelled by the person, {took} after it was accepted; turn {by} is the command.")
        }
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Operator(reason) }) => {
            format!("Given up by {}, {took} after it was accepted: {}.", giver(dossier), clip(reason))
        }
        ObligationState::Settled(Settlement::Merged { into }) => format!("Answered together with turn {into}."),
        ObligationState::Merged { into } => format!("Turn {into} answers for this one as well."),
        ObligationState::Undeliverable { reason } => format!("Undeliverable: {}.", clip(reason)),
        _ if obligation.decide_by().is_some() => "The turn waits for an approval.".to_owned(),
        ObligationState::Claimed(claim) => claimed(claim, dossier),
        ObligationState::Deferred if obligation.shown_deferrals() == 0 => {
            "The agent deferred the answer, and the person could not be told: it is a debt.".to_owned()
        }
        ObligationState::Deferred => "A deferral was shown: the answer is a debt.".to_owned(),
        ObligationState::Open if obligation.is_running() => {
            "The agent is working on it; nothing has been shown yet.".to_owned()
        }
        ObligationState::Open => "The turn waits for a run; nothing has been shown yet.".to_owned(),
    }
}

fn giver(dossier: &Dossier) -> String {
    let given_up = dossier.remarks.iter().rfind(|remark| matches!(&*remark.kind, "cancel" | "discard"));
    let dropped = given_up.and_then(|remark| remark.detail.strip_prefix("by ")?.strip_suffix(FROM_DIGEST));
    dropped.map_or_else(|| "the operator".to_owned(), clip)
}

fn claimed(claim: &Claim, dossier: &Dossier) -> String {
    let signal = claim.signal;
    match failure(dossier) {
        _ if !claim.attempted => format!("A {signal} is to be sent; nothing has been shown yet."),
        Some(failure) => format!("A {signal} waits to be sent again: {}.", clip(failure)),
        None => format!("A {signal} is in flight and not acknowledged yet."),
    }
}

/// Why the last attempt of a delivery failed that waits for the next one.
fn failure(dossier: &Dossier) -> Option<&str> {
    let waits = dossier.deliveries.iter().find(|delivery| delivery.state == DeliveryState::Pending)?;
    let last = dossier.attempts.iter().rfind(|attempt| attempt.delivery == waits.id && attempt.ended_at.is_some())?;
    last.detail.as_deref().or(last.result.as_deref())
}

fn owed(dossier: &Dossier) -> String {
    let event = &dossier.turn.event;
    let mut text = owed_for(dossier);
    if let Some(about) = event.about_another() {
        let _ = write!(
            text,
            " The agent gets the history of {about}, which keeps nothing of it; its words go to {}.",
            event.conversation
        );
    } else if event.is_on_copy() {
        text.push_str(" The agent gets a copy of the session, which keeps nothing of it.");
    }
    text
}

fn owed_for(dossier: &Dossier) -> String {
    let (obligation, event) = (&dossier.turn.obligation, &dossier.turn.event);
    if obligation.expectation() == Expectation::Nothing {
        return match event.sender.kind {
            SenderKind::Person | SenderKind::Unnamed | SenderKind::KeyHolder => {
                "Nothing: it was not directed at the agent.".to_owned()
            }
            SenderKind::OtherAgent => "Nothing: another agent wrote it.".to_owned(),
            SenderKind::Ourselves => "Nothing: it is our own message.".to_owned(),
            SenderKind::Operator => format!("Nothing: {}.", Initiator::of(event).began()),
        };
    }
    let why = match event.directed {
        _ if event.is_prompt() => "a prompt asks for one",
        Directed::DirectChat => "it was sent in a direct chat",
        Directed::Mention => "it mentions the agent",
        Directed::ReplyToUs => "it replies to a message of ours",
        Directed::Command => "it is a command",
        Directed::Asked => "a program asked for one",
        Directed::Ambient => "it counts as directed at the agent",
    };
    let mut text = format!("An answer, because {why}.");
    if let Some(rule) = &dossier.turn.rule {
        let _ = write!(text, " It was routed by the rule `{rule}`.");
    }
    if event.brief.as_ref().is_some_and(|brief| brief.agent.is_some()) {
        text.push_str(" The caller named the agent, as the model.");
    }
    if event.seal_to.is_some() {
        text.push_str(" The agent must seal it to the key that the caller gave.");
    }
    if let Some(patience) = event.patience {
        let _ = write!(text, " The caller waited up to {} for it.", span(patience));
    }
    if let [first, rest @ ..] = obligation.merged_turns() {
        let _ = write!(text, " It answers for turn {}", first.turn);
        for other in rest {
            text.extend([", ", &other.turn]);
        }
        text.push_str(" as well.");
    }
    text
}

fn next(dossier: &Dossier, now: Timestamp) -> String {
    let obligation = &dossier.turn.obligation;
    if dossier.absent {
        return format!(
            "Nothing until {} is configured again. The turn then continues from its current state, however late.",
            channel(dossier)
        );
    }
    let next = match obligation.state() {
        _ if obligation.is_postponed() => {
            "Nothing until somebody in the chat picks an answer, writes something new, or a day has passed.".to_owned()
        }
        _ if obligation.is_held() => {
            format!("Nothing until `rejoinder turns resume {}`: no run and no attempt begins.", dossier.turn.id)
        }
        ObligationState::Settled(_) => match unsent(dossier) {
            Some(delivery) if delivery.is_copy => {
                format!("The turn is settled; a copy of the answer is still to be sent. {}", attempt(delivery, now))
            }
            Some(delivery) => {
                format!("The turn is settled; a late answer is still to be sent. {}", attempt(delivery, now))
            }
            None => match obligation.hard_deadline() {
                Some(end) => {
                    format!(
                        "The turn is settled. Its run goes on until {} at most, for a late answer.",
                        until(end, now)
                    )
                }
                None => "Nothing more: the turn is settled.".to_owned(),
            },
        },
        ObligationState::Undeliverable { .. } => {
            let id = dossier.turn.id;
            let retry = match obligation.undelivered_claim() {
                Some(_) => "sends it again",
                None => "has the agent run again",
            };
            format!(
                "Nothing more happens automatically. Check what the platform reported. Then `rejoinder dead-letters retry {id}` \
                 {retry}, `redirect` sends it to another conversation, and `discard` gives it up."
            )
        }
        ObligationState::Merged { into } => format!("It is settled when turn {into} is."),
        _ if obligation.decide_by().is_some() => approval(dossier, now),
        ObligationState::Claimed(_) => {
            let next = match unsent(dossier) {
                Some(delivery) => pause(dossier).unwrap_or_else(|| attempt(delivery, now)),
                None => "The platform's response is being stored.".to_owned(),
            };
            match obligation.asked_at() {
                Some(at) => format!("{next} The agent is asked at {}.", until(at, now)),
                None => next,
            }
        }
        ObligationState::Open | ObligationState::Deferred => work(dossier, now),
    };
    let is_overdue = !obligation.state().is_final() && obligation.overdue_at().is_some_and(|at| at < now);
    let overdue = if is_overdue { " The turn is overdue: the person has not seen a signal in time." } else { "" };
    format!("{next}{overdue}")
}

/// What a turn waits for that waits for an approval.
fn approval(dossier: &Dossier, now: Timestamp) -> String {
    let obligation = &dossier.turn.obligation;
    let by = obligation.decide_by().map(|by| until(by, now)).unwrap_or_default();
    let then = if obligation.is_suspended() { "The agent's run goes on" } else { "The agent runs again" };
    let asked = dossier.remarks.iter().rfind(|remark| ["approval", "question"].contains(&remark.kind.as_str()));
    if asked.is_some_and(|remark| remark.kind == "question") {
        return format!(
            "{then} once the person answers, and is told the answer. If they do not by {by}, it is told that."
        );
    }
    format!(
        "{then} once somebody decides (`rejoinder approvals list`), and is told what they decided. If nobody does \
         by {by}, it is told that, which counts as a no."
    )
}

/// Why nothing is sent, if the channel is paused.
fn pause(dossier: &Dossier) -> Option<String> {
    let Pause { by, reason, .. } = dossier.paused.as_ref()?;
    let why = reason.as_ref().map(|reason| format!(" ({})", clip(reason))).unwrap_or_default();
    Some(format!("Nothing is sent until {} is resumed: it was paused by {by}{why}.", channel(dossier)))
}

fn channel(dossier: &Dossier) -> &ChannelId {
    &dossier.turn.event.conversation.channel
}

/// The next steps of a turn that has no claim: its deadlines, and the debt of a deferral.
fn work(dossier: &Dossier, now: Timestamp) -> String {
    let obligation = &dossier.turn.obligation;
    let mut text = match obligation.hard_deadline() {
        Some(hard) => format!("The agent has until {}; then the ladder is climbed.", until(hard, now)),
        None if obligation.is_waiting() => "The agent gets it when the turns before it are done.".to_owned(),
        None => "The agent's run has ended.".to_owned(),
    };
    if let Some(soft) = obligation.soft_deadline() {
        let _ = write!(text, " Without an answer a deferral goes out at {}.", until(soft, now));
    }
    if let Some(due) = obligation.due() {
        let then = if obligation.is_waiting() {
            "the turn waits for its run without a limit, and the run moves the due date"
        } else if obligation.is_running() {
            "then the ladder is climbed"
        } else {
            "then the agent gets the turn again, or the ladder is climbed"
        };
        let _ = write!(text, " The deferral's debt is due at {}; {then}.", until(due, now));
    }
    text
}

/// The first delivery that is pending or being sent.
fn unsent(dossier: &Dossier) -> Option<&DeliveryRecord> {
    dossier.deliveries.iter().find(|one| matches!(one.state, DeliveryState::Pending | DeliveryState::Sending))
}

fn attempt(delivery: &DeliveryRecord, now: Timestamp) -> String {
    let number = delivery.attempts + 1;
    match delivery.state {
        DeliveryState::Sending => format!("Attempt {} is under way.", delivery.attempts),
        _ if delivery.next_attempt_at > now => {
            let due = format!("Attempt {number} is due at {}.", until(delivery.next_attempt_at, now));
            let quiet = " It waits for the end of the person's quiet hours; what comes after it in the chat does not wait for it.";
            let parked = " It gets nowhere and is parked: what comes after it in the chat does not wait for it.";
            if delivery.is_quiet() {
                due + quiet
            } else if delivery.parked {
                due + parked
            } else {
                due
            }
        }
        _ => format!("Attempt {number} is due, and waits in its conversation's lane."),
    }
}

/// Why the ladder was climbed, with the operator's detail, as the beginning of a sentence.
fn because(cause: Cause, dossier: &Dossier) -> String {
    match dossier.turn.obligation.fallback() {
        Some((_, why)) if !why.is_empty() => format!("{} ({})", cause_text(cause), clip(why)),
        _ => cause_text(cause).to_owned(),
    }
}
