//! Stores how an attempt to deliver begins and ends.

pub(super) mod refused_files;

use std::{sync::Arc, time::Duration};

use rejoinder_guard::{Draft, Event, OnUnknown, SignalKind, Timestamp};
use tracing::error;

use super::{caller::Caller, health::UNAUTHORIZED_PAUSE};
use crate::{
    base::{channels::Channels, timer::Timer},
    conversations::addresses::Addresses,
    events::{TurnEvents, subjects::subject_of_delivery},
    ledger::{
        Ledger,
        trigger::{AttemptEnded, Trigger},
    },
    model::{
        Action, ChatKind, ConversationRef, DeliveryError, DeliveryRecord, DeliveryState, EventId, EventKind, FileLinks,
        InboundEvent, Label, Language, LiveSettings, MAX_RETRY_AFTER, NodeId, Receipt, Resend, Sender, SenderKind,
        TurnId, TurnRecord,
    },
    nodes::leases::Hold,
    people::People,
    ports::{
        AttemptEnd, AttemptStart, BlockedScope, DeliveryChange, Fence, InboxStore, LeaseName, NewEvent, OutboxStore,
        SharedClock, StoreError,
    },
    shown::retry,
};

/// The minimum pause after a rate limit, even if the platform names a shorter one.
const MIN_LIMIT_PAUSE: Duration = Duration::from_millis(250);

/// The number of failed attempts, and the time of them, after which an edit is sent as a new message, even if no other message
/// was sent meanwhile.
const EDITS: (u32, Duration) = (8, Duration::from_mins(3));

pub(crate) struct Attempts {
    pub(crate) store: Arc<dyn OutboxStore>,
    pub(crate) inbox: Arc<dyn InboxStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) addresses: Arc<Addresses>,
    pub(crate) people: Arc<People>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) settings: LiveSettings,
    pub(crate) file_links: FileLinks,
    pub(crate) clock: SharedClock,
    /// This process, the node of the attempts that begin here.
    pub(crate) node: NodeId,
}

pub(crate) struct StartedAttempt {
    pub(crate) delivery: DeliveryRecord,
    /// The attempt's number within the delivery, counted from 1.
    pub(crate) number: u32,
    pub(crate) at: Timestamp,
    /// Whether it is a new message, and later deliveries of the conversation were sent before it.
    pub(crate) is_overtaken: bool,
    pub(crate) language: Option<Language>,
    /// The code that an answer to `/link` tells, if nobody has used it; `None` for a copy, which goes elsewhere.
    pub(crate) link_code: Option<String>,
    /// The turn as stored when the attempt began; `None` if that is not known, or of a copy.
    turn: Option<TurnRecord>,
    /// The lease under which it began, or under which it is recovered; `None` if its channel is not configured.
    pub(crate) hold: Option<Hold>,
    /// Whether it is recovered: only the node that has the channel may end it, without a result.
    is_left: bool,
}

impl StartedAttempt {
    /// A first attempt that is stored with the claim of its delivery, and with `turn`.
    pub(crate) fn of_claim(delivery: DeliveryRecord, turn: TurnRecord, hold: Hold) -> Self {
        let (at, language) = (delivery.created_at, turn.event.language);
        Self {
            delivery,
            number: 1,
            at,
            is_overtaken: false,
            language,
            link_code: None,
            turn: Some(turn),
            hold: Some(hold),
            is_left: false,
        }
    }

    fn end(&self, result: &Result<Receipt, DeliveryError>, at: Timestamp) -> AttemptEnd {
        let (name, detail) = match result {
            Ok(receipt) => ("delivered", receipt.ids().collect::<Vec<_>>().join(", ")),
            Err(error) => (error.as_str(), error.to_string()),
        };
        let (delivery, number) = (self.delivery.id, self.number);
        AttemptEnd { delivery, number, at, result: name.to_owned(), detail: Some(detail) }
    }
}

struct AttemptResult {
    /// The events for the guard, in order.
    events: Vec<Event>,
    change: DeliveryChange,
}

