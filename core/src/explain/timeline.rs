//! The timeline of a turn.

use std::{fmt::Write as _, time::Duration};

use rejoinder_guard::{CancelledBy, ObligationState, Rung, Settlement, SignalKind, Timestamp, Via};

use super::{
    entry::{Entry, cause_text},
    initiator::Initiator,
    text::{clip, quote, span},
};
use crate::{
    model::{Action, DeliveryRecord, DeliveryState, Handler, Heard, Shown, Voice},
    ports::{AttemptRecord, Dossier, Remark, RunRecord},
};

/// The order of entries that have the same millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Accepted,
    Run,
    /// Ordered by the claim's number, then by step.
    Claim(u32, ClaimStep),
    Remark,
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ClaimStep {
    Cleared,
    Attempted,
    Received,
}

/// How many attempts that ended alike are told one by one.
const MOST_ALIKE: usize = 5;

pub(super) fn timeline(dossier: &Dossier) -> Vec<Entry> {
    let mut entries = Entries::default();
    entries.add(dossier.accepted_at, Rank::Accepted, accepted(dossier));
    for run in &dossier.runs {
        run_entries(run, dossier, &mut entries);
    }
    let (drafts, signals): (Vec<_>, Vec<_>) = dossier.deliveries.iter().cloned().partition(DeliveryRecord::is_draft);
    for draft in &drafts {
        draft_entry(draft, dossier, &mut entries);
    }
    for parts in signals.chunk_by(|one, other| (one.claim, one.is_copy) == (other.claim, other.is_copy)) {
        claim_entries(parts, dossier, &mut entries);
    }
    for alike in dossier.attempts.chunk_by(is_alike) {
        attempt_entries(alike, dossier, &mut entries);
    }
    for remark in &dossier.remarks {
        remark_entry(remark, dossier, &mut entries);
    }
    if let Some(at) = dossier.ended_at {
        end_entry(at, dossier, &mut entries);
    }
    entries.in_order()
}

#[derive(Default)]
struct Entries(Vec<(Rank, Entry)>);

impl Entries {
    fn add(&mut self, at: Timestamp, rank: Rank, text: String) {
        self.0.push((rank, Entry { at, text }));
    }

    fn in_order(mut self) -> Vec<Entry> {
        self.0.sort_by_key(|(rank, entry)| (entry.at, *rank));
        self.0.into_iter().map(|(_, entry)| entry).collect()
    }
}

fn accepted(dossier: &Dossier) -> String {
    let event = &dossier.turn.event;
    let sender = event.sender.name.as_deref().unwrap_or(&event.sender.id);
    let channel = &event.conversation.channel;
    let mut text = match Initiator::of(event) {
        Initiator::Person => format!("Accepted on {channel} from {}: {}", clip(sender), quote(&event.text)),
        initiator => format!("Begun on {channel} by {initiator}: {}", quote(&event.text)),
    };
    if let Some(voice) = event.voice {
        text.push_str(&spoken(voice, event.heard_by.as_deref()));
        return text;
    }
    match event.attachments.len() {
        0 => {}
        1 => text.push_str(", with a file"),
        files => {
            let _ = write!(text, ", with {files} files");
        }
    }
    text
}

/// What is said of a voice note, behind its text.
fn spoken(Voice { seconds, heard, why, .. }: Voice, heard_by: Option<&str>) -> String {
    let mut said = ", a voice note".to_owned();
    if let Some(seconds) = seconds {
        let _ = write!(said, " of {}", span(Duration::from_secs(seconds)));
    }
    match heard {
        Heard::NotTried => {}
        Heard::Awaited => said.push_str(", which is being written down"),
        Heard::Words => {
            said.push_str(" that was written down");
            if let Some(model) = heard_by {
                let _ = write!(said, " by {}", clip(model));
            }
        }
        Heard::Failed => {
            said.push_str(" that could not be written down");
            if let Some(why) = why {
                let _ = write!(said, ": {why}");
            }
        }
    }
    said
}

