//! Turns that cannot be read.

use rejoinder_core::{Obligation, StoreError, Timestamp, TurnId};
use sqlx::{Row, SqliteConnection};

use super::lines::{self, Touched};
use crate::sqlite::{error::store_error, stored::ObligationColumns};

/// Ends a turn with `obligation`, whatever is stored of it. A turn that has ended stays as it is; nothing happens with it
/// any more.
pub(super) async fn set(
    connection: &mut SqliteConnection,
    turn: TurnId,
    obligation: &Obligation,
    reason: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "select conversation_id, place, cast(body as text) as body from obligations
        where turn_id = ?1 and (ended_at is null or work is not null or wake_at is not null or exists (
            select 1 from deliveries where turn_id = ?1 and state in ('pending', 'sending')))";
    let row = sqlx::query(sql).bind(turn.as_uuid()).fetch_optional(&mut *connection).await.map_err(store_error)?;
    let Some(row) = row else { return Ok(()) };
    let body: String = row.try_get("body").map_err(store_error)?;
    let conversation = row.try_get("conversation_id").map_err(store_error)?;
    let place: Option<i64> = row.try_get("place").map_err(store_error)?;

    let ObligationColumns { state, .. } = ObligationColumns::of(obligation);
    let ended = "update obligations set version = version + 1, work = null, wake_at = null,
            state = iif(ended_at is null, ?2, state), body = iif(ended_at is null, ?4, body), ended_at = coalesce(ended_at, ?3)
        where turn_id = ?1";
    let json = serde_json::to_string(obligation).expect("its map keys are strings");
    let ended = sqlx::query(ended).bind(turn.as_uuid()).bind(state).bind(at.as_millis()).bind(json);
    ended.execute(&mut *connection).await.map_err(store_error)?;
    for sql in [
        "update runs set ended_at = ?2, ending = 'crashed', detail = ?3 where turn_id = ?1 and ended_at is null",
        "update deliveries set state = 'dead', error = ?3
            where turn_id = ?1 and state in ('pending', 'sending') and ?2 is not null",
    ] {
        let query = sqlx::query(sql).bind(turn.as_uuid()).bind(at.as_millis()).bind(reason);
        query.execute(&mut *connection).await.map_err(store_error)?;
    }
    let remark = sqlx::query("insert into audit (turn_id, at, kind, detail) values (?, ?, 'set_aside', ?)")
        .bind(turn.as_uuid())
        .bind(at.as_millis())
        .bind(format!("{reason}: {body}"));
    remark.execute(&mut *connection).await.map_err(store_error)?;
    if place.is_some() {
        lines::settle(connection, &[Touched { conversation, place }]).await?;
    }
    Ok(())
}