impl Attempts {
    /// Stores that an attempt begins, before the first byte is sent. `None` if the guard no longer wants the signal
    /// sent; it is withdrawn then. `is_hopeless`: an edit becomes a new message. The lease was held before `waiting` was read.
    pub(crate) async fn begin(
        &self,
        waiting: DeliveryRecord,
        is_hopeless: bool,
        hold: &Hold,
    ) -> Result<Option<StartedAttempt>, StoreError> {
        let number = self.next_number(&waiting).await?;
        let is_late = waiting.parked || waiting.retried_at.is_some();
        let is_overtaken = is_late && self.store.is_overtaken(waiting.id).await?;
        // If it has changed since, the attempt is not stored, and the turn is read.
        let claimed = self.ledger.claimed.take(waiting.turn);
        let mut claimed = claimed.filter(|turn| may_attempt(turn, waiting.claim));
        loop {
            let at = self.clock.now();
            let mut delivery =
                DeliveryRecord { attempts: waiting.attempts + 1, state: DeliveryState::Sending, ..waiting.clone() };
            // Quiet hours are over: from here on it is one like others.
            delivery.parked &= !waiting.is_quiet();
            let turn = match claimed.take() {
                Some(turn) => turn,
                None => self.ledger.turn(delivery.turn).await?,
            };
            if let Some(change) = unwanted(&waiting, &turn) {
                if self.ledger.change_delivery_of(&turn, change, hold.fence()).await? {
                    return Ok(None);
                }
                continue;
            }
            if !delivery.is_copy && waiting.attempts == 0 {
                self.replace_draft(&mut delivery, &turn);
            }
            if let Some(message) = edited_message(&delivery.action)
                && self.caller.abandoned_edits.may_change(delivery.conversation_id, message)
                && let Some(action) = as_send(&delivery.action)
            {
                // The tidier removes the message.
                delivery.action = action;
            }
            if waiting.is_quiet() {
                // Nobody notices the edit of a message above those that they read last. It was never tried: there is no copy.
                let noticed = as_send(&delivery.action).filter(|_| is_overtaken);
                delivery.action = noticed.unwrap_or(delivery.action);
            } else if is_overtaken || is_hopeless {
                self.send_instead_of_edit(&mut delivery, &turn);
            }
            let start = AttemptStart { delivery: delivery.id, number, node: self.node, at };
            let action = (delivery.action != waiting.action).then(|| delivery.action.clone());
            let change = DeliveryChange { action, ..DeliveryChange::of(&delivery) };
            // From here on the claim cannot be withdrawn. A copy does not affect its turn.
            let events = vec![Event::Attempted { claim: delivery.claim }];
            let language = turn.event.language;
            let link_code = if delivery.is_copy { None } else { self.link_code(&turn).await? };
            let mut inputs = Vec::from_iter((!delivery.is_copy).then_some(TurnEvents { turn, events }));
            let (subject, fence) = (subject_of_delivery(&delivery), hold.fence());
            let trigger = Trigger::AttemptBegins { start, delivery: change, subject, fence };
            if self.ledger.try_to_decide(&mut inputs, &trigger).await?.is_some() {
                // An edit stays where it belongs, and what waited for the end of quiet hours belongs there.
                let is_overtaken =
                    is_overtaken && !waiting.is_quiet() && matches!(delivery.action, Action::Send { .. });
                let turn = inputs.pop().map(|input| input.turn);
                let (hold, is_left) = (Some(hold.clone()), false);
                return Ok(Some(StartedAttempt {
                    delivery,
                    number,
                    at,
                    is_overtaken,
                    language,
                    link_code,
                    turn,
                    hold,
                    is_left,
                }));
            }
        }
    }

    /// Reads the code from the store if memory lacks it: the answer and the code are stored together, and a lane may send the
    /// answer before memory has read the code.
    async fn link_code(&self, turn: &TurnRecord) -> Result<Option<String>, StoreError> {
        if !turn.handler.is_command("link") {
            return Ok(None);
        }
        let (seen, sender) = (self.people.seen(), turn.event.identity());
        if self.people.link_of(&sender).is_none() {
            self.people.refresh(seen).await?;
        }
        Ok(self.people.link_of(&sender).map(|link| link.shown_code()))
    }

