//! What operators do: retry, redirect and discard dead letters, cancel and hold turns, decide requests, let people in
//! and erase what is stored about them. The commands that people write are in `commands`.
//!
//! The guard decides on each, like on everything else that happens to a turn. An operation is stored with its decision,
//! with who did it and why.

#![expect(clippy::missing_errors_doc, reason = "each fails if it was not done, and `OperationError` says why")]

pub(crate) mod administration;
pub(crate) mod approvals;
mod attempts;
mod elsewhere;
pub(crate) mod forget;
pub(crate) mod people;
pub(crate) mod visitors;

use std::{fmt::Display, sync::Arc};

use rejoinder_guard::{CancelledBy, Event, ObligationState, Reply};
use uuid::Uuid;

use crate::{
    base::{channels::Channels, conflicts::decide_anew},
    events::{
        TurnEvents,
        subjects::{subject_of, subject_of_delivery},
    },
    handles::lanes::Lanes,
    ledger::{
        Ledger,
        trigger::{OperatorStep, Trigger},
    },
    model::{
        ChannelId, ConversationId, ConversationRef, DeliveryId, DeliveryRecord, DeliveryState, InboundEvent,
        LiveSettings, LogEvent, NewLogEntry, Receipts, Shown, Subject, TurnId, TurnRecord, numbered,
    },
    operator::{
        actor::{Actor, operation, sent_to},
        error::OperationError,
    },
    outbox::caller::Caller,
    people::People,
    ports::{
        ChannelStore, Commit, DeliveryChange, Hint, OutboxStore, Pause, Remark, SharedClock, StoreError, Transition,
        TurnChange,
    },
    questions::approvals::Approvals,
    shown::retry,
};

/// What a person is told of a turn that an operator gives up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Farewell {
    /// The operator's template `given_up`.
    #[default]
    Template,
    /// These words.
    Words(String),
    /// Nothing. Its deferral is removed.
    Silence,
}

impl Farewell {
    pub(crate) fn event(self, reason: String) -> Event {
        match self {
            Self::Template => Event::GivenUp { reason, say: None },
            Self::Words(words) => Event::GivenUp { reason, say: Some(words) },
            Self::Silence => Event::Cancelled { by: CancelledBy::Operator(reason) },
        }
    }
}

struct Step {
    action: &'static str,
    target: Uuid,
    event: Event,
    elsewhere: Option<ConversationRef>,
}

enum DeadLetter {
    Turn(Box<TurnRecord>),
    /// A copy of an answer, which settles nothing, and its turn, if that can be read.
    Copy(Box<DeliveryRecord>, Box<Option<TurnRecord>>),
}

