//! Turns as a chat client shows them.

use std::collections::HashMap;

use rejoinder_core::{
    InboundEvent, Obligation, Shown, StoreError, TurnId, TurnStatus, TurnView, agent_of,
    store::{DeliveryRecord, Version},
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

/// The turns that these were merged into.
pub(crate) fn merged_into(views: &[TurnView]) -> Vec<TurnId> {
    views.iter().filter_map(|view| view.merged_into).collect()
}

/// Views of these `turns` with the versions in their rows. `others` are those of the turns that they were merged into.
pub(crate) fn with_versions<R: Columns>(
    turns: &[R],
    views: Vec<TurnView>,
    others: &[TurnView],
) -> Result<Vec<(Version, TurnView)>, StoreError> {
    let version = |row: &R| Ok::<(TurnId, Version), StoreError>((row.value("id")?, row.value("version")?));
    let versions: HashMap<_, _> = turns.iter().map(version).collect::<Result<_, _>>()?;
    let answered = views.into_iter().filter_map(|view| {
        let version = *versions.get(&view.turn_id)?;
        let view = match others.iter().find(|other| view.merged_into == Some(other.turn_id)) {
            Some(other) => view.answered_by(other.clone()),
            None => view,
        };
        Some((version, view))
    });
    Ok(answered.collect())
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
        instead_of: event.instead_of,
    }))
}
