//! Turns the guard's decisions into the rows of one transaction.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use rejoinder_guard::{
    ApprovalRequest, Attachment, CancelledBy, Cleared, Draft, Effect, Event, Expectation, Obligation, ObligationState,
    Outcome, Settlement, Signal, Timestamp, Via,
};

use super::{
    consequences::Consequences,
    log,
    trigger::{AttemptEnded, Decided, DecidedApproval, DecidedAtOnce, OperatorStep, Trigger},
};
use crate::{
    base::{channels::Channels, words::rfc3339},
    events::{
        Run, TurnEvents,
        subjects::{subject_of, subject_of_delivery},
    },
    handles::lanes::{Reservations, ReservedLane},
    model::{
        Action, AgentName, Approval, ApprovalChange, ApprovalId, ApprovalState, AuditEntry, ChannelId, DeliveryRecord,
        DeliveryState, Handler, Label, LineState, LiveSettings, LogEvent, NewLogEntry, NodeId, Receipts, Subject,
        TurnFile, TurnId, TurnRecord, detach,
    },
    nodes::neighbours::Neighbours,
    people::{People, quiet_hours::quiet_until},
    ports::{
        AttemptStart, ClosedQuestion, DeliveryChange, LineChange, NewDelivery, Operation, Remark, RunStart, Transition,
        TurnChange, Withdrawal,
    },
    shown::{
        render::{self, Target},
        retry,
    },
};

/// The settings that decisions depend on.
pub(crate) struct DecisionContext {
    pub(crate) settings: LiveSettings,
    pub(crate) channels: Arc<Channels>,
    pub(crate) people: Arc<People>,
    pub(crate) agents: HashSet<AgentName>,
    pub(crate) neighbours: Arc<Neighbours>,
    /// This process, the node of the runs and attempts that begin here.
    pub(crate) node: NodeId,
    pub(crate) reservations: Arc<dyn Reservations>,
}

impl DecisionContext {
    /// The handler of a turn: the one that it was routed to, or, if that agent is no longer configured, its channel's
    /// current agent.
    fn handler_of(&self, turn: &TurnRecord) -> Handler {
        let current = |agent| self.agent_or_current(agent, &turn.event.conversation.channel);
        turn.handler.agent().map_or_else(|| turn.handler.clone(), |agent| Handler::Agent(current(agent)))
    }

    /// The agent that the next run of a turn is for, in whose place it waits.
    pub(crate) fn next_agent(&self, turn: &TurnRecord) -> AgentName {
        let agent = turn.obligation.handoff().or(turn.handler.agent().map(AsRef::as_ref));
        self.agent_or_current(agent.unwrap_or_default(), &turn.event.conversation.channel)
    }

    /// The agent with this name, also if only [another node](Self::is_elsewhere) has it, or, if it is not configured, the current agent of
    /// `channel`.
    pub(crate) fn agent_or_current(&self, name: &str, channel: &ChannelId) -> AgentName {
        match self.agents.get(name) {
            Some(agent) => agent.clone(),
            None if self.neighbours.have_agent(name) => name.into(),
            None => self.settings.read().agent(channel).clone(),
        }
    }

    /// Whether other nodes have an agent, and this one does not.
    pub(crate) fn is_elsewhere(&self, agent: &AgentName) -> bool {
        !self.agents.contains(agent) && self.neighbours.have_agent(agent)
    }
}

pub(super) struct Transaction<'a> {
    context: &'a DecisionContext,
    trigger: &'a Trigger,
    now: Timestamp,
    transition: Transition,
    /// The change of the trigger's delivery. The guard's effects overwrite it.
    delivery: Option<DeliveryChange>,
    /// Whether the answer of a run may be sent at once.
    may_send_at_once: bool,
    pub(super) sent_at_once: Option<SentAtOnce>,
}

/// A delivery whose first attempt is stored with its claim.
pub(super) struct SentAtOnce {
    pub(super) lane: ReservedLane,
    pub(super) delivery: DeliveryRecord,
}

