//! Turns as a chat client shows them.

use rejoinder_core::{
    InboundEvent, Obligation, Shown, StoreError, TurnId, TurnStatus, TurnView, agent_of, store::DeliveryRecord,
};

use super::{
    columns::{Columns, readable, record},
    delivery,
};

/// The views that can be read, in the order of `turns`. `deliveries` are the signals that were shown.
pub(crate) fn records<R: Columns>(turns: &[R], deliveries: &[R]) -> Vec<TurnView> {
    let parts = delivery::by_turn(deliveries);
    readable(turns, "id", |row| {
        let turn: TurnId = row.value("id")?;
        record(row, parts.get(&turn).map_or(&[][..], Vec::as_slice))
    })
}

fn record(row: &impl Columns, parts: &[DeliveryRecord]) -> Result<TurnView, StoreError> {
    let obligation: Obligation = row.value("body")?;
    let event: InboundEvent = row.value("details")?;
    let agent = agent_of(&row.handler()?, &obligation);
    // Once its time has come, the agent works again, and the debt is due with the run.
    let is_working = obligation.is_running() || obligation.is_waiting();
    let due = obligation.due().filter(|_| !is_working);
    let (text, attachments) = TurnView::said(event.sender.kind, row.value("text")?, event.attachments);
    Ok(record!(row => TurnView {
        turn_id: id, seq, at: accepted_at, picked;
        conversation: row.conversation()?,
        text,
        attachments,
        status: TurnStatus::of(&obligation),
        shown: Shown::of(parts, agent.as_ref(), due),
        merged_into: TurnView::merged_into(&obligation),
    }))
}
