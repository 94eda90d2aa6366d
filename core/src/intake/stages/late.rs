//! Decides about messages that waited too long while the gateway was down (`[queue] backlog`).

use async_trait::async_trait;

use super::{Handles, Stage};
use crate::{
    intake::{
        arrival::{Arrival, Verdict},
        notice::Notice,
    },
    model::queue::Backlog,
    ports::{clock::SharedClock, store::StoreError},
    questions::backlog_question::may_be_asked,
};

pub(super) struct Late {
    clock: SharedClock,
}

impl Late {
    pub(super) fn new(handles: &Handles<'_>) -> Self {
        Self { clock: SharedClock::clone(handles.clock) }
    }
}

#[async_trait]
impl Stage for Late {
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        let queues = &arrival.settings.queues;
        if arrival.is_command() || !queues.is_late(&arrival.event, self.clock.now()) {
            return Ok(Verdict::Continue(arrival));
        }
        let is_owed = arrival.is_owed();
        match queues.backlog {
            Backlog::Expire => return Ok(arrival.end(is_owed.then_some(Notice::Late))),
            Backlog::Ask if !may_be_asked(&arrival.event) => {}
            Backlog::Ask if !is_owed => return Ok(arrival.end(None)),
            Backlog::Ask => arrival.is_asked_about = true,
            Backlog::Answer | Backlog::Summarize => {}
        }
        Ok(Verdict::Continue(arrival))
    }
}
