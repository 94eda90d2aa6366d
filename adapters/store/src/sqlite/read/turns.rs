//! Turns, and queries for the ones that are due, waiting or running.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{
    AgentName, ChannelId, ConversationId, Cost, Identity, InboundEvent, ModelInput, NodeId, Obligation, SessionId,
    StoreError, Timestamp, TurnId,
    store::{
        AttemptRecord, DeadlineStore, Dossier, QueueStore, Remark, RunContent, RunRecord, TurnRecord, TurnSeq,
        TurnStore, WaitingTurn,
    },
};
use sqlx::{SqlitePool, sqlite::SqliteRow};

use super::{
    columns::{Columns, all, of_turn, one, record},
    deliveries::{delivery, pause, select_deliveries},
};
use crate::sqlite::{
    error::store_error,
    request::WriteRequest,
    store::SqliteStore,
    stored::{StoredEvent, decompress, event_columns},
};

/// `select` of whole turn records, `o` (the obligation) joined with `t` (the turn) and `e` (the event).
macro_rules! select_turns {
    ($rest:literal) => {
        concat!(
            "select t.id, t.seq, o.version, o.body, o.ended_at, t.conversation_id, t.session_id, t.agent, t.command, t.rule, t.model, t.accepted_at, ",
            "(select count(*) from runs as r where r.turn_id = t.id) as runs, ",
            "exists (select 1 from transcript as l where l.session_id = t.session_id) as has_history, ",
            event_columns!(),
            " from obligations as o cross join turns as t on t.id = o.turn_id cross join events as e on e.id = t.event_id ",
            $rest
        )
    };
}

/// Steps through the lines, of each channel and agent one, and reads only the beginning of each.
pub(in crate::sqlite) const WAITING: &str = "
    with recursive lines (channel, agent) as (
        select channel, agent from obligations where turn_id = (
            select turn_id from obligations indexed by obligations_line
            where place is not null and absent = 0 order by channel, agent limit 1)
        union all
        select o.channel, o.agent
        from lines cross join obligations as o on o.turn_id = coalesce(
            (select n.turn_id from obligations as n indexed by obligations_line
            where n.place is not null and n.absent = 0 and n.channel = lines.channel and n.agent > lines.agent
            order by n.agent limit 1),
            (select n.turn_id from obligations as n indexed by obligations_line
            where n.place is not null and n.absent = 0 and n.channel > lines.channel
            order by n.channel, n.agent limit 1))
    )
    select o.turn_id, o.version, o.conversation_id, o.channel, o.agent, o.owed, o.rank, o.place, not exists (
        select 1 from obligations as m indexed by obligations_waiting
        where m.work = 'waiting' and m.conversation_id = o.conversation_id and m.turn_id <> o.turn_id) as is_alone
    from lines cross join obligations as o on o.turn_id in (
        select w.turn_id from obligations as w indexed by obligations_line
        where w.place is not null and w.absent = 0 and w.channel = lines.channel and w.agent = lines.agent
        order by w.place, w.rank limit ?)
    order by o.place, o.rank";

#[async_trait]
impl QueueStore for SqliteStore {
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        let sql = select_turns!(
            "where o.conversation_id = ? and o.work = 'waiting' and o.absent = 0
            order by o.rank limit 1"
        );
        one(&self.readers, sqlx::query(sql).bind(conversation.as_uuid()), record_or_its_turn).await
    }

    async fn waiting(&self, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        let turn = |row: &SqliteRow| {
            Ok(record!(row => WaitingTurn {
                turn: turn_id, version, conversation: conversation_id, channel, agent, owed, rank, position: place, is_alone
            }))
        };
        all(&self.readers, sqlx::query(WAITING).bind(limit), turn).await
    }

    /// Those that cannot be read are left out.
    async fn waiting_turns(&self, conversation: ConversationId, limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        let sql = select_turns!(
            "where o.conversation_id = ? and o.work = 'waiting' and o.absent = 0
            order by o.rank limit ?"
        );
        let query = sqlx::query(sql).bind(conversation.as_uuid()).bind(limit);
        let rows = query.fetch_all(&self.readers).await.map_err(store_error)?;
        Ok(rows.iter().filter_map(|row| record(row).ok()).collect())
    }

    async fn waiting_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) from (
                select 1 from obligations indexed by obligations_waiting
                where work = 'waiting' and conversation_id = ? limit ?)";
        let query = sqlx::query_scalar(sql).bind(conversation.as_uuid()).bind(limit);
        query.fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn waiting_of(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) from (
                select 1 from obligations indexed by obligations_of_person
                where work = 'waiting' and channel = ? and person = ? limit ?)";
        let query = sqlx::query_scalar(sql).bind(channel.as_str()).bind(person).bind(limit);
        query.fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn postponed_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) from (
                select 1 from obligations
                where conversation_id = ? and ended_at is null and work is null
                    and iif(json_valid(body), json_extract(body, '$.work'), null) = 'postponed'
                limit ?)";
        let query = sqlx::query_scalar(sql).bind(conversation.as_uuid()).bind(limit);
        query.fetch_one(&self.readers).await.map_err(store_error)
    }

    /// Looks at all turns that have not ended.
    async fn postponed(&self) -> Result<Vec<ConversationId>, StoreError> {
        let sql = "
            select distinct conversation_id from obligations
            where ended_at is null and work is null and iif(json_valid(body), json_extract(body, '$.work'), null) = 'postponed'";
        all(&self.readers, sqlx::query(sql), |row| row.value("conversation_id")).await
    }
}