/// The decision on one turn, and what follows once it is stored.
pub(super) struct TurnDecision {
    pub(super) decided: Decided,
    /// The turn after the change; `None` if it does not change.
    pub(super) next: Option<TurnRecord>,
    pub(super) consequences: Consequences,
    pub(super) to_merged: Vec<(TurnId, Event)>,
}

impl<'a> Transaction<'a> {
    /// Begins with the rows that the trigger itself writes.
    pub(super) fn new(
        context: &'a DecisionContext,
        trigger: &'a Trigger,
        now: Timestamp,
        may_send_at_once: bool,
    ) -> Self {
        let mut transition = Transition { fence: trigger.fence().cloned(), ..Transition::default() };
        let mut delivery = None;
        match trigger {
            Trigger::Event | Trigger::NotAttempted { .. } | Trigger::Asked { .. } => {}
            Trigger::Closes(question) => transition.closed_questions.push(ClosedQuestion { turn: *question, at: now }),
            Trigger::RunEnded { end, remark, title, .. } => {
                transition.runs_ended.push(end.clone());
                transition.remarks.extend(remark.clone());
                transition.sessions.extend(title.clone());
            }
            Trigger::Command { end, sessions, queue, voice, person, approval, closes, step, log, seen } => {
                transition.seen.clone_from(seen);
                transition.queue = *queue;
                transition.voice = *voice;
                transition.runs_ended.push(end.clone());
                transition.sessions.clone_from(sessions);
                transition.people.extend(person.iter().flat_map(|person| person.changes.iter().cloned()));
                transition.operation = person.as_ref().and_then(|person| person.operation.clone());
                transition.closed_questions.extend(closes.iter().map(|turn| ClosedQuestion { turn: *turn, at: now }));
                if let Some(decided) = approval {
                    add_decision(&mut transition, decided);
                }
                if let Some(step) = step {
                    add_step(&mut transition, step);
                }
                transition.log.extend(log.iter().cloned());
            }
            Trigger::AttemptBegins { start, delivery: change, subject, .. } => {
                transition.attempts_started.push(start.clone());
                delivery = Some(change.clone());
                let event = LogEvent::DeliveryAttempted { delivery_id: start.delivery, attempt: start.number };
                transition.log.push(NewLogEntry { at: now, subject: subject.clone(), event });
            }
            Trigger::AttemptEnded(ended) => {
                transition.attempts_ended.push(ended.end.clone());
                delivery = Some(ended.change.clone());
                transition.withdrawn.extend(ended.later_parts_withdrawal());
            }
            Trigger::Approval(decided) => add_decision(&mut transition, decided),
            Trigger::Operator(step) => add_step(&mut transition, step),
        }
        Self { context, trigger, now, transition, delivery, may_send_at_once, sent_at_once: None }
    }

    pub(super) fn into_transition(mut self) -> Transition {
        if let (Trigger::AttemptEnded(ended), Some(change)) = (self.trigger, &self.delivery) {
            let entries = log::attempt_ended(ended, change, self.now);
            self.transition.log.splice(0..0, entries);
        }
        self.transition.delivery_changes.extend(self.delivery);
        self.transition
    }

    /// Leaves out the end of a run that the turn does not wait for.
    fn suppress_past_ends(&mut self, turn: &TurnRecord, events: &mut VecDeque<Event>) {
        if let Trigger::RunEnded { end, .. } = self.trigger
            && end.turn == turn.id
            && end.number < turn.runs
        {
            // Its end could not be stored in time.
            events.clear();
            self.remark(turn.id, "suppressed", format!("the end of run {}: the next one had begun", end.number));
        } else if self.is_about_a_run_that_had_ended(turn) && events.iter().any(is_end_without_an_answer) {
            // Another node took the run for crashed, or something newer has stopped it: the turn waits for what follows from that.
            events.retain(|event| !is_end_without_an_answer(event));
            self.remark(turn.id, "suppressed", format!("the end of run {}: it had ended already", turn.runs));
        }
    }

