//! Counts a turn of an agent among those of its sender, and ends one that is too many for the minute or the day.

use std::sync::Arc;

use async_trait::async_trait;

use super::Stage;
use crate::{
    intake::{
        arrival::{Arrival, Verdict},
        limits::{Limits, is_limited},
    },
    ports::store::StoreError,
};

pub(super) struct Limited {
    limits: Arc<Limits>,
}

impl Limited {
    pub(super) fn new(limits: &Arc<Limits>) -> Self {
        Self { limits: Arc::clone(limits) }
    }
}

#[async_trait]
impl Stage for Limited {
    async fn decide(&self, mut arrival: Arrival) -> Result<Verdict, StoreError> {
        // A command acts on turns that run and wait, and is not limited.
        if arrival.is_command() || !is_limited(&arrival.event) {
            return Ok(Verdict::Continue(arrival));
        }
        arrival.counted = match self.limits.count(&arrival.event, &arrival.known) {
            Ok(counted) => counted,
            Err(over) => return Ok(arrival.end_over_limit(over)),
        };
        if let Some(counted) = &mut arrival.counted
            && let Some(over) = self.limits.check_day(&arrival.event, counted, &arrival.known).await?
        {
            return Ok(arrival.end_over_limit(over));
        }
        Ok(Verdict::Continue(arrival))
    }
}
