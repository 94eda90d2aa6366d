//! Turns.

use std::sync::Arc;

use rejoinder_core::{
    InboundEvent, StoreError,
    store::{Remark, TurnRecord, WaitingTurn},
};

use super::columns::{Columns, of_turn, record, records};
use crate::shared::stored::StoredEvent;

records! {
    pub(crate) fn record(row) -> TurnRecord {
        id, seq, version, obligation: body, conversation: conversation_id, session: session_id, rule, model, runs,
        has_history;
        handler: row.handler()?,
        event: Arc::new(event(row)?),
    }

    pub(crate) fn waiting(row) -> WaitingTurn {
        turn: turn_id, version, conversation: conversation_id, channel, agent, owed, rank, position: place, is_alone
    }

    pub(crate) fn remark(row) -> Remark { turn: turn_id, at, kind, detail }
}

/// As [`record()`]; the error names the turn that cannot be read.
pub(crate) fn record_or_its_turn(row: &impl Columns) -> Result<TurnRecord, StoreError> {
    record(row).map_err(|error| of_turn(row, "id", error))
}

fn event(row: &impl Columns) -> Result<InboundEvent, StoreError> {
    let stored = record!(row => StoredEvent {
        channel, chat, thread, external_id, revision, text, raw, received_at;
        details: row.json("details")?,
    });
    stored.event()
}