    /// Lets the guard decide on the events of one turn, and adds the rows of its effects. `passed` is what the turn that
    /// answers for it passes on.
    pub(super) fn decide(&mut self, input: &TurnEvents, passed: Option<Event>) -> TurnDecision {
        let mut turn = input.turn.clone();
        let settings = self.context.settings.read();
        let policy = settings.policy(&input.turn);
        let (mut decided, mut consequences) = (Decided::default(), Consequences::default());
        let mut to_merged = Vec::new();
        let mut events: VecDeque<Event> = input.events.iter().cloned().chain(passed).collect();
        self.suppress_past_ends(&turn, &mut events);
        while let Some(mut event) = events.pop_front() {
            self.store_files(turn.id, event_files(&mut event));
            if let Trigger::RunEnded { end, leaves: true, .. } = self.trigger
                && matches!(event, Event::LeftSuspended | Event::Interrupted | Event::Outcome(Outcome::Defer { .. }))
            {
                self.transition.approvals.push(ApprovalChange::GivenBack { turn: turn.id, run: end.number });
            }
            for effect in turn.obligation.on(event, &policy, self.now).effects {
                match effect {
                    Effect::Send(cleared) => {
                        decided.claimed = true;
                        // If our own row is the receipt, the guard decides on that receipt next.
                        events.extend(self.claim(&cleared, &mut turn, &mut consequences));
                    }
                    Effect::Draft(cleared) => {
                        let draft = render::draft(&cleared, &self.target(&turn));
                        consequences.sends(draft.record());
                        self.transition.deliveries.push(draft);
                    }
                    Effect::Withdraw { claim } => self.withdraw(&turn, claim),
                    Effect::SendAgain { claim, labelled } => self.send_again(&turn, claim, labelled, &mut consequences),
                    Effect::Hold => {
                        self.change_waiting(&turn, DeliveryState::Pending, DeliveryState::Held, &mut consequences);
                    }
                    Effect::Release => {
                        self.change_waiting(&turn, DeliveryState::Held, DeliveryState::Pending, &mut consequences);
                    }
                    Effect::Run { agent, attempt } => decided.run = Some(self.start_run(&mut turn, agent, attempt)),
                    Effect::RunAgain => consequences.runs_again = Some(self.context.next_agent(&turn)),
                    Effect::RunGoesOn => consequences.run_goes_on = Some(turn.runs),
                    Effect::StopRun => consequences.stop_run = Some(turn.runs),
                    Effect::Resend { labelled, .. } => self.resend(labelled),
                    Effect::ToMerged { turns, event } => {
                        let ids = turns.iter().filter_map(|turn| turn.parse().ok());
                        to_merged.extend(ids.map(|turn| (turn, event.clone())));
                    }
                    Effect::AskApproval { request, until } => {
                        decided.asked = true;
                        self.ask_approval(&turn, request, until);
                    }
                    Effect::RunContinues => consequences.run_continues = Some(turn.runs),
                    Effect::ApprovalExpired => self.close_approval(&turn, ApprovalState::Expired),
                    Effect::ApprovalDropped => self.close_approval(&turn, ApprovalState::Dropped),
                    Effect::Suppress(suppressed) => {
                        let kept = suppressed.text.map(|text| format!(": {text}")).unwrap_or_default();
                        let what = format!("{:?}", suppressed.what).to_lowercase();
                        self.remark(turn.id, "suppressed", format!("{what} {}{kept}", suppressed.reason));
                    }
                    Effect::DeadLetter { reason } => {
                        if let Some(delivery) = self.attempted(turn.id) {
                            let error = Some(reason.clone());
                            let state = DeliveryState::Dead;
                            self.delivery = Some(DeliveryChange { state, error, ..DeliveryChange::of(delivery) });
                        }
                        self.remark(turn.id, "dead_letter", reason.clone());
                        consequences.dead_letter = Some(reason);
                    }
                }
            }
            if events.is_empty() {
                events.extend(self.send_at_once(&turn, &mut consequences));
            }
        }
        if turn.obligation.is_suspended() && !input.turn.obligation.is_suspended() {
            consequences.run_suspends = Some(turn.runs);
        }
        let has_ended = || self.trigger.run_end().is_some_and(|end| end.turn == turn.id);
        consequences.frees_slot = input.turn.obligation.holds_slot()
            && !turn.obligation.holds_slot()
            && (turn.obligation.is_running() || has_ended());
        if turn.obligation.is_held()
            && self.is_about(turn.id)
            && let Some(change) = self.delivery.as_mut().filter(|change| change.state == DeliveryState::Pending)
        {
            change.state = DeliveryState::Held;
        }
        self.transition.lines.extend(self.seen_or_not(&turn));
        if let Some(state) = question_at_end(&input.turn.obligation, &turn) {
            self.transition.transcript.extend(render::persons_line(&turn, state));
        }
        let entries = log::turn_changed(&input.turn, &turn, self.now);
        consequences.happened = entries.iter().map(|entry| entry.event.clone()).collect();
        self.transition.log.extend(entries);
        // The beginning of an attempt always increments the turn's version, so that a decision made meanwhile conflicts.
        let is_changed =
            turn.obligation != input.turn.obligation || matches!(self.trigger, Trigger::AttemptBegins { .. });
        let next = is_changed.then(|| {
            let (expected, obligation) = (turn.version, turn.obligation.clone());
            self.transition.turns.push(TurnChange { turn: turn.id, expected, obligation, at: self.now });
            TurnRecord { version: expected + 1, ..turn }
        });
        TurnDecision { decided, next, consequences, to_merged }
    }

