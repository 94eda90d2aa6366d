//! Works through what is stored to be sent.
//!
//! A conversation with something to send has a lane: a task that sends its deliveries one at a time,
//! in order, and ends when nothing of it is due. Lanes take turns, one delivery each, so that a noisy
//! conversation starves nobody. A delivery that has to wait for longer keeps no task: its row has a
//! time, and the sweep opens the lane again.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use dashmap::{DashMap, Entry};
use futures_util::FutureExt;
use rejoinder_guard::{Event, State};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::{delivery, retry};
use crate::{
    ConversationRef, Delivery, DeliveryError, Receipt, Resend, Scope, StoreError, Timestamp,
    crash::crash_point,
    engine::Core,
    ledger::Along,
    store::{
        AttemptEnd, AttemptStart, BlockedScope, Commit, DeliveryChange, DeliveryRecord, DeliveryState, Transition,
        TurnChange, TurnRecord, Withdrawal,
    },
};

/// How many deliveries are on their way at once.
const AT_ONCE: usize = 64;

/// How long one call of an adapter may take, whatever its own time-outs are.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a channel whose credentials were refused is left alone.
const UNAUTHORIZED_PAUSE: Duration = Duration::from_secs(60);

/// Waits that are not worth giving the lane up for.
const SHORT_WAIT: Duration = Duration::from_millis(250);

/// The conversations that have something to send.
pub(crate) struct Lanes {
    /// Whether there may be more since the lane last looked.
    open: DashMap<ConversationRef, bool>,
    on_their_way: Semaphore,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self { open: DashMap::new(), on_their_way: Semaphore::new(AT_ONCE) }
    }
}

/// What the lane does after it has looked.
enum Next {
    /// Looks again at once.
    Again,
    /// Looks again after a while.
    Wait(Duration),
    /// Ends: nothing is due, or what is due has a later time now.
    End,
}

impl Core {
    /// Sends what is due in `conversation`.
    pub(crate) fn open_lane(self: &Arc<Self>, conversation: &ConversationRef) {
        if self.ended.is_cancelled() {
            return;
        }
        match self.lanes.open.entry(conversation.clone()) {
            Entry::Occupied(mut open) => *open.get_mut() = true,
            Entry::Vacant(vacant) => {
                vacant.insert(false);
                let (core, conversation) = (Arc::clone(self), conversation.clone());
                self.work.spawn(async move { core.run_lane(conversation).await });
            }
        }
    }

    async fn run_lane(self: Arc<Self>, conversation: ConversationRef) {
        loop {
            let next = {
                let Ok(_turn) = self.lanes.on_their_way.acquire().await else { return };
                if self.ended.is_cancelled() { Ok(Next::End) } else { self.send_next(&conversation).await }
            };
            match next {
                Ok(Next::Again) => {}
                Ok(Next::Wait(pause)) => {
                    if !self.pause(pause).await {
                        return;
                    }
                }
                Ok(Next::End) => {
                    let more =
                        self.lanes.open.get_mut(&conversation).is_some_and(|mut more| std::mem::take(&mut *more));
                    let closed = !more && self.lanes.open.remove_if(&conversation, |_, more| !*more).is_some();
                    if closed || self.ended.is_cancelled() {
                        self.lanes.open.remove(&conversation);
                        return;
                    }
                }
                Err(error) => {
                    warn!(%conversation, %error, "cannot store how a delivery goes, trying again");
                    if !self.pause(Duration::from_secs(1)).await {
                        return;
                    }
                }
            }
        }
    }

    async fn send_next(self: &Arc<Self>, conversation: &ConversationRef) -> Result<Next, StoreError> {
        let Some(record) = self.store.next_delivery(conversation).await? else { return Ok(Next::End) };
        let now = self.clock.now();
        if record.state == DeliveryState::Sending {
            // The result of its attempt could not be stored; it is what a crash would have left.
            self.attempt_lost(&record, "the result could not be stored").await?;
            return Ok(Next::Again);
        }
        if record.next_attempt_at > now {
            self.alarm.note(record.next_attempt_at);
            return Ok(Next::End);
        }
        let Some(channel) = self.channel(&conversation.channel) else {
            self.put_off(&record, now + retry::pause(u32::MAX)).await?;
            return Ok(Next::End);
        };
        if let Some(until) = self.gate.blocked_until(conversation) {
            self.put_off(&record, until).await?;
            return Ok(Next::End);
        }
        if let Err(wait) = self.gate.take(conversation, &channel.capabilities(conversation), record.class) {
            if wait <= SHORT_WAIT {
                return Ok(Next::Wait(wait));
            }
            self.put_off(&record, now + wait).await?;
            return Ok(Next::End);
        }
        let Some(record) = self.start_attempt(record).await? else { return Ok(Next::Again) };
        crash_point!("attempt_started");
        let attempted = delivery(&record, record.attempts);
        let result = call(channel.deliver(&attempted)).await;
        crash_point!("attempt_ended");
        self.log_attempt(&attempted, &result, now);
        self.end_attempt(record, result, channel.capabilities(conversation).resend).await?;
        Ok(Next::Again)
    }

