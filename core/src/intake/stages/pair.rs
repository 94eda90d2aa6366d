//! Ends the messages of another agent that this one has answered too often.

use async_trait::async_trait;

use super::{Handles, Stage};
use crate::{
    intake::{
        arrival::{Arrival, Verdict},
        pairs::{Pairs, Passage},
    },
    ports::{clock::SharedClock, store::StoreError},
};

pub(super) struct Pair {
    pairs: Pairs,
}

impl Pair {
    pub(super) fn new(handles: &Handles<'_>) -> Self {
        Self { pairs: Pairs::new(handles.store.clone(), SharedClock::clone(handles.clock)) }
    }
}

#[async_trait]
impl Stage for Pair {
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        let Passage::Open(heard) = self.pairs.passage(&arrival.event).await? else {
            return Ok(arrival.end_unamended(None));
        };
        arrival.heard = heard;
        Ok(Verdict::Continue(arrival))
    }
}
