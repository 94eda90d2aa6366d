//! Turns that cannot be read.

use rejoinder_core::{
    ApprovalState, ChannelId, Obligation, StoreError, Timestamp, TurnId,
    store::{ApprovalChange, LogEvent, NewLogEntry, Subject},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    approvals, lines, log,
    rows::{self, Transaction, insert_into},
};
use crate::shared::stored::{ObligationColumns, json};

/// Ends a turn with `obligation`, also if its rows cannot be read. A turn that has ended stays as it is; nothing
/// happens with it any more.
pub(super) fn set(
    transaction: &Transaction<'_>,
    turn: TurnId,
    obligation: &Obligation,
    reason: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "select conversation_id, place, cast(body as text), iif(ended_at is null, channel, null) from turns
        where id = ?1 and (ended_at is null or work is not null or wake_at is not null or exists (
            select 1 from deliveries where turn_id = ?1 and state in ('pending', 'held', 'sending')))";
    let read = |row: &Row<'_>| {
        let (conversation, position): (Uuid, Option<i64>) = (row.get(0)?, row.get(1)?);
        let (body, channel): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        Ok((conversation, position, body, channel))
    };
    let Some((conversation, position, body, open_on)) = rows::one(transaction, sql, [turn.as_uuid()], read)? else {
        return Ok(());
    };

    let ObligationColumns { state, .. } = ObligationColumns::of(obligation);
    let end = "update turns set version = version + 1, work = null, wake_at = null, place = null,
            state = iif(ended_at is null, ?2, state), body = iif(ended_at is null, ?4, body), ended_at = coalesce(ended_at, ?3)
        where id = ?1";
    rows::change(transaction, end, params![turn.as_uuid(), state, at.as_millis(), json(obligation)])?;
    approvals::change(transaction, &ApprovalChange::Closed { turn, state: ApprovalState::Dropped, at })?;
    for sql in [
        "update runs set ended_at = ?2, ending = 'crashed', detail = ?3
        where ended_at is null and run between (select seq << 16 from turns where id = ?1)
            and (select seq << 16 | 65535 from turns where id = ?1)",
        "update deliveries set state = 'dead', error = ?3
            where turn_id = ?1 and state in ('pending', 'held', 'sending') and ?2 is not null",
    ] {
        rows::change(transaction, sql, params![turn.as_uuid(), at.as_millis(), reason])?;
    }
    let (turn_id, detail) = (turn.as_uuid(), format!("{reason}: {body}"));
    insert_into!(transaction, remarks { turn_id, at: at.as_millis(), kind: "set_aside", detail })?;
    if let Some(channel) = open_on {
        let subject = Subject {
            turn_id: Some(turn),
            conversation_id: Some(conversation.into()),
            channel: Some(ChannelId::from_stored(&channel)),
        };
        let event = LogEvent::TurnUndeliverable { cause: None };
        log::add(transaction, &NewLogEntry { at, subject, event })?;
    }
    if position.is_some() {
        lines::settle(transaction, conversation, position)?;
    }
    Ok(())
}