    /// Whether the trigger is the end of the latest run of a turn that has none in flight, and still needs an answer.
    fn is_about_a_run_that_had_ended(&self, turn: &TurnRecord) -> bool {
        let obligation = &turn.obligation;
        let is_its_run = matches!(self.trigger, Trigger::RunEnded { end, .. } if end.turn == turn.id);
        let lacks_answer = matches!(obligation.state(), ObligationState::Open | ObligationState::Deferred);
        is_its_run && !obligation.is_running() && (lacks_answer || obligation.is_waiting())
    }

    fn target<'b>(&self, turn: &'b TurnRecord) -> Target<'b>
    where
        'a: 'b,
    {
        let turn = self.trigger.step(turn.id).and_then(|step| step.elsewhere.as_ref()).unwrap_or(turn);
        let DecisionContext { channels, people, settings, .. } = self.context;
        let channel = channels.get(&turn.event.conversation.channel).map(AsRef::as_ref);
        Target {
            turn,
            channel,
            now: self.now,
            quiet_until: quiet_until(&turn.event, people, &settings.read(), self.now),
        }
    }

    /// Adds the deliveries of a cleared signal; returns its receipt if storing them is the receipt.
    fn claim(
        &mut self,
        cleared: &Cleared<Signal>,
        turn: &mut TurnRecord,
        consequences: &mut Consequences,
    ) -> Option<Event> {
        let target = self.target(turn);
        let (capabilities, quiet_until) = (target.capabilities(), target.quiet_until);
        let mut rendered = render::signal(cleared, &target, &capabilities, &self.context.settings.read());
        let said = self.trigger.step(turn.id).and_then(|step| step.said.as_ref());
        if let (Some(said), Some(line)) = (said, rendered.transcript.last_mut()) {
            line.line.text.clone_from(said);
        }
        for delivery in &mut rendered.deliveries {
            let turn = delivery.record().turn;
            self.store_files(turn, delivery.files_mut());
        }
        detach(&mut rendered.shown.attachments);
        let records = || rendered.deliveries.iter().map(NewDelivery::record);
        let messages = records().map(|record| record.id.to_string()).collect();
        records().for_each(|record| consequences.sends(record));
        consequences.shown = Some(rendered.shown);
        if let Some(until) = quiet_until {
            turn.obligation.waits_until(until);
        }
        let claimed = log::claimed(cleared.get());
        self.transition.log.push(NewLogEntry { at: self.now, subject: subject_of(turn), event: claimed });
        self.transition.transcript.extend(rendered.transcript);
        self.transition.deliveries.extend(rendered.deliveries);
        self.transition.questions.extend(rendered.question);
        (capabilities.receipts != Receipts::Platform).then(|| Event::Delivered { claim: cleared.get().claim, messages })
    }

    /// Has the first attempt of what a run's turn says begin with its claim, if nothing has to be waited for. No rule of the guard
    /// needs two transactions: a run has ended, so nothing better can come from it before the attempt.
    fn send_at_once(&mut self, turn: &TurnRecord, consequences: &mut Consequences) -> Option<Event> {
        let is_its_run = matches!(self.trigger, Trigger::RunEnded { end, .. } if end.turn == turn.id);
        if !is_its_run || !self.may_send_at_once || self.sent_at_once.is_some() {
            return None;
        }
        let claim = turn.obligation.claim_in_flight()?;
        let now = self.now;
        let of_claim = |new: &&mut NewDelivery| new.record().claim == claim && new.record().turn == turn.id;
        let new = self.transition.deliveries.iter_mut().find(of_claim)?;
        if !may_go_at_once(new.record(), turn, now) {
            return None;
        }
        let lane = self.context.reservations.reserve(new.record())?;
        self.transition.fence = lane.fence();
        new.begin();
        let delivery = new.record().clone();
        let start = AttemptStart { delivery: delivery.id, number: 1, node: self.context.node, at: now };
        let event = LogEvent::DeliveryAttempted { delivery_id: start.delivery, attempt: start.number };
        self.transition.log.push(NewLogEntry { at: now, subject: subject_of_delivery(&delivery), event });
        self.transition.attempts_started.push(start);
        self.transition.empty_lane = Some((delivery.conversation_id, delivery.conversation.clone()));
        // Its other parts are sent there, too.
        consequences.lane = None;
        self.sent_at_once = Some(SentAtOnce { lane, delivery });
        Some(Event::Attempted { claim })
    }

    /// Has the store keep the bytes of files once, and rows refer to them.
    fn store_files(&mut self, turn: TurnId, files: &mut [Attachment]) {
        for file in detach(files) {
            let new = TurnFile { turn, file };
            let is_same = |one: &TurnFile| one.turn == turn && one.file.file == new.file.file;
            if !self.transition.files.iter().any(is_same) {
                self.transition.files.push(new);
            }
        }
    }

    fn withdraw(&mut self, turn: &TurnRecord, claim: u32) {
        let reason = match turn.obligation.state() {
            ObligationState::Settled(Settlement::Cancelled { .. }) => "the turn was given up",
            ObligationState::Claimed(claim) if matches!(claim.via, Via::GivenUp { .. }) => "the turn was given up",
            _ if claim == Draft::CLAIM => "it was not sent in time, and the next message says more",
            _ => "a better signal came",
        };
        if let Some(delivery) = self.attempted(turn.id).filter(|delivery| delivery.claim == claim) {
            let (state, error) = (DeliveryState::Withdrawn, Some(reason.to_owned()));
            self.delivery = Some(DeliveryChange { state, error, ..DeliveryChange::of(delivery) });
        }
        self.transition.withdrawn.push(Withdrawal { turn: turn.id, claim, reason: reason.to_owned() });
        if claim != Draft::CLAIM {
            self.transition.lines.push(LineChange::Other { session: turn.session });
        }
    }

    /// What the trigger's delivery changes of the lines of its turn.
    fn seen_or_not(&self, turn: &TurnRecord) -> Option<LineChange> {
        let Trigger::AttemptEnded(ended) = self.trigger else { return None };
        let (delivery, change) = (&ended.delivery, self.delivery.as_ref()?);
        let is_signal = !matches!(delivery.via, Via::Draft | Via::Deferral) && !delivery.is_copy;
        let has_line = is_signal && turn.is_recorded();
        if delivery.turn != turn.id || !has_line || change.state == DeliveryState::Pending {
            return None;
        }
        let (session, turn, claim) = (turn.session, turn.id, delivery.claim);
        let is_all = change.state == DeliveryState::Delivered && delivery.parts == 1;
        Some(if is_all { LineChange::Seen { session, turn, claim } } else { LineChange::Other { session } })
    }

    fn start_run(&mut self, turn: &mut TurnRecord, agent: Option<String>, attempt: u32) -> Run {
        turn.runs += 1;
        let handler = if let Some(agent) = agent {
            Handler::Agent(agent.into())
        } else {
            let handler = self.context.handler_of(turn);
            if handler != turn.handler {
                self.remark(turn.id, "rerouted", handler.to_string());
            }
            handler
        };
        let (number, node) = (turn.runs, self.context.node);
        let event = LogEvent::TurnStarted { handler: handler.clone(), run: number };
        self.transition.log.push(NewLogEntry { at: self.now, subject: subject_of(turn), event });
        self.transition.runs_started.push(RunStart {
            turn: turn.id,
            number,
            handler: handler.clone(),
            node,
            at: self.now,
        });
        Run { handler, attempt, number, started_at: self.now }
    }

    /// Has the rest of a claim that could not be delivered sent again, now.
    fn send_again(&mut self, turn: &TurnRecord, claim: u32, labelled: bool, consequences: &mut Consequences) {
        let Some(step) = self.trigger.step(turn.id) else { return };
        self.transition.lines.push(LineChange::Other { session: turn.session });
        let is_left =
            |one: &&DeliveryRecord| one.claim == claim && !one.is_copy && one.state != DeliveryState::Delivered;
        for (index, delivery) in step.deliveries.iter().filter(is_left).enumerate() {
            let change = DeliveryChange {
                label: if labelled && index == 0 { Some(Label::Resent) } else { delivery.label },
                ..retry::from_the_start(delivery, self.now)
            };
            let event = LogEvent::DeliveryRetried { delivery_id: delivery.id };
            self.transition.log.push(NewLogEntry { at: self.now, subject: subject_of_delivery(delivery), event });
            consequences.sends(&DeliveryRecord { state: change.state, ..delivery.clone() });
            self.transition.delivery_changes.push(change);
        }
    }

    /// Changes the state of the turn's deliveries that wait: for their next attempt, or for the operator.
    fn change_waiting(
        &mut self,
        turn: &TurnRecord,
        from: DeliveryState,
        to: DeliveryState,
        consequences: &mut Consequences,
    ) {
        let Some(step) = self.trigger.step(turn.id) else { return };
        // What is withdrawn is not sent any more.
        let withdrawn: Vec<_> =
            self.transition.withdrawn.iter().filter(|it| it.turn == turn.id).map(|it| it.claim).collect();
        let is_changed = |one: &&DeliveryRecord| one.state == from && !one.is_copy && !withdrawn.contains(&one.claim);
        for delivery in step.deliveries.iter().filter(is_changed) {
            let change = DeliveryChange { state: to, ..DeliveryChange::of(delivery) };
            consequences.sends(&DeliveryRecord { state: to, ..delivery.clone() });
            self.transition.delivery_changes.push(change);
        }
    }

    /// Schedules the delivery for a resend, unless it is out of attempts and age. What could show twice waits longer.
    fn resend(&mut self, labelled: bool) {
        if let Trigger::AttemptEnded(ended) = self.trigger
            && !ended.is_spent
        {
            let delivery = &ended.delivery;
            let change = DeliveryChange { state: DeliveryState::Pending, ..ended.change.clone() };
            self.delivery = Some(if ended.is_idempotent {
                DeliveryChange { next_attempt_at: self.now + retry::pause(delivery.attempts), ..change }
            } else {
                let copies = delivery.copies + 1;
                let pause = retry::resend_pause(copies);
                let (from, next_attempt_at) = (self.now + pause, self.now + retry::with_more(pause));
                let label = if labelled { Some(Label::Resent) } else { delivery.label };
                // Later claims wait for a few seconds, not for a minute.
                let parked = delivery.parked || copies > 1;
                DeliveryChange { copies, resend_from: Some(from), next_attempt_at, label, parked, ..change }
            });
        }
    }

    /// The trigger's delivery, if it is this turn's, unless it was delivered.
    fn attempted(&self, turn: TurnId) -> Option<&'a DeliveryRecord> {
        let delivery = match self.trigger {
            Trigger::AttemptEnded(ended) => {
                Some(&ended.delivery).filter(|_| ended.change.state != DeliveryState::Delivered)
            }
            Trigger::NotAttempted { delivery, .. } => Some(&**delivery),
            _ => None,
        };
        delivery.filter(|delivery| delivery.turn == turn)
    }

    /// Whether the trigger's delivery is one of this turn.
    fn is_about(&self, turn: TurnId) -> bool {
        match self.trigger {
            Trigger::AttemptBegins { subject, .. } => subject.turn_id == Some(turn),
            Trigger::AttemptEnded(ended) => ended.delivery.turn == turn,
            Trigger::NotAttempted { delivery, .. } => delivery.turn == turn,
            _ => false,
        }
    }

    /// Stores what an agent asks for, until when, or the decision of a rule.
    fn ask_approval(&mut self, turn: &TurnRecord, request: ApprovalRequest, until: Option<Timestamp>) {
        let at_once = match self.trigger {
            Trigger::RunEnded { at_once, .. } => at_once.filter(|_| until.is_none()),
            Trigger::Asked { at_once, .. } => *at_once,
            _ => None,
        };
        let whole = match self.trigger {
            Trigger::RunEnded { whole, .. } | Trigger::Asked { whole, .. } => whole.clone(),
            _ => None,
        };
        // The middle of what is sealed is for the asker alone.
        let whole = whole.filter(|_| turn.event.seal_to.is_none());
        let sender = &turn.event.sender;
        let asked = Approval {
            id: ApprovalId::new(self.now),
            turn: turn.id,
            channel: turn.event.conversation.channel.clone(),
            agent: self.context.next_agent(turn),
            person: sender.name.clone().unwrap_or_else(|| sender.id.clone()),
            request,
            has_whole: whole.is_some(),
            asked_at: self.now,
            expires_at: until,
            state: at_once.map_or(ApprovalState::Waiting, |it| ApprovalState::of_decision(it.approves())),
            decided_at: at_once.map(|_| self.now),
            decided_by: at_once.map(DecidedAtOnce::by),
            note: at_once.and_then(DecidedAtOnce::note),
            chosen: None,
            given_to: match self.trigger {
                Trigger::Asked { at_once: Some(at_once), run, .. } => at_once.approves().then_some(*run),
                _ => None,
            },
            told: Vec::new(),
        };
        let (at, subject, approval_id) = (self.now, subject_of(turn), asked.id);
        let detail = match until {
            Some(until) => format!("{}, until {}", asked.request.action, rfc3339(until)),
            None => asked.request.action.clone(),
        };
        let kind = if asked.request.choices.is_some() { "question" } else { "approval" };
        self.remark(turn.id, kind, detail);
        let event = LogEvent::ApprovalAsked { approval_id };
        self.transition.log.push(NewLogEntry { at, subject: subject.clone(), event });
        if let Some(by) = &asked.decided_by {
            let state = asked.state;
            let by = by.clone();
            let why = asked.note.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            self.remark(turn.id, state.as_str(), format!("by {by}{why}"));
            let event = LogEvent::ApprovalDecided { approval_id: Some(approval_id), decision: state.as_str() };
            self.transition.log.push(NewLogEntry { at, subject: subject.clone(), event });
            self.transition.operation = Some(audited(by, state, approval_id.to_string(), subject, at));
        }
        self.transition.approvals.push(ApprovalChange::Asked { approval: Box::new(asked), whole });
    }

    fn close_approval(&mut self, turn: &TurnRecord, state: ApprovalState) {
        self.transition.approvals.push(ApprovalChange::Closed { turn: turn.id, state, at: self.now });
        let why = match state {
            ApprovalState::Expired => "nobody decided it in time",
            _ => "the turn does not wait for it any more",
        };
        self.remark(turn.id, "approval_closed", why.to_owned());
        let (at, subject) = (self.now, subject_of(turn));
        let event = LogEvent::ApprovalDecided { approval_id: None, decision: state.as_str() };
        self.transition.log.push(NewLogEntry { at, subject: subject.clone(), event });
        if state == ApprovalState::Expired {
            let by = "gateway".to_owned();
            self.transition.operation = Some(audited(by, state, turn.id.to_string(), subject, at));
        }
    }

    fn remark(&mut self, turn: TurnId, kind: &str, detail: String) {
        self.transition.remarks.push(Remark { turn, at: self.now, kind: kind.to_owned(), detail });
    }
}

