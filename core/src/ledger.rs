//! The one place where what is owed changes.
//!
//! Whatever happens to a turn comes here as an event: the guard decides on it, the decision is stored
//! in one transaction by compare-and-swap, and only what was stored is acted on. Whoever loses the
//! swap reads the turn again and lets the guard decide anew.

use rejoinder_guard::{Cleared, Draft, Effect, Event, Obligation, Settlement, Signal, State, Timestamp};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tracing::{debug, error, info, warn};

use crate::{
    crash::crash_point,
    engine::Core,
    model::{
        agent::AgentName,
        capabilities::Receipts,
        stored_delivery::{DeliveryRecord, DeliveryState},
        turn::TurnRecord,
        view::{Shown, TurnStatus, TurnView},
    },
    outbox::{self, retry},
    ports::store::{
        StoreError,
        record::AuditEntry,
        transition::{
            AttemptEnd, Commit, DeliveryChange, NewSession, RunEnd, RunStart, Transition, TurnChange, Withdrawal,
        },
    },
};

/// The first pause between two tries to store something.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest one.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(5);

/// How often the store may refuse to take something although it can write.
pub(crate) const MAX_REJECTED: u32 = 10;

/// An event for a turn.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) turn: TurnRecord,
    pub(crate) event: Event,
}

/// What is stored along with the guard's decision, whatever it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Along {
    /// The end of a run.
    pub(crate) run_ended: Option<RunEnd>,
    /// The end of an attempt.
    pub(crate) attempt_ended: Option<AttemptEnd>,
    /// The new values of the delivery that was attempted.
    pub(crate) delivery: Option<DeliveryChange>,
    /// Parts that are not sent because an earlier one was refused.
    pub(crate) withdrawn: Option<Withdrawal>,
    /// The conversation's new current session.
    pub(crate) session: Option<NewSession>,
    /// A remark.
    pub(crate) audit: Option<AuditEntry>,
    /// The delivery that the event is about: a decision to send it again changes it.
    pub(crate) attempted: Option<DeliveryRecord>,
    /// What is true as well: decided on next, in the same transaction.
    pub(crate) then: Option<Event>,
}

/// What the caller does after a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Run the agent, as the answer to a beginning.
    pub(crate) run: Option<Run>,
    /// The turn waits for another run.
    pub(crate) run_again: bool,
    /// A signal was claimed.
    pub(crate) claimed: bool,
}

/// A run that was decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) agent: AgentName,
    /// How often this agent was given the turn.
    pub(crate) attempt: u32,
    /// Which run of the turn it is, over all agents.
    pub(crate) number: u32,
    pub(crate) started_at: Timestamp,
}

/// One turn's share of a transition, and what follows once it is stored.
#[derive(Default)]
struct Plan {
    next: Option<TurnRecord>,
    decided: Decided,
    shown: Option<Shown>,
    undelivered: bool,
    /// The run that is ended.
    stop_run: Option<u32>,
    dead_letter: Option<String>,
}

