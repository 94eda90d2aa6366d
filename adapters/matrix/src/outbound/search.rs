//! Looks in the room for a message whose receipt was lost, once the homeserver may have forgotten its transaction id.

use std::time::Duration;

use matrix_sdk::{room::MessagesOptions, ruma::UInt};
use rejoinder_core::{Action, DeliveryError, Receipt, Timestamp};
use rejoinder_kit::created_at;

use super::{Sending, delivery_of};
use crate::{errors, payload::Event, room::read};

/// How long a homeserver remembers transaction ids at least. Synapse: a day, less an hour for its clean-up.
const TRANSACTION_LIFETIME: Duration = Duration::from_hours(23);

/// How much the clocks of servers may differ.
const SLACK: Duration = Duration::from_mins(10);

impl Sending<'_> {
    /// The receipt of a new message, if an earlier attempt sent it. Searches back to the time when the delivery was created.
    pub(super) async fn find_earlier_attempt(&self) -> Result<Option<Receipt>, DeliveryError> {
        let delivery = self.delivery;
        let is_new = matches!(delivery.action(), Action::Send { .. });
        let created = created_at(delivery);
        let age = created.map(|created| self.matrix.clock.now().since(created)).unwrap_or_default();
        let (Some(created), true) = (created, is_new && delivery.attempt() > 1 && age >= TRANSACTION_LIFETIME) else {
            return Ok(None);
        };
        let id = delivery.id().to_string();
        let mut before: Option<String> = None;
        loop {
            let mut options = MessagesOptions::backward().from(before.as_deref());
            options.limit = UInt::from(100_u32);
            let page = self.room.messages(options).await.map_err(|error| self.classify(errors::sdk(&error)))?;
            let events: Vec<_> = page.chunk.iter().filter_map(read).collect();
            // Not an edit in whose place it is sent.
            let is_message = |event: &Event| event.relation().replaces().is_none();
            let is_it = |event: &&Event| {
                event.sender == self.session.me() && delivery_of(&event.content) == Some(&id) && is_message(event)
            };
            if let Some(sent) = events.iter().find(is_it) {
                return Ok(Some(Receipt::of(sent.id.clone())));
            }
            // One server's clock may be wrong, so the search stops only at a page of nothing but older events.
            let is_older = |event: &Event| Timestamp::from_millis(event.origin_server_ts) + SLACK < created;
            match page.end {
                Some(end) if !events.iter().all(is_older) => before = Some(end),
                _ => return Ok(None),
            }
        }
    }
}
