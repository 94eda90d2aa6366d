//! Turns, and queries for the ones that are due, waiting or running.

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, FileDigest, Identity, NodeId, Obligation, SessionId, StoreError, Timestamp, TurnId,
    store::{DeadlineStore, Dossier, LeftRun, QueueStore, RunRecord, TurnRecord, TurnSeq, TurnStore, WaitingTurn},
};

use super::{deliveries::select_deliveries, names};
use crate::{
    postgres::{
        connections::Connections,
        sql::{event_columns, slot_is_kept},
        store::PostgresStore,
        values::{List, statement},
    },
    records::{
        columns::{Columns, record},
        delivery, run, turn,
    },
    shared::{positions::id_after, request::WriteRequest},
};

/// `select` of whole turn records, `t` (the turn) joined with `e` (the event).
macro_rules! select_turns {
    ($rest:literal) => {
        concat!(
            "select t.id, t.seq, t.version, t.body, t.ended_at, t.conversation_id, t.session_id, t.agent, t.command, t.rule, t.model, ",
            "t.accepted_at, ",
            "(select count(*) from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535) as runs, ",
            "exists (select 1 from transcript as l where l.session_id = t.session_id) as has_history, ",
            event_columns!(),
            " from turns as t join events as e on e.seq = t.event ",
            $rest
        )
    };
}

/// Steps through the lines, of each channel and agent one, and reads only the beginning of each. The literals are a further condition.
macro_rules! select_waiting {
    ($($and:tt)*) => {
        concat!(
            "
    with recursive lines (channel, agent) as (
        (select channel, next_agent from turns
        where place is not null and not absent order by channel, next_agent limit 1)
        union all
        select n.channel, n.next_agent
        from lines cross join lateral (
            select t.channel, t.next_agent from turns as t
            where t.place is not null and not t.absent and (t.channel, t.next_agent) > (lines.channel, lines.agent)
            order by t.channel, t.next_agent limit 1) as n
    )
    select t.id as turn_id, t.version, t.conversation_id, t.channel, t.next_agent as agent, t.owed, t.rank, t.place, not exists (
        select 1 from turns as m
        where m.work = 'waiting' and m.conversation_id = t.conversation_id and m.seq <> t.seq) as is_alone
    from lines cross join lateral (
        select w.seq, w.id, w.version, w.conversation_id, w.channel, w.next_agent, w.owed, w.rank, w.place from turns as w
        where w.place is not null and not w.absent and w.channel = lines.channel and w.next_agent = lines.agent ",
            $($and)*
            "
        order by w.place, w.rank limit $1) as t
    order by t.place, t.rank"
        )
    };
}

#[async_trait]
impl QueueStore for PostgresStore {
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        let sql = select_turns!(
            "where t.conversation_id = $1 and t.work = 'waiting' and not t.absent
            order by t.rank limit 1"
        );
        self.readers.one(statement!(sql, conversation), turn::record_or_its_turn).await
    }

    async fn waiting(&self, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        self.readers.all(statement!(select_waiting!(), limit), turn::waiting).await
    }

    async fn waiting_for(&self, node: NodeId, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        // As a value: of an `exists`, it might be planned to read all slots.
        let sql = select_waiting!(
            "and coalesce((select s.node from slots as s where s.conversation_id = w.conversation_id and ",
            slot_is_kept!("s"),
            "), $2) = $2",
        );
        self.readers.all(statement!(sql, limit, node.as_uuid()), turn::waiting).await
    }

    async fn slot_of(&self, conversation: ConversationId) -> Result<Option<TurnId>, StoreError> {
        let sql = "select turn_id from slots where conversation_id = $1 and turn_id is not null";
        self.readers.one(statement!(sql, conversation), |row| row.value("turn_id")).await
    }

    async fn free_slot(&self, conversation: ConversationId, turn: TurnId, node: NodeId) -> Result<(), StoreError> {
        let sql = "
            update slots set turn_id = null, node = null, since = null
            where conversation_id = $1 and turn_id = $2 and node = $3";
        self.readers.rows(statement!(sql, conversation, turn, node.as_uuid())).await.map(drop)
    }

    /// Those that cannot be read are left out.
    async fn waiting_turns(&self, conversation: ConversationId, limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        let sql = select_turns!(
            "where t.conversation_id = $1 and t.work = 'waiting' and not t.absent
            order by t.rank limit $2"
        );
        let rows = self.readers.rows(statement!(sql, conversation, limit)).await?;
        Ok(rows.iter().filter_map(|row| turn::record(row).ok()).collect())
    }

    async fn waiting_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) as number from (
                select 1 from turns where work = 'waiting' and conversation_id = $1 order by rank limit $2) as w";
        let number = self.readers.one(statement!(sql, conversation, limit), |row| row.value("number")).await?;
        Ok(number.unwrap_or_default())
    }

    async fn waiting_of(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) as number from (
                select 1 from turns where work = 'waiting' and channel = $1 and person = $2 limit $3) as w";
        let number = self.readers.one(statement!(sql, channel, person, limit), |row| row.value("number")).await?;
        Ok(number.unwrap_or_default())
    }

    async fn postponed_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) as number from (
                select 1 from turns
                where conversation_id = $1 and ended_at is null and work is null and postponed
                limit $2) as w";
        let number = self.readers.one(statement!(sql, conversation, limit), |row| row.value("number")).await?;
        Ok(number.unwrap_or_default())
    }

    /// Looks at all turns that have not ended.
    async fn postponed(&self) -> Result<Vec<ConversationId>, StoreError> {
        let sql = "select distinct conversation_id from turns where ended_at is null and work is null and postponed";
        self.readers.all(statement!(sql), |row| row.value("conversation_id")).await
    }
}

