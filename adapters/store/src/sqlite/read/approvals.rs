//! Approvals.

use rejoinder_core::{
    ApprovalRequest, ChannelId, StoreError,
    store::{Approval, ApprovalFilter},
};
use sqlx::{SqlitePool, sqlite::SqliteRow};
use uuid::Uuid;

use super::columns::{Columns, readable};
use crate::sqlite::error::store_error;

/// `select` of approvals `a`, with who was told of each.
macro_rules! select_approvals {
    ($rest:literal) => {
        concat!(
            "select a.*, (
                select json_group_array(hex(n.person_id)) from approval_notices as n where n.approval_id = a.id) as told
            from approvals as a ",
            $rest
        )
    };
}

pub(in crate::sqlite) async fn approvals(
    pool: &SqlitePool,
    filter: ApprovalFilter,
    limit: u32,
) -> Result<Vec<Approval>, StoreError> {
    let query = match filter {
        ApprovalFilter::Is(id) => sqlx::query(select_approvals!("where a.id = ? limit ?")).bind(id.as_uuid()),
        ApprovalFilter::Of(turn) => {
            sqlx::query(select_approvals!("where a.turn_id = ? order by a.seq limit ?")).bind(turn.as_uuid())
        }
        ApprovalFilter::Waiting => sqlx::query(select_approvals!(
            "indexed by approvals_waiting where a.state = 'waiting' order by a.seq limit ?"
        )),
        ApprovalFilter::WaitingAfter(id) => sqlx::query(select_approvals!(
            "indexed by approvals_waiting
            where a.state = 'waiting' and a.seq > coalesce((select seq from approvals where id = ?), 0)
            order by a.seq limit ?"
        ))
        .bind(id.as_uuid()),
        ApprovalFilter::Latest => sqlx::query(select_approvals!("order by a.seq desc limit ?")),
    };
    let rows = query.bind(limit).fetch_all(pool).await.map_err(store_error)?;
    Ok(readable(&rows, "turn_id", approval))
}

pub(in crate::sqlite) async fn approvals_for(
    pool: &SqlitePool,
    channel: &ChannelId,
    person: &str,
    limit: u32,
) -> Result<u32, StoreError> {
    let sql = "
        select count(*) from (
            select 1 from approvals as a indexed by approvals_waiting
                cross join obligations as o on o.turn_id = a.turn_id
            where a.state = 'waiting' and o.channel = ? and o.person = ? limit ?)";
    let query = sqlx::query_scalar(sql).bind(channel.as_str()).bind(person).bind(limit);
    query.fetch_one(pool).await.map_err(store_error)
}

fn approval(row: &SqliteRow) -> Result<Approval, StoreError> {
    let told: Vec<Uuid> = row.json("told")?;
    Ok(Approval {
        id: row.id("id")?,
        turn: row.id("turn_id")?,
        channel: ChannelId::from_stored(&row.value::<String>("channel")?),
        agent: row.value::<String>("agent")?.into(),
        person: row.value("person")?,
        request: ApprovalRequest {
            action: row.value("action")?,
            details: row.value("details")?,
            kind: row.value("kind")?,
        },
        asked_at: row.at("asked_at")?,
        expires_at: row.at_maybe("expires_at")?,
        state: row.name("state")?,
        decided_at: row.at_maybe("decided_at")?,
        decided_by: row.value("decided_by")?,
        note: row.value("note")?,
        told: told.into_iter().map(Into::into).collect(),
    })
}