fn run_entries(run: &RunRecord, dossier: &Dossier, entries: &mut Entries) {
    let RunRecord { number, handler, .. } = run;
    let Handler::Agent(agent) = handler else {
        let what = match Initiator::of(&dossier.turn.event) {
            Initiator::Person => "The gateway executes the command itself.",
            _ => "The gateway sends it.",
        };
        return entries.add(run.started_at, Rank::Run, what.to_owned());
    };
    let earlier = dossier.runs.iter().any(|other| other.number < *number && other.handler == *handler);
    let begins = if earlier {
        format!("Run {number}: given to `{agent}` again.")
    } else if *handler == dossier.turn.handler {
        format!("Run {number}: given to `{agent}`.")
    } else if dossier.remarks.iter().any(|remark| remark.kind == "rerouted" && remark.detail == **agent) {
        format!("Run {number}: given to `{agent}`, as `{}` is not configured any more.", dossier.turn.handler)
    } else {
        format!("Run {number}: the ladder hands it to `{agent}`.")
    };
    entries.add(run.started_at, Rank::Run, begins);
    if let (Some(at), Some(end)) = (run.ended_at, &run.end) {
        let after = span(at.since(run.started_at));
        let how = how_it_ended(end, run.detail.as_deref());
        let usage = run.usage.map_or_else(String::new, |usage| {
            format!(" It read {} tokens and wrote {}.", usage.input_tokens, usage.output_tokens)
        });
        let member = run.member.as_ref().map_or_else(String::new, |member| format!(" with `{member}`"));
        entries.add(at, Rank::Run, format!("Run {number} ended{member} after {after}: {how}.{usage}"));
    }
}

fn how_it_ended(end: &str, detail: Option<&str>) -> String {
    let with = |prefix: &str| detail.map_or_else(|| prefix.to_owned(), |detail| format!("{prefix}: {}", clip(detail)));
    match end {
        "reply" => "it answered".to_owned(),
        "reaction" => "it reacted".to_owned(),
        "deferral" => "it deferred the answer".to_owned(),
        "approval" => with("it asked for approval"),
        "question" => with("it asked the person"),
        "silent" => match detail {
            Some("empty") => "its answer was empty".to_owned(),
            Some(reason) => format!("it chose to say nothing ({})", clip(reason)),
            None => "it chose to say nothing".to_owned(),
        },
        "budget" => detail.map_or_else(|| "its agent has used its budget of the day".to_owned(), clip),
        "failed" => detail.map_or_else(|| "it failed".to_owned(), clip),
        "stopped" => detail.map_or_else(|| "it was stopped".to_owned(), clip),
        "unreadable" => "the message could not be read".to_owned(),
        "unheard" => with("it did not begin, as the voice note could not be written down"),
        "crashed" => detail.map_or_else(|| "the gateway ended while it ran".to_owned(), clip),
        other => with(other),
    }
}

fn claim_entries(parts: &[DeliveryRecord], dossier: &Dossier, entries: &mut Entries) {
    let (Some(first), Some(shown)) = (parts.first(), Shown::of(parts, None, None)) else { return };
    if first.is_copy {
        entries.add(
            first.created_at,
            Rank::Claim(first.claim, ClaimStep::Cleared),
            "A copy of it will be sent as well.".to_owned(),
        );
    } else {
        let mut text = cleared(first, &shown.text, dossier);
        if parts.len() > 1 {
            let _ = write!(text, " It takes {} messages.", parts.len());
        }
        if matches!(first.action, Action::Edit { .. }) {
            text.push_str(" It replaces what was shown before.");
        }
        if let Some(part) = parts.iter().find(|part| part.state == DeliveryState::Withdrawn) {
            let why = clip(part.error.as_deref().unwrap_or("a better signal came"));
            let is_tried = dossier.attempts.iter().any(|attempt| attempt.delivery == part.id);
            let what = if is_tried { "Not tried again" } else { "Withdrawn before it was sent" };
            let _ = write!(text, " {what}: {why}.");
        }
        entries.add(first.created_at, Rank::Claim(first.claim, ClaimStep::Cleared), text);
    }
    // Where the row is the receipt, there is no attempt.
    let has_attempts = dossier.attempts.iter().any(|attempt| parts.iter().any(|part| part.id == attempt.delivery));
    if let (false, Some(at)) = (has_attempts, first.delivered_at) {
        let what = if first.signal == SignalKind::Deferral {
            "Stored where the client reads it: from now on the answer is a debt."
        } else {
            "Stored where the client reads it, which is the receipt."
        };
        entries.add(at, Rank::Claim(first.claim, ClaimStep::Received), what.to_owned());
    }
    if let Some(at) = parts.iter().find_map(|part| part.fetched_at) {
        entries.add(at, Rank::End, "It was written to the client.".to_owned());
    }
}

