//! Sends the stored deliveries.
//!
//! A conversation with deliveries to send has a lane: a task that sends them one at a time, in order (see
//! [`Round`]), and ends when none is due. Lanes take turns, one delivery each, so that a busy conversation does not
//! starve others. A delivery that must wait longer keeps no task: its row has a time, and the sweep
//! opens the lane again.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use rejoinder_guard::Timestamp;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit, mpsc};
use tracing::{error, info, warn};

use super::{
    account_line::LinePosition,
    attempts::{Attempts, StartedAttempt},
    caller::{Caller, TIMEOUT},
    files::{LoadedFiles, OutgoingFiles},
    gate::Refill,
    health::MayResend,
    round::Round,
    speaking::Speaker,
};
use crate::{
    base::{channels::Channels, crash::crash_point, lifecycle::Lifecycle, timer::Timer},
    handles::lanes::{FirstAttempt, Hurry, Lanes, Opened},
    model::{
        Action, ChannelId, Class, ConversationId, Delivery, DeliveryError, DeliveryId, DeliveryRecord, DeliveryState,
        LiveSettings, Pairing, Receipt, Support,
    },
    nodes::leases::Hold,
    ports::{ChannelAdapter, NextDeliveries, OutboxStore, SharedClock, StoreError},
    shown::{render, retry},
};

/// The time limit for one adapter call, in addition to the adapter's own timeouts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(2);

/// The longest wait for a budget that a lane spends in memory; it needs no write. A longer one is stored.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for a first draft, which is dropped after it.
const DRAFT_PATIENCE: Duration = Duration::from_millis(250);

const STORE_PAUSE: Duration = Duration::from_secs(1);

const PANIC_PAUSE: Duration = Duration::from_mins(1);

pub(crate) struct Dispatcher {
    pub(crate) store: Arc<dyn OutboxStore>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) files: OutgoingFiles,
    pub(crate) speaker: Speaker,
    pub(crate) caller: Arc<Caller>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) opened: Mutex<mpsc::UnboundedReceiver<Opened>>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
    pub(crate) lifecycle: Lifecycle,
}

/// What a lane does after checking its next delivery.
enum Next {
    /// Checks again at once.
    Again,
    /// Checks again after a pause.
    Wait(Duration),
    /// Ends: nothing is due, or the next delivery was rescheduled.
    End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Delivered,
    /// It failed, or was not made.
    NotDelivered,
    /// The gateway ended, or the channel is this node's no more.
    Stopped,
}

impl Sent {
    /// What follows in the lane; `is_last`: nothing else was to be sent in it.
    fn next(self, is_last: bool) -> Next {
        // What was claimed meanwhile has opened the lane again, so it does not close.
        let is_done = is_last && self == Self::Delivered;
        if is_done || self == Self::Stopped { Next::End } else { Next::Again }
    }
}

