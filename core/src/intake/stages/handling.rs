//! Decides which agent handles a turn, with which model and whose history: the agent that the sender's program or a prompt
//! names, else the one that is chosen for the session, else the one that it was routed to.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Handles, Stage};
use crate::{
    conversations::{
        addresses::Addresses,
        sessions::{self, Sessions},
    },
    intake::arrival::{Arrival, Verdict},
    model::{event::EventKind, turn::Handler},
    ports::store::StoreError,
};

pub(super) struct ChooseHandler {
    addresses: Arc<Addresses>,
    sessions: Arc<Sessions>,
}

impl ChooseHandler {
    pub(super) fn new(handles: &Handles<'_>) -> Self {
        Self { addresses: Arc::clone(handles.addresses), sessions: Arc::clone(handles.sessions) }
    }
}

#[async_trait]
impl Stage for ChooseHandler {
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        let conversation = arrival.conversation(&self.addresses).await?;
        let (event, handling) = (&arrival.event, &mut arrival.handling);
        if let Some(other) = event.about_another() {
            handling.about = Some(self.addresses.resolve(other).await?);
        }
        let Handler::Agent(agent) = &handling.handler else {
            handling.repeats = None;
            return Ok(Verdict::Continue(arrival));
        };
        if matches!(event.kind, EventKind::Prompt { agent: Some(_), .. }) {
            return Ok(Verdict::Continue(arrival));
        }
        if let Some(asked) = event.brief.as_ref().filter(|brief| brief.agent.is_some()) {
            handling.model.clone_from(&asked.model);
            return Ok(Verdict::Continue(arrival));
        }
        // What is chosen for the session comes before the rule.
        let of_session = handling.about.unwrap_or(conversation);
        let owner = sessions::owner(event, &arrival.known);
        let (choice, remark) = self.sessions.chosen(of_session, owner, agent, &arrival.settings.sessions).await?;
        if let Some(chosen) = choice.agent {
            handling.handler = Handler::Agent(chosen);
        }
        handling.model = choice.model;
        handling.remark = remark;
        Ok(Verdict::Continue(arrival))
    }
}