/// Whether a delivery is sent as it was claimed, and now. What may replace a draft is known when its attempt begins, and files are
/// read before.
fn may_go_at_once(delivery: &DeliveryRecord, turn: &TurnRecord, now: Timestamp) -> bool {
    let is_new_message = matches!(delivery.action, Action::Send { .. });
    let may_replace =
        turn.obligation.has_lost_message() || (is_new_message && turn.obligation.draft_message().is_some());
    let is_due = delivery.state == DeliveryState::Pending && !delivery.parked && delivery.next_attempt_at <= now;
    is_due && delivery.part == 1 && !delivery.is_copy && !may_replace && delivery.action.files().is_empty()
}

/// Whether a run has ended, and does not answer its turn.
fn is_end_without_an_answer(event: &Event) -> bool {
    matches!(
        event,
        Event::Failed(_)
            | Event::Unreachable(_)
            | Event::OverBudget(_)
            | Event::Unreadable(_)
            | Event::Unheard(_)
            | Event::DecidedByRule(_)
            | Event::Outcome(Outcome::Silent(_) | Outcome::Defer { .. } | Outcome::Approval(_))
    )
}

/// The files that an event of the guard brings.
fn event_files(event: &mut Event) -> &mut [Attachment] {
    match event {
        Event::Outcome(Outcome::Reply(reply))
        | Event::Answered(reply)
        | Event::Sent(reply)
        | Event::Redirected { reply }
        | Event::SentElsewhere { reply } => &mut reply.attachments,
        _ => &mut [],
    }
}

