//! Turns as a chat client shows them.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationRef, StoreError, TurnId, TurnView,
    store::{ThreadSummary, TurnSeq, Version, ViewStore},
};
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use super::{deliveries::select_deliveries, rows::all};
use crate::{
    records::{columns::Columns, view, visitor},
    shared::stored::thread,
    sqlite::{error::store_error, store::SqliteStore},
};

/// `select` of a view without its signal.
macro_rules! select_views {
    ($rest:literal) => {
        concat!(
            "select t.id, t.seq, t.version, t.agent, t.command, t.accepted_at, t.body, e.channel, e.chat, e.thread, e.text, e.details,
                (select q.picked from questions as q where q.turn_id = t.id) as picked ",
            $rest
        )
    };
}

async fn view_by_itself(connection: &mut SqliteConnection, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
    let sql = select_views!(
        "from turns as t cross join events as e on e.seq = t.event
        where t.id = ?"
    );
    let rows = sqlx::query(sql).bind(turn.as_uuid()).fetch_all(&mut *connection).await.map_err(store_error)?;
    Ok(with_signals(connection, &rows).await?.into_iter().next())
}

async fn rows_of(connection: &mut SqliteConnection, turns: &[TurnId]) -> Result<Vec<SqliteRow>, StoreError> {
    let sql = select_views!(
        "from json_each(?) as j
        cross join turns as t on t.id = unhex(j.value, '-')
        cross join events as e on e.seq = t.event"
    );
    let turns = serde_json::to_string(turns).expect("ids are text");
    sqlx::query(sql).bind(turns).fetch_all(connection).await.map_err(store_error)
}

#[async_trait]
impl ViewStore for SqliteStore {
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        let mut reading = self.readers.begin().await.map_err(store_error)?;
        let mut view = view_by_itself(&mut reading, turn).await?;
        if let Some(into) = view.as_ref().and_then(|view| view.merged_into)
            && let Some(other) = view_by_itself(&mut reading, into).await?
        {
            view = view.map(|view| view.answered_by(other));
        }
        reading.commit().await.map_err(store_error)?;
        Ok(view)
    }

    async fn views_of(&self, turns: &[TurnId]) -> Result<Vec<(Version, TurnView)>, StoreError> {
        let mut reading = self.readers.begin().await.map_err(store_error)?;
        let rows = rows_of(&mut reading, turns).await?;
        let views = with_signals(&mut reading, &rows).await?;
        let into = rows_of(&mut reading, &view::merged_into(&views)).await?;
        let others = with_signals(&mut reading, &into).await?;
        reading.commit().await.map_err(store_error)?;
        view::with_versions(&rows, views, &others)
    }

    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        let mut reading = self.readers.begin().await.map_err(store_error)?;
        let sql = select_views!(
            "from conversations as c
            cross join turns as t on t.conversation_id = c.id
            cross join events as e on e.seq = t.event
            where c.channel = ? and c.chat = ? and c.thread = ? and c.succeeded_by is null
                and t.seq < coalesce((select seq from turns where id = ?), ?)
                and not (e.details ->> '$.sender.kind' is 'operator' and t.ended_at is not null
                    and not exists (select 1 from deliveries as d where d.turn_id = t.id))
            order by t.seq desc
            limit ?"
        );
        let mut rows = sqlx::query(sql)
            .bind(conversation.channel.as_str())
            .bind(&*conversation.chat)
            .bind(thread(conversation))
            .bind(before.map(TurnId::as_uuid))
            .bind(if before.is_some() { 0 } else { TurnSeq::MAX })
            .bind(limit)
            .fetch_all(&mut *reading)
            .await
            .map_err(store_error)?;
        rows.reverse();
        let views = with_signals(&mut reading, &rows).await?;
        reading.commit().await.map_err(store_error)?;
        Ok(views)
    }

    async fn used_tools(&self, turns: &[TurnId]) -> Result<Vec<(TurnId, String)>, StoreError> {
        let sql = "
            select t.id, u.value ->> '$.name' as name
            from json_each(?) as j
            cross join turns as t on t.id = unhex(j.value, '-')
            cross join run_contents as c on c.run between t.seq << 16 and t.seq << 16 | 65535
            cross join json_each(c.tools) as u
            order by c.run, u.key";
        let turns = serde_json::to_string(turns).expect("ids are text");
        all(&self.readers, sqlx::query(sql).bind(turns), |row| Ok((row.value("id")?, row.value("name")?))).await
    }

    async fn threads(&self, channel: &ChannelId, chat: &str, limit: u32) -> Result<Vec<ThreadSummary>, StoreError> {
        let sql = "
            select c.thread, t.accepted_at as at, substr(e.text, 1, 300) as last, (
                select substr(f.text, 1, 300) from turns as u cross join events as f on f.seq = u.event
                where u.conversation_id = c.id and f.text not like '/%' order by u.seq limit 1) as first
            from conversations as c
            cross join turns as t on t.seq = (select max(seq) from turns where conversation_id = c.id)
            cross join events as e on e.seq = t.event
            where c.channel = ? and c.chat = ? and c.thread <> '' and c.succeeded_by is null
            order by t.seq desc
            limit ?";
        let query = sqlx::query(sql).bind(channel.as_str()).bind(chat).bind(limit);
        all(&self.readers, query, visitor::thread).await
    }
}

/// The views of turns in the order of `rows`, each with the signal that was shown.
async fn with_signals(connection: &mut SqliteConnection, rows: &[SqliteRow]) -> Result<Vec<TurnView>, StoreError> {
    let turns: Vec<TurnId> = rows.iter().map(|row| row.value("id")).collect::<Result<_, _>>()?;
    let turns = serde_json::to_string(&turns).expect("ids are text");
    // The parts of the latest claim of which all parts were delivered.
    let sql = select_deliveries!(
        "from json_each(?) as j
        cross join deliveries as d on d.turn_id = unhex(j.value, '-')
        cross join conversations as c on c.id = d.conversation_id
        where d.is_copy = 0 and d.claim = (
            select max(p.claim) from deliveries as p
            where p.turn_id = d.turn_id and p.claim > 0 and p.is_copy = 0 and p.state = 'delivered' and not exists (
                select 1 from deliveries as q
                where q.turn_id = p.turn_id and q.claim = p.claim and q.is_copy = 0 and q.state <> 'delivered'))
        order by d.turn_id, d.part"
    );
    let deliveries = sqlx::query(sql).bind(turns).fetch_all(connection).await.map_err(store_error)?;
    Ok(view::records(rows, &deliveries))
}