/// Adds the entry for a draft: a message that shows what the agent has written so far.
fn draft_entry(draft: &DeliveryRecord, dossier: &Dossier, entries: &mut Entries) {
    let text = Shown::of(std::slice::from_ref(draft), None, None).map_or_else(String::new, |shown| shown.text);
    let mut entry = format!("A draft shows what the agent has written so far: {}", quote(&text));
    if draft.state != DeliveryState::Delivered
        && let Some(why) = &draft.error
    {
        let _ = write!(entry, " Its delivery was not confirmed: {}.", clip(why));
    }
    if dossier.turn.obligation.has_lost_message() && draft.state == DeliveryState::Withdrawn {
        entry.push_str(" It may still be in the chat, so the answer says that it replaces it.");
    }
    entries.add(draft.created_at, Rank::Claim(draft.claim, ClaimStep::Cleared), entry);
}

/// The signal that the guard cleared, and why.
fn cleared(delivery: &DeliveryRecord, text: &str, dossier: &Dossier) -> String {
    let quoted = quote(text);
    match &delivery.via {
        Via::Answer if delivery.signal == SignalKind::Reaction => format!("The agent's reaction is cleared: {text}"),
        Via::Answer if delivery.signal == SignalKind::Deferral => {
            format!("The agent's deferral is cleared: {quoted}")
        }
        Via::Answer if dossier.turn.handler.is_gateway() => match Initiator::of(&dossier.turn.event) {
            Initiator::Person => format!("The gateway's answer is cleared: {quoted}"),
            initiator => format!("The message of {initiator} is cleared: {quoted}"),
        },
        Via::Answer => format!("The agent's answer is cleared: {quoted}"),
        Via::AgentSend => format!("What the agent sent during its run is cleared as the answer: {quoted}"),
        Via::Draft => format!("A draft is cleared: {quoted}"),
        Via::LateAnswer => format!("The late answer is cleared as well: {quoted}"),
        Via::GivenUp { .. } => format!("The turn is given up, and the person is told: {quoted}"),
        Via::Deferral => match waits_for(delivery, dossier) {
            Some("question") => format!("The person is asked, and the run waits: {quoted}"),
            Some(_) => format!("The person is told that it waits for an approval: {quoted}"),
            None => format!("There is no answer yet, so a deferral is cleared: {quoted}"),
        },
        Via::Fallback { rung: Rung::Handoff(agent), .. } => format!("The answer of `{agent}` is cleared: {quoted}"),
        Via::Fallback { cause, rung } => {
            let cause = cause_text(*cause);
            match rung {
                Rung::Say(name) => format!("{cause}, so the ladder says `{name}`: {quoted}"),
                Rung::Clarify(name) => format!("{cause}, so the ladder asks `{name}`: {quoted}"),
                Rung::React(_) | Rung::Handoff(_) => format!("{cause}, so the ladder reacts: {text}"),
            }
        }
    }
}

/// What a deferral says that the answer waits for, an approval or the answer to a question, by the kind of its remark: it was cleared
/// together with it, or after the deferral that was in flight then, and before the decision.
fn waits_for<'a>(delivery: &DeliveryRecord, dossier: &'a Dossier) -> Option<&'a str> {
    let remarks = |kinds: &'static [&str]| dossier.remarks.iter().filter(|it| kinds.contains(&it.kind.as_str()));
    let ends_after = |asked| {
        let runs = dossier.runs.iter().map(|run| run.started_at).filter(|at| *at > asked);
        let decisions = remarks(&["approved", "declined", "answered", "approval_closed"]).map(|remark| remark.at);
        runs.chain(decisions.filter(|at| *at >= asked)).min()
    };
    let mut asked = remarks(&["approval", "question"]);
    let is_meant = |at| at <= delivery.created_at && ends_after(at).is_none_or(|end| delivery.created_at <= end);
    asked.find(|remark| is_meant(remark.at)).map(|remark| remark.kind.as_str())
}

/// Whether an attempt of the same delivery ended as the one before it.
fn is_alike(one: &AttemptRecord, next: &AttemptRecord) -> bool {
    let end = |attempt: &AttemptRecord| (attempt.delivery, attempt.result.clone(), attempt.detail.clone());
    next.ended_at.is_some() && end(one) == end(next)
}

/// Attempts of a delivery that ended alike. An outage may have thousands.
fn attempt_entries(alike: &[AttemptRecord], dossier: &Dossier, entries: &mut Entries) {
    let ([first, second, .., last], true) = (alike, alike.len() > MOST_ALIKE) else {
        return alike.iter().for_each(|attempt| attempt_entry(attempt, dossier, entries));
    };
    attempt_entry(first, dossier, entries);
    let at = last.ended_at.unwrap_or(last.started_at);
    let rank = Rank::Claim(claim_of(last, dossier), ClaimStep::Attempted);
    entries.add(at, rank, format!("Attempts {} to {}: the same.", second.number, last.number));
}