    /// Lets a signal replace the draft's message, or labels it if a draft or a deferral is lost. A draft that was in flight
    /// when the signal was claimed had no message id then.
    fn replace_draft(&self, delivery: &mut DeliveryRecord, turn: &TurnRecord) {
        let is_late = turn.obligation.state().is_final();
        // The draft of a redirected answer is in the other conversation.
        let is_elsewhere = delivery.conversation_id != turn.conversation;
        if delivery.part != 1 || delivery.is_draft() || is_late || is_elsewhere {
            return;
        }
        if let (Some(message), Action::Send { content, reply_to }) = (turn.obligation.draft_message(), &delivery.action)
            && content.attachments.is_empty()
        {
            let (content, reply_to) = (content.clone(), reply_to.clone());
            delivery.action = Action::Edit { message: message.to_owned(), content, reply_to };
        }
        let is_labelled = turn.obligation.has_lost_message() && self.on_unknown(turn) != OnUnknown::Resend;
        if is_labelled && delivery.signal == SignalKind::Reply {
            delivery.label = Some(Label::Replaces);
        }
    }

    /// Whether a delivery is an edit that gets nowhere while later messages are sent: it is sent as a new message, at
    /// once.
    pub(crate) async fn is_overtaken_edit(&self, delivery: &DeliveryRecord) -> Result<bool, StoreError> {
        let is_stuck_edit = delivery.is_stuck() && matches!(delivery.action, Action::Edit { .. });
        if !is_stuck_edit || !self.store.is_overtaken(delivery.id).await? {
            return Ok(false);
        }
        Ok(self.on_unknown(&self.ledger.turn(delivery.turn).await?) != OnUnknown::Hold)
    }

    /// Whether a delivery has failed so often, and for so long, that an edit is to be a new message, unless nothing can be sent.
    pub(crate) async fn is_hopeless(&self, delivery: &DeliveryRecord) -> Result<bool, StoreError> {
        if !delivery.parked || delivery.attempts < EDITS.0 || !matches!(delivery.action, Action::Edit { .. }) {
            return Ok(false);
        }
        let since = self.store.failing_since(delivery.id).await?;
        Ok(since.is_some_and(|since| self.clock.now().since(since) >= EDITS.1))
    }

    fn on_unknown(&self, turn: &TurnRecord) -> OnUnknown {
        self.settings.read().policies.of(&turn.event.conversation.channel, turn.event.chat).on_unknown
    }

    /// Turns an edit into a new message, with a label: the edit may have been applied although the platform reported an
    /// error. Not where the operator wants no copies.
    fn send_instead_of_edit(&self, delivery: &mut DeliveryRecord, turn: &TurnRecord) {
        let on_unknown = self.on_unknown(turn);
        if on_unknown != OnUnknown::Hold
            && let Some(action) = as_send(&delivery.action)
        {
            delivery.action = action;
            if on_unknown == OnUnknown::Label {
                delivery.label = Some(Label::Resent);
            }
        }
    }

    /// The number of a delivery's next attempt. Attempts that a rate limit ended have a number, but do not count.
    async fn next_number(&self, delivery: &DeliveryRecord) -> Result<u32, StoreError> {
        if delivery.attempts == 0 && delivery.error.is_none() {
            return Ok(1);
        }
        Ok(self.store.last_attempt(delivery.id).await?.unwrap_or(delivery.attempts) + 1)
    }

    /// Ends a turn that cannot be read, with its deliveries.
    pub(crate) async fn set_aside(&self, turn: TurnId, reason: &str) -> Result<(), StoreError> {
        self.ledger.set_aside(turn, reason).await
    }

    /// Whether the guard no longer wants this delivery sent.
    async fn is_stale(&self, delivery: &DeliveryRecord) -> Result<bool, StoreError> {
        Ok(!delivery.is_copy && !may_attempt(&self.ledger.turn(delivery.turn).await?, delivery.claim))
    }

