//! Works through what is stored to be sent.
//!
//! A conversation with something to send has a lane: a task that sends its deliveries one at a time,
//! in order, and ends when nothing of it is due. Lanes take turns, one delivery each, so that a noisy
//! conversation starves nobody. A delivery that has to wait for longer keeps no task: its row has a
//! time, and the sweep opens the lane again.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use futures_util::FutureExt;
use rejoinder_guard::{Draft, Event, OnUnknown, Settlement, State};
use tokio::sync::Semaphore;
use tracing::{debug, error, info, warn};

use super::{calls::Calls, delivery, hints::HINT_TIMEOUT, retry};
use crate::{
    Action, ChannelAdapter, ChannelId, ChatKind, Class, ConversationRef, Delivery, DeliveryError, EventId, EventKind,
    InboundEvent, Receipt, Resend, Sender, SenderKind, SignalKind, StoreError, Timestamp,
    crash::crash_point,
    engine::Core,
    ledger::Along,
    store::{
        AttemptEnd, AttemptStart, BlockedScope, Commit, DeliveryChange, DeliveryRecord, DeliveryState, NewEvent,
        Transition, TurnChange, TurnRecord, Withdrawal,
    },
};

/// How many deliveries of one channel are on their way at once.
const AT_ONCE: usize = 64;

/// How long one call of an adapter may take, whatever its own time-outs are.
const ATTEMPT_TIMEOUT: Duration = Duration::from_mins(2);

/// How long a channel whose credentials were refused is left alone.
const UNAUTHORIZED_PAUSE: Duration = Duration::from_mins(1);

/// The least time to wait out a limit, whatever the platform says.
const LEAST_LIMIT: Duration = Duration::from_millis(250);

/// Waits that are not worth giving the lane up for.
const SHORT_WAIT: Duration = Duration::from_millis(250);

/// How long to wait when the store cannot write how a delivery goes.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// How long to wait when a lane panicked.
const PANIC_PAUSE: Duration = Duration::from_mins(1);

/// After how many failures in a row a channel that sends again counts as back. Fewer are no outage: what failed
/// once or twice is tried again in a moment anyway.
const FAILURES: u32 = 3;

/// The least time between two returns of a channel that hurry what waits.
const BETWEEN_RETURNS: Duration = Duration::from_secs(15);

/// How many waiting conversations are hurried at once when a channel is back.
const HURRIED: u32 = 1024;

/// The longest that a delivery may have been put off and still be hurried.
const HURRIED_WITHIN: Duration = Duration::from_mins(15);

/// The conversations that have something to send.
pub(crate) struct Lanes {
    /// Whether there may be more since the lane last looked.
    open: DashMap<ConversationRef, bool>,
    /// Conversations whose channel is back: what waits there for another try goes now.
    hurried: DashMap<ConversationRef, ()>,
    /// Channels whose credentials were refused, and until when they are left alone. In memory only: whoever starts
    /// the gateway again may have mended them.
    unauthorized: DashMap<ChannelId, Timestamp>,
    /// The channels whose platform has answered since the start, and when it last came back.
    back_at: DashMap<ChannelId, Option<Timestamp>>,
    /// Channels that could not send of late, and how often in a row.
    failing: DashMap<ChannelId, u32>,
    on_their_way: HashMap<ChannelId, Semaphore>,
    /// The new ids of chats that got one since the start: turns that run know the old one.
    moved: DashMap<(ChannelId, Arc<str>), Arc<str>>,
    has_moved: AtomicBool,
    pub(crate) calls: Calls,
}

