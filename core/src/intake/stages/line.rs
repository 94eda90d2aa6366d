//! Takes the slot of its conversation for a turn of an agent, or finds it room among the turns that wait.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Handles, Stage};
use crate::{
    conversations::addresses::Addresses,
    handles::slots::{Permit, Slot, Slots},
    intake::{
        arrival::{Arrival, Verdict},
        limits::{Full, Limits, is_limited},
        notice::Notice,
    },
    merges::Merges,
    model::{agent::AgentName, event::EventKind, ids::ConversationId, turn::Handler},
    ports::store::StoreError,
    questions::backlog_question::BacklogQuestion,
};

pub(super) struct Line {
    addresses: Arc<Addresses>,
    backlog_question: Arc<BacklogQuestion>,
    merges: Arc<Merges>,
    slots: Arc<Slots>,
    limits: Arc<Limits>,
}

impl Line {
    pub(super) fn new(handles: &Handles<'_>, limits: &Arc<Limits>) -> Self {
        Self {
            addresses: Arc::clone(handles.addresses),
            backlog_question: Arc::clone(handles.backlog_question),
            merges: Arc::clone(handles.merges),
            slots: Arc::clone(handles.slots),
            limits: Arc::clone(limits),
        }
    }

    /// The slot of its conversation, if it is free and no turn waits for it.
    fn take_slot(&self, arrival: &Arrival, agent: &AgentName, conversation: ConversationId) -> Option<Slot> {
        let Arrival { id, event, handling, .. } = arrival;
        if self.merges.waits_for_more(conversation, event, handling.rule.as_deref()) {
            return self.slots.try_reserve(conversation, *id, agent);
        }
        let permit = Permit { agent: agent.clone(), channel: event.conversation.channel.clone() };
        self.slots.try_take(conversation, *id, &permit)
    }
}

#[async_trait]
impl Stage for Line {
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        let conversation = arrival.conversation(&self.addresses).await?;
        // A command does not wait.
        let Handler::Agent(agent) = &arrival.handling.handler else { return Ok(Verdict::Continue(arrival)) };
        // What comes after late messages is answered together with them.
        let is_message = arrival.event.kind == EventKind::Message && arrival.is_owed();
        let joins_late = is_message && self.backlog_question.is_in(conversation);
        arrival.is_postponed = arrival.is_asked_about || joins_late;
        if arrival.may_begin && !arrival.is_postponed {
            arrival.slot = self.take_slot(&arrival, agent, conversation);
        }
        if arrival.slot.is_some() || !is_limited(&arrival.event) {
            return Ok(Verdict::Continue(arrival));
        }
        if let Some(counted) = &arrival.counted
            && let Some(over) = self.limits.check_waiting(&arrival.event, counted, &arrival.known).await?
        {
            return Ok(arrival.end_over_limit(over));
        }
        match self.limits.check_line(&arrival.event, conversation, arrival.is_asked_about).await? {
            Some(Full::Refuses(over)) => return Ok(arrival.end_over_limit(over)),
            Some(Full::Drops { minute }) => arrival.notice = Some(Notice::Dropped { minute }),
            None => {}
        }
        Ok(Verdict::Continue(arrival))
    }
}