#[async_trait]
impl TurnStore for PostgresStore {
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        self.readers.one(statement!(select_turns!("where t.id = $1"), turn), turn::record_or_its_turn).await
    }

    async fn runs(&self, turn: TurnId) -> Result<Vec<RunRecord>, StoreError> {
        self.readers.all(statement!(SELECT_RUNS, turn), run::record).await
    }

    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select id from turns
            where (ended_at is null or work is not null)
                and conversation_id in (select $1 union select id from conversations where succeeded_by = $1)
                and (ended_at is null or work = 'running' and not absent)
            order by seq";
        self.readers.all(statement!(sql, conversation), |row| row.value("id")).await
    }

    /// Looks at all turns that have not ended.
    async fn merged_and_left(&self, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select t.id from turns as t
            where t.ended_at is null and t.state = 'merged' and not exists (
                select 1 from turns as f where f.id = t.merged_into and f.ended_at is null)
            order by t.seq limit $1";
        self.readers.all(statement!(sql, limit), |row| row.value("id")).await
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

pub(in crate::postgres) async fn last_question(
    pool: &Connections,
    session: SessionId,
    conversation: Option<ConversationId>,
    by: Option<&Identity>,
) -> Result<Option<TurnRecord>, StoreError> {
    let sql = select_turns!(
        "where t.seq = (select max(seq) from (
            (select q.seq from transcript as w join turns as q on q.seq = w.seq join events as v on v.seq = q.event
            where w.session_id = $1 and w.speaker = 'person' and q.command is null and not q.left_out
                and q.owed and ($3 is null or q.channel = $3 and q.person = $4)
                and v.details #>> '{kind,prompt}' is null
            order by w.seq desc limit 1)
            union all
            (select q.seq from turns as q join events as v on v.seq = q.event
            where q.conversation_id = $2 and q.session_id = $1 and q.command is null and not q.left_out
                and q.owed and ($3 is null or q.channel = $3 and q.person = $4)
                and v.details #>> '{kind,prompt}' is null
            order by q.seq desc limit 1)) as last)"
    );
    let (channel, person) = by.map(|by| (by.channel.clone(), by.id.clone())).unzip();
    pool.one(statement!(sql, session, conversation, channel, person), turn::record_or_its_turn).await
}