    /// Withdraws a delivery that the guard no longer wants sent, and keeps one whose turn is held; `false` if it may be sent.
    pub(crate) async fn drop_unwanted(
        &self,
        delivery: &DeliveryRecord,
        hold: Option<&Hold>,
    ) -> Result<bool, StoreError> {
        loop {
            let turn = self.ledger.turn(delivery.turn).await?;
            let Some(change) = unwanted(delivery, &turn) else { return Ok(false) };
            if self.ledger.change_delivery_of(&turn, change, hold.and_then(Hold::fence)).await? {
                return Ok(true);
            }
        }
    }

    /// Schedules a delivery for `until`. A first draft is dropped instead: by then there is more text to show.
    pub(crate) async fn reschedule(
        &self,
        delivery: &DeliveryRecord,
        until: Timestamp,
        hold: Option<&Hold>,
    ) -> Result<(), StoreError> {
        let fence = hold.and_then(Hold::fence);
        if delivery.is_draft() && delivery.attempts == 0 {
            let mut turn = self.ledger.turn(delivery.turn).await?;
            let trigger = Trigger::NotAttempted { delivery: Box::new(delivery.clone()), fence };
            return self.ledger.decide(&mut turn, Event::NotSent { claim: Draft::CLAIM }, trigger).await.map(drop);
        }
        let change = DeliveryChange { next_attempt_at: until, ..DeliveryChange::of(delivery) };
        self.ledger.change_delivery(change, fence).await?;
        self.timer.wake_at(until);
        Ok(())
    }

    /// Has a delivery wait until the channel answers. Later claims do not wait for it.
    pub(crate) async fn wait_for_answer(
        &self,
        delivery: &DeliveryRecord,
        now: Timestamp,
        hold: &Hold,
    ) -> Result<(), StoreError> {
        let next_attempt_at = now + retry::look_again(delivery);
        let change = DeliveryChange { next_attempt_at, parked: true, ..DeliveryChange::of(delivery) };
        self.ledger.change_delivery(change, hold.fence()).await?;
        self.timer.wake_at(next_attempt_at);
        Ok(())
    }

    /// Ends an attempt that was left without a result. Nothing happens if it gets one meanwhile: of the two results, the first one is
    /// stored.
    pub(crate) async fn end_as_unknown(
        &self,
        delivery: DeliveryRecord,
        why: &str,
        hold: Option<&Hold>,
    ) -> Result<(), StoreError> {
        let number = self.store.last_attempt(delivery.id).await?.unwrap_or(delivery.attempts);
        let (at, is_overtaken, language) = (self.clock.now(), false, None);
        // That this process was killed is no sign of an outage: it waits as after a first attempt.
        let delivery = DeliveryRecord { copies: 0, ..delivery };
        let (hold, is_left) = (hold.cloned(), true);
        let begun =
            StartedAttempt { delivery, number, at, is_overtaken, language, link_code: None, turn: None, hold, is_left };
        self.end(&begun, &Err(DeliveryError::Unknown(why.to_owned()))).await
    }

    /// Stores an attempt's result, unless the attempt has one. Retries as long as the gateway runs, because the result is stored nowhere
    /// else.
    ///
    /// If the node has lost the channel during the call, the node that has it now may have ended the attempt, which has no result to it,
    /// and may send it again, as after a crash. What it has decided stays. Otherwise the result is stored without the lease, and that
    /// node has nothing to recover. Both end the attempt in its row, and only one of them finds it without an end: so whatever follows
    /// from an end follows from one of them.
    pub(crate) async fn end_until_stored(&self, begun: &StartedAttempt, result: &Result<Receipt, DeliveryError>) {
        let mut retry = self.ledger.store_retry("the end of an attempt", begun.delivery.turn).unlimited();
        let mut is_repeated = false;
        while let Err(error) = self.end_once(begun, result, is_repeated).await {
            // Without the lease it is stored at once.
            if !error.is_move() && !retry.wait(&error).await {
                return;
            }
            is_repeated = true;
        }
    }

