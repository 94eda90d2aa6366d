//! What waited too long while the gateway was down: it is given up, or somebody is asked.

use futures_util::future::BoxFuture;
use rejoinder_guard::{CancelledBy, Event, Expectation};
use tracing::warn;

use super::{accept::Acceptor, arrival::Notice};
use crate::{
    base::{conflicts::decide_anew, pauses},
    events::TurnEvents,
    ledger::trigger::Trigger,
    model::{Backlog, ConversationId, InboundEvent, TurnId, TurnRecord},
    ports::{StoreError, Stored, WaitingTurn},
    questions::backlog_question::{State, may_be_asked},
};

/// How many turns of a conversation are looked at.
const MOST: u32 = 10_000;

/// Why a turn that owes nothing is given up, for the operator.
const TOO_OLD: &str = "it was too old when the gateway started, and `[queue] backlog` is \"expire\"";

impl Acceptor {
    /// Acts on the waiting turns that are late, if they are not simply to be answered. Nothing runs here yet. Those on channels that other
    /// nodes have did not wait because the gateway was down.
    pub(crate) async fn settle_backlog(&self) -> Result<(), StoreError> {
        match self.router.settings.get().queues.backlog {
            Backlog::Expire => self.expire_late().await?,
            Backlog::Ask => self.postpone_late().await?,
            Backlog::Answer | Backlog::Summarize => {}
        }
        for conversation in self.queue.postponed().await? {
            if !self.settle_late_once(conversation).await? {
                self.lifecycle.work.spawn(self.settle_late(conversation));
            }
        }
        Ok(())
    }

    /// Gives up the waiting turns that are late, and tells each conversation in which one of them is owed.
    async fn expire_late(&self) -> Result<(), StoreError> {
        for waiting in self.waiting_here().await? {
            let late = self.late_in(waiting.conversation).await?;
            if let Some(owed) = late.iter().find(|turn| turn.obligation.expectation() == Expectation::Answer) {
                self.give_up_late(&owed.event).await?;
            } else if !late.is_empty() {
                let by = CancelledBy::Operator(TOO_OLD.to_owned());
                self.ledger.decide_all(&mut each(late, &Event::Cancelled { by }), &Trigger::Event).await?;
            }
        }
        Ok(())
    }

    /// The conversations with turns that wait for a run, on the channels of this node.
    async fn waiting_here(&self) -> Result<Vec<WaitingTurn>, StoreError> {
        let mut waiting = self.queue.waiting(u32::MAX).await?;
        waiting.retain(|waiting| self.router.leases.holds(&waiting.channel).is_some());
        Ok(waiting)
    }

    /// The late turns of a conversation that wait for their first run. One that cannot be read is set aside when it is next.
    async fn late_in(&self, conversation: ConversationId) -> Result<Vec<TurnRecord>, StoreError> {
        let (settings, now) = (self.router.settings.get(), self.router.clock.now());
        let mut late = self.queue.waiting_turns(conversation, MOST).await?;
        late.retain(|turn| turn.runs == 0 && settings.queues.is_backlog(&turn.event, now));
        Ok(late)
    }

    async fn give_up_late(&self, event: &InboundEvent) -> Result<(), StoreError> {
        let Some(notice) = self.router.notice(event, Notice::BacklogExpired).await? else { return Ok(()) };
        let turn = notice.new.turn.as_ref().map(|turn| turn.id);
        let stored = self.store.accept(vec![notice.new], None).await?;
        match (&stored[..], turn) {
            ([Stored::Turn { .. }], Some(turn)) => self.commands.try_to_perform(turn).await,
            _ => Ok(()),
        }
    }

    /// Postpones the waiting turns that are late.
    async fn postpone_late(&self) -> Result<(), StoreError> {
        for waiting in self.waiting_here().await? {
            let mut late = self.late_in(waiting.conversation).await?;
            late.retain(|turn| may_be_asked(&turn.event));
            if !late.is_empty() {
                self.ledger.decide_all(&mut each(late, &Event::Postponed), &Trigger::Event).await?;
            }
        }
        Ok(())
    }

