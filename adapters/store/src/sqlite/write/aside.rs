//! Turns that cannot be read.

use rejoinder_core::{Obligation, StoreError, Timestamp, TurnId};
use rusqlite::{Row, params};
use uuid::Uuid;

use super::{
    lines,
    rows::{self, Transaction, json},
};
use crate::sqlite::stored::ObligationColumns;

/// Ends a turn with `obligation`, whatever is stored of it. A turn that has ended stays as it is; nothing happens with it
/// any more.
pub(super) fn set(
    transaction: &Transaction<'_>,
    turn: TurnId,
    obligation: &Obligation,
    reason: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "select conversation_id, place, cast(body as text) from obligations
        where turn_id = ?1 and (ended_at is null or work is not null or wake_at is not null or exists (
            select 1 from deliveries where turn_id = ?1 and state in ('pending', 'sending')))";
    let read = |row: &Row<'_>| Ok((row.get::<_, Uuid>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, String>(2)?));
    let Some((conversation, place, body)) = rows::one(transaction, sql, [turn.as_uuid()], read)? else {
        return Ok(());
    };

    let ObligationColumns { state, .. } = ObligationColumns::of(obligation);
    let end = "update obligations set version = version + 1, work = null, wake_at = null, place = null,
            state = iif(ended_at is null, ?2, state), body = iif(ended_at is null, ?4, body), ended_at = coalesce(ended_at, ?3)
        where turn_id = ?1";
    rows::change(transaction, end, params![turn.as_uuid(), state, at.as_millis(), json(obligation)])?;
    for sql in [
        "update runs set ended_at = ?2, ending = 'crashed', detail = ?3 where turn_id = ?1 and ended_at is null",
        "update deliveries set state = 'dead', error = ?3
            where turn_id = ?1 and state in ('pending', 'sending') and ?2 is not null",
    ] {
        rows::change(transaction, sql, params![turn.as_uuid(), at.as_millis(), reason])?;
    }
    let remark = "insert into audit (turn_id, at, kind, detail) values (?, ?, 'set_aside', ?)";
    rows::change(transaction, remark, params![turn.as_uuid(), at.as_millis(), format!("{reason}: {body}")])?;
    if place.is_some() {
        lines::settle(transaction, conversation, place)?;
    }
    Ok(())
}