/// Does what operators ask for.
pub struct Operations {
    pub(crate) store: Arc<dyn OutboxStore>,
    pub(crate) conversations: Arc<dyn ChannelStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) people: Arc<People>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Operations {
    /// Has the dead letter with this id, that of a delivery or of a turn, sent again as the same delivery. A turn for which
    /// there was nothing to send is run again. What is no dead letter and waits to be sent is tried now.
    pub async fn retry(&self, id: Uuid, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            if let Some(waiting) = self.waiting(id, &by).await? {
                return self.try_now(waiting, "retry", id, &by).await;
            }
            match self.dead_letter(id, &by).await? {
                DeadLetter::Turn(turn) => {
                    let deliveries = self.store.deliveries(turn.id).await?;
                    let to = sent_to(&turn, &deliveries);
                    self.require_channel(to, &by)?;
                    if turn.obligation.undelivered_claim().is_some() {
                        self.require_unblocked(to, "retry it then")?;
                    }
                    let step = Step { action: "retry", target: id, event: Event::Retried, elsewhere: None };
                    self.step(*turn, step, &by).await?
                }
                DeadLetter::Copy(delivery, turn) => {
                    self.require_channel(&delivery.conversation, &by)?;
                    self.require_unblocked(&delivery.conversation, "retry it then")?;
                    let change = retry::from_the_start(&delivery, self.clock.now());
                    let event = LogEvent::DeliveryRetried { delivery_id: delivery.id };
                    let is_done = self.change_copy((&delivery, *turn), change, "retry", event, &by).await?;
                    self.lanes.open(&delivery.conversation.channel, delivery.conversation_id);
                    self.ledger.executor.hints.opens(&delivery.conversation.channel, delivery.conversation_id);
                    is_done
                }
            }
        })?)
    }

    /// Sends a dead letter to another conversation.
    pub async fn redirect(&self, id: Uuid, to: ConversationRef, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let DeadLetter::Turn(turn) = self.dead_letter(id, &by).await? else {
                let why = "a callback goes to the address that is configured for its hook, and cannot go elsewhere";
                return Err(OperationError::Unfit(why.to_owned()));
            };
            if turn.event.seal_to.is_some() {
                let why = "only who asked may read it: the answer is to be sealed to their key; retry it instead, or discard it";
                return Err(OperationError::Unfit(why.to_owned()));
            }
            let claim = turn.obligation.undelivered_claim().ok_or_else(|| {
                OperationError::Unfit("there is nothing to send: the agent gave no answer; retry it instead".to_owned())
            })?;
            let reply = self
                .undelivered(turn.id, claim)
                .await?
                .ok_or_else(|| OperationError::Unfit("its text is no longer stored; retry it instead".to_owned()))?;
            let step = Step {
                action: "redirect",
                target: id,
                event: Event::Redirected { reply },
                elsewhere: Some(to.clone()),
            };
            self.step(*turn, step, &by).await?
        })?)
    }

    /// What a claim says, as it is sent to another conversation; `None` if that is no longer stored.
    async fn undelivered(&self, turn: TurnId, claim: u32) -> Result<Option<Reply>, StoreError> {
        let mut parts = self.store.deliveries(turn).await?;
        parts.retain(|part| part.claim == claim && !part.is_copy);
        let Some(shown) = Shown::of(&parts, None, None) else { return Ok(None) };
        let text = if shown.choices.is_empty() { shown.text } else { numbered(&shown.text, &shown.choices) };
        Ok(Some(Reply { attachments: shown.attachments, ..Reply::text(text) }))
    }

    /// Gives a dead letter up.
    pub async fn discard(&self, id: Uuid, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            match self.dead_letter(id, &by).await? {
                // Nothing could be delivered.
                DeadLetter::Turn(turn) => self.give_up(*turn, Farewell::Silence, "discard", id, &by).await?,
                DeadLetter::Copy(delivery, turn) => {
                    let change = DeliveryChange { state: DeliveryState::Withdrawn, ..DeliveryChange::of(&delivery) };
                    let event = LogEvent::DeliveryDiscarded { delivery_id: delivery.id };
                    self.change_copy((&delivery, *turn), change, "discard", event, &by).await?
                }
            }
        })?)
    }

    /// Gives a turn up that has not ended. Of a dead letter nobody can be told.
    pub async fn cancel(&self, id: TurnId, farewell: Farewell, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let turn = self.turn(id, &by).await?;
            if matches!(turn.obligation.state(), ObligationState::Settled(_)) {
                return Err(OperationError::Unfit("the turn is settled: there is nothing to cancel".to_owned()));
            }
            if let ObligationState::Undeliverable { reason } = turn.obligation.state() {
                let what = "the turn has ended as a dead letter, of which its person cannot be told";
                let next = "retry or redirect it to have it delivered, or discard it to give it up";
                return Err(OperationError::Unfit(format!("{what} ({reason}): {next}")));
            }
            if let ObligationState::Merged { into } = turn.obligation.state() {
                return Err(OperationError::Unfit(format!("turn {into} answers for this one: cancel that one")));
            }
            self.give_up(turn, farewell.clone(), "cancel", id.as_uuid(), &by).await?
        })?)
    }

    /// Holds a turn: no run and no attempt begins until it is resumed.
    pub async fn hold(&self, id: TurnId, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let turn = self.turn(id, &by).await?;
            if turn.obligation.state().is_final() {
                return Err(OperationError::Unfit("the turn has ended: there is nothing to hold".to_owned()));
            }
            let address = &turn.event.conversation;
            let receipts = self.channels.get(&address.channel).map(|channel| channel.capabilities(address).receipts);
            if receipts.is_some_and(|receipts| receipts != Receipts::Platform) {
                let why = format!("on {} an answer is there once it is stored, so it cannot be held", address.channel);
                return Err(OperationError::Unfit(format!("{why}: cancel the turn instead")));
            }
            let step = Step { action: "hold", target: id.as_uuid(), event: Event::Held, elsewhere: None };
            self.step(turn, step, &by).await?
        })?)
    }

    /// Resumes a turn that is held.
    pub async fn resume(&self, id: TurnId, by: Actor) -> Result<(), OperationError> {
        Ok(decide_anew!({
            let turn = self.turn(id, &by).await?;
            if !turn.obligation.is_held() {
                return Err(OperationError::Unfit("the turn is not held".to_owned()));
            }
            let step = Step { action: "resume", target: id.as_uuid(), event: Event::Resumed, elsewhere: None };
            self.step(turn, step, &by).await?
        })?)
    }

    /// Stores that an operator did something that changes no row.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn record(
        &self,
        by: &Actor,
        action: &str,
        target: impl Display,
        subject: Subject,
    ) -> Result<(), OperationError> {
        let operation = operation(by, action, target, subject, self.clock.now());
        self.store.commit(Transition { operation: Some(operation), ..Transition::default() }).await?;
        Ok(())
    }

    async fn give_up(
        &self,
        turn: TurnRecord,
        farewell: Farewell,
        action: &'static str,
        target: Uuid,
        by: &Actor,
    ) -> Result<Option<()>, OperationError> {
        let reason = by.reason.clone().unwrap_or_else(|| "no reason given".to_owned());
        let event = farewell.event(reason);
        self.step(turn, Step { action, target, event, elsewhere: None }, by).await
    }

    async fn turn(&self, id: TurnId, by: &Actor) -> Result<TurnRecord, OperationError> {
        let turn = self.store.turn(id).await?.filter(|turn| by.may(&turn.event.conversation.channel));
        turn.ok_or(OperationError::Unknown("there is no turn with this id"))
    }

    /// Pauses a channel, or resumes it. While it is paused, what comes in is stored and answered, and nothing is sent.
    pub async fn pause_channel(&self, channel: ChannelId, pauses: bool, by: Actor) -> Result<(), OperationError> {
        if self.channels.get(&channel).is_none() || !by.may(&channel) {
            return Err(OperationError::Unknown("there is no channel with this name"));
        }
        let at = self.clock.now();
        let pause = pauses.then(|| Pause { since: at, by: by.name.clone(), reason: by.reason.clone() });
        let action = if pauses { "pause" } else { "resume" };
        let operation = operation(&by, action, &channel, Subject::channel(&channel), at);
        let pause = Some((channel.clone(), pause));
        let _pausing = self.caller.gate.pausing.lock().await;
        let transition = Transition { pause: pause.clone(), operation: Some(operation), ..Transition::default() };
        if self.store.commit(transition).await? == Commit::Conflict {
            // Also by an earlier request, of which it was not known whether it was stored.
            let stored = self.store.paused().await?.into_iter().find(|(paused, _)| *paused == channel);
            self.caller.gate.pause(&channel, stored.map(|(_, pause)| pause));
            let why = if pauses { "the channel is paused already" } else { "the channel is not paused" };
            return Err(OperationError::Unfit(why.to_owned()));
        }
        self.caller.gate.pause(&channel, pause.and_then(|(_, pause)| pause));
        self.ledger.executor.hints.tell(|| Hint::Paused(channel.clone()));
        if !pauses {
            self.caller.health.hurry_soon(&channel);
        }
        Ok(())
    }

    /// The dead letter with this id, that of a delivery or of a turn.
    async fn dead_letter(&self, id: Uuid, by: &Actor) -> Result<DeadLetter, OperationError> {
        let mut delivery = self.store.delivery(DeliveryId::from(id)).await?;
        let mut turn = None;
        if let Some(copy) = delivery.as_ref().filter(|delivery| delivery.is_copy) {
            // Its state is read after the version of its turn, which counts what operators do with it.
            turn = self.store.readable_turn(copy.turn).await?;
            delivery = self.store.delivery(DeliveryId::from(id)).await?;
        }
        let unfit = |state: &str| {
            let why = match state {
                "open" | "claimed" | "deferred" | "merged" => {
                    "it is no dead letter, and nothing of it waits to be sent"
                }
                _ => "it is no dead letter any more",
            };
            Err(OperationError::Unfit(format!("{why}: it is {state}")))
        };
        if let Some(delivery) =
            delivery.as_ref().filter(|delivery| delivery.is_copy && by.may(&delivery.conversation.channel))
        {
            return match delivery.state {
                DeliveryState::Dead => Ok(DeadLetter::Copy(Box::new(delivery.clone()), Box::new(turn))),
                state => unfit(state.as_str()),
            };
        }
        let id = delivery.map_or(TurnId::from(id), |delivery| delivery.turn);
        let turn = self.store.turn(id).await?.filter(|turn| by.may(&turn.event.conversation.channel));
        let turn = turn.ok_or(OperationError::Unknown("there is no dead letter with this id"))?;
        match turn.obligation.state() {
            ObligationState::Undeliverable { .. } => Ok(DeadLetter::Turn(Box::new(turn))),
            state => unfit(state.as_str()),
        }
    }

    fn require_channel(&self, conversation: &ConversationRef, by: &Actor) -> Result<(), OperationError> {
        match self.channels.get(&conversation.channel).filter(|_| by.may(&conversation.channel)) {
            Some(_) => Ok(()),
            None => Err(OperationError::Unfit(format!(
                "its channel {} is not configured: configure it again, or redirect it to another one",
                conversation.channel
            ))),
        }
    }

    /// The turn as if it had come from the conversation at `to`, where its answer is sent.
    async fn elsewhere(
        &self,
        turn: &TurnRecord,
        to: &ConversationRef,
        by: &Actor,
    ) -> Result<TurnRecord, OperationError> {
        let conversation = self.conversation_at(to, by).await?;
        let event = InboundEvent { conversation: to.clone(), message_id: None, ..(*turn.event).clone() };
        Ok(TurnRecord { conversation, event: Arc::new(event), ..turn.clone() })
    }

    /// The conversation at `to`, if messages can be sent there.
    async fn conversation_at(&self, to: &ConversationRef, by: &Actor) -> Result<ConversationId, OperationError> {
        let channel = self
            .channels
            .get(&to.channel)
            .filter(|_| by.may(&to.channel))
            .ok_or_else(|| OperationError::Unfit(format!("the channel {} is not configured", to.channel)))?;
        if channel.capabilities(to).receipts != Receipts::Platform {
            let why =
                format!("messages cannot be sent to {}: its callers fetch the answers to their own turns", to.channel);
            return Err(OperationError::Unfit(why));
        }
        self.require_unblocked(to, "redirect it then")?;
        self.conversations.conversation(to).await?.ok_or_else(|| {
            OperationError::Unfit(format!("there is no conversation {to}: nobody has written there yet"))
        })
    }

    /// Lets the guard decide on one turn, and stores the operation with the decision.
    async fn step(&self, turn: TurnRecord, step: Step, by: &Actor) -> Result<Option<()>, OperationError> {
        let Step { action, target, event, elsewhere } = step;
        let elsewhere = match &elsewhere {
            Some(to) => Some((self.elsewhere(&turn, to, by).await?, to.to_string())),
            None => None,
        };
        let at = self.clock.now();
        let to = elsewhere.as_ref().map(|(_, to)| to.as_str());
        let remark = Remark { turn: turn.id, at, kind: action.to_owned(), detail: remark(by, to) };
        let operation = operation(by, action, target, subject_of(&turn), at);
        let deliveries = self.store.deliveries(turn.id).await?;
        let elsewhere = elsewhere.map(|(turn, _)| turn);
        let operation = Some(operation);
        let trigger =
            Trigger::Operator(Box::new(OperatorStep { operation, remark, deliveries, elsewhere, said: None }));
        let mut inputs = [TurnEvents { turn, events: vec![event] }];
        Ok(self.ledger.try_to_decide(&mut inputs, &trigger).await?.map(drop))
    }

    async fn change_copy(
        &self,
        (delivery, turn): (&DeliveryRecord, Option<TurnRecord>),
        change: DeliveryChange,
        action: &'static str,
        event: LogEvent,
        by: &Actor,
    ) -> Result<Option<()>, OperationError> {
        let (at, subject) = (self.clock.now(), subject_of_delivery(delivery));
        let unchanged =
            |it: TurnRecord| TurnChange { turn: it.id, expected: it.version, obligation: it.obligation, at };
        let transition = Transition {
            turns: turn.into_iter().map(unchanged).collect(),
            delivery_changes: vec![change],
            remarks: vec![Remark { turn: delivery.turn, at, kind: action.to_owned(), detail: remark(by, None) }],
            log: vec![NewLogEntry { at, subject: subject.clone(), event }],
            operation: Some(operation(by, action, delivery.id.as_uuid(), subject, at)),
            ..Transition::default()
        };
        Ok(self.store.commit(transition).await?.is_done()?.then_some(()))
    }
}

/// Who did it, where it goes and why, for `explain`.
fn remark(by: &Actor, to: Option<&str>) -> String {
    remark_with(by, &to.map(|to| format!(", to {to}")).unwrap_or_default())
}

/// The same with `more` between who and why.
fn remark_with(by: &Actor, more: &str) -> String {
    let why = by.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("by {}{more}{why}", by.name)
}