#[async_trait]
impl TurnStore for SqliteStore {
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        let query = sqlx::query(select_turns!("where o.turn_id = ?")).bind(turn.as_uuid());
        one(&self.readers, query, record_or_its_turn).await
    }

    async fn runs(&self, turn: TurnId) -> Result<Vec<RunRecord>, StoreError> {
        let query = sqlx::query("select * from runs where turn_id = ? order by number").bind(turn.as_uuid());
        all(&self.readers, query, run).await
    }

    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            with here (id) as (select ?1 union select id from conversations where succeeded_by = ?1)
            select turn_id from (
                select turn_id, seq from obligations where ended_at is null and conversation_id in here
                union
                select turn_id, seq from obligations indexed by obligations_running
                where work = 'running' and absent = 0 and conversation_id in here)
            order by seq";
        all(&self.readers, sqlx::query(sql).bind(conversation.as_uuid()), |row| row.value("turn_id")).await
    }

    /// Looks at all turns that have not ended.
    async fn merged_and_left(&self, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select o.turn_id from obligations as o
            where o.ended_at is null and o.state = 'merged' and not exists (
                select 1 from obligations as f
                where f.turn_id = unhex(iif(json_valid(o.body), json_extract(o.body, '$.state.merged.into'), null), '-') and f.ended_at is null)
            order by o.seq limit ?";
        all(&self.readers, sqlx::query(sql).bind(limit), |row| row.value("turn_id")).await
    }

    async fn readable_turn(&self, id: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        match self.turn(id).await {
            Err(StoreError::CorruptTurn { .. }) => Ok(None),
            read => read,
        }
    }

    async fn set_aside(
        &self,
        turn: TurnId,
        obligation: Obligation,
        reason: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (obligation, reason) = (Box::new(obligation), reason.to_owned());
        let stored = self.write(WriteRequest::SetAside { turn, obligation, reason, at }).await.map(drop);
        self.transcripts.forget_all();
        stored
    }
}

pub(in crate::sqlite) async fn last_question(
    pool: &SqlitePool,
    session: SessionId,
    conversation: Option<ConversationId>,
    by: Option<&Identity>,
) -> Result<Option<TurnRecord>, StoreError> {
    let sql = select_turns!(
        "where t.seq = (select max(seq) from (
            select * from (
                select q.seq from transcript as w cross join turns as q on q.seq = w.seq
                    cross join obligations as p on p.turn_id = q.id cross join events as v on v.id = q.event_id
                where w.session_id = ?1 and w.speaker = 'person' and q.command is null and q.left_out = 0
                    and p.owed = 1 and (?3 is null or p.channel = ?3 and p.person = ?4)
                    and json_extract(v.details, '$.kind.prompt') is null
                order by w.seq desc limit 1)
            union all
            select * from (
                select q.seq from turns as q cross join obligations as p on p.turn_id = q.id
                    cross join events as v on v.id = q.event_id
                where q.conversation_id = ?2 and q.session_id = ?1 and q.command is null and q.left_out = 0
                    and p.owed = 1 and (?3 is null or p.channel = ?3 and p.person = ?4)
                    and json_extract(v.details, '$.kind.prompt') is null
                order by q.seq desc limit 1)))"
    );
    let (channel, person) = by.map(|by| (by.channel.as_str(), by.id.as_str())).unzip();
    let query = sqlx::query(sql).bind(session.as_uuid()).bind(conversation.map(ConversationId::as_uuid));
    one(pool, query.bind(channel).bind(person), record_or_its_turn).await
}