    async fn put_off(&self, record: &DeliveryRecord, until: Timestamp) -> Result<(), StoreError> {
        let change = DeliveryChange { next_attempt_at: until, ..DeliveryChange::of(record) };
        self.store.commit(Transition { delivery_changes: vec![change], ..Transition::default() }).await?;
        self.alarm.note(until);
        Ok(())
    }

    /// Stores that an attempt begins, before the first byte is sent. `None` when the guard has taken the
    /// signal back meanwhile.
    async fn start_attempt(self: &Arc<Self>, mut record: DeliveryRecord) -> Result<Option<DeliveryRecord>, StoreError> {
        let at = self.clock.now();
        record.attempts += 1;
        record.state = DeliveryState::Sending;
        loop {
            let mut transition = Transition {
                attempts_started: vec![AttemptStart { delivery: record.id, number: record.attempts, at }],
                delivery_changes: vec![DeliveryChange::of(&record)],
                ..Transition::default()
            };
            if !record.is_copy {
                let Some(turn) = self.store.turn(record.turn).await? else {
                    return Err(StoreError::Corrupt(format!("turn {} is gone", record.turn)));
                };
                if !may_attempt(&turn, record.claim) {
                    return Ok(None);
                }
                transition.turns.extend(self.mark_attempted(&turn, record.claim, at));
            }
            if self.store.commit(transition).await? == Commit::Done {
                return Ok(Some(record));
            }
        }
    }

    /// From now on the claim cannot be withdrawn.
    fn mark_attempted(&self, turn: &TurnRecord, claim: u32, at: Timestamp) -> Option<TurnChange> {
        let policy = self.settings.policies.of(&turn.event.conversation.channel, turn.event.chat);
        let mut obligation = turn.obligation.clone();
        // An attempt that begins has no effects: it only closes the way back.
        let _ = obligation.on(Event::Attempted { claim }, policy, at);
        (obligation != turn.obligation).then_some(TurnChange { turn: turn.id, expected: turn.version, obligation, at })
    }

    async fn end_attempt(
        self: &Arc<Self>,
        record: DeliveryRecord,
        result: Result<Receipt, DeliveryError>,
        resend: Resend,
    ) -> Result<(), StoreError> {
        let at = self.clock.now();
        let ended = |result: &str, detail: Option<String>| AttemptEnd {
            delivery: record.id,
            number: record.attempts,
            at,
            result: result.to_owned(),
            detail,
        };
        let change = DeliveryChange::of(&record);
        match result {
            Ok(receipt) => {
                let delivery = DeliveryChange {
                    state: DeliveryState::Delivered,
                    message_ids: receipt.message_ids.clone(),
                    error: None,
                    delivered_at: Some(at),
                    ..change
                };
                let along = Along {
                    attempt_ended: Some(ended("delivered", Some(receipt.message_ids.join(", ")))),
                    delivery: Some(delivery),
                    ..Along::default()
                };
                let event = self.all_parts(&record, receipt).await?;
                self.record_attempt(&record, event, along).await
            }
            Err(error) => {
                let attempt_ended = Some(ended(error.as_str(), Some(error.to_string())));
                self.failed_attempt(record, error, resend, attempt_ended, at).await
            }
        }
    }

    async fn failed_attempt(
        self: &Arc<Self>,
        record: DeliveryRecord,
        error: DeliveryError,
        resend: Resend,
        attempt_ended: Option<AttemptEnd>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let claim = record.claim;
        let change = DeliveryChange { error: Some(error.to_string()), ..DeliveryChange::of(&record) };
        let again =
            |pause| DeliveryChange { state: DeliveryState::Pending, next_attempt_at: at + pause, ..change.clone() };
        let (event, delivery) = match error {
            DeliveryError::Limited { retry_after, scope, .. } => {
                self.block(BlockedScope::of(&record.conversation, &scope, at + retry_after)).await?;
                // Waiting out a limit costs no attempt.
                (None, DeliveryChange { attempts: record.attempts - 1, ..again(retry_after) })
            }
            DeliveryError::Unauthorized(_) => {
                self.block(BlockedScope::of(&record.conversation, &Scope::Account, at + UNAUTHORIZED_PAUSE)).await?;
                (None, again(UNAUTHORIZED_PAUSE))
            }
            DeliveryError::NotSent { detail: reason, .. } if retry::is_spent(&record, &self.settings, at) => {
                let dead = DeliveryChange { state: DeliveryState::Dead, ..change };
                (Some(Event::Expired { claim, reason }), dead)
            }
            DeliveryError::NotSent { retry_after, .. } => {
                (None, again(retry::pause(record.attempts).max(retry_after.unwrap_or_default())))
            }
            DeliveryError::Unknown(reason) if retry::is_spent(&record, &self.settings, at) => {
                let dead = DeliveryChange { state: DeliveryState::Dead, ..change };
                (Some(Event::Expired { claim, reason }), dead)
            }
            DeliveryError::Unknown(_) => {
                let idempotent = resend == Resend::Idempotent;
                (Some(Event::Lost { claim, idempotent }), again(retry::pause(record.attempts)))
            }
            DeliveryError::Refused(reason) | DeliveryError::Unsupported(reason) => {
                let state = if record.is_copy { DeliveryState::Dead } else { DeliveryState::Refused };
                (Some(Event::Refused { claim, reason }), DeliveryChange { state, ..change })
            }
        };
        let ended_badly = matches!(event, Some(Event::Refused { .. } | Event::Expired { .. }));
        let withdrawn = ended_badly.then(|| Withdrawal {
            turn: record.turn,
            claim,
            reason: "an earlier part was refused".to_owned(),
        });
        if delivery.state == DeliveryState::Pending {
            self.alarm.note(delivery.next_attempt_at);
        }
        let along = Along {
            attempt_ended,
            delivery: Some(delivery),
            withdrawn: withdrawn.filter(|_| record.parts > record.part),
            attempted: Some(record.clone()),
            ..Along::default()
        };
        self.record_attempt(&record, event, along).await
    }

