//! Every rule of the guard, one event at a time. `tests/model` tries the events in every order.

mod approvals;
mod deferrals;
mod drafts;
mod ladder;
mod late;
mod late_messages;
mod merging;
mod operator;
mod restarts;
mod results;
mod signals;
mod suspended;

use std::time::Duration;

use super::*;
use crate::{ApprovalRequest, Body, Choices, End, Ladder, LateAnswer, OnUnknown, Reply, Rung, Signal, SignalKind, Via};

const SOFT: i64 = 20;
const HARD: i64 = 600;

/// A turn under test. Times are seconds after it was accepted.
struct Turn {
    obligation: Obligation,
    policy: Policy,
    now: i64,
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn say(template: &str) -> Rung {
    Rung::Say(template.to_owned())
}

fn ladder() -> Ladder {
    Cause::ALL.into_iter().fold(Ladder::empty(), |ladder, cause| ladder.with(cause, vec![say(cause.as_str())]))
}

fn policy() -> Policy {
    Policy {
        soft_deadline: Some(secs(20)),
        hard_deadline: secs(600),
        late_window: secs(0),
        ladder: ladder(),
        ..Policy::default()
    }
}

fn ladder_for(cause: Cause, rungs: &[Rung]) -> Policy {
    Policy { ladder: ladder().with(cause, rungs.to_vec()), ..policy() }
}

fn reply(text: &str) -> Event {
    Event::Outcome(Outcome::Reply(Reply::text(text)))
}

fn react(emoji: &str) -> Event {
    Event::Outcome(Outcome::React(emoji.to_owned()))
}

fn silent(why: &str) -> Event {
    Event::Outcome(Outcome::Silent(why.to_owned()))
}

fn defer(note: Option<&str>, due: i64) -> Event {
    Event::Outcome(Outcome::Defer { note: note.map(str::to_owned), due: at(due) })
}

fn request(action: &str) -> ApprovalRequest {
    ApprovalRequest::action(action)
}

fn approval(action: &str) -> Event {
    Event::Outcome(Outcome::Approval(request(action)))
}

fn sent(text: &str) -> Event {
    Event::Sent(Reply::text(text))
}

fn failed() -> Event {
    Event::Failed("500 from upstream".to_owned())
}

fn cancelled() -> Event {
    Event::Cancelled { by: CancelledBy::Turn("turn-9".to_owned()) }
}

fn no_effects() -> Vec<String> {
    Vec::new()
}

impl Turn {
    fn with(policy: Policy) -> Self {
        let obligation = Obligation::open(Expectation::Answer, &policy, None, at(0));
        Self { obligation, policy, now: 0 }
    }

    fn owed() -> Self {
        Self::with(policy())
    }

    fn ambient() -> Self {
        let policy = Policy { ladder: Ladder::empty(), ..policy() };
        Self { obligation: Obligation::open(Expectation::Nothing, &policy, None, at(0)), policy, now: 0 }
    }

    /// An owed turn whose agent runs.
    fn running() -> Self {
        Self::owed().after([Event::Begin])
    }

    fn running_with(policy: Policy) -> Self {
        Self::with(policy).after([Event::Begin])
    }

    /// A running turn whose deferral was shown as message `d1`.
    fn deferred() -> Self {
        Self::deferred_with(policy())
    }

    fn deferred_with(policy: Policy) -> Self {
        let mut turn = Self::running_with(policy);
        turn.ticks(SOFT);
        turn.shown_as("d1");
        turn
    }

    fn after(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        for event in events {
            self.on(event);
        }
        self
    }

    fn on(&mut self, event: Event) -> Vec<String> {
        let decision = self.obligation.on(event, &self.policy, at(self.now));
        decision.effects.iter().map(summary).collect()
    }

    fn ticks(&mut self, now: i64) -> Vec<String> {
        self.now = now;
        self.on(Event::Tick { ran: None })
    }

    fn claim(&self) -> u32 {
        self.obligation.claim_in_flight().unwrap_or(self.obligation.claims())
    }

    fn attempted(&mut self) -> Vec<String> {
        self.on(Event::Attempted { claim: self.claim() })
    }

    fn not_sent(&mut self) -> Vec<String> {
        self.on(Event::NotSent { claim: self.claim() })
    }