#[async_trait]
impl DeadlineStore for PostgresStore {
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select id from turns
            where wake_at is not null and not absent and wake_at <= $1 order by wake_at, seq limit $2";
        self.readers.all(statement!(sql, now, limit), |row| row.value("id")).await
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "select min(wake_at) as at from turns where wake_at is not null and not absent";
        self.readers.one(statement!(sql), |row| row.value("at")).await.map(Option::flatten)
    }

    /// The latest run counts: the end of an earlier one may not be stored yet.
    async fn due_at(
        &self,
        node: NodeId,
        channels: &[ChannelId],
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(TurnId, Timestamp)>, StoreError> {
        let sql = "
            select t.id, t.wake_at from turns as t
            where t.wake_at is not null and not t.absent and t.wake_at <= $3 and coalesce(
                case when t.work = 'running' then (
                    select case
                        when r.owner = $1 then true
                        when r.owner in (select id from living_nodes) then false end
                    from runs as r
                    where r.run between t.seq << 16 and t.seq << 16 | 65535 and r.ended_at is null
                    order by r.run desc limit 1) end,
                t.channel = any($2))
            order by t.wake_at, t.seq limit $4";
        let channels = List(names(channels));
        let statement = statement!(sql, node.as_uuid(), channels, now, limit);
        self.readers.all(statement, |row| Ok((row.value("id")?, row.value("wake_at")?))).await
    }

    async fn runs_left(
        &self,
        node: NodeId,
        in_flight: &[TurnId],
        after: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<LeftRun>, StoreError> {
        let sql = "
            select t.id as turn,
                (select count(*) from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535) as runs
            from turns as t
            where t.work = 'running' and not t.absent and t.id > $1 and not exists (
                select 1 from runs as r
                where r.run between t.seq << 16 and t.seq << 16 | 65535 and r.ended_at is null and case
                    when r.owner = $2 then t.id = any($3)
                    else r.owner in (select id from living_nodes) end)
            order by t.id limit $4";
        let in_flight = List(in_flight.iter().map(|turn| turn.as_uuid()).collect());
        let statement = statement!(sql, id_after(after), node.as_uuid(), in_flight, limit);
        self.readers.all(statement, |row| Ok(record!(row => LeftRun { turn, runs }))).await
    }

    async fn ended_last(
        &self,
        channels: &[ChannelId],
        span: Duration,
        waited: Duration,
        limit: u32,
    ) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            with ended as materialized (
                select id, seq, command, accepted_at, ended_at from turns
                where ended_at is not null and channel = any($1)
                    and ended_at >= (select max(ended_at) from turns where ended_at is not null) - $2
                order by ended_at desc limit $4 * 64)
            select id from (
                select t.id from ended as t
                where exists (
                    select 1 from deliveries as d
                    where d.turn_id = t.id and (d.claim = 0 or d.signal = 'deferral') and d.message_ids <> '[]' offset 0)
                    or t.command is null and coalesce(
                        (select min(r.started_at) from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535),
                        t.ended_at) - t.accepted_at >= $3
                order by t.ended_at desc limit $4) as kept
            order by id";
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let channels = List(names(channels));
        self.readers.all(statement!(sql, channels, millis(span), millis(waited), limit), |row| row.value("id")).await
    }
}

/// The turn is read first: what is read after it is at least as new.
pub(in crate::postgres) async fn dossier(pool: &Connections, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
    let mut reading = pool.take().await?;
    let of_it = |sql: &'static str| statement!(sql, turn);
    let rows = reading.rows(of_it(select_turns!("where t.id = $1"))).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let absent = of_it(
        "select exists (select 1 from turns where id = $1 and absent)
            or exists (select 1 from deliveries where turn_id = $1 and absent) as absent",
    );
    let channel = row.value::<String>("channel")?;
    let paused = statement!("select since, by, reason from paused where channel = $1", channel);
    let contents = statement!(SELECT_CONTENTS, row.value::<TurnSeq>("seq")?);
    let deliveries = of_it(select_deliveries!(
        "from deliveries as d join conversations as c on c.id = d.conversation_id
        where d.turn_id = $1 order by d.claim, d.part, d.is_copy, d.seq"
    ));
    let attempts = of_it(
        "select a.delivery_id, a.number, a.started_at, a.ended_at, a.result, a.detail
        from deliveries as d join attempts as a on a.delivery_id = d.id
        where d.turn_id = $1 order by a.started_at, d.claim, d.part, d.seq, a.number",
    );
    Ok(Some(Dossier {
        turn: turn::record(row)?,
        accepted_at: row.value("accepted_at")?,
        ended_at: row.value("ended_at")?,
        absent: reading.one(absent, |row| row.value("absent")).await?.unwrap_or_default(),
        paused: reading.one(paused, delivery::pause).await?,
        runs: reading.all(of_it(SELECT_RUNS), run::record).await?,
        contents: reading.all(contents, run::content).await?.into_iter().collect(),
        deliveries: reading.all(deliveries, delivery::record).await?,
        attempts: reading.all(attempts, delivery::attempt).await?,
        remarks: reading.all(of_it(SELECT_REMARKS), turn::remark).await?,
        files: reading.all(of_it(SELECT_FILES), |row| row.value::<FileDigest>("digest")).await?.into_iter().collect(),
    }))
}

const SELECT_FILES: &str = "select digest from file_uses where turn_id = $1";

const SELECT_REMARKS: &str = "select turn_id, at, kind, detail from remarks where turn_id = $1 order by id";

const SELECT_RUNS: &str = "
    select r.run & 65535 as number, r.agent, r.command, r.started_at, r.ended_at, r.ending, r.detail, r.usage, r.cost_micros,
        r.currency, r.member, r.holder
    from turns as t join runs as r on r.run between t.seq << 16 and t.seq << 16 | 65535
    where t.id = $1 order by r.run";

/// Settings that are missing although a run refers to them are an empty object: the rest is worth reading.
const SELECT_CONTENTS: &str = "
    select c.run & 65535 as number, c.messages, c.left_out, c.tools, c.tools_left_out, coalesce(s.body, '{}') as settings
    from run_contents as c left join run_settings as s on s.id = c.settings
    where c.run between $1 << 16 and $1 << 16 | 65535 order by c.run";
