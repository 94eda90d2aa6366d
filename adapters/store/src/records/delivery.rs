//! Deliveries, their attempts, and what keeps them from being sent.

use std::collections::HashMap;

use rejoinder_core::{
    StoreError, TurnId,
    store::{AttemptRecord, BlockedScope, DeliveryRecord, ListedDelivery, Origin, Pause},
};

use super::columns::{Columns, of_turn, readable, records};

records! {
    pub(crate) fn record(row) -> DeliveryRecord {
        id, turn: turn_id, claim, part, parts, conversation_id, class, signal, via, is_copy, action, state, attempts,
        next_attempt_at, label, parked, copies, resend_from, message_ids, error, created_at, retried_at, delivered_at,
        fetched_at;
        conversation: row.conversation()?,
    }

    pub(crate) fn attempt(row) -> AttemptRecord {
        delivery: delivery_id, number, started_at, ended_at, result, detail
    }

    pub(crate) fn pause(row) -> Pause { since, by, reason }

    pub(crate) fn blocked(row) -> BlockedScope {
        channel, until;
        chat: if row.value("account")? { None } else { Some(row.value("chat")?) },
    }
}

/// As [`record()`]; the error names the turn of the delivery that cannot be read.
pub(crate) fn record_or_its_turn(row: &impl Columns) -> Result<DeliveryRecord, StoreError> {
    record(row).map_err(|error| of_turn(row, "turn_id", error))
}

/// With the command of its turn.
pub(crate) fn listed(row: &impl Columns) -> Result<ListedDelivery, StoreError> {
    let is_message = row.value::<Option<String>>("command")?.as_deref() == Some(Origin::MESSAGE);
    let origin = if is_message { Origin::Operator } else { Origin::Turn };
    Ok(ListedDelivery { delivery: record(row)?, origin })
}

/// Those that can be read, in the order of the rows.
pub(super) fn by_turn(rows: &[impl Columns]) -> HashMap<TurnId, Vec<DeliveryRecord>> {
    let mut turns: HashMap<TurnId, Vec<DeliveryRecord>> = HashMap::new();
    for delivery in readable(rows, "turn_id", record) {
        turns.entry(delivery.turn).or_default().push(delivery);
    }
    turns
}