impl Core {
    /// Lets the guard decide on what happened to one turn, and stores it. `turn` is then as stored.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        turn: &mut TurnRecord,
        event: Event,
        along: Along,
    ) -> Result<Decided, StoreError> {
        let mut steps = [Step { turn: turn.clone(), event }];
        let decided = self.decide_all(&mut steps, along).await?;
        let [step] = steps;
        *turn = step.turn;
        Ok(decided.into_iter().next().unwrap_or_default())
    }

    /// As [`decide`](Self::decide), for as long as it takes: a store that cannot write now is asked again.
    /// `None` when the gateway ended before, or the store can write and will not take this: the turn's
    /// deadline is stored, and ends it.
    pub(crate) async fn decide_in_the_end(
        self: &Arc<Self>,
        turn: &mut TurnRecord,
        event: Event,
        along: Along,
    ) -> Option<Decided> {
        let mut pause = FIRST_PAUSE;
        let mut rejected = 0;
        loop {
            match self.decide(turn, event.clone(), along.clone()).await {
                Ok(decided) => return Some(decided),
                Err(error) => {
                    rejected += u32::from(!matches!(error, StoreError::Unavailable(_)));
                    if rejected > MAX_REJECTED {
                        error!(turn = %turn.id, %error, "what happened to a turn cannot be stored");
                        return None;
                    }
                    warn!(turn = %turn.id, %error, "cannot store what happened to a turn, trying again");
                    if !self.pause(pause).await {
                        return None;
                    }
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    /// Waits; `false` when the gateway ended meanwhile.
    pub(crate) async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = self.ended.cancelled() => false,
        }
    }

    /// Decides on several turns in one transaction: all of it is stored, or nothing.
    pub(crate) async fn decide_all(
        self: &Arc<Self>,
        steps: &mut [Step],
        along: Along,
    ) -> Result<Vec<Decided>, StoreError> {
        let plans = loop {
            let now = self.clock.now();
            let mut transition = Transition::default();
            let plans: Vec<Plan> = steps.iter().map(|step| self.plan(step, &along, now, &mut transition)).collect();
            along.clone().add_to(&mut transition);
            if is_nothing(&transition) {
                break plans;
            }
            #[cfg(feature = "crash-points")]
            let claims = transition.deliveries.iter().any(|delivery| !delivery.record().is_draft());
            crash_point!("before_commit" if claims);
            match self.store.commit(transition).await? {
                Commit::Done => {
                    crash_point!("after_commit" if claims);
                    break plans;
                }
                Commit::Conflict => self.read_again(steps).await?,
            }
        };
        let mut decided = Vec::with_capacity(plans.len());
        for (step, plan) in steps.iter_mut().zip(plans) {
            let before = step.turn.obligation.clone();
            if let Some(next) = plan.next.clone() {
                step.turn = next;
            }
            decided.push(plan.decided.clone());
            self.follow_up(&step.turn, &before, plan);
        }
        Ok(decided)
    }

    async fn read_again(&self, steps: &mut [Step]) -> Result<(), StoreError> {
        for step in steps {
            let id = step.turn.id;
            step.turn = self.store.turn(id).await?.ok_or_else(|| StoreError::Corrupt(format!("turn {id} is gone")))?;
        }
        Ok(())
    }

    fn plan(&self, step: &Step, along: &Along, now: Timestamp, transition: &mut Transition) -> Plan {
        let turn = &step.turn;
        let policy = self.settings.policies.of(&turn.event.conversation.channel, turn.event.chat);
        let mut next = turn.clone();
        let mut plan = Plan::default();
        let mut events: VecDeque<Event> = std::iter::once(step.event.clone()).chain(along.then.clone()).collect();
        let audit = |kind: &str, detail: String| AuditEntry { turn: turn.id, at: now, kind: kind.to_owned(), detail };
        while let Some(event) = events.pop_front() {
            for effect in next.obligation.on(event, policy, now).effects {
                match effect {
                    Effect::Send(cleared) => {
                        plan.decided.claimed = true;
                        events.extend(self.send(&cleared, &next, now, transition, &mut plan));
                    }
                    Effect::Draft(cleared) => {
                        let conversation = &turn.event.conversation;
                        let channel = self.channel(&conversation.channel);
                        let address = self.address(conversation);
                        let draft = outbox::draft(&cleared, &next, &address, channel.as_deref(), now);
                        transition.deliveries.push(draft);
                        plan.undelivered = true;
                    }
                    Effect::Withdraw { claim } => {
                        let reason = if claim == Draft::CLAIM {
                            "it did not go out in time, and what comes next says more".to_owned()
                        } else {
                            "a better end came before it was sent".to_owned()
                        };
                        if let Some(delivery) = along.attempted.as_ref().filter(|attempted| attempted.claim == claim) {
                            transition.delivery_changes.push(DeliveryChange {
                                state: DeliveryState::Withdrawn,
                                error: Some(reason.clone()),
                                ..DeliveryChange::of(delivery)
                            });
                        }
                        transition.withdrawn.push(Withdrawal { turn: turn.id, claim, reason });
                    }
                    Effect::Run { agent, attempt } => {
                        next.runs += 1;
                        let is_its_own = agent.is_none();
                        let agent = agent.map_or_else(|| self.agent_of(&next), AgentName::from);
                        if is_its_own && agent != next.agent {
                            transition.audit.push(audit("rerouted", agent.to_string()));
                        }
                        let run = Run { agent: agent.clone(), attempt, number: next.runs, started_at: now };
                        transition.runs_started.push(RunStart { turn: turn.id, number: next.runs, agent, at: now });
                        plan.decided.run = Some(run);
                    }
                    Effect::RunAgain => plan.decided.run_again = true,
                    Effect::StopRun => plan.stop_run = Some(next.runs),
                    Effect::Resend { labelled, .. } => {
                        // Not when what is true as well ends it.
                        if let Some(delivery) = along.attempted.as_ref().filter(|_| events.is_empty()) {
                            let idempotent = matches!(step.event, Event::Lost { idempotent: true, .. });
                            transition.delivery_changes.push(DeliveryChange {
                                state: DeliveryState::Pending,
                                next_attempt_at: now + retry::resend_pause(delivery.attempts, idempotent),
                                labelled: labelled || delivery.labelled,
                                ..DeliveryChange::of(delivery)
                            });
                        }
                    }
                    Effect::Suppress(suppressed) => {
                        let kept = suppressed.text.map(|text| format!(": {text}")).unwrap_or_default();
                        let what = format!("{:?}", suppressed.what).to_lowercase();
                        transition.audit.push(audit("suppressed", format!("{what} {}{kept}", suppressed.reason)));
                    }
                    Effect::DeadLetter { reason } => {
                        if let Some(delivery) = &along.attempted {
                            transition.delivery_changes.push(DeliveryChange {
                                state: DeliveryState::Dead,
                                error: Some(reason.clone()),
                                ..DeliveryChange::of(delivery)
                            });
                        }
                        transition.audit.push(audit("dead_letter", reason.clone()));
                        plan.dead_letter = Some(reason);
                    }
                }
            }
        }
        if next.obligation != turn.obligation {
            next.version += 1;
            transition.turns.push(TurnChange {
                turn: turn.id,
                expected: turn.version,
                obligation: next.obligation.clone(),
                at: now,
            });
            plan.next = Some(next);
        }
        plan
    }

    /// The agent that a turn was routed to; where it is not configured any more, the one that its channel has now.
    fn agent_of(&self, turn: &TurnRecord) -> AgentName {
        let routed_to = Some(&turn.agent).filter(|agent| self.agents.contains_key(*agent));
        routed_to.unwrap_or_else(|| self.settings.agent(&turn.event.conversation.channel)).clone()
    }

    /// Adds the deliveries of a cleared signal; returns what is known to have happened to them already.
    fn send(
        &self,
        cleared: &Cleared<Signal>,
        turn: &TurnRecord,
        now: Timestamp,
        transition: &mut Transition,
        plan: &mut Plan,
    ) -> Option<Event> {
        let channel = self.channel(&turn.event.conversation.channel);
        let capabilities = channel
            .as_ref()
            .map_or_else(outbox::least_capabilities, |channel| channel.capabilities(&turn.event.conversation));
        let address = self.address(&turn.event.conversation);
        let rendered =
            outbox::render(cleared, turn, &address, channel.as_deref(), &capabilities, &self.settings.words, now);
        transition.transcript.extend(rendered.transcript);
        let ids = rendered.deliveries.iter().map(|delivery| delivery.record().id.to_string()).collect();
        plan.shown = Some(rendered.shown);
        plan.undelivered = rendered.deliveries.iter().any(|delivery| delivery.record().state == DeliveryState::Pending);
        transition.deliveries.extend(rendered.deliveries);
        (capabilities.receipts != Receipts::Platform)
            .then(|| Event::Delivered { claim: cleared.get().claim, messages: ids })
    }

    /// Acts on what was stored.
    fn follow_up(self: &Arc<Self>, turn: &TurnRecord, before: &Obligation, plan: Plan) {
        let conversation = &turn.event.conversation;
        if plan.next.is_none() {
            return;
        }
        if let Some(wake_at) = turn.obligation.wake_at() {
            self.alarm.note(wake_at);
        }
        // Before anything is sent: no draft of the run may come after it.
        if let Some(run) = plan.stop_run {
            self.conversations.stop(conversation, turn.id, run);
        }
        if plan.undelivered {
            if self.address(conversation) != *conversation {
                // Its chat got another id meanwhile, and the rows may have been made for the old one.
                self.alarm.note(self.clock.now());
            }
            self.open_lane(conversation);
        }
        if let Some(reason) = plan.dead_letter {
            error!(turn = %turn.id, channel = %conversation.channel, reason, "a turn is undeliverable");
            metrics::counter!("rejoinder_dead_letters_total", "channel" => conversation.channel.to_string())
                .increment(1);
        }
        self.drafts.tell(turn.id);
        self.tidy_up_later(turn, before);
        let (before, after) = (before.state(), turn.obligation.state());
        if before != after {
            observe(turn, after);
        }
        if (plan.shown.is_some() || before != after) && self.hub.is_heard(turn.id, &conversation.channel) {
            self.publish(turn, plan.shown);
        }
    }

    /// Removes the draft of a turn that has come to its end, if nothing took its place.
    fn tidy_up_later(self: &Arc<Self>, turn: &TurnRecord, before: &Obligation) {
        let obligation = &turn.obligation;
        let is_news = !before.state().is_final() || before.draft_message() != obligation.draft_message();
        let is_left = match obligation.state() {
            State::Settled(Settlement::Signal { messages, .. }) => {
                obligation.draft_message().is_some_and(|draft| !messages.iter().any(|message| message == draft))
            }
            _ => obligation.unfinished_messages().next().is_some(),
        };
        if obligation.state().is_final() && is_news && is_left {
            let (core, turn) = (Arc::clone(self), turn.clone());
            self.work.spawn(async move { core.tidy_up(&turn).await });
        }
    }

    fn publish(self: &Arc<Self>, turn: &TurnRecord, shown: Option<Shown>) {
        let (id, version) = (turn.id, turn.version);
        if shown.is_some() || turn.obligation.claims() == 0 {
            let view = TurnView {
                turn_id: id,
                conversation: turn.event.conversation.clone(),
                at: turn.event.received_at,
                text: turn.event.text.clone(),
                attachments: turn.event.attachments.clone(),
                status: TurnStatus::of(&turn.obligation),
                shown,
                picked: None,
            };
            self.hub.publish(version, Arc::new(view));
            return;
        }
        // What was shown before is in the store.
        let core = Arc::clone(self);
        self.tasks.spawn(async move {
            match core.store.view(id).await {
                Ok(Some(view)) => core.hub.publish(version, Arc::new(view)),
                Ok(None) => {}
                Err(error) => debug!(turn = %id, %error, "cannot read a turn to show its change"),
            }
        });
    }
}

impl Along {
    fn add_to(self, transition: &mut Transition) {
        transition.runs_ended.extend(self.run_ended);
        transition.attempts_ended.extend(self.attempt_ended);
        // What the guard decided about the delivery comes later in the list, and counts.
        if let Some(change) = self.delivery
            && !transition.delivery_changes.iter().any(|decided| decided.id == change.id)
        {
            transition.delivery_changes.push(change);
        }
        transition.withdrawn.extend(self.withdrawn);
        transition.sessions.extend(self.session);
        transition.audit.extend(self.audit);
    }
}

fn is_nothing(transition: &Transition) -> bool {
    let Transition {
        turns,
        deliveries,
        withdrawn,
        delivery_changes,
        attempts_started,
        attempts_ended,
        runs_started,
        runs_ended,
        transcript,
        sessions,
        audit,
    } = transition;
    turns.is_empty()
        && deliveries.is_empty()
        && withdrawn.is_empty()
        && delivery_changes.is_empty()
        && attempts_started.is_empty()
        && attempts_ended.is_empty()
        && runs_started.is_empty()
        && runs_ended.is_empty()
        && transcript.is_empty()
        && sessions.is_empty()
        && audit.is_empty()
}

/// Says in logs and metrics that a turn came to rest.
fn observe(turn: &TurnRecord, state: &State) {
    let channel = &turn.event.conversation.channel;
    if let State::Settled(settlement) = state {
        let kind = match settlement {
            Settlement::Signal { signal, .. } => signal.as_str(),
            Settlement::Silence { .. } => "silence",
            Settlement::Cancelled { .. } => "cancelled",
            Settlement::Merged { .. } => "merged",
        };
        let cause = turn.obligation.fallback().map_or("none", |(cause, _)| cause.as_str());
        metrics::counter!(
            "rejoinder_settled_turns_total",
            "channel" => channel.to_string(), "signal" => kind, "fallback" => cause
        )
        .increment(1);
        if cause == "none" {
            debug!(turn = %turn.id, %channel, signal = kind, "a turn is settled");
        } else {
            info!(turn = %turn.id, %channel, signal = kind, cause, "a turn is settled by the ladder");
        }
    }
}