    /// Stores an attempt's result, unless an earlier try or another node has ended the attempt.
    async fn end_once(
        &self,
        begun: &StartedAttempt,
        result: &Result<Receipt, DeliveryError>,
        is_repeated: bool,
    ) -> Result<(), StoreError> {
        let is_alone = begun.hold.as_ref().is_some_and(|hold| self.caller.leases.still_holds(hold));
        if (is_repeated || !is_alone) && !self.is_attempting(begun).await? {
            return Ok(());
        }
        self.end(begun, result).await
    }

    async fn is_attempting(&self, begun: &StartedAttempt) -> Result<bool, StoreError> {
        self.store.is_attempting(begun.delivery.id, begun.number).await
    }

    /// The lease under which the end of an attempt is stored.
    fn fence_of_end(&self, begun: &StartedAttempt) -> Option<(LeaseName, Fence)> {
        let hold = begun.hold.as_ref()?;
        if begun.is_left || self.caller.leases.still_holds(hold) { hold.fence() } else { None }
    }

    async fn end(&self, begun: &StartedAttempt, result: &Result<Receipt, DeliveryError>) -> Result<(), StoreError> {
        match self.decide_on_end(begun, result).await {
            Err(StoreError::CorruptTurn { turn, reason }) => match self.set_aside(turn, &reason).await {
                Ok(()) => self.end_undecided(begun, result).await,
                // Until a node of another version has decided on the turn. It is no lease that has moved, after which one tries at once.
                Err(StoreError::NotOwner) => Err(StoreError::Failed(reason)),
                Err(error) => Err(error),
            },
            ended => ended,
        }
    }

    /// Stores the result of an attempt whose turn cannot be read: nothing follows from it.
    async fn end_undecided(
        &self,
        begun: &StartedAttempt,
        result: &Result<Receipt, DeliveryError>,
    ) -> Result<(), StoreError> {
        let (delivery, at) = (&begun.delivery, self.clock.now());
        let end = begun.end(result, at);
        let change = match result {
            Ok(receipt) => delivered(delivery, receipt.clone(), at),
            Err(error) => {
                let (state, error) = (DeliveryState::Dead, Some(error.to_string()));
                DeliveryChange { state, error, ..DeliveryChange::of(delivery) }
            }
        };
        let trigger = AttemptEnded {
            delivery: delivery.clone(),
            end,
            fence: self.fence_of_end(begun),
            change,
            withdraws_later_parts: false,
            is_spent: true,
            is_idempotent: false,
            is_newly_parked: false,
        };
        self.ledger.record(Trigger::AttemptEnded(Box::new(trigger))).await
    }