#[async_trait]
impl DeadlineStore for SqliteStore {
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select turn_id from obligations
            where wake_at is not null and absent = 0 and wake_at <= ? order by wake_at, seq limit ?";
        all(&self.readers, sqlx::query(sql).bind(now.as_millis()).bind(limit), |row| row.value("turn_id")).await
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "select min(wake_at) from obligations where wake_at is not null and absent = 0";
        let at: Option<i64> = sqlx::query_scalar(sql).fetch_one(&self.readers).await.map_err(store_error)?;
        Ok(at.map(Timestamp::from_millis))
    }

    async fn runs_left(&self, node: NodeId, after: Option<TurnId>, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select o.turn_id from obligations as o indexed by obligations_running
            where o.work = 'running' and o.absent = 0 and o.turn_id > ? and not exists (
                select 1 from runs as r where r.turn_id = o.turn_id and r.ended_at is null and r.owner = ?)
            order by o.turn_id limit ?";
        let query = sqlx::query(sql).bind(id_after(after)).bind(node.as_uuid()).bind(limit);
        all(&self.readers, query, |row| row.value("turn_id")).await
    }

    async fn ended_last(&self, span: Duration, waited: Duration, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            with ended as (
                select turn_id, ended_at from obligations indexed by obligations_ended
                where ended_at is not null order by ended_at desc limit ?1)
            select turn_id from ended
            where ended_at >= (select max(ended_at) from ended) - ?2 and (exists (
                select 1 from deliveries as d
                where d.turn_id = ended.turn_id and (d.claim = 0 or d.signal = 'deferral') and d.message_ids <> '[]')
                or (select t.command is null and coalesce(
                        (select min(r.started_at) from runs as r where r.turn_id = t.id), ended.ended_at) - t.accepted_at >= ?3
                    from turns as t where t.id = ended.turn_id))
            order by turn_id";
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let query = sqlx::query(sql).bind(limit).bind(millis(span)).bind(millis(waited));
        all(&self.readers, query, |row| row.value("turn_id")).await
    }
}

pub(in crate::sqlite) async fn dossier(pool: &SqlitePool, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
    // One transaction: all rows are from the same moment.
    let mut reading = pool.begin().await.map_err(store_error)?;
    let of_it = |sql: &'static str| sqlx::query(sql).bind(turn.as_uuid());
    let query = of_it(select_turns!("where o.turn_id = ?"));
    let Some(row) = query.fetch_optional(&mut *reading).await.map_err(store_error)? else { return Ok(None) };
    let absent = of_it(
        "select exists (select 1 from obligations where turn_id = ?1 and absent = 1)
            or exists (select 1 from deliveries where turn_id = ?1 and absent = 1) as absent",
    );
    let paused = sqlx::query("select since, by, reason from paused where channel = ?");
    let contents = sqlx::query(SELECT_CONTENTS).bind(row.value::<TurnSeq>("seq")?);
    let deliveries = of_it(select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id
        where d.turn_id = ? order by d.claim, d.part, d.is_copy, d.seq"
    ));
    let attempts = of_it(
        "select a.* from deliveries as d cross join attempts as a on a.delivery_id = d.id
        where d.turn_id = ? order by a.started_at, d.claim, d.part, d.seq, a.number",
    );
    let dossier = Dossier {
        turn: record(&row)?,
        accepted_at: row.value("accepted_at")?,
        ended_at: row.value("ended_at")?,
        absent: one(&mut *reading, absent, |row| row.value("absent")).await?.unwrap_or_default(),
        paused: one(&mut *reading, paused.bind(row.value::<String>("channel")?), pause).await?,
        runs: all(&mut *reading, of_it("select * from runs where turn_id = ? order by number"), run).await?,
        contents: all(&mut *reading, contents, content).await?.into_iter().collect(),
        deliveries: all(&mut *reading, deliveries, delivery).await?,
        attempts: all(&mut *reading, attempts, attempt).await?,
        remarks: all(&mut *reading, of_it("select * from remarks where turn_id = ? order by id"), remark).await?,
    };
    reading.commit().await.map_err(store_error)?;
    Ok(Some(dossier))
}

/// Settings that are missing although a run refers to them are an empty object: the rest is worth reading.
const SELECT_CONTENTS: &str = "
    select c.run & 65535 as number, c.messages, c.left_out, c.tools, c.tools_left_out, coalesce(s.body, '{}') as settings
    from run_contents as c left join run_settings as s on s.id = c.settings
    where c.run between ?1 << 16 and ?1 << 16 | 65535 order by c.run";

