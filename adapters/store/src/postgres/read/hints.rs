//! What nodes look at to follow each other.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, StoreError, TurnId,
    store::{HintStore, RunText, Version},
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::names;
use crate::{
    postgres::{
        store::PostgresStore,
        values::{List, statement},
    },
    records::columns::{Columns, record},
};

#[async_trait]
impl HintStore for PostgresStore {
    async fn changed_turns(&self, turns: &[(TurnId, Version)]) -> Result<Vec<TurnId>, StoreError> {
        let (ids, versions) = turns.iter().map(|(turn, version)| (turn.as_uuid(), *version)).unzip();
        let (ids, versions): (List<Uuid>, List<Version>) = (List(ids), List(versions));
        self.readers.all(statement!(CHANGED_TURNS, ids, versions), |row| row.value("id")).await
    }

    async fn put_draft(&self, turn: TurnId, run: u32, text: Option<&str>) -> Result<(), StoreError> {
        self.drafts.rows(statement!(PUT_DRAFT, turn, run, text)).await.map(drop)
    }

    async fn remove_draft(&self, turn: TurnId, run: u32) -> Result<(), StoreError> {
        self.drafts.rows(statement!(REMOVE_DRAFT, turn, run)).await.map(drop)
    }

    async fn remove_old_drafts(&self) -> Result<(), StoreError> {
        self.drafts.rows(statement!(REMOVE_OLD_DRAFTS)).await.map(drop)
    }

    async fn drafts_on(&self, channels: &[ChannelId]) -> Result<Vec<TurnId>, StoreError> {
        let channels = List(names(channels));
        self.drafts.all(statement!(DRAFTS_ON, channels), |row| row.value("id")).await
    }

    async fn drafts(&self, turns: &[TurnId]) -> Result<Vec<RunText>, StoreError> {
        let turns = List(turns.iter().map(|turn| turn.as_uuid()).collect());
        let said = |row: &PgRow| Ok(record!(row => RunText { turn, run, text; conversation: row.conversation()? }));
        self.drafts.all(statement!(DRAFTS, turns), said).await
    }
}

const CHANGED_TURNS: &str = "
    select s.id from unnest($1::uuid[], $2::bigint[]) as s (id, version) left join turns as t on t.id = s.id
    where t.version > s.version or t.id is null";

const PUT_DRAFT: &str = "
    insert into drafts as d (turn_id, run, text, at) values ($1, $2, coalesce($3::text, ''), clock_timestamp())
    on conflict (turn_id) do update set run = excluded.run, at = excluded.at,
        text = case when $3::text is null and d.run = excluded.run then d.text else excluded.text end
        where d.run <= excluded.run";

const REMOVE_DRAFT: &str = "delete from drafts where turn_id = $1 and run <= $2";

const REMOVE_OLD_DRAFTS: &str = "delete from drafts where at < clock_timestamp() - interval '10 minutes'";

const DRAFTS_ON: &str = "
    select t.id from drafts as d join turns as t on t.id = d.turn_id
    where d.at > clock_timestamp() - interval '10 seconds' and t.channel = any($1)";

const DRAFTS: &str = "
    select d.turn_id as turn, d.run, d.text, e.channel, e.chat, e.thread
    from drafts as d join turns as t on t.id = d.turn_id join events as e on e.seq = t.event
    where d.turn_id = any($1::uuid[]) order by d.turn_id";