    async fn decide_on_end(
        &self,
        begun: &StartedAttempt,
        result: &Result<Receipt, DeliveryError>,
    ) -> Result<(), StoreError> {
        let (delivery, at) = (&begun.delivery, self.clock.now());
        let end = begun.end(result, at);
        let gets_nowhere = match result {
            Err(DeliveryError::NotSent { .. } | DeliveryError::Unknown(_)) => self.gets_nowhere(begun, at).await?,
            _ => false,
        };
        // An attempt that a limit ended is none, unless there is nothing but limits.
        let attempts =
            if matches!(result, Err(DeliveryError::Limited { .. })) { begun.number } else { delivery.attempts };
        let is_spent =
            retry::is_spent(delivery, attempts, &self.settings.read(), at) || (gets_nowhere && delivery.is_draft());
        let is_newly_parked = gets_nowhere && !delivery.parked;
        let ended = DeliveryRecord { parked: delivery.parked || gets_nowhere, ..delivery.clone() };
        let AttemptResult { events, change } = match result {
            Ok(receipt) => AttemptResult {
                change: delivered(&ended, receipt.clone(), at),
                events: Vec::from_iter(self.receipt_event(&ended, Some(receipt.clone())).await?),
            },
            Err(error) => self.handle_failure(&ended, begun.language, error.clone(), at, is_spent).await?,
        };
        let change = if change.state == DeliveryState::Dead && self.is_stale(delivery).await? {
            // Nobody waits for it any more: it is no dead letter.
            DeliveryChange { state: DeliveryState::Withdrawn, ..change }
        } else {
            change
        };
        let dead_copy = change.error.clone().filter(|_| delivery.is_copy && change.state == DeliveryState::Dead);
        let ended_badly = matches!(events.last(), Some(Event::Refused { .. } | Event::Expired { .. }));
        let trigger = Trigger::AttemptEnded(Box::new(AttemptEnded {
            is_idempotent: self.is_idempotent(&ended),
            delivery: ended,
            end,
            fence: self.fence_of_end(begun),
            change,
            withdraws_later_parts: ended_badly,
            is_spent,
            is_newly_parked,
        }));
        if delivery.is_copy || events.is_empty() {
            self.ledger.record(trigger).await?;
            if let Some(reason) = dead_copy {
                let channel = &delivery.conversation.channel;
                error!(delivery = %delivery.id, turn = %delivery.turn, %channel, reason, alert = "callbacks", "a copy of an answer is undeliverable");
                metrics::counter!("rejoinder_dead_callbacks_total", "channel" => channel.to_string()).increment(1);
            }
            return Ok(());
        }
        let turn = match &begun.turn {
            // Whatever happened meanwhile, the decision on a delivered message changes the turn, so a conflict is noticed.
            Some(turn) if result.is_ok() => turn.clone(),
            _ => self.ledger.turn(delivery.turn).await?,
        };
        let mut inputs = [TurnEvents { turn, events }];
        while self.ledger.try_to_decide(&mut inputs, &trigger).await?.is_none() {
            // Another node may have changed the turn by ending the attempt.
            if !self.is_attempting(begun).await? {
                return Ok(());
            }
            inputs[0].turn = self.ledger.turn(delivery.turn).await?;
        }
        Ok(())
    }

    async fn gets_nowhere(&self, begun: &StartedAttempt, at: Timestamp) -> Result<bool, StoreError> {
        let since = match begun.delivery.attempts {
            0 | 1 => None,
            _ => self.store.failing_since(begun.delivery.id).await?,
        };
        Ok(retry::gets_nowhere(&begun.delivery, since.unwrap_or(begun.at), at))
    }

