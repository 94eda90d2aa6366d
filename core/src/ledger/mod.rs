//! The only place where obligations change. Nothing here runs an agent or calls a platform.
//!
//! Everything that happens to a turn comes here as an event: the guard decides on it, the decision is stored
//! in one transaction by compare-and-swap, and it is acted on only after it was stored. If the swap fails, the
//! turn is read again and the guard decides again.

pub(crate) mod consequences;
pub(crate) mod log;
pub(crate) mod store_retry;
pub(crate) mod transaction;
pub(crate) mod trigger;

use std::{collections::BTreeMap, sync::Arc};

use rejoinder_guard::{Event, Obligation};
use tracing::error;

use self::{
    consequences::ConsequenceExecutor,
    store_retry::StoreRetry,
    transaction::{DecisionContext, SentAtOnce, Transaction, TurnDecision},
    trigger::{Decided, Trigger},
};
use crate::{
    base::{crash::crash_point, lifecycle::Lifecycle, recent_turns::RecentTurns},
    conversations::addresses::{Addresses, ChangedConversations},
    events::TurnEvents,
    model::{
        AgentName, ApprovalChange, AskedQuestion, ChannelId, DeliveryId, DeliveryState, PeopleChange, TurnFile, TurnId,
        TurnRecord,
    },
    nodes::leases::Leases,
    ports::{
        DeliveryChange, Fence, Hint, LeaseName, LineChange, Noun, OutboxStore, Seen, SharedClock, StoreError,
        Transition, TurnChange, WaitingTurn,
    },
    questions::{approvals::Approvals, open_questions::OpenQuestions},
};

const MERGED_AT_ONCE: u32 = 100;

/// Lets the guard decide, stores the decision, and passes it to the executor.
pub(crate) struct Ledger {
    pub(crate) store: Arc<dyn OutboxStore>,
    pub(crate) clock: SharedClock,
    pub(crate) leases: Arc<Leases>,
    pub(crate) context: DecisionContext,
    pub(crate) executor: ConsequenceExecutor,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) lifecycle: Lifecycle,
    /// Turns with a delivery that was claimed last, and is about to be sent.
    pub(crate) claimed: RecentTurns,
}

/// A decision, and what follows from it once it is stored.
struct Decision {
    decisions: Vec<TurnDecision>,
    merged: Vec<(TurnEvents, TurnDecision)>,
    changed: ChangedConversations,
    questions: Vec<AskedQuestion>,
    approvals: Vec<ApprovalChange>,
    seen_people: Option<Seen>,
    people: Vec<PeopleChange>,
    is_sent_next: bool,
    /// The first of its deliveries.
    delivery: Option<DeliveryId>,
}

/// A decision of which the store does not know whether it is stored.
struct Unsettled {
    /// The turns that it was made on.
    before: Vec<TurnRecord>,
    decision: Decision,
}

impl Ledger {
    /// Whether this node works on the turns of a channel: it has it, or there can be no other node.
    pub(crate) fn has_channel(&self, channel: &ChannelId) -> bool {
        self.context.channels.get(channel).is_some() || self.leases.are_for_good()
    }

    /// The agent that a waiting turn is for. `None` if this node leaves it to those that have its channel or its agent.
    pub(crate) fn agent_of(&self, waiting: &WaitingTurn) -> Option<AgentName> {
        let agent = self.context.agent_or_current(&waiting.agent, &waiting.channel);
        (self.has_channel(&waiting.channel) && !self.context.is_elsewhere(&agent)).then_some(agent)
    }

    /// Lets the guard decide on an event of one turn, and stores the decision. Updates `turn` to what is stored.
    pub(crate) async fn decide(
        &self,
        turn: &mut TurnRecord,
        event: Event,
        trigger: Trigger,
    ) -> Result<Decided, StoreError> {
        let mut inputs = [TurnEvents { turn: turn.clone(), events: vec![event] }];
        let decided = self.decide_all(&mut inputs, &trigger).await;
        let [input] = inputs;
        *turn = input.turn;
        Ok(decided?.pop().unwrap_or_default())
    }