/// How the question of a turn stands in the transcript if it ended just now without a claim that says it: it was stopped, merged,
/// or could not be answered. `None` if it is not there: it was taken back, or nothing was owed for it.
fn question_at_end(before: &Obligation, turn: &TurnRecord) -> Option<LineState> {
    let is_merged = matches!(before.state(), ObligationState::Merged { .. });
    let is_owed = before.expectation() == Expectation::Answer;
    if before.state().is_final() || turn.handler.is_gateway() || !(is_owed || is_merged) {
        return None;
    }
    match turn.obligation.state() {
        ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Deletion | CancelledBy::Edit(_) }) => None,
        ObligationState::Settled(Settlement::Cancelled { .. }) => Some(LineState::Stopped),
        ObligationState::Settled(_) => is_merged.then_some(LineState::Seen),
        ObligationState::Undeliverable { .. } => Some(LineState::Seen),
        _ => None,
    }
}

/// A decision that nobody made, for the audit.
fn audited(by: String, state: ApprovalState, target: String, subject: Subject, at: Timestamp) -> Operation {
    let entry =
        AuditEntry { by, action: state.audit_action().to_owned(), target, reason: None, not_reached: Vec::new() };
    Operation { at, entry, subject, answer: None }
}

fn add_step(transition: &mut Transition, step: &OperatorStep) {
    transition.operation.clone_from(&step.operation);
    transition.remarks.push(step.remark.clone());
}

fn add_decision(transition: &mut Transition, decided: &DecidedApproval) {
    let DecidedApproval { change, operation, remark, log } = decided.clone();
    transition.approvals.push(change);
    transition.operation = Some(operation);
    transition.remarks.push(remark);
    transition.log.push(log);
}

impl AttemptEnded {
    /// Withdraws the parts after this one, if they are dropped.
    fn later_parts_withdrawal(&self) -> Option<Withdrawal> {
        let delivery = &self.delivery;
        (self.withdraws_later_parts && delivery.parts > delivery.part).then(|| Withdrawal {
            turn: delivery.turn,
            claim: delivery.claim,
            reason: "an earlier part was refused".to_owned(),
        })
    }
}