/// The id to start after; for `None` the nil id, which is below all others.
fn id_after(after: Option<TurnId>) -> uuid::Uuid {
    after.map_or(uuid::Uuid::nil(), TurnId::as_uuid)
}

/// As [`record`]; the error names the turn that cannot be read.
fn record_or_its_turn(row: &SqliteRow) -> Result<TurnRecord, StoreError> {
    record(row).map_err(|error| of_turn(row, "id", error))
}

/// A turn from a row of `select_turns!`.
fn record(row: &SqliteRow) -> Result<TurnRecord, StoreError> {
    Ok(record!(row => TurnRecord {
        id, seq, version, obligation: body, conversation: conversation_id, session: session_id, rule, model, runs,
        has_history;
        handler: row.handler()?,
        event: Arc::new(event(row)?),
    }))
}

fn event(row: &SqliteRow) -> Result<InboundEvent, StoreError> {
    let stored = record!(row => StoredEvent {
        channel, chat, thread, external_id, revision, text, details, raw, received_at
    });
    stored.event()
}

fn run(row: &SqliteRow) -> Result<RunRecord, StoreError> {
    Ok(record!(row => RunRecord {
        number, started_at, ended_at, end: ending, detail, usage, holder;
        handler: row.handler()?,
        member: row.value::<Option<String>>("member")?.map(AgentName::from),
        cost: cost(row)?,
    }))
}

pub(super) fn cost(row: &SqliteRow) -> Result<Option<Cost>, StoreError> {
    let (micros, currency) = (row.value::<Option<i64>>("cost_micros")?, row.value("currency")?);
    let micros = micros.and_then(|micros| u64::try_from(micros).ok());
    Ok(micros.zip(currency).map(|(micros, currency)| Cost { micros, currency }))
}

/// What the model of a run was shown and did, with the run's number.
fn content(row: &SqliteRow) -> Result<(u32, RunContent), StoreError> {
    let (settings, left_out) = (row.value("settings")?, row.value("left_out")?);
    let messages: Option<Vec<u8>> = row.value("messages")?;
    let messages = messages.map(|stored| decompress("messages", &stored)).transpose()?;
    let content = RunContent {
        input: messages.map(|messages| ModelInput { settings, messages, left_out }),
        tools: row.value::<Option<_>>("tools")?.unwrap_or_default(),
        tools_left_out: row.value("tools_left_out")?,
    };
    Ok((row.value("number")?, content))
}

fn attempt(row: &SqliteRow) -> Result<AttemptRecord, StoreError> {
    Ok(record!(row => AttemptRecord { delivery: delivery_id, number, started_at, ended_at, result, detail }))
}

fn remark(row: &SqliteRow) -> Result<Remark, StoreError> {
    Ok(record!(row => Remark { turn: turn_id, at, kind, detail }))
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, Row, SqliteConnection};

    use super::WAITING;

    /// However many conversations wait, and however many turns in each, only the beginnings of the lines are read.
    #[tokio::test]
    async fn what_waits_is_read_by_an_index_of_first_turns() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("it opens");
        let schema = include_str!("../../../../../migrations/sqlite/0001_initial.sql");
        sqlx::raw_sql(schema).execute(&mut connection).await.expect("the schema is made");

        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("explain query plan {WAITING}"))).bind(10);
        let plan = plan.fetch_all(&mut connection).await.expect("there is a plan");

        let steps = plan.iter().map(|row| row.get::<String, _>("detail"));
        let reads: Vec<String> =
            steps.filter(|step| step.contains("obligations") || step.contains(" USING ")).collect();
        let line = "USING COVERING INDEX obligations_line";
        let row = "USING PRIMARY KEY (turn_id=?)";
        let expected = [
            format!("SEARCH obligations {row}"),
            // With a limit of one row.
            format!("SCAN obligations {line}"),
            format!("SEARCH o {row}"),
            format!("SEARCH n {line} (channel=? AND agent>?)"),
            format!("SEARCH n {line} (channel>?)"),
            format!("SEARCH o {row}"),
            format!("SEARCH w {line} (channel=? AND agent=? AND place>?)"),
            "SEARCH m USING COVERING INDEX obligations_waiting (conversation_id=?)".to_owned(),
        ];
        assert_eq!(reads, expected);
    }
}