    /// As [`decide`](Self::decide), and retries until it is stored. `None` if the turn was removed, or that was given up (see
    /// [`StoreRetry`]): the turn's stored deadline ends it then.
    ///
    /// Must not be cancelled: the store may apply the decision all the same, and nobody would make the attempt that began with it.
    pub(crate) async fn decide_until_stored(
        &self,
        turn: &mut TurnRecord,
        event: Event,
        trigger: Trigger,
    ) -> Option<Decided> {
        let mut retry = self.store_retry("an event of a turn", turn.id);
        let mut inputs = [TurnEvents { turn: turn.clone(), events: vec![event] }];
        // Only at the first try: the store may have rejected just the attempt.
        let mut may_send_at_once = true;
        let mut unsettled = None;
        let decided = loop {
            match self.decide_again(&mut inputs, &trigger, may_send_at_once, &mut unsettled).await {
                Ok(mut decided) => break Some(decided.pop().unwrap_or_default()),
                Err(error) if self.is_gone(turn.id, &error).await => break None,
                Err(error) if retry.wait(&error).await => may_send_at_once = false,
                Err(_) => break None,
            }
        };
        let [input] = inputs;
        *turn = input.turn;
        decided
    }

    /// The retries for something of `turn` that must be stored; `what` names it in log lines.
    pub(crate) fn store_retry(&self, what: &'static str, turn: TurnId) -> StoreRetry<'_> {
        StoreRetry::new(what, turn, &self.lifecycle)
    }

    /// Decides on several turns in one transaction, and again after each conflict.
    pub(crate) async fn decide_all(
        &self,
        inputs: &mut [TurnEvents],
        trigger: &Trigger,
    ) -> Result<Vec<Decided>, StoreError> {
        self.decide_again(inputs, trigger, true, &mut None).await
    }

    /// As [`decide_all`](Self::decide_all). `may_send_at_once`: an answer may begin its first attempt with its claim. `unsettled` is the
    /// decision of an earlier try, or of this one if the store does not know whether it is stored.
    async fn decide_again(
        &self,
        inputs: &mut [TurnEvents],
        trigger: &Trigger,
        mut may_send_at_once: bool,
        unsettled: &mut Option<Box<Unsettled>>,
    ) -> Result<Vec<Decided>, StoreError> {
        loop {
            // In a box: the future of a run has room for it all the time that its agent works.
            let decide = Box::pin(self.decide_once(inputs, trigger, may_send_at_once, unsettled));
            match decide.await {
                Ok(Some(decided)) => return Ok(decided),
                Ok(None) => {}
                Err(StoreError::NotOwner) if may_send_at_once && trigger.fence().is_none() => {
                    // Only the attempt needs the lease. The node that has it now makes the attempt.
                    may_send_at_once = false;
                    continue;
                }
                Err(error) => return Err(error),
            }
            // Something may be sent before it.
            let was_lane_empty = std::mem::replace(&mut may_send_at_once, false);
            let mut is_changed = false;
            for input in &mut *inputs {
                let version = input.turn.version;
                input.turn = self.turn(input.turn.id).await?;
                is_changed |= input.turn.version != version;
                if !was_lane_empty && input.turn.version == version && input.events == [Event::Begin] {
                    // Nothing of the turn stands in the way: another one has the slot.
                    return Ok(vec![Decided { is_elsewhere: true, ..Decided::default() }]);
                }
                if input.turn.obligation.claim_in_flight().is_some() {
                    // A commit that failed here may have been applied: then nobody makes the attempt that it began.
                    let channel = &input.turn.event.conversation.channel;
                    self.executor.lanes.open(channel, input.turn.conversation);
                }
            }
            let was_stored = match unsettled {
                Some(unsettled) => self.was_stored(inputs, trigger, unsettled).await?,
                None => false,
            };
            if let Some(Unsettled { before, decision }) = unsettled.take().map(|it| *it)
                && was_stored
            {
                for (input, before) in inputs.iter_mut().zip(before) {
                    input.turn = before;
                }
                return Ok(self.act_on(inputs, decision, None).await);
            }
            if let [input] = &*inputs
                && input.events == [Event::Begin]
                && is_changed
            {
                // The permit and the slot are for the turn as it was read. By now its message may be deleted, it may be for another agent,
                // or it may have had a run.
                return Ok(vec![Decided { is_changed, ..Decided::default() }]);
            }
        }
    }

    /// Whether a decision is stored, although the store did not say so. The turns were changed meanwhile, as `inputs` have them: no
    /// transaction of the decision is still on its way.
    async fn was_stored(
        &self,
        inputs: &[TurnEvents],
        trigger: &Trigger,
        Unsettled { decision, .. }: &Unsettled,
    ) -> Result<bool, StoreError> {
        if let Some(delivery) = decision.delivery {
            return Ok(self.store.delivery(delivery).await?.is_some());
        }
        if trigger.run_end().is_some() {
            return self.has_run_ended(trigger).await;
        }
        for (input, TurnDecision { decided, next, .. }) in inputs.iter().zip(&decision.decisions) {
            let (now, next) = (&input.turn, next.as_ref());
            if next.is_some_and(|next| (now.version, &now.obligation) != (next.version, &next.obligation)) {
                return Ok(false);
            }
            // Another node may have begun a run meanwhile, which makes the turn the same.
            if let Some(run) = &decided.run {
                let runs = self.store.runs(now.id).await?;
                if !runs.iter().any(|it| (it.number, it.started_at) == (run.number, run.started_at)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the end of a run is stored as the trigger has it.
    async fn has_run_ended(&self, trigger: &Trigger) -> Result<bool, StoreError> {
        let Some(end) = trigger.run_end() else { return Ok(false) };
        let runs = self.store.runs(end.turn).await?;
        let run = runs.iter().find(|run| run.number == end.number);
        Ok(run.is_some_and(|run| run.ended_at == Some(end.at) && run.end.as_ref() == Some(&end.end)))
    }

    /// As [`decide_all`](Self::decide_all), but tries once; `None` if one of the turns, or what the trigger was decided on, was
    /// changed meanwhile.
    pub(crate) async fn try_to_decide(
        &self,
        inputs: &mut [TurnEvents],
        trigger: &Trigger,
    ) -> Result<Option<Vec<Decided>>, StoreError> {
        self.decide_once(inputs, trigger, false, &mut None).await
    }

    async fn decide_once(
        &self,
        inputs: &mut [TurnEvents],
        trigger: &Trigger,
        may_send_at_once: bool,
        unsettled: &mut Option<Box<Unsettled>>,
    ) -> Result<Option<Vec<Decided>>, StoreError> {
        let mut transaction = Transaction::new(&self.context, trigger, self.clock.now(), may_send_at_once);
        let mut passed = BTreeMap::new();
        let mut decisions = Vec::with_capacity(inputs.len());
        for input in &*inputs {
            let decision = transaction.decide(input, passed.remove(&input.turn.id));
            passed.extend(decision.to_merged.iter().cloned());
            decisions.push(decision);
        }
        let mut merged = Vec::new();
        for (turn, event) in passed {
            if inputs.iter().all(|input| input.turn.id != turn)
                && let Some(turn) = self.merged_turn(turn).await?
            {
                let input = TurnEvents { turn, events: vec![event] };
                let decision = transaction.decide(&input, None);
                merged.push((input, decision));
            }
        }
        let sent_at_once = transaction.sent_at_once.take();
        let transition = transaction.into_transition();
        let has_pending = transition.deliveries.iter().any(|one| one.record().state == DeliveryState::Pending);
        // Of an answer in parts whose first one is sent at once, the turn has changed by the time of the next.
        let is_sent_next = has_pending && sent_at_once.is_none();
        let mut changed = ChangedConversations::by(&transition);
        changed.postponed(
            inputs
                .iter()
                .zip(&decisions)
                .filter_map(|(input, decision)| decision.next.as_ref().map(|next| (&input.turn, next))),
        );
        let decision = Decision {
            decisions,
            merged,
            changed,
            questions: transition.questions.clone(),
            approvals: transition.approvals.clone(),
            seen_people: transition.seen.iter().copied().find(|seen| seen.noun == Noun::People),
            people: transition.people.clone(),
            is_sent_next,
            delivery: transition.deliveries.first().map(|new| new.record().id),
        };
        if !transition.is_empty() {
            match self.commit(transition).await {
                Ok(true) => {}
                Ok(false) => {
                    if let Some(seen) = decision.seen_people {
                        self.context.people.refresh(seen).await?;
                    }
                    return Ok(None);
                }
                Err(error) => {
                    // If an attempt has begun with it, nothing is sent: its lane finds it as after a crash. What else may be stored is
                    // found among the rows, in case this is not tried again.
                    if let StoreError::Unknown(_) = error {
                        self.executor.slots.fall_behind();
                        self.executor.timer.wake_now();
                        let before = inputs.iter().map(|input| input.turn.clone()).collect();
                        *unsettled = Some(Box::new(Unsettled { before, decision }));
                    }
                    return Err(error);
                }
            }
        }
        Ok(Some(self.act_on(inputs, decision, sent_at_once).await))
    }

    /// Acts on a decision that is stored. Updates the turns of `inputs`, which it was made on.
    async fn act_on(
        &self,
        inputs: &mut [TurnEvents],
        decision: Decision,
        sent_at_once: Option<SentAtOnce>,
    ) -> Vec<Decided> {
        let Decision {
            decisions,
            merged,
            changed,
            questions,
            approvals,
            seen_people,
            people,
            is_sent_next,
            delivery: _,
        } = decision;
        self.addresses.forget_changed(&changed);
        // What is sent next may be about them: a code of `/link` is in no row.
        if let Some(seen) = seen_people {
            self.context.people.take_over(seen, &people).await;
        }
        self.questions.note(&questions);
        self.approvals.note(&approvals);
        self.questions.note_approvals(&approvals);
        if !questions.is_empty() || !approvals.is_empty() {
            self.executor.hints.tell(|| Hint::Questions);
        }
        let mut decided = Vec::with_capacity(inputs.len());
        for (input, decision) in inputs.iter_mut().zip(decisions) {
            decided.push(decision.decided);
            if let Some(next) = decision.next {
                let before = std::mem::replace(&mut input.turn, next);
                if is_sent_next {
                    self.claimed.keep(input.turn.clone());
                }
                self.executor.execute(&before, &input.turn, decision.consequences);
            }
        }
        for (input, decision) in merged {
            if let Some(next) = decision.next {
                self.executor.execute(&input.turn, &next, decision.consequences);
            }
        }
        if let Some(SentAtOnce { lane, delivery }) = sent_at_once
            && let Some(input) = inputs.iter().find(|input| input.turn.id == delivery.turn)
        {
            lane.begin(delivery, input.turn.clone());
        }
        decided
    }

    /// A turn that was merged into another one, which ends. `None` if it cannot be read: the other one ends all the same.
    async fn merged_turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        match self.store.turn(turn).await {
            Err(StoreError::CorruptTurn { turn, reason }) => {
                self.end_unreadable_or_leave(turn, &reason).await?;
                Ok(None)
            }
            read => read,
        }
    }

    /// Stores a trigger that needs no decision.
    pub(crate) async fn record(&self, trigger: Trigger) -> Result<(), StoreError> {
        self.decide_all(&mut [], &trigger).await.map(drop)
    }

    /// As [`record`](Self::record), and retries until it is stored, the turn was removed, or that is given up (see [`StoreRetry`]).
    pub(crate) async fn record_until_stored(&self, turn: TurnId, trigger: Trigger) {
        let mut retry = self.store_retry("something that happened to a turn", turn);
        let mut is_unsettled = false;
        loop {
            let Err(error) = self.record_once(&trigger, is_unsettled).await else { return };
            is_unsettled |= matches!(error, StoreError::Unknown(_));
            if self.is_gone(turn, &error).await || !retry.wait(&error).await {
                return;
            }
        }
    }

    /// As [`record`](Self::record). `is_unsettled`: an earlier try may have stored it, and what a run has used is counted once.
    async fn record_once(&self, trigger: &Trigger, is_unsettled: bool) -> Result<(), StoreError> {
        if is_unsettled && self.has_run_ended(trigger).await? {
            return Ok(());
        }
        self.decide_all(&mut [], trigger).await.map(drop)
    }

    /// Stores a change of a delivery that needs no decision, under the lease of its channel.
    pub(crate) async fn change_delivery(
        &self,
        change: DeliveryChange,
        fence: Option<(LeaseName, Fence)>,
    ) -> Result<(), StoreError> {
        let transition = Transition { delivery_changes: vec![change], fence, ..Transition::default() };
        self.commit(transition).await.map(drop)
    }

    /// Stores a change of a delivery that follows from its turn, under the lease of its channel; `false` if the turn was changed
    /// meanwhile.
    pub(crate) async fn change_delivery_of(
        &self,
        turn: &TurnRecord,
        change: DeliveryChange,
        fence: Option<(LeaseName, Fence)>,
    ) -> Result<bool, StoreError> {
        self.change_delivery_with(turn, change, Vec::new(), fence).await
    }

    /// As [`change_delivery_of`](Self::change_delivery_of), with the files that it refers to from now on.
    pub(crate) async fn change_delivery_with(
        &self,
        turn: &TurnRecord,
        change: DeliveryChange,
        files: Vec<TurnFile>,
        fence: Option<(LeaseName, Fence)>,
    ) -> Result<bool, StoreError> {
        let (obligation, at) = (turn.obligation.clone(), self.clock.now());
        let unchanged = TurnChange { turn: turn.id, expected: turn.version, obligation, at };
        let (turns, delivery_changes) = (vec![unchanged], vec![change]);
        let lines = vec![LineChange::Other { session: turn.session }];
        self.commit(Transition { fence, turns, files, delivery_changes, lines, ..Transition::default() }).await
    }

    /// Ends a turn that cannot be read as a dead letter, so that it costs nobody else anything. Turns that were merged into it
    /// wait for runs of their own. [`StoreError::NotOwner`] if it is left to nodes of another version.
    pub(crate) async fn set_aside(&self, turn: TurnId, reason: &str) -> Result<(), StoreError> {
        self.end_unreadable(turn, reason).await?;
        self.unmerge_left().await
    }

    /// As [`end_unreadable`](Self::end_unreadable), or leaves the turn to nodes of another version.
    async fn end_unreadable_or_leave(&self, turn: TurnId, reason: &str) -> Result<(), StoreError> {
        match self.end_unreadable(turn, reason).await {
            Err(StoreError::NotOwner) => Ok(()),
            ended => ended,
        }
    }

    async fn end_unreadable(&self, turn: TurnId, reason: &str) -> Result<(), StoreError> {
        let now = self.clock.now();
        let why = format!("its record cannot be read: {reason}");
        self.store.set_aside(turn, Obligation::set_aside(why, now), reason, now).await?;
        error!(%turn, reason, alert = "undeliverable", "a turn cannot be read, it is set aside as undeliverable");
        metrics::counter!("rejoinder_unreadable_turns_total").increment(1);
        Ok(())
    }

    /// Has the turns wait for runs of their own that were merged into one which has ended without them.
    pub(crate) async fn unmerge_left(&self) -> Result<(), StoreError> {
        let mut last = Vec::new();
        loop {
            let left = self.store.merged_and_left(MERGED_AT_ONCE).await?;
            if left.is_empty() || left == last {
                return Ok(());
            }
            last.clone_from(&left);
            for turn in left {
                match self.store.turn(turn).await {
                    Ok(Some(mut turn)) => drop(self.decide(&mut turn, Event::Unmerged, Trigger::Event).await?),
                    Ok(None) => {}
                    Err(StoreError::CorruptTurn { turn, reason }) => {
                        self.end_unreadable_or_leave(turn, &reason).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

    pub(crate) async fn turn(&self, turn: TurnId) -> Result<TurnRecord, StoreError> {
        self.store.turn(turn).await?.ok_or_else(|| StoreError::Corrupt(format!("turn {turn} is gone")))
    }

    /// Whether an error is because a turn was removed: nothing of it is to be stored any more.
    async fn is_gone(&self, turn: TurnId, error: &StoreError) -> bool {
        !error.is_outage() && matches!(self.store.turn(turn).await, Ok(None))
    }

    /// `false` if a turn was changed meanwhile. The error is [`StoreError::NotOwner`] if it was to be stored under a lease that this node
    /// does not have any more.
    async fn commit(&self, transition: Transition) -> Result<bool, StoreError> {
        let fence = transition.fence.clone();
        #[cfg(feature = "crash-points")]
        let claims = transition.deliveries.iter().any(|delivery| !delivery.record().is_draft());
        crash_point!("before_commit" if claims);
        let committed = self.store.commit(transition).await?.is_done();
        let is_done = self.leases.checked(fence.as_ref(), committed)?;
        crash_point!("after_commit" if claims && is_done);
        Ok(is_done)
    }
}
