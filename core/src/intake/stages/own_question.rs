//! Routes a pick from a question of the gateway's own to the command that decides it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Handles, Stage};
use crate::{
    commands::{
        asks::{self, DECIDE},
        digest::{ASKS_AGAIN, DIGEST},
        link,
    },
    intake::arrival::{Arrival, Verdict},
    model::event::EventKind,
    people::People,
    ports::store::StoreError,
    questions::{
        digest,
        open::{Asks, Questions},
    },
};

pub(super) struct OwnQuestion {
    questions: Arc<Questions>,
    people: Arc<People>,
}

impl OwnQuestion {
    pub(super) fn new(handles: &Handles<'_>) -> Self {
        Self { questions: Arc::clone(handles.questions), people: Arc::clone(handles.people) }
    }
}

#[async_trait]
impl Stage for OwnQuestion {
    /// A sender who may not decide picks nothing: the question stays open for the person who was asked.
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        let EventKind::Choice { turn } = arrival.event.kind else { return Ok(Verdict::Continue(arrival)) };
        let (event, settings, known) = (&arrival.event, &arrival.settings, &arrival.known);
        let (command, is_theirs) = match self.questions.asks(turn).await? {
            None => return Ok(Verdict::Continue(arrival)),
            Some(Asks::Approve(_, person)) => (&DECIDE, asks::may_decide(event, person, settings, known)),
            Some(Asks::Digest(person)) => {
                let command = if self.questions.is_shown_again(event).await? { &ASKS_AGAIN } else { &DIGEST };
                (command, digest::may_press(event, person, known))
            }
            Some(Asks::Link(turn)) => (&DECIDE, link::may_confirm(event, turn, &self.people)),
            Some(Asks::Late) => (&DECIDE, !settings.is_guest_of_group(event, known)),
            Some(Asks::LetIn) => (&DECIDE, true),
        };
        if !is_theirs {
            arrival.event.kind = EventKind::Message;
        }
        arrival.handling.handler = command.handler();
        Ok(Verdict::Continue(arrival))
    }
}
