//! Dead letters: turns that are undeliverable, and dead copies of answers.

use rejoinder_core::{
    Obligation, ObligationState, StoreError, TurnId,
    store::{DeadLetter, DeliveryRecord, DeliveryState},
};
use uuid::Uuid;

use super::{
    columns::{Columns, record},
    delivery,
};

/// From the rows of dead letters, and those of all deliveries of their turns.
pub(crate) fn records<R: Columns>(rows: &[R], deliveries: &[R]) -> Result<Vec<DeadLetter>, StoreError> {
    let deliveries = delivery::by_turn(deliveries);
    let of = |row: &R| {
        let turn: TurnId = row.value("turn_id")?;
        record(row, turn, deliveries.get(&turn).map_or(&[][..], Vec::as_slice))
    };
    rows.iter().map(of).collect()
}

fn record(row: &impl Columns, turn: TurnId, deliveries: &[DeliveryRecord]) -> Result<DeadLetter, StoreError> {
    let copy: Option<Uuid> = row.value("copy")?;
    // The operator sees also what cannot be read, as far as the columns tell.
    let obligation: Option<Obligation> = row.value("body").ok();
    let (delivery, reason) = match (copy, &obligation) {
        (Some(copy), _) => {
            let delivery = deliveries.iter().find(|one| one.id.as_uuid() == copy);
            (delivery, delivery.and_then(|one| one.error.clone()).unwrap_or_default())
        }
        (None, Some(obligation)) => {
            let claim = obligation.undelivered_claim();
            let is_left = |one: &&DeliveryRecord| {
                Some(one.claim) == claim && !one.is_copy && one.state != DeliveryState::Delivered
            };
            let reason = match obligation.state() {
                ObligationState::Undeliverable { reason } => reason.clone(),
                _ => String::new(),
            };
            (deliveries.iter().find(is_left), reason)
        }
        (None, None) => (None, "its record cannot be read".to_owned()),
    };
    Ok(record!(row => DeadLetter {
        conversation_id, accepted_at, ended_at;
        id: copy.or(delivery.map(|one| one.id.as_uuid())).unwrap_or_else(|| turn.as_uuid()),
        turn,
        is_copy: copy.is_some(),
        conversation: row.conversation()?,
        sender: row.sender(),
        question: row.value::<Option<String>>("text")?.unwrap_or_default(),
        reason,
        delivery: delivery.cloned(),
    }))
}