    async fn handle_failure(
        &self,
        delivery: &DeliveryRecord,
        language: Option<Language>,
        error: DeliveryError,
        at: Timestamp,
        is_spent: bool,
    ) -> Result<AttemptResult, StoreError> {
        let claim = delivery.claim;
        let error = reclassify(delivery, error, is_spent);
        let change = DeliveryChange { error: Some(error.to_string()), ..DeliveryChange::of(delivery) };
        let in_state = |state| DeliveryChange { state, ..change.clone() };
        // A draft is no dead letter: the answer holds its text.
        let given_up = if delivery.is_draft() { DeliveryState::Withdrawn } else { DeliveryState::Dead };
        let again = |pause| DeliveryChange { next_attempt_at: at + pause, ..in_state(DeliveryState::Pending) };
        // An attempt ended by a rate limit or a moved chat does not count.
        let attempts = delivery.attempts.saturating_sub(1);
        // If the first part was not sent, the person saw nothing of the claim, and another signal may replace it.
        let not_sent = Vec::from_iter((delivery.part == 1).then_some(Event::NotSent { claim }));
        let expired = |reason| vec![Event::Expired { claim, reason }];
        let (events, change) = match error {
            // An answer counts as delivered even if the leftover message cannot be deleted.
            DeliveryError::Refused(_) | DeliveryError::Unsupported(_) if is_removal(&delivery.action) => {
                let events = Vec::from_iter(self.receipt_event(delivery, None).await?);
                (events, DeliveryChange { delivered_at: Some(at), ..in_state(DeliveryState::Delivered) })
            }
            DeliveryError::Limited { retry_after, ref scope, .. } => {
                let pause = retry_after.clamp(MIN_LIMIT_PAUSE, MAX_RETRY_AFTER);
                self.block(BlockedScope::of(&delivery.conversation, scope, at + pause)).await?;
                if is_spent {
                    (expired(error.to_string()), in_state(given_up))
                } else {
                    (not_sent, DeliveryChange { attempts, ..again(pause) })
                }
            }
            DeliveryError::Unauthorized(reason) => {
                self.caller.health.refuse_credentials(&delivery.conversation.channel);
                if is_spent { (expired(reason), in_state(given_up)) } else { (not_sent, again(UNAUTHORIZED_PAUSE)) }
            }
            DeliveryError::Moved { chat } => {
                self.move_chat(&delivery.conversation, &chat, at).await?;
                (not_sent, DeliveryChange { attempts, ..again(Duration::ZERO) })
            }
            DeliveryError::Gone(_) => {
                let action = as_send(&delivery.action);
                let events = edited_message(&delivery.action)
                    .map(|message| Event::MessageGone { message: message.to_owned() })
                    .into_iter()
                    .chain(not_sent)
                    .collect();
                (events, DeliveryChange { action, ..again(Duration::ZERO) })
            }
            DeliveryError::ReplyGone(_) => {
                let action = without_reply(&delivery.action);
                // A draft goes on as well: the next one would reply to the same message.
                let events = if delivery.is_draft() { Vec::new() } else { not_sent };
                (events, DeliveryChange { action, ..again(Duration::ZERO) })
            }
            DeliveryError::NotSent { detail, .. } if is_spent => (expired(detail), in_state(given_up)),
            DeliveryError::NotSent { retry_after, .. } => {
                let stated = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
                (not_sent, again(retry::pause(delivery.attempts).max(stated)))
            }
            DeliveryError::Unknown(_) if delivery.is_copy && !is_spent => {
                (Vec::new(), again(retry::pause(delivery.attempts)))
            }
            DeliveryError::Unknown(reason) => {
                // The guard decides whether to resend it, unless it is out of attempts and age.
                let lost = Event::Lost { claim, idempotent: self.is_idempotent(delivery) };
                let expired = is_spent.then(|| expired(format!("{reason}; it may have been accepted")));
                let events = std::iter::once(lost).chain(expired.into_iter().flatten()).collect();
                (events, in_state(given_up))
            }
            DeliveryError::Refused(_) | DeliveryError::Unsupported(_)
                if let Some(instead) = self.instead_of_files(delivery, language, at) =>
            {
                (not_sent, DeliveryChange { action: Some(instead), ..again(Duration::ZERO) })
            }
            DeliveryError::Refused(reason) | DeliveryError::Unsupported(reason) => {
                let state = if delivery.is_copy { DeliveryState::Dead } else { DeliveryState::Refused };
                (vec![Event::Refused { claim, reason }], in_state(state))
            }
        };
        Ok(AttemptResult { events, change })
    }

    /// The event that a part's receipt means for its claim, if any. `receipt` is `None` for a deletion that the platform
    /// refused.
    async fn receipt_event(
        &self,
        delivery: &DeliveryRecord,
        receipt: Option<Receipt>,
    ) -> Result<Option<Event>, StoreError> {
        let (claim, part) = (delivery.claim, delivery.part);
        let shown = receipt.filter(|_| !is_removal(&delivery.action)).map(Receipt::into_ids).unwrap_or_default();
        if part < delivery.parts {
            return Ok(Some(Event::PartDelivered { claim, messages: shown }));
        }
        let mut messages = Vec::new();
        if delivery.parts > 1 {
            for other in self.store.deliveries(delivery.turn).await? {
                let is_earlier = other.claim == claim && other.part < part && other.is_copy == delivery.is_copy;
                if is_earlier && !is_removal(&other.action) {
                    messages.extend(other.message_ids);
                }
            }
        }
        messages.extend(shown);
        Ok(Some(Event::Delivered { claim, messages }))
    }

    async fn block(&self, scope: BlockedScope) -> Result<(), StoreError> {
        self.caller.gate.block(&scope);
        self.store.block(scope).await
    }

    /// Moves a chat to a new id that an attempt's result named. Stored as an event, like the platform's own.
    async fn move_chat(&self, from: &ConversationRef, chat: &str, at: Timestamp) -> Result<(), StoreError> {
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
        let event = NewEvent {
            id: EventId::new(at),
            event: Arc::new(event),
            turn: None,
            only_if_known: false,
            files: Vec::new(),
        };
        self.inbox.accept(vec![event], None).await?;
        self.addresses.moved(from, chat);
        Ok(())
    }