    /// Acts on the postponed turns of a conversation: asks about them once, or lets them go on with a message that came
    /// since. Retries until this is stored, or the gateway stops. The result is boxed, because what it accepts may lead here again.
    pub(super) fn settle_late(&self, conversation: ConversationId) -> BoxFuture<'static, ()> {
        let acceptor = self.clone();
        Box::pin(async move {
            loop {
                match acceptor.settle_late_once(conversation).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => warn!(%conversation, %error, "cannot ask about late messages, retrying"),
                }
                if !acceptor.lifecycle.pause(pauses::READ_AGAIN).await {
                    return;
                }
            }
        })
    }

    /// `false` while the gateway acts on an answer to the question: look again then, because it may miss later messages.
    async fn settle_late_once(&self, conversation: ConversationId) -> Result<bool, StoreError> {
        decide_anew!(self.try_to_settle_late(conversation).await?)
    }

    /// `None` if one of the turns was changed meanwhile.
    async fn try_to_settle_late(&self, conversation: ConversationId) -> Result<Option<bool>, StoreError> {
        let postponed = self.backlog_question.postponed(conversation).await?;
        let Some(first) = postponed.first() else { return Ok(Some(true)) };
        let state = self.backlog_question.state(conversation).await?;
        if matches!(state, Some(State::BeingDecided)) {
            return Ok(Some(false));
        }
        let asked = state.and_then(State::question);
        let (settings, now) = (self.router.settings.get(), self.router.clock.now());
        let newer = postponed.iter().find(|turn| match &asked {
            Some(asked) => turn.seq > asked.seq && !settings.queues.is_backlog(&turn.event, turn.event.received_at),
            None => !settings.queues.is_backlog(&turn.event, now),
        });
        match (newer.map(|turn| turn.id), asked) {
            (Some(newer), asked) => self.answer_late(postponed, newer, asked).await,
            (None, Some(_)) => Ok(Some(true)),
            (None, None) => {
                if self.ask_about_late(&first.event, first.id).await? {
                    return Ok(Some(true));
                }
                match self.backlog_question.state(conversation).await? {
                    Some(State::Asked(_)) => Ok(Some(true)),
                    Some(State::BeingDecided) => Ok(Some(false)),
                    // They were asked about, and nobody can be shown the question.
                    None => self.decide_late(postponed, &Event::Continued).await,
                }
            }
        }
    }

    /// Asks about the late messages of a conversation, the first of which is given. `false` if that was asked before.
    async fn ask_about_late(&self, event: &InboundEvent, first: TurnId) -> Result<bool, StoreError> {
        let Some(notice) = self.router.notice(event, Notice::AsksAboutBacklog { first }).await? else {
            return Ok(false);
        };
        let id = notice.new.turn.as_ref().map(|turn| turn.id);
        match (self.store.accept(vec![notice.new], None).await?.pop(), id) {
            (Some(Stored::Turn { .. }), Some(id)) => {
                self.commands.try_to_perform(id).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Lets postponed turns go on together with a newer message, and closes the question about them.
    async fn answer_late(
        &self,
        postponed: Vec<TurnRecord>,
        newer: TurnId,
        asked: Option<TurnRecord>,
    ) -> Result<Option<bool>, StoreError> {
        let Some(asked) = asked else { return self.decide_late(postponed, &Event::Continued).await };
        let trigger = Trigger::Closes(asked.id);
        let mut inputs = each(postponed, &Event::Continued);
        if !asked.obligation.state().is_final() {
            let by = CancelledBy::Turn(newer.to_string());
            inputs.push(TurnEvents { turn: asked, events: vec![Event::Cancelled { by }] });
        }
        Ok(self.ledger.try_to_decide(&mut inputs, &trigger).await?.map(|_| true))
    }

    async fn decide_late(&self, turns: Vec<TurnRecord>, event: &Event) -> Result<Option<bool>, StoreError> {
        Ok(self.ledger.try_to_decide(&mut each(turns, event), &Trigger::Event).await?.map(|_| true))
    }
}

fn each(turns: Vec<TurnRecord>, event: &Event) -> Vec<TurnEvents> {
    turns.into_iter().map(|turn| TurnEvents { turn, events: vec![event.clone()] }).collect()
}