fn claim_of(attempt: &AttemptRecord, dossier: &Dossier) -> u32 {
    let delivery = dossier.deliveries.iter().find(|delivery| delivery.id == attempt.delivery);
    delivery.map_or(u32::MAX, |delivery| delivery.claim)
}

fn attempt_entry(attempt: &AttemptRecord, dossier: &Dossier, entries: &mut Entries) {
    let delivery = dossier.deliveries.iter().find(|delivery| delivery.id == attempt.delivery);
    let of = match delivery {
        Some(delivery) if delivery.is_copy => " to send the copy".to_owned(),
        Some(delivery) if delivery.is_draft() => " to show the draft".to_owned(),
        Some(delivery) if delivery.parts > 1 => format!(" at message {} of {}", delivery.part, delivery.parts),
        _ => String::new(),
    };
    let (at, result) = match (attempt.ended_at, attempt.result.as_deref(), attempt.detail.as_deref()) {
        (Some(at), Some("delivered"), Some(ids)) => (at, format!("the platform acknowledged it as {}", clip(ids))),
        (Some(at), Some("delivered"), None) => (at, "the platform acknowledged it".to_owned()),
        (Some(at), Some(_), Some(detail)) => (at, clip(detail)),
        (Some(at), Some(result), None) => (at, result.to_owned()),
        (Some(at), None, _) => (at, "it ended".to_owned()),
        (None, ..) => (attempt.started_at, "it has begun; there is no result yet".to_owned()),
    };
    let rank = Rank::Claim(claim_of(attempt, dossier), ClaimStep::Attempted);
    let earlier = dossier.attempts.iter().filter(|it| it.delivery == attempt.delivery && it.number < attempt.number);
    let text = match (earlier.map(|it| it.number + 1).max(), attempt.number) {
        (Some(first), last) if first < last && attempt.result.is_some() => {
            format!("Attempts {first} to {last}{of} failed alike. The last: {result}.")
        }
        (_, number) => format!("Attempt {number}{of}: {result}."),
    };
    entries.add(at, rank, text);
}

fn remark_entry(remark: &Remark, dossier: &Dossier, entries: &mut Entries) {
    let detail = clip(&remark.detail);
    let text = match remark.kind.as_str() {
        // The first word of the detail names what was suppressed; the reason follows.
        "suppressed" => match detail.split_once(' ') {
            Some((what, why)) => format!("Suppressed {what}: {why}."),
            None => format!("Suppressed: {detail}."),
        },
        // The entry of the run says it.
        "rerouted" => return,
        "dead_letter" => format!("Given up as a dead letter: {detail}."),
        // The entry of the run's end says it.
        "recovered" if dossier.runs.iter().any(|run| run.ended_at == Some(remark.at)) => return,
        "recovered" => format!("Recovered: {detail}."),
        "retry" => format!("Sent again {detail}."),
        "try" => format!("Tried now {detail}."),
        "redirect" => format!("Redirected {detail}."),
        "elsewhere" => format!("Sent {detail}, where its person is known as well."),
        "discard" | "cancel" => format!("Given up {detail}."),
        "approval" => format!("Asks for approval: {detail}."),
        "question" => format!("Asks the person: {detail}."),
        "answered" => format!("Answered {detail}."),
        "approved" => format!("Approved {detail}."),
        "declined" => format!("Declined {detail}."),
        "approval_closed" => format!("The approval is closed: {detail}."),
        "spent" => format!("Not asked, because their budgets of the day are used: {detail}."),
        "refused" => format!("Refused {detail}."),
        "hurry" => format!("Asked for now {detail}."),
        "hold" => format!("Held {detail}."),
        "resume" => format!("Resumed {detail}."),
        kind => format!("{kind}: {detail}."),
    };
    entries.add(remark.at, Rank::Remark, text);
}

/// Adds an entry for an end that neither a delivery nor a remark reports.
fn end_entry(at: Timestamp, dossier: &Dossier, entries: &mut Entries) {
    let text = match dossier.turn.obligation.state() {
        ObligationState::Settled(Settlement::Silence { why }) => {
            format!("Nothing was owed, and nothing is sent: {}.", clip(why))
        }
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Deletion }) => {
            "The message was deleted.".to_owned()
        }
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Turn(by) | CancelledBy::Edit(by) }) => {
            format!("Cancelled by turn {by}.")
        }
        ObligationState::Settled(Settlement::Merged { into }) => format!("Settled with turn {into}."),
        _ => return,
    };
    entries.add(at, Rank::End, text);
}