    /// Whether sending a delivery again cannot show it twice.
    pub(crate) fn is_idempotent(&self, delivery: &DeliveryRecord) -> bool {
        let address = &delivery.conversation;
        let resend = || self.channels.get(&address.channel).map(|channel| channel.capabilities(address).resend);
        match delivery.action {
            Action::Edit { .. } | Action::React { .. } | Action::Mark { .. } | Action::Delete { .. } => true,
            Action::Send { .. } | Action::Draft { .. } | Action::Typing { .. } => resend() == Some(Resend::Idempotent),
        }
    }
}

/// The change of a delivery that the platform acknowledged.
fn delivered(delivery: &DeliveryRecord, receipt: Receipt, at: Timestamp) -> DeliveryChange {
    DeliveryChange {
        state: DeliveryState::Delivered,
        message_ids: receipt.into_ids(),
        error: None,
        delivered_at: Some(at),
        ..DeliveryChange::of(delivery)
    }
}

/// Translates an error into what it means for this delivery.
fn reclassify(delivery: &DeliveryRecord, error: DeliveryError, is_spent: bool) -> DeliveryError {
    match error {
        // Only an edit can be sent as a new message.
        DeliveryError::Gone(reason) if !matches!(delivery.action, Action::Edit { .. }) => {
            DeliveryError::Refused(reason)
        }
        DeliveryError::ReplyGone(reason) if without_reply(&delivery.action).is_none() => DeliveryError::Refused(reason),
        DeliveryError::Moved { chat } if *delivery.conversation.chat == *chat => {
            DeliveryError::NotSent { retry_after: None, detail: format!("moved to the id it has: {chat}") }
        }
        // A deletion has the same limits as an answer; after them it counts as refused.
        DeliveryError::NotSent { detail, .. } | DeliveryError::Unknown(detail)
            if is_removal(&delivery.action) && is_spent =>
        {
            DeliveryError::Refused(detail)
        }
        error => error,
    }
}

/// What becomes of a delivery that must not be sent: it is kept until the operator resumes its turn, or withdrawn because the
/// guard no longer wants it.
pub(super) fn unwanted(delivery: &DeliveryRecord, turn: &TurnRecord) -> Option<DeliveryChange> {
    if delivery.is_copy {
        return None;
    }
    let unchanged = DeliveryChange::of(delivery);
    if turn.obligation.is_held() {
        return Some(DeliveryChange { state: DeliveryState::Held, ..unchanged });
    }
    let why = || "a better signal came".to_owned();
    let error = Some(delivery.error.clone().unwrap_or_else(why));
    let withdrawn = DeliveryChange { state: DeliveryState::Withdrawn, error, ..unchanged };
    (!may_attempt(turn, delivery.claim)).then_some(withdrawn)
}

/// Whether a claim is still to be sent: it is in flight, or is a late answer after a settled fallback.
fn may_attempt(turn: &TurnRecord, claim: u32) -> bool {
    if claim == Draft::CLAIM {
        return turn.obligation.is_draft_pending();
    }
    turn.obligation.claim_in_flight() == Some(claim)
}

fn edited_message(action: &Action) -> Option<&str> {
    match action {
        Action::Edit { message, .. } => Some(message),
        _ => None,
    }
}

/// An edit as a new message, for when the message to edit no longer exists.
fn as_send(action: &Action) -> Option<Action> {
    match action {
        Action::Edit { content, reply_to, .. } => {
            Some(Action::Send { content: content.clone(), reply_to: reply_to.clone() })
        }
        _ => None,
    }
}

/// A message without its reply, for when the message to reply to no longer exists. `None` if it is no reply.
fn without_reply(action: &Action) -> Option<Action> {
    match action {
        Action::Send { content, reply_to: Some(_) } => Some(Action::Send { content: content.clone(), reply_to: None }),
        _ => None,
    }
}

const fn is_removal(action: &Action) -> bool {
    matches!(action, Action::Delete { .. })
}