impl Lanes {
    pub(crate) fn new<'a>(channels: impl IntoIterator<Item = &'a ChannelId>) -> Self {
        Self {
            open: DashMap::new(),
            hurried: DashMap::new(),
            failing: DashMap::new(),
            unauthorized: DashMap::new(),
            back_at: DashMap::new(),
            moved: DashMap::new(),
            has_moved: AtomicBool::new(false),
            on_their_way: channels.into_iter().map(|channel| (channel.clone(), Semaphore::new(AT_ONCE))).collect(),
            calls: Calls::default(),
        }
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
        let conversation = self.address(conversation);
        match self.lanes.open.entry(conversation.clone()) {
            Entry::Occupied(mut open) => *open.get_mut() = true,
            Entry::Vacant(vacant) => {
                vacant.insert(false);
                let core = Arc::clone(self);
                self.work.spawn(async move { core.run_lane(conversation).await });
            }
        }
    }

    async fn run_lane(self: Arc<Self>, conversation: ConversationRef) {
        loop {
            // A panic (an adapter's, in what should be pure) must not leave the conversation without a lane.
            let looked = AssertUnwindSafe(self.look(&conversation)).catch_unwind().await;
            let pause = match looked {
                Ok(Ok(Next::Again)) => continue,
                Ok(Ok(Next::Wait(pause))) => pause,
                Ok(Ok(Next::End)) => {
                    // Whoever opens the lane from here on opens a new one, or is seen.
                    if self.lanes.open.remove_if_mut(&conversation, |_, more| !std::mem::take(more)).is_some() {
                        if self.address(&conversation) != conversation {
                            // The chat got another id meanwhile: what is left waits there.
                            self.open_lane(&conversation);
                        }
                        return;
                    }
                    continue;
                }
                Ok(Err(error)) => {
                    warn!(%conversation, %error, "cannot store how a delivery goes, trying again");
                    STORE_PAUSE
                }
                Err(_) => {
                    error!(%conversation, "a delivery panicked, trying again");
                    PANIC_PAUSE
                }
            };
            if !self.pause(pause).await {
                return;
            }
        }
    }

    async fn look(self: &Arc<Self>, conversation: &ConversationRef) -> Result<Next, StoreError> {
        let _turn = match self.lanes.on_their_way.get(&conversation.channel) {
            Some(on_their_way) => on_their_way.acquire().await.ok(),
            None => None,
        };
        if self.ended.is_cancelled() { Ok(Next::End) } else { self.send_next(conversation).await }
    }

    async fn send_next(self: &Arc<Self>, conversation: &ConversationRef) -> Result<Next, StoreError> {
        let hurried = self.lanes.hurried.remove(conversation).is_some();
        let Some(record) = self.store.next_delivery(conversation).await? else { return Ok(Next::End) };
        let now = self.clock.now();
        if record.state == DeliveryState::Sending {
            // What an attempt that was not brought to its end leaves, as a crash would.
            self.attempt_lost(&record, "the attempt was not brought to its end").await?;
            return Ok(Next::Again);
        }
        if record.next_attempt_at > now && !hurried {
            if self.is_stale(&record).await? {
                self.take_back(&record).await?;
                return Ok(Next::Again);
            }
            self.alarm.note(record.next_attempt_at);
            return Ok(Next::End);
        }
        let Some(channel) = self.channel(&conversation.channel) else {
            return self.without_a_channel(&record, now).await;
        };
        if let Some(until) = self.blocked_until(conversation) {
            return self.wait_until(&record, until).await;
        }
        // What an answer waits for does not wait behind drafts.
        let class = if record.is_draft() && record.attempts > 0 { Class::Final } else { record.class };
        if let Err(wait) = self.gate.take(conversation, &channel.capabilities(conversation), class) {
            if wait <= SHORT_WAIT {
                return Ok(Next::Wait(wait));
            }
            return self.wait_until(&record, now + wait).await;
        }
        let call = self.lanes.calls.begin(conversation).await;
        let Some((record, number)) = self.start_attempt(record).await? else { return Ok(Next::Again) };
        let is_draft = record.is_draft();
        crash_point!("attempt_started" if !is_draft);
        crash_point!("draft_attempt_started" if is_draft);
        let attempted = delivery(&record, number, &self.settings.words);
        // A first draft that hangs is looked for by its key, where the platform knows it. Anything else gets its time.
        let is_hint = is_draft && record.attempts == 1 && is_idempotent(&record, channel.as_ref());
        let timeout = if is_hint { HINT_TIMEOUT } else { ATTEMPT_TIMEOUT };
        let Some(result) = self.call(channel.deliver(&attempted), timeout).await else {
            // The gateway ended: at the next start this is an attempt without a result.
            return Ok(Next::End);
        };
        drop(call);
        crash_point!("attempt_ended" if !is_draft);
        crash_point!("draft_attempt_ended" if is_draft);
        self.log_attempt(&attempted, &result, now);
        if !is_draft || result.is_ok() {
            self.note_health(&conversation.channel, &result);
        }
        self.end_attempt_in_the_end(&record, number, &result, is_idempotent(&record, channel.as_ref())).await;
        crash_point!("draft_noted" if is_draft);
        if self.address(conversation) != *conversation {
            // The chat has another id since: what is left of this conversation is there.
            self.open_lane(conversation);
        }
        Ok(Next::Again)
    }

    /// Until when nothing may go to a conversation, if so: its platform limits us, or does not know us.
    pub(crate) fn blocked_until(&self, conversation: &ConversationRef) -> Option<Timestamp> {
        let now = self.clock.now();
        let unauthorized = self.lanes.unauthorized.get(&conversation.channel).map(|until| *until);
        self.gate.blocked_until(conversation).max(unauthorized.filter(|until| *until > now))
    }

    /// A delivery may not go before `until`. A draft does not wait: by then there is more to show.
    async fn wait_until(self: &Arc<Self>, record: &DeliveryRecord, until: Timestamp) -> Result<Next, StoreError> {
        if record.is_draft() && record.attempts == 0 {
            let along = Along { attempted: Some(record.clone()), ..Along::default() };
            self.record_attempt(record, Some(Event::NotSent { claim: Draft::CLAIM }), along).await?;
            return Ok(Next::Again);
        }
        self.put_off(record, until).await?;
        Ok(Next::End)
    }

    /// The channel of a delivery is not configured: it waits for its channel, however old it becomes.
    async fn without_a_channel(&self, record: &DeliveryRecord, now: Timestamp) -> Result<Next, StoreError> {
        self.put_off(record, now + retry::pause(u32::MAX)).await?;
        Ok(Next::End)
    }

    /// Whether the guard wants something else sent, or nothing.
    async fn is_stale(&self, record: &DeliveryRecord) -> Result<bool, StoreError> {
        if record.is_copy {
            return Ok(false);
        }
        Ok(!may_attempt(&self.turn_of(record).await?, record.claim))
    }

    async fn turn_of(&self, record: &DeliveryRecord) -> Result<TurnRecord, StoreError> {
        let turn = self.store.turn(record.turn).await?;
        turn.ok_or_else(|| StoreError::Corrupt(format!("turn {} is gone", record.turn)))
    }

    /// Marks a delivery that the guard no longer wants sent.
    async fn take_back(&self, record: &DeliveryRecord) -> Result<(), StoreError> {
        let change = DeliveryChange {
            state: DeliveryState::Withdrawn,
            error: record.error.clone().or_else(|| Some("a better end came before it was sent".to_owned())),
            ..DeliveryChange::of(record)
        };
        self.store.commit(Transition { delivery_changes: vec![change], ..Transition::default() }).await?;
        Ok(())
    }

    async fn put_off(&self, record: &DeliveryRecord, until: Timestamp) -> Result<(), StoreError> {
        let change = DeliveryChange { next_attempt_at: until, ..DeliveryChange::of(record) };
        self.store.commit(Transition { delivery_changes: vec![change], ..Transition::default() }).await?;
        self.alarm.note(until);
        Ok(())
    }

    /// Stores that an attempt begins, before the first byte is sent; returns which one it is. `None` when
    /// the guard has taken the signal back meanwhile.
    async fn start_attempt(
        self: &Arc<Self>,
        mut record: DeliveryRecord,
    ) -> Result<Option<(DeliveryRecord, u32)>, StoreError> {
        let at = self.clock.now();
        let number = self.next_attempt(&record).await?;
        let waiting = record.clone();
        record.attempts += 1;
        record.state = DeliveryState::Sending;
        loop {
            let mut transition = Transition {
                attempts_started: vec![AttemptStart { delivery: record.id, number, at }],
                ..Transition::default()
            };
            if !record.is_copy {
                let turn = self.turn_of(&record).await?;
                if !may_attempt(&turn, record.claim) {
                    self.take_back(&waiting).await?;
                    return Ok(None);
                }
                if waiting.attempts == 0 {
                    self.take_the_drafts_place(&mut record, &turn);
                }
                transition.turns.push(self.mark_attempted(&turn, record.claim, at));
            }
            let action = (record.action != waiting.action).then(|| record.action.clone());
            transition.delivery_changes.push(DeliveryChange { action, ..DeliveryChange::of(&record) });
            if self.store.commit(transition).await? == Commit::Done {
                return Ok(Some((record, number)));
            }
        }
    }

    /// What is known now of the draft before a signal: the signal takes its place, or says that it may be a copy. A
    /// draft that was on its way when the signal was claimed had no message then.
    fn take_the_drafts_place(&self, record: &mut DeliveryRecord, turn: &TurnRecord) {
        let is_late = turn.obligation.state().is_final();
        if record.part != 1 || record.is_draft() || is_late {
            return;
        }
        if let (Some(message), Action::Send { content, reply_to }) = (turn.obligation.draft_message(), &record.action)
            && content.attachments.is_empty()
        {
            let (content, reply_to) = (content.clone(), reply_to.clone());
            record.action = Action::Edit { message: message.to_owned(), content, reply_to };
        }
        let policy = self.settings.policies.of(&turn.event.conversation.channel, turn.event.chat);
        let may_be_a_copy = turn.obligation.has_lost_message() && policy.on_unknown != OnUnknown::Resend;
        record.labelled |= may_be_a_copy && record.signal == SignalKind::Reply;
    }

    /// The number of a delivery's next attempt. Attempts that a limit ended have a number, and do not count.
    async fn next_attempt(&self, record: &DeliveryRecord) -> Result<u32, StoreError> {
        if record.attempts == 0 && record.error.is_none() {
            return Ok(1);
        }
        Ok(self.last_attempt(record).await?.unwrap_or(record.attempts) + 1)
    }

    /// The number of a delivery's latest attempt.
    async fn last_attempt(&self, record: &DeliveryRecord) -> Result<Option<u32>, StoreError> {
        let dossier = self.store.dossier(record.turn).await?;
        let attempts = dossier.into_iter().flat_map(|dossier| dossier.attempts);
        Ok(attempts.filter(|attempt| attempt.delivery == record.id).map(|attempt| attempt.number).max())
    }

    /// From now on the claim cannot be withdrawn. A change also when it was so before: what was decided
    /// meanwhile must be seen.
    fn mark_attempted(&self, turn: &TurnRecord, claim: u32, at: Timestamp) -> TurnChange {
        let policy = self.settings.policies.of(&turn.event.conversation.channel, turn.event.chat);
        let mut obligation = turn.obligation.clone();
        // An attempt that begins has no effects: it only closes the way back.
        let _ = obligation.on(Event::Attempted { claim }, policy, at);
        TurnChange { turn: turn.id, expected: turn.version, obligation, at }
    }

    /// Stores what the platform said, for as long as it takes: nobody else knows it.
    async fn end_attempt_in_the_end(
        self: &Arc<Self>,
        record: &DeliveryRecord,
        number: u32,
        result: &Result<Receipt, DeliveryError>,
        idempotent: bool,
    ) {
        while let Err(error) = self.end_attempt(record, number, result.clone(), idempotent).await {
            warn!(conversation = %record.conversation, %error, "cannot store how an attempt ended, trying again");
            if !self.pause(STORE_PAUSE).await {
                return;
            }
        }
    }

    async fn end_attempt(
        self: &Arc<Self>,
        record: &DeliveryRecord,
        number: u32,
        result: Result<Receipt, DeliveryError>,
        idempotent: bool,
    ) -> Result<(), StoreError> {
        let at = self.clock.now();
        let ended = |result: &str, detail: String| {
            let (delivery, result) = (record.id, result.to_owned());
            Some(AttemptEnd { delivery, number, at, result, detail: Some(detail) })
        };
        match result {
            Ok(receipt) => {
                let delivery = DeliveryChange {
                    state: DeliveryState::Delivered,
                    message_ids: vec![receipt.message_id.clone()],
                    error: None,
                    delivered_at: Some(at),
                    ..DeliveryChange::of(record)
                };
                let along = Along {
                    attempt_ended: ended("delivered", receipt.message_id.clone()),
                    delivery: Some(delivery),
                    ..Along::default()
                };
                let event = self.all_parts(record, Some(receipt)).await?;
                self.record_attempt(record, event, along).await
            }
            Err(error) => {
                let attempt_ended = ended(error.as_str(), error.to_string());
                self.failed_attempt(record, error, idempotent, attempt_ended, at).await
            }
        }
    }

    async fn failed_attempt(
        self: &Arc<Self>,
        record: &DeliveryRecord,
        error: DeliveryError,
        idempotent: bool,
        attempt_ended: Option<AttemptEnd>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let claim = record.claim;
        let error = self.as_it_counts(record, error);
        let change = DeliveryChange { error: Some(error.to_string()), ..DeliveryChange::of(record) };
        let in_state = |state| DeliveryChange { state, ..change.clone() };
        // A draft is not kept for a person: the answer says what it said.
        let given_up = if record.is_draft() { DeliveryState::Withdrawn } else { DeliveryState::Dead };
        let again = |pause| DeliveryChange { next_attempt_at: at + pause, ..in_state(DeliveryState::Pending) };
        // Of a claim whose first part did not get out nothing was seen: something better may take its place.
        let not_sent = (record.part == 1).then_some(Event::NotSent { claim });
        let is_spent = retry::is_spent(record, &self.settings, at);
        let mut then = None;
        let (event, delivery) = match error {
            // An answer that is there is not undone by what it took the place of and cannot be removed.
            DeliveryError::Refused(_) | DeliveryError::Unsupported(_) if is_removal(&record.action) => {
                let event = self.all_parts(record, None).await?;
                (event, DeliveryChange { delivered_at: Some(at), ..in_state(DeliveryState::Delivered) })
            }
            DeliveryError::Limited { retry_after, scope, .. } => {
                let pause = retry_after.max(LEAST_LIMIT);
                self.block(BlockedScope::of(&record.conversation, &scope, at + pause)).await?;
                // Waiting out a limit costs no attempt.
                (not_sent, DeliveryChange { attempts: record.attempts.saturating_sub(1), ..again(pause) })
            }
            DeliveryError::Unauthorized(reason) => {
                self.lanes.unauthorized.insert(record.conversation.channel.clone(), at + UNAUTHORIZED_PAUSE);
                if is_spent {
                    (Some(Event::Expired { claim, reason }), in_state(given_up))
                } else {
                    (not_sent, again(UNAUTHORIZED_PAUSE))
                }
            }
            DeliveryError::Moved { chat } => {
                self.move_chat(&record.conversation, &chat, at).await?;
                (not_sent, DeliveryChange { attempts: record.attempts.saturating_sub(1), ..again(Duration::ZERO) })
            }
            DeliveryError::Gone(_) => {
                let action = as_send(&record.action);
                (not_sent, DeliveryChange { action, ..again(Duration::ZERO) })
            }
            DeliveryError::NotSent { detail: reason, .. } if is_spent => {
                (Some(Event::Expired { claim, reason }), in_state(given_up))
            }
            DeliveryError::NotSent { retry_after, .. } => {
                (not_sent, again(retry::pause(record.attempts).max(retry_after.unwrap_or_default())))
            }
            DeliveryError::Unknown(_) if record.is_copy && !is_spent => (None, again(retry::pause(record.attempts))),
            // The guard says whether it is sent again, unless it is too old for that.
            DeliveryError::Unknown(reason) => {
                then =
                    is_spent.then(|| Event::Expired { claim, reason: format!("{reason}; it may have been accepted") });
                (Some(Event::Lost { claim, idempotent }), in_state(given_up))
            }
            DeliveryError::Refused(reason) | DeliveryError::Unsupported(reason) => {
                let state = if record.is_copy { DeliveryState::Dead } else { DeliveryState::Refused };
                (Some(Event::Refused { claim, reason }), in_state(state))
            }
        };
        let ended_badly =
            matches!(then.as_ref().or(event.as_ref()), Some(Event::Refused { .. } | Event::Expired { .. }));
        let withdrawn = ended_badly.then(|| Withdrawal {
            turn: record.turn,
            claim,
            reason: "an earlier part was refused".to_owned(),
        });
        let along = Along {
            attempt_ended,
            delivery: Some(delivery),
            withdrawn: withdrawn.filter(|_| record.parts > record.part),
            attempted: Some(record.clone()),
            then,
            ..Along::default()
        };
        self.record_attempt(record, event, along).await
    }

    /// An error, as what it means for this delivery.
    fn as_it_counts(&self, record: &DeliveryRecord, error: DeliveryError) -> DeliveryError {
        match error {
            // Only an edit can be made a message of its own.
            DeliveryError::Gone(reason) if !matches!(record.action, Action::Edit { .. }) => {
                DeliveryError::Refused(reason)
            }
            DeliveryError::Moved { chat } if *record.conversation.chat == *chat => {
                DeliveryError::NotSent { retry_after: None, detail: format!("moved to where it is: {chat}") }
            }
            // It was tried for as long as an answer is.
            DeliveryError::NotSent { detail, .. } | DeliveryError::Unknown(detail)
                if is_removal(&record.action) && retry::is_spent(record, &self.settings, self.clock.now()) =>
            {
                DeliveryError::Refused(detail)
            }
            error => error,
        }
    }

    /// The platform said that a chat has another id now: stored as an event, as if it had told us by itself.
    pub(crate) async fn move_chat(&self, from: &ConversationRef, chat: &str, at: Timestamp) -> Result<(), StoreError> {
        let event = InboundEvent {
            kind: EventKind::Moved { chat: chat.to_owned() },
            ..InboundEvent::new(
                ConversationRef { thread: None, ..from.clone() },
                ChatKind::Group,
                format!("moved:{}:{chat}", from.chat),
                Sender { id: from.chat.to_string(), name: None, username: None, kind: SenderKind::Ourselves },
                at,
            )
        };
        let event = NewEvent { id: EventId::new(at), event: Arc::new(event), turn: None };
        // First: what is claimed from here on is for the new id.
        self.moved(from, chat);
        self.store.accept(vec![event], None).await.map(|_| ())
    }

    /// Where what is meant for a conversation goes: its chat may have got another id.
    pub(crate) fn address(&self, conversation: &ConversationRef) -> ConversationRef {
        if !self.lanes.has_moved.load(Ordering::SeqCst) {
            return conversation.clone();
        }
        let key = (conversation.channel.clone(), Arc::clone(&conversation.chat));
        let chat = self.lanes.moved.get(&key).map_or(key.1, |chat| Arc::clone(&chat));
        ConversationRef { chat, ..conversation.clone() }
    }

    /// What a conversation was called before its chat got another id, since the start.
    pub(crate) fn former(&self, conversation: &ConversationRef) -> Vec<ConversationRef> {
        if !self.lanes.has_moved.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let moved = self.lanes.moved.iter();
        let here = moved.filter(|moved| moved.key().0 == conversation.channel && *moved.value() == conversation.chat);
        here.map(|moved| ConversationRef { chat: Arc::clone(&moved.key().1), ..conversation.clone() }).collect()
    }

    /// From now on what goes to a conversation of the chat goes to its new id.
    pub(crate) fn moved(&self, from: &ConversationRef, chat: &str) {
        if *from.chat == *chat {
            return;
        }
        self.lanes.moved.insert((from.channel.clone(), Arc::clone(&from.chat)), chat.into());
        self.lanes.has_moved.store(true, Ordering::SeqCst);
        // What waits there has a new address: the sweep opens its lane.
        self.alarm.note(self.clock.now());
    }

    /// Takes up an attempt that has no result.
    pub(crate) async fn attempt_lost(self: &Arc<Self>, record: &DeliveryRecord, why: &str) -> Result<(), StoreError> {
        let idempotent =
            self.channel(&record.conversation.channel).is_some_and(|channel| is_idempotent(record, channel.as_ref()));
        let number = self.last_attempt(record).await?.unwrap_or(record.attempts);
        self.end_attempt(record, number, Err(DeliveryError::Unknown(why.to_owned())), idempotent).await
    }

    /// Calls an adapter: it may panic or hang, the gateway goes on. `None` when the gateway ended first.
    pub(crate) async fn call(
        &self,
        deliver: impl Future<Output = Result<Receipt, DeliveryError>> + Send,
        timeout: Duration,
    ) -> Option<Result<Receipt, DeliveryError>> {
        tokio::select! {
            biased;
            result = AssertUnwindSafe(deliver).catch_unwind() => Some(
                result.unwrap_or_else(|_| Err(DeliveryError::Unknown("the adapter panicked".to_owned()))),
            ),
            () = self.clock.sleep(timeout) => {
                Some(Err(DeliveryError::Unknown("the adapter did not come back".to_owned())))
            }
            () = self.ended.cancelled() => None,
        }
    }

    /// Remembers whether a channel can send. When it can again, what waits for another try goes at once.
    pub(crate) fn note_health(self: &Arc<Self>, channel: &ChannelId, result: &Result<Receipt, DeliveryError>) {
        match result {
            Ok(_) => {
                if self.lanes.failing.remove(channel).is_some_and(|(_, failures)| failures >= FAILURES) {
                    self.hurry_soon(channel);
                }
            }
            Err(DeliveryError::NotSent { .. } | DeliveryError::Unknown(_) | DeliveryError::Unauthorized(_)) => {
                let mut failures = self.lanes.failing.entry(channel.clone()).or_default();
                *failures = failures.saturating_add(1);
            }
            Err(_) => {}
        }
    }

    /// A platform answers again, or for the first time: what waits for another try goes now. Not at each answer of a
    /// connection that comes and goes while sending fails: then the pauses hold.
    pub(crate) fn is_back(self: &Arc<Self>, channel: &ChannelId) {
        let now = self.clock.now();
        let was_away = self.lanes.failing.contains_key(channel) || self.lanes.unauthorized.contains_key(channel);
        match self.lanes.back_at.entry(channel.clone()) {
            Entry::Vacant(first) => drop(first.insert(None)),
            Entry::Occupied(mut last)
                if was_away && last.get().is_none_or(|last| now.since(last) >= BETWEEN_RETURNS) =>
            {
                last.insert(Some(now));
            }
            Entry::Occupied(_) => return,
        }
        self.lanes.failing.remove(channel);
        self.lanes.unauthorized.remove(channel);
        self.hurry_soon(channel);
    }

    fn hurry_soon(self: &Arc<Self>, channel: &ChannelId) {
        let (core, channel) = (Arc::clone(self), channel.clone());
        self.work.spawn(async move { core.hurry(&channel).await });
    }

    async fn hurry(self: &Arc<Self>, channel: &ChannelId) {
        match self.store.deliverable(self.clock.now() + HURRIED_WITHIN, HURRIED).await {
            Ok(waiting) => {
                for conversation in waiting.iter().filter(|conversation| conversation.channel == *channel) {
                    self.lanes.hurried.insert(conversation.clone(), ());
                    self.open_lane(conversation);
                }
            }
            Err(error) => debug!(%channel, %error, "cannot read what waits for a channel that is back"),
        }
    }

    async fn block(&self, scope: BlockedScope) -> Result<(), StoreError> {
        self.gate.block(&scope);
        self.store.block(scope).await
    }

    /// What the receipt of a part means for its claim, if anything. `None`: a removal that the platform refused.
    async fn all_parts(&self, record: &DeliveryRecord, receipt: Option<Receipt>) -> Result<Option<Event>, StoreError> {
        if record.part < record.parts {
            return Ok((record.part == 1).then_some(Event::PartDelivered { claim: record.claim }));
        }
        let mut messages = Vec::new();
        if record.parts > 1 {
            for part in self.store.claim_deliveries(record.turn, record.claim).await? {
                if part.part < record.part && part.is_copy == record.is_copy && !is_removal(&part.action) {
                    messages.extend(part.message_ids);
                }
            }
        }
        messages.extend(receipt.filter(|_| !is_removal(&record.action)).map(|receipt| receipt.message_id));
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
        let mut turn = self.turn_of(record).await?;
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
    let state = turn.obligation.state();
    if claim == Draft::CLAIM {
        return turn.obligation.is_draft_wanted();
    }
    claim == turn.obligation.claims()
        && matches!(state, State::Claimed { .. } | State::Settled(Settlement::Signal { .. }))
}

/// An edit as a message of its own, where the message to change is gone.
fn as_send(action: &Action) -> Option<Action> {
    match action {
        Action::Edit { content, reply_to, .. } => {
            Some(Action::Send { content: content.clone(), reply_to: reply_to.clone() })
        }
        _ => None,
    }
}

const fn is_removal(action: &Action) -> bool {
    matches!(action, Action::Delete { .. })
}

/// Whether sending a delivery again cannot show it twice.
fn is_idempotent(record: &DeliveryRecord, channel: &dyn ChannelAdapter) -> bool {
    match record.action {
        Action::Edit { .. } | Action::React { .. } | Action::Delete { .. } => true,
        Action::Send { .. } | Action::Draft { .. } | Action::Typing { .. } => {
            channel.capabilities(&record.conversation).resend == Resend::Idempotent
        }
    }
}