impl Dispatcher {
    /// Runs the lanes that are opened, until the gateway has ended.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut opened = self.opened.lock().await;
        loop {
            let Opened { channel, conversation, first, work } = tokio::select! {
                Some(opened) = opened.recv() => opened,
                () = self.lifecycle.ended.cancelled() => return,
            };
            let dispatcher = Arc::clone(&self);
            tokio::spawn(async move {
                let _work = work;
                dispatcher.run_lane(&channel, conversation, first).await;
            });
        }
    }

    async fn run_lane(&self, on: &ChannelId, conversation: ConversationId, mut first: Option<Box<FirstAttempt>>) {
        let mut round = Round::default();
        loop {
            let next = async {
                match first.take() {
                    Some(first) => Ok(Box::pin(self.send_first(*first, &mut round)).await),
                    None => self.send_next(on, conversation, &mut round).await,
                }
            };
            // A panic in an adapter's pure method must not leave the conversation without a lane.
            let result = AssertUnwindSafe(next).catch_unwind().await;
            let pause = match result {
                Ok(Ok(Next::Wait(pause))) => pause,
                // `close` fails if the lane was opened again meanwhile; after it, `open` starts a new one. If another node has the channel,
                // it sends what waits.
                Ok(Ok(Next::End) | Err(StoreError::NotOwner)) if self.lanes.close(conversation) => return,
                Ok(Ok(Next::Again | Next::End) | Err(StoreError::NotOwner)) => continue,
                // It costs itself: its deliveries end, and the next one is sent.
                Ok(Err(StoreError::CorruptTurn { turn, reason })) => match self.attempts.set_aside(turn, &reason).await
                {
                    Ok(()) => continue,
                    Err(error) => {
                        warn!(%turn, %error, "cannot set a turn aside, retrying");
                        STORE_PAUSE
                    }
                },
                Ok(Err(error)) => {
                    warn!(%conversation, %error, "the store failed during a delivery, retrying");
                    STORE_PAUSE
                }
                Err(_) => {
                    error!(%conversation, "a delivery panicked, retrying");
                    PANIC_PAUSE
                }
            };
            if !self.lifecycle.pause(pause).await {
                return;
            }
        }
    }

    /// Begins a round with what is hurried in a conversation, if anything is.
    async fn begin_round(&self, conversation: ConversationId, round: &mut Round) -> Result<(), StoreError> {
        match self.lanes.take_hurry(conversation) {
            Some(Hurry::All) => round.hurry(),
            Some(Hurry::One(delivery)) => round.probe(delivery),
            Some(Hurry::Asked(delivery)) => round.ask(delivery),
            Some(Hurry::Look) => {
                let waiting = self.store.next_deliveries(conversation).await?.list;
                if let Some(waiting) = waiting.first() {
                    self.look(waiting).await;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Makes due what has nothing to wait for any more: edits that were overtaken, and deliveries to a channel that answers again.
    async fn make_due(
        &self,
        candidates: &mut [DeliveryRecord],
        is_down: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for one in candidates {
            if !is_down && one.next_attempt_at > now && self.attempts.is_overtaken_edit(one).await? {
                one.next_attempt_at = now;
            }
            if let Some(from) = one.resend_from {
                let last = retry::last_attempt(one, from);
                if self.caller.health.is_back_since(&one.conversation.channel, last) {
                    retry::release(one, last);
                }
            }
        }
        Ok(())
    }

    async fn send_next(
        &self,
        on: &ChannelId,
        conversation: ConversationId,
        round: &mut Round,
    ) -> Result<Next, StoreError> {
        self.begin_round(conversation, round).await?;
        let (mut position, mut permit) = (None::<LinePosition>, None);
        loop {
            if self.lifecycle.ended.is_cancelled() {
                return Ok(Next::End);
            }
            // Before the rows are read: nothing is stored that was decided on them, if another node had the channel since.
            let hold = self.caller.leases.hold(on).filter(Hold::is_open);
            if hold.is_none() && (self.channels.get(on).is_some() || !self.caller.leases.are_for_good()) {
                // Another node has it, or is given it now: it sends what waits, and an attempt may be in flight there.
                return Ok(Next::End);
            }
            let NextDeliveries { list: mut candidates, is_last } = self.store.next_deliveries(conversation).await?;
            if let Some(index) = candidates.iter().position(|one| one.state == DeliveryState::Sending) {
                // An earlier attempt of this process, or of the node that had the channel before, did not finish: it is handled as after
                // a crash.
                let (left, why) = (candidates.swap_remove(index), "the attempt did not finish");
                self.attempts.end_as_unknown(left, why, hold.as_ref()).await?;
                return Ok(Next::Again);
            }
            let now = self.clock.now();
            let is_down = candidates.first().is_some_and(|one| self.caller.health.is_down(&one.conversation.channel));
            self.make_due(&mut candidates, is_down, now).await?;
            let Some(delivery) = round.next(&candidates, now, is_down).cloned() else {
                return self.wait(&candidates, hold.as_ref()).await;
            };
            let address = delivery.conversation.clone();
            let (Some(channel), Some(hold)) = (self.channels.get(&address.channel), &hold) else {
                // It waits until its channel is configured again, at any age.
                return self.reschedule(&delivery, now + retry::pause(u32::MAX), hold.as_ref()).await;
            };
            if let Some(until) = self.caller.blocked_until(&address) {
                return self.reschedule(&delivery, until, Some(hold)).await;
            }
            if delivery.action.to_speak().is_some() {
                Box::pin(self.speaker.speak(&delivery, hold)).await?;
                return Ok(Next::Again);
            }
            if delivery.resend_from.is_some() && !round.is_asked(delivery.id) {
                let may = match self.caller.health.may_resend(&address.channel) {
                    MayResend::Now => true,
                    MayResend::AsProbe => self.look(&delivery).await,
                    MayResend::Later => false,
                };
                if !may {
                    round.pass_over(delivery.id);
                    self.attempts.wait_for_answer(&delivery, now, hold).await?;
                    return Ok(Next::Again);
                }
            }
            let is_first_draft = delivery.is_draft() && delivery.attempts == 0;
            // The answer waits for an attempted draft: it must not wait behind other drafts.
            let class = if delivery.is_draft() && !is_first_draft { Class::Final } else { delivery.class };
            let capabilities = channel.capabilities(&address);
            if capabilities.account_rate.is_some() {
                let position = match position.take() {
                    Some(taken) if taken.class() == class => position.insert(taken),
                    _ => position.insert(self.caller.gate.line(&address.channel).enter(class)),
                };
                if !position.is_first() {
                    if is_first_draft {
                        return self.reschedule(&delivery, now, Some(hold)).await;
                    }
                    // While it waits, it holds nothing of the row; another delivery may be next by then.
                    drop((delivery, candidates, address, capabilities));
                    tokio::select! {
                        () = position.first() => {}
                        () = self.lifecycle.ended.cancelled() => {}
                    }
                    continue;
                }
            }
            if permit.is_none()
                && let Some(limit) = self.caller.in_flight.get(&address.channel)
            {
                permit = limit.try_acquire().ok();
                if permit.is_none() {
                    permit = self.wait_for_permit(limit).await;
                    continue;
                }
            }
            if is_down && self.waits_for_probe(&delivery, round, now) {
                round.pass_over(delivery.id);
                self.attempts.wait_for_answer(&delivery, now, hold).await?;
                return Ok(Next::Again);
            }
            let patience = if is_first_draft { DRAFT_PATIENCE } else { PATIENCE };
            match self.caller.gate.take(&address, &capabilities, class) {
                Ok(()) => {
                    drop(position);
                    let sent = Box::pin(self.send(delivery, &**channel, now, round, (permit, hold))).await?;
                    return Ok(sent.next(is_last));
                }
                Err(Refill::Account(refill)) if refill <= patience => {
                    // The others in line wait behind this position.
                    self.lifecycle.pause(refill).await;
                }
                Err(Refill::Chat(refill)) if refill <= patience => return Ok(Next::Wait(refill)),
                Err(Refill::Chat(refill) | Refill::Account(refill)) => {
                    return self.reschedule(&delivery, now + refill, Some(hold)).await;
                }
            }
        }
    }

    /// One of the channel's calls; `None` once the gateway has ended.
    async fn wait_for_permit<'a>(&self, limit: &'a Semaphore) -> Option<SemaphorePermit<'a>> {
        tokio::select! {
            permit = limit.acquire() => permit.ok(),
            () = self.lifecycle.ended.cancelled() => None,
        }
    }

    /// Whether a delivery waits for the probe of a channel that is down. One that is past its lifetime does not.
    fn waits_for_probe(&self, delivery: &DeliveryRecord, round: &Round, now: Timestamp) -> bool {
        let is_retry = delivery.attempts > 0 && delivery.resend_from.is_none();
        let is_exempt = round.is_urgent() || delivery.is_copy || delivery.is_draft();
        is_retry && !is_exempt && !retry::is_old(delivery, &self.settings.get(), now)
    }

    /// Finds out whether the platform answers, with a typing notice in the conversation of a delivery. `true` if it does, or cannot
    /// be asked.
    async fn look(&self, waiting: &DeliveryRecord) -> bool {
        let address = &waiting.conversation;
        let Some(channel) = self.channels.get(&address.channel) else { return false };
        let capabilities = channel.capabilities(address);
        if capabilities.typing == Support::No {
            self.caller.health.note_look(&address.channel, true);
            return true;
        }
        let is_paced = self.caller.gate.take(address, &capabilities, Class::Typing).is_err();
        if is_paced || self.caller.blocked_until(address).is_some() {
            return false;
        }
        let call = self.caller.calls.begin_quietly(waiting.conversation_id).await;
        let (id, action) = (DeliveryId::new(self.clock.now()), Action::Typing { on: true });
        let typing = Delivery::ephemeral(id, address.clone(), waiting.turn, action);
        let result = match self.caller.leases.hold(channel.channel()) {
            Some(hold) => self.call(&hold, &**channel, &typing, TIMEOUT).await,
            None => None,
        };
        drop(call);
        // None: the gateway ended, or the channel is this node's no more.
        let is_answer = result.is_some_and(|result| result.as_ref().err().is_none_or(DeliveryError::is_answer));
        self.caller.health.note_look(&address.channel, is_answer);
        is_answer
    }

    /// Ends a lane whose candidates are not due.
    async fn wait(&self, candidates: &[DeliveryRecord], hold: Option<&Hold>) -> Result<Next, StoreError> {
        if let Some(last) = candidates.last()
            && self.attempts.drop_unwanted(last, hold).await?
        {
            return Ok(Next::Again);
        }
        if let Some(at) = candidates.iter().map(|one| one.next_attempt_at).min() {
            self.timer.wake_at(at);
        }
        Ok(Next::End)
    }

    /// Makes one attempt. Boxed by its caller, so that a lane that waits is small.
    async fn send(
        &self,
        delivery: DeliveryRecord,
        channel: &dyn ChannelAdapter,
        now: Timestamp,
        round: &mut Round,
        (permit, hold): (Option<SemaphorePermit<'_>>, &Hold),
    ) -> Result<Sent, StoreError> {
        let mut is_hopeless = self.attempts.is_hopeless(&delivery).await?;
        if is_hopeless && !self.caller.health.fails_although_it_answers(&delivery.conversation.channel) {
            self.look(&delivery).await;
            is_hopeless = false;
        }
        let call = self.caller.calls.begin(delivery.conversation_id).await;
        // Before the attempt: it must not begin if the store cannot read them.
        let files = self.files.load(&delivery, channel).await?;
        // Until its end is stored.
        let Some(_in_use) = hold.begin_use() else { return Ok(Sent::Stopped) };
        let Some(begun) = self.attempts.begin(delivery, is_hopeless, hold).await? else {
            return Ok(Sent::NotDelivered);
        };
        Ok(self.make(begun, files, (call, permit), channel, now, round).await)
    }

    /// Makes a first attempt that is stored with the claim of its delivery. Nothing else of its conversation was to be sent.
    async fn send_first(&self, first: FirstAttempt, round: &mut Round) -> Next {
        let FirstAttempt { delivery, turn, reservation } = first;
        let Some(channel) = self.channels.get(&delivery.conversation.channel) else { return Next::Again };
        let hold = self.caller.leases.hold(channel.channel());
        let Some(hold) = hold.filter(|hold| hold.fence() == reservation.fence()) else {
            // The lease under which it was stored is lost: the node that has the channel now recovers it.
            return Next::End;
        };
        let (is_last, now) = (delivery.part == delivery.parts, self.clock.now());
        let _in_use = hold.keep_using();
        let begun = StartedAttempt::of_claim(delivery, turn, hold);
        self.make(begun, LoadedFiles::default(), reservation, &**channel, now, round).await.next(is_last)
    }

    /// Makes an attempt that is stored. What others wait for is `held` until its call has ended.
    async fn make(
        &self,
        begun: StartedAttempt,
        mut files: LoadedFiles,
        held: impl Send,
        channel: &dyn ChannelAdapter,
        now: Timestamp,
        round: &mut Round,
    ) -> Sent {
        let is_draft = begun.delivery.is_draft();
        crash_point!("attempt_started" if !is_draft);
        crash_point!("draft_attempt_started" if is_draft);
        let mut attempted = {
            let (settings, to) = (self.settings.read(), &begun.delivery.conversation.channel);
            let say = |name: &str| settings.templates.template(to, begun.language, name);
            render::delivery(&begun.delivery, begun.number, begun.is_overtaken, say)
        };
        if let Some(code) = &begun.link_code {
            attempted.reveal(Pairing::HIDDEN_CODE, code);
        }
        files.fill(&mut attempted);
        let call = async {
            let under = begun.hold.as_ref()?;
            self.call(under, channel, &attempted, self.timeout(&begun)).await
        };
        let Some(mut result) = call.await else {
            // The next start, or the node that the channel is given to, finds an attempt without a result.
            return Sent::Stopped;
        };
        // Other lanes do not wait until the end is stored.
        drop((held, files));
        if let (Some(code), Err(error)) = (&begun.link_code, &mut result) {
            error.conceal(code);
        }
        crash_point!("attempt_ended" if !is_draft);
        crash_point!("draft_attempt_ended" if is_draft);
        self.log(&attempted, &result, now);
        // A copy goes to an address of its own.
        if (!is_draft || result.is_ok()) && !begun.delivery.is_copy {
            let is_message = matches!(attempted.action(), Action::Send { .. });
            self.caller.health.note(channel.channel(), is_message, &result);
        }
        match &result {
            Ok(_) => round.note_success(&begun.delivery),
            Err(DeliveryError::NotSent { .. } | DeliveryError::Unknown(_)) => {
                let is_down = self.caller.health.is_down(channel.channel());
                round.note_failure(begun.delivery.id, is_down);
                if is_down && self.caller.health.may_try_another(channel.channel()) {
                    round.try_another();
                }
            }
            Err(_) => {}
        }
        self.attempts.end_until_stored(&begun, &result).await;
        let is_outdated = matches!(result, Err(DeliveryError::NotSent { retry_after: None, .. }))
            && self.caller.health.has_returned_since(channel.channel(), begun.at);
        if is_outdated {
            self.lanes.hurry(channel.channel(), begun.delivery.conversation_id);
        }
        crash_point!("draft_noted" if is_draft);
        if result.is_ok() { Sent::Delivered } else { Sent::NotDelivered }
    }

    /// Calls an adapter, if this node still has its channel under the same lease: the process may have stood still since the attempt
    /// was stored.
    async fn call(
        &self,
        hold: &Hold,
        channel: &dyn ChannelAdapter,
        delivery: &Delivery,
        timeout: Duration,
    ) -> Option<Result<Receipt, DeliveryError>> {
        if !self.caller.leases.still_holds(hold) {
            return None;
        }
        self.caller.call(hold.ends().clone(), delivery.id(), channel.deliver(delivery), timeout).await
    }

    async fn reschedule(
        &self,
        delivery: &DeliveryRecord,
        until: Timestamp,
        hold: Option<&Hold>,
    ) -> Result<Next, StoreError> {
        self.attempts.reschedule(delivery, until, hold).await?;
        // A first draft was dropped: the next delivery can be sent.
        Ok(if delivery.is_draft() && delivery.attempts == 0 { Next::Again } else { Next::End })
    }

    /// The time limit for an attempt. A first draft gets less where the platform knows its key: if it hangs, a resend
    /// finds it.
    fn timeout(&self, begun: &StartedAttempt) -> Duration {
        let delivery = &begun.delivery;
        let is_first_draft = delivery.is_draft() && delivery.attempts == 1;
        if is_first_draft && self.attempts.is_idempotent(delivery) { TIMEOUT } else { ATTEMPT_TIMEOUT }
    }

    fn log(&self, attempted: &Delivery, result: &Result<Receipt, DeliveryError>, started: Timestamp) {
        let channel = attempted.channel().to_string();
        let name = result.as_ref().map_or_else(DeliveryError::as_str, |_| "delivered");
        let duration = self.clock.now().since(started);
        metrics::counter!("rejoinder_attempts_total", "channel" => channel.clone(), "result" => name).increment(1);
        metrics::histogram!("rejoinder_attempt_seconds", "channel" => channel.clone()).record(duration.as_secs_f64());
        if result.is_ok() && attempted.label().is_some() {
            metrics::counter!("rejoinder_labelled_deliveries_total", "channel" => channel.clone()).increment(1);
        }
        let error = result.as_ref().err().map(ToString::to_string);
        let (delivery, turn, attempt) = (attempted.id(), attempted.turn(), attempted.attempt());
        info!(%delivery, %turn, channel, attempt, result = name, duration_ms = duration.as_millis(), error, "attempt");
    }
}