    /// The latest claim is attempted and acknowledged.
    fn shown_as(&mut self, message: &str) -> Vec<String> {
        self.attempted();
        self.on(Event::Delivered { claim: self.claim(), messages: vec![message.to_owned()] })
    }

    /// The first part of the latest claim is attempted and acknowledged.
    fn part_delivered(&mut self) -> Vec<String> {
        self.attempted();
        self.on(Event::PartDelivered { claim: self.claim(), messages: vec!["p1".to_owned()] })
    }

    fn refused(&mut self) -> Vec<String> {
        self.attempted();
        self.on(Event::Refused { claim: self.claim(), reason: "403".to_owned() })
    }

    fn expired(&mut self) -> Vec<String> {
        self.attempted();
        self.on(Event::Expired { claim: self.claim(), reason: "no route".to_owned() })
    }

    fn lost(&mut self, idempotent: bool) -> Vec<String> {
        self.attempted();
        self.on(Event::Lost { claim: self.claim(), idempotent })
    }

    fn state(&self) -> &'static str {
        self.obligation.state().as_str()
    }

    fn wakes_at(&self) -> Option<i64> {
        self.obligation.wake_at().map(|at| at.as_millis() / 1000)
    }

    /// The signal that settled it.
    fn signal(&self) -> (SignalKind, &Via) {
        match self.obligation.state() {
            ObligationState::Settled(Settlement::Signal { signal, via, .. }) => (*signal, via),
            state => panic!("not settled by a signal: {state:?}"),
        }
    }
}

/// An effect as a short text.
fn summary(effect: &Effect) -> String {
    match effect {
        Effect::Send(cleared) => {
            let Signal { claim, body, via, replaces } = cleared.get();
            let content = match body {
                Body::Reply(reply) => reply.text.clone(),
                Body::React(emoji) => format!("react {emoji}"),
                Body::Say(template) => format!("say {template}"),
                Body::Wait(action) => format!("wait for {action}"),
                Body::Ask(question) => format!("ask {question}"),
                Body::Question { text, choices } => format!("ask {text} {}", choices.options.join("|")),
                Body::Defer { note, due } => {
                    let note = note.as_deref().unwrap_or("defer");
                    format!("{note} until {}", due.as_millis() / 1000)
                }
            };
            let replaces = if replaces.is_empty() { String::new() } else { format!(" for {}", replaces.join("+")) };
            let late = if *via == Via::LateAnswer { "late " } else { "" };
            format!("send {late}{claim}{replaces}: {content}")
        }
        Effect::Draft(draft) => format!("draft {}", draft.get().text),
        Effect::Withdraw { claim } => format!("withdraw {claim}"),
        Effect::Run { agent: None, attempt } => format!("run {attempt}"),
        Effect::Run { agent: Some(agent), attempt } => format!("run {agent} {attempt}"),
        Effect::RunAgain => "run again".to_owned(),
        Effect::RunGoesOn => "run goes on".to_owned(),
        Effect::StopRun => "stop run".to_owned(),
        Effect::Resend { claim, labelled: false } => format!("resend {claim}"),
        Effect::Resend { claim, labelled: true } => format!("resend {claim} labelled"),
        Effect::Suppress(Suppressed { what, text, reason }) => {
            format!("suppress {what:?} {}: {reason}", text.as_deref().unwrap_or("-"))
        }
        Effect::SendAgain { claim, labelled: false } => format!("send again {claim}"),
        Effect::SendAgain { claim, labelled: true } => format!("send again {claim} labelled"),
        Effect::AskApproval { request, until: Some(until) } => {
            format!("ask approval of {} until {}", request.action, until.as_millis() / 1000)
        }
        Effect::AskApproval { request, until: None } => format!("a rule decided {}", request.action),
        Effect::RunContinues => "run continues".to_owned(),
        Effect::ApprovalExpired => "approval expired".to_owned(),
        Effect::ApprovalDropped => "approval dropped".to_owned(),
        Effect::Hold => "hold".to_owned(),
        Effect::Release => "release".to_owned(),
        Effect::ToMerged { turns, event } => format!("to {}: {event:?}", turns.join("+")),
        Effect::DeadLetter { reason } => format!("dead letter: {reason}"),
    }
}
