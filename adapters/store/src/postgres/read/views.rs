//! Turns as a chat client shows them.

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationRef, StoreError, TurnId, TurnView,
    store::{ThreadSummary, TurnSeq, Version, ViewStore},
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::deliveries::select_deliveries;
use crate::{
    postgres::{
        connections::Taken,
        store::PostgresStore,
        values::{List, statement},
    },
    records::{columns::Columns, view, visitor},
    shared::stored::thread,
};

/// `select` of a view without its signal.
macro_rules! select_views {
    ($rest:literal) => {
        concat!(
            "select t.id, t.seq, t.version, t.agent, t.command, t.accepted_at, t.body, e.channel, e.chat, e.thread, e.text, e.details,
                (select q.picked from questions as q where q.turn_id = t.id) as picked
            from turns as t join events as e on e.seq = t.event ",
            $rest
        )
    };
}

async fn view_by_itself(reading: &mut Taken<'_>, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
    let rows = reading.rows(statement!(select_views!("where t.id = $1"), turn)).await?;
    Ok(with_signals(reading, &rows).await?.into_iter().next())
}

#[async_trait]
impl ViewStore for PostgresStore {
    async fn view(&self, turn: TurnId) -> Result<Option<TurnView>, StoreError> {
        let mut reading = self.readers.take().await?;
        let mut view = view_by_itself(&mut reading, turn).await?;
        if let Some(into) = view.as_ref().and_then(|view| view.merged_into)
            && let Some(other) = view_by_itself(&mut reading, into).await?
        {
            view = view.map(|view| view.answered_by(other));
        }
        Ok(view)
    }

    async fn views_of(&self, turns: &[TurnId]) -> Result<Vec<(Version, TurnView)>, StoreError> {
        let mut reading = self.readers.take().await?;
        let ids = |turns: &[TurnId]| List(turns.iter().map(|turn| turn.as_uuid()).collect::<Vec<_>>());
        let rows = reading.rows(statement!(select_views!("where t.id = any($1)"), ids(turns))).await?;
        let views = with_signals(&mut reading, &rows).await?;
        let into = view::merged_into(&views);
        let others = if into.is_empty() {
            Vec::new()
        } else {
            let rows = reading.rows(statement!(select_views!("where t.id = any($1)"), ids(&into))).await?;
            with_signals(&mut reading, &rows).await?
        };
        view::with_versions(&rows, views, &others)
    }

    async fn views(
        &self,
        conversation: &ConversationRef,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnView>, StoreError> {
        let mut reading = self.readers.take().await?;
        let sql = select_views!(
            "where t.conversation_id = (
                    select id from conversations
                    where channel = $1 and chat = $2 and thread = $3 and succeeded_by is null)
                and t.seq < coalesce((select seq from turns where id = $4), $5)
                and not (e.details #>> '{sender,kind}' is not distinct from 'operator' and t.ended_at is not null
                    and not exists (select 1 from deliveries as d where d.turn_id = t.id))
            order by t.seq desc
            limit $6"
        );
        let newest = if before.is_some() { 0 } else { TurnSeq::MAX };
        let (channel, chat, thread) = (&conversation.channel, &conversation.chat, thread(conversation));
        let mut rows = reading.rows(statement!(sql, channel, chat, thread, before, newest, limit)).await?;
        rows.reverse();
        with_signals(&mut reading, &rows).await
    }

    async fn used_tools(&self, turns: &[TurnId]) -> Result<Vec<(TurnId, String)>, StoreError> {
        let sql = "
            select t.id, u.call ->> 'name' as name
            from turns as t
            join run_contents as c on c.run between t.seq << 16 and (t.seq << 16) | 65535
            cross join json_array_elements(c.tools::json) with ordinality as u (call, place)
            where t.id = any($1)
            order by c.run, u.place";
        let turns = List(turns.iter().map(|turn| turn.as_uuid()).collect::<Vec<_>>());
        let mut reading = self.readers.take().await?;
        let rows = reading.rows(statement!(sql, turns)).await?;
        rows.iter().map(|row| Ok((row.value("id")?, row.value("name")?))).collect()
    }

    async fn threads(&self, channel: &ChannelId, chat: &str, limit: u32) -> Result<Vec<ThreadSummary>, StoreError> {
        let sql = "
            select c.thread, t.accepted_at as at, substr(e.text, 1, 300) as last, (
                select substr(f.text, 1, 300) from turns as u join events as f on f.seq = u.event
                where u.conversation_id = c.id and f.text not like '/%' order by u.seq limit 1) as first
            from conversations as c
            join turns as t on t.seq = (select max(seq) from turns where conversation_id = c.id)
            join events as e on e.seq = t.event
            where c.channel = $1 and c.chat = $2 and c.thread <> '' and c.succeeded_by is null
            order by t.seq desc
            limit $3";
        self.readers.all(statement!(sql, channel, chat, limit), visitor::thread).await
    }
}

/// The views of turns in the order of `rows`, each with the signal that was shown. The signals are at least as new as the rows: of a
/// turn that is answered, the answer is there.
async fn with_signals(reading: &mut Taken<'_>, rows: &[PgRow]) -> Result<Vec<TurnView>, StoreError> {
    let turns: Vec<Uuid> = rows.iter().map(|row| row.value("id")).collect::<Result<_, _>>()?;
    // The parts of the latest claim of which all parts were delivered.
    let sql = select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id
        where d.turn_id = any($1) and not d.is_copy and d.claim = (
            select max(p.claim) from deliveries as p
            where p.turn_id = d.turn_id and p.claim > 0 and not p.is_copy and p.state = 'delivered' and not exists (
                select 1 from deliveries as q
                where q.turn_id = p.turn_id and q.claim = p.claim and not q.is_copy and q.state <> 'delivered'))
        order by d.turn_id, d.part"
    );
    let deliveries = reading.rows(statement!(sql, List(turns))).await?;
    Ok(view::records(rows, &deliveries))
}
