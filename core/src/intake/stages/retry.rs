//! Makes a `/retry` the question that it puts before the agent again.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Handles, Stage};
use crate::{
    commands::{self, retry::RETRY},
    conversations::{
        addresses::Addresses,
        sessions::{self, Sessions},
    },
    intake::arrival::{Arrival, Verdict},
    model::event::EventKind,
    people::People,
    ports::store::{StoreError, accept::Repeated},
    router::{self, Route},
};

pub(super) struct Retry {
    people: Arc<People>,
    addresses: Arc<Addresses>,
    sessions: Arc<Sessions>,
}

impl Retry {
    pub(super) fn new(handles: &Handles<'_>) -> Self {
        Self {
            people: Arc::clone(handles.people),
            addresses: Arc::clone(handles.addresses),
            sessions: Arc::clone(handles.sessions),
        }
    }

    fn is_retry(&self, arrival: &Arrival) -> bool {
        let Arrival { event, settings, known, .. } = arrival;
        let is_new = event.amends.is_none() && event.kind == EventKind::Message;
        if !is_new || !commands::find(&event.text).is_some_and(|command| command.handler() == RETRY.handler()) {
            return false;
        }
        let rule = router::rule(event, settings, known);
        let route = router::route(event, rule, settings, &self.people);
        matches!(route, Route::To { handler, .. } if handler == RETRY.handler())
    }
}

#[async_trait]
impl Stage for Retry {
    /// It stays the command, which says why, if there is no such question, or its answer may still come.
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        if !self.is_retry(&arrival) {
            return Ok(Verdict::Continue(arrival));
        }
        let conversation = arrival.conversation(&self.addresses).await?;
        let owner = sessions::owner(&arrival.event, &arrival.known);
        let last = self.sessions.last_question(&arrival.event, conversation, owner, true).await?;
        if let Some(last) = last.filter(|last| !last.is_open()) {
            arrival.handling.repeats = Some(Repeated { session: last.session, turns: last.ids() });
            arrival.event = last.asked_by(arrival.event);
        }
        Ok(Verdict::Continue(arrival))
    }
}