    /// Takes up an attempt that has no result.
    pub(crate) async fn attempt_lost(self: &Arc<Self>, record: &DeliveryRecord, why: &str) -> Result<(), StoreError> {
        let resend = self
            .channel(&record.conversation.channel)
            .map_or(Resend::Ambiguous, |channel| channel.capabilities(&record.conversation).resend);
        self.end_attempt(record.clone(), Err(DeliveryError::Unknown(why.to_owned())), resend).await
    }

    async fn block(&self, scope: BlockedScope) -> Result<(), StoreError> {
        self.gate.block(&scope);
        self.store.block(scope).await
    }

    /// The event of a delivered claim, when `record` is its last part.
    async fn all_parts(&self, record: &DeliveryRecord, receipt: Receipt) -> Result<Option<Event>, StoreError> {
        if record.part < record.parts {
            return Ok(None);
        }
        let mut messages = Vec::new();
        if record.parts > 1 {
            for part in self.store.claim_deliveries(record.turn, record.claim).await? {
                if part.part < record.part && part.is_copy == record.is_copy {
                    messages.extend(part.message_ids);
                }
            }
        }
        messages.extend(receipt.message_ids);
        Ok(Some(Event::Delivered { claim: record.claim, messages }))
    }

    /// Stores the end of an attempt with what it means for the turn. A copy means nothing for it.
    async fn record_attempt(
        self: &Arc<Self>,
        record: &DeliveryRecord,
        event: Option<Event>,
        along: Along,
    ) -> Result<(), StoreError> {
        let event = event.filter(|_| !record.is_copy);
        let Some(event) = event else {
            return self.decide_all(&mut [], along).await.map(|_| ());
        };
        let Some(mut turn) = self.store.turn(record.turn).await? else {
            return Err(StoreError::Corrupt(format!("turn {} is gone", record.turn)));
        };
        let decided = self.decide(&mut turn, event, along).await?;
        if decided.run_again {
            self.line_up(&turn.event.conversation, turn.conversation, turn.id);
        }
        Ok(())
    }

    fn log_attempt(&self, attempted: &Delivery, result: &Result<Receipt, DeliveryError>, started: Timestamp) {
        let channel = attempted.channel().to_string();
        let name = result.as_ref().map_or_else(DeliveryError::as_str, |_| "delivered");
        let duration = self.clock.now().since(started);
        metrics::counter!("rejoinder_attempts_total", "channel" => channel.clone(), "result" => name).increment(1);
        metrics::histogram!("rejoinder_attempt_seconds", "channel" => channel.clone()).record(duration.as_secs_f64());
        let turn = attempted.turn().map(|turn| turn.to_string());
        let error = result.as_ref().err().map(ToString::to_string);
        let (delivery, attempt, duration_ms) = (attempted.id(), attempted.attempt(), duration.as_millis());
        info!(%delivery, turn, channel, attempt, result = name, duration_ms, error, "attempt");
    }
}

/// Whether a claim is still the one to send: in flight, or a late answer after a settled fallback.
fn may_attempt(turn: &TurnRecord, claim: u32) -> bool {
    claim == turn.obligation.claims() && matches!(turn.obligation.state(), State::Claimed { .. } | State::Settled(_))
}

/// Calls an adapter: it may panic or hang, the gateway goes on.
async fn call(deliver: impl Future<Output = Result<Receipt, DeliveryError>>) -> Result<Receipt, DeliveryError> {
    match tokio::time::timeout(ATTEMPT_TIMEOUT, AssertUnwindSafe(deliver).catch_unwind()).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(DeliveryError::Unknown("the adapter panicked".to_owned())),
        Err(_) => Err(DeliveryError::Unknown("the adapter did not come back".to_owned())),
    }
}
