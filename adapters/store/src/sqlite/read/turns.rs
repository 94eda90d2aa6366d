//! Turns, and queries for the ones that are due, waiting or running.

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_core::{
    ChannelId, ConversationId, FileDigest, Identity, NodeId, Obligation, SessionId, StoreError, Timestamp, TurnId,
    store::{DeadlineStore, Dossier, LeftRun, QueueStore, RunRecord, TurnRecord, TurnSeq, TurnStore, WaitingTurn},
};
use sqlx::SqlitePool;

use super::{
    deliveries::select_deliveries,
    names,
    rows::{all, one},
};
use crate::{
    records::{
        columns::{Columns, record},
        delivery, run, turn,
    },
    shared::{positions::id_after, request::WriteRequest},
    sqlite::{error::store_error, sql::event_columns, store::SqliteStore},
};

/// `select` of whole turn records, `t` (the turn) joined with `e` (the event).
macro_rules! select_turns {
    ($rest:literal) => {
        select_turns!("", $rest)
    };
    ($index:literal, $rest:literal) => {
        concat!(
            "select t.id, t.seq, t.version, t.body, t.ended_at, t.conversation_id, t.session_id, t.agent, t.command, t.rule, t.model, t.accepted_at, ",
            "(select count(*) from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535) as runs, ",
            "exists (select 1 from transcript as l where l.session_id = t.session_id) as has_history, ",
            event_columns!(),
            " from turns as t ",
            $index,
            " cross join events as e on e.seq = t.event ",
            $rest
        )
    };
}

/// Steps through the lines, of each channel and agent one, and reads only the beginning of each.
pub(in crate::sqlite) const WAITING: &str = "
    with recursive lines (channel, agent) as (
        select channel, next_agent from turns where seq = (
            select seq from turns indexed by turns_line
            where place is not null and absent = 0 order by channel, next_agent limit 1)
        union all
        select t.channel, t.next_agent
        from lines cross join turns as t on t.seq = coalesce(
            (select n.seq from turns as n indexed by turns_line
            where n.place is not null and n.absent = 0 and n.channel = lines.channel and n.next_agent > lines.agent
            order by n.next_agent limit 1),
            (select n.seq from turns as n indexed by turns_line
            where n.place is not null and n.absent = 0 and n.channel > lines.channel
            order by n.channel, n.next_agent limit 1))
    )
    select t.id as turn_id, t.version, t.conversation_id, t.channel, t.next_agent as agent, t.owed, t.rank, t.place, not exists (
        select 1 from turns as m indexed by turns_waiting
        where m.work = 'waiting' and m.conversation_id = t.conversation_id and m.seq <> t.seq) as is_alone
    from lines cross join turns as t on t.seq in (
        select w.seq from turns as w indexed by turns_line
        where w.place is not null and w.absent = 0 and w.channel = lines.channel and w.next_agent = lines.agent
        order by w.place, w.rank limit ?)
    order by t.place, t.rank";

#[async_trait]
impl QueueStore for SqliteStore {
    async fn next_waiting(&self, conversation: ConversationId) -> Result<Option<TurnRecord>, StoreError> {
        let sql = select_turns!(
            "indexed by turns_waiting",
            "where t.conversation_id = ? and t.work = 'waiting' and t.absent = 0
            order by t.rank limit 1"
        );
        one(&self.readers, sqlx::query(sql).bind(conversation.as_uuid()), turn::record_or_its_turn).await
    }

    async fn waiting(&self, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        all(&self.readers, sqlx::query(WAITING).bind(limit), turn::waiting).await
    }

    async fn waiting_for(&self, _node: NodeId, limit: u32) -> Result<Vec<WaitingTurn>, StoreError> {
        self.waiting(limit).await
    }

    async fn slot_of(&self, _conversation: ConversationId) -> Result<Option<TurnId>, StoreError> {
        Ok(None)
    }

    async fn free_slot(&self, _conversation: ConversationId, _turn: TurnId, _node: NodeId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Those that cannot be read are left out.
    async fn waiting_turns(&self, conversation: ConversationId, limit: u32) -> Result<Vec<TurnRecord>, StoreError> {
        let sql = select_turns!(
            "indexed by turns_waiting",
            "where t.conversation_id = ? and t.work = 'waiting' and t.absent = 0
            order by t.rank limit ?"
        );
        let query = sqlx::query(sql).bind(conversation.as_uuid()).bind(limit);
        let rows = query.fetch_all(&self.readers).await.map_err(store_error)?;
        Ok(rows.iter().filter_map(|row| turn::record(row).ok()).collect())
    }

    async fn waiting_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) from (
                select 1 from turns indexed by turns_waiting
                where work = 'waiting' and conversation_id = ? limit ?)";
        let query = sqlx::query_scalar(sql).bind(conversation.as_uuid()).bind(limit);
        query.fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn waiting_of(&self, channel: &ChannelId, person: &str, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) from (
                select 1 from turns indexed by turns_of_person
                where work = 'waiting' and channel = ? and person = ? limit ?)";
        let query = sqlx::query_scalar(sql).bind(channel.as_str()).bind(person).bind(limit);
        query.fetch_one(&self.readers).await.map_err(store_error)
    }

    async fn postponed_in(&self, conversation: ConversationId, limit: u32) -> Result<u32, StoreError> {
        let sql = "
            select count(*) from (
                select 1 from turns indexed by turns_open
                where conversation_id = ? and ended_at is null and work is null
                    and iif(json_valid(body), json_extract(body, '$.work'), null) = 'postponed'
                limit ?)";
        let query = sqlx::query_scalar(sql).bind(conversation.as_uuid()).bind(limit);
        query.fetch_one(&self.readers).await.map_err(store_error)
    }

    /// Looks at all turns that have not ended.
    async fn postponed(&self) -> Result<Vec<ConversationId>, StoreError> {
        let sql = "
            select distinct conversation_id from turns indexed by turns_open
            where ended_at is null and work is null and iif(json_valid(body), json_extract(body, '$.work'), null) = 'postponed'";
        all(&self.readers, sqlx::query(sql), |row| row.value("conversation_id")).await
    }
}

#[async_trait]
impl TurnStore for SqliteStore {
    async fn turn(&self, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        let query = sqlx::query(select_turns!("where t.id = ?")).bind(turn.as_uuid());
        one(&self.readers, query, turn::record_or_its_turn).await
    }

    async fn runs(&self, turn: TurnId) -> Result<Vec<RunRecord>, StoreError> {
        let query = sqlx::query(SELECT_RUNS).bind(turn.as_uuid());
        all(&self.readers, query, run::record).await
    }

    async fn open_turns(&self, conversation: ConversationId) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            with here (id) as (select ?1 union select id from conversations where succeeded_by = ?1)
            select id from turns indexed by turns_open
            where (ended_at is null or work is not null) and conversation_id in here
                and (ended_at is null or work = 'running' and absent = 0)
            order by seq";
        all(&self.readers, sqlx::query(sql).bind(conversation.as_uuid()), |row| row.value("id")).await
    }

    /// Looks at all turns that have not ended.
    async fn merged_and_left(&self, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select t.id from turns as t indexed by turns_open
            where t.ended_at is null and t.state = 'merged' and not exists (
                select 1 from turns as f
                where f.id = unhex(iif(json_valid(t.body), json_extract(t.body, '$.state.merged.into'), null), '-') and f.ended_at is null)
            order by t.seq limit ?";
        all(&self.readers, sqlx::query(sql).bind(limit), |row| row.value("id")).await
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
                    cross join events as v on v.seq = q.event
                where w.session_id = ?1 and w.speaker = 'person' and q.command is null and q.left_out = 0
                    and q.owed = 1 and (?3 is null or q.channel = ?3 and q.person = ?4)
                    and json_extract(v.details, '$.kind.prompt') is null
                order by w.seq desc limit 1)
            union all
            select * from (
                select q.seq from turns as q
                    cross join events as v on v.seq = q.event
                where q.conversation_id = ?2 and q.session_id = ?1 and q.command is null and q.left_out = 0
                    and q.owed = 1 and (?3 is null or q.channel = ?3 and q.person = ?4)
                    and json_extract(v.details, '$.kind.prompt') is null
                order by q.seq desc limit 1)))"
    );
    let (channel, person) = by.map(|by| (by.channel.as_str(), by.id.as_str())).unzip();
    let query = sqlx::query(sql).bind(session.as_uuid()).bind(conversation.map(ConversationId::as_uuid));
    one(pool, query.bind(channel).bind(person), turn::record_or_its_turn).await
}

#[async_trait]
impl DeadlineStore for SqliteStore {
    async fn due(&self, now: Timestamp, limit: u32) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            select id from turns indexed by turns_wake
            where wake_at is not null and absent = 0 and wake_at <= ? order by wake_at, seq limit ?";
        all(&self.readers, sqlx::query(sql).bind(now.as_millis()).bind(limit), |row| row.value("id")).await
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "select min(wake_at) from turns indexed by turns_wake where wake_at is not null and absent = 0";
        let at: Option<i64> = sqlx::query_scalar(sql).fetch_one(&self.readers).await.map_err(store_error)?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// Every other node is over, as in `runs_left`.
    async fn due_at(
        &self,
        node: NodeId,
        channels: &[ChannelId],
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(TurnId, Timestamp)>, StoreError> {
        let sql = "
            select t.id, t.wake_at from turns as t indexed by turns_wake
            where t.wake_at is not null and t.absent = 0 and t.wake_at <= ? and (
                t.channel in (select value from json_each(?))
                or t.work = 'running' and exists (
                    select 1 from runs as r
                    where r.run between t.seq << 16 and t.seq << 16 | 65535 and r.ended_at is null and r.owner = ?))
            order by t.wake_at, t.seq limit ?";
        let query = sqlx::query(sql).bind(now.as_millis()).bind(names(channels)).bind(node.as_uuid()).bind(limit);
        all(&self.readers, query, |row| Ok((row.value("id")?, row.value("wake_at")?))).await
    }

    /// Every other node is over: this one has the lock on the database.
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
            from turns as t indexed by turns_open
            where t.work = 'running' and t.absent = 0 and t.id > ? and not exists (
                select 1 from runs as r
                where r.run between t.seq << 16 and t.seq << 16 | 65535 and r.ended_at is null and r.owner = ?
                    and t.id in (select unhex(value, '-') from json_each(?)))
            order by t.id limit ?";
        let in_flight = serde_json::to_string(in_flight).expect("ids are text");
        let query = sqlx::query(sql).bind(id_after(after)).bind(node.as_uuid()).bind(in_flight).bind(limit);
        all(&self.readers, query, |row| Ok(record!(row => LeftRun { turn, runs }))).await
    }

    async fn ended_last(
        &self,
        channels: &[ChannelId],
        span: Duration,
        waited: Duration,
        limit: u32,
    ) -> Result<Vec<TurnId>, StoreError> {
        let sql = "
            with ended as (
                select id, ended_at from turns indexed by turns_ended
                where ended_at is not null and channel in (select value from json_each(?1))
                    and ended_at >= (select max(ended_at) from turns indexed by turns_ended where ended_at is not null) - ?2
                order by ended_at desc limit ?4 * 64)
            select id from (
                select ended.id from ended
                where exists (
                    select 1 from deliveries as d
                    where d.turn_id = ended.id and (d.claim = 0 or d.signal = 'deferral') and d.message_ids <> '[]')
                    or (select t.command is null and coalesce(
                            (select min(r.started_at) from runs as r where r.run between t.seq << 16 and t.seq << 16 | 65535),
                            ended.ended_at) - t.accepted_at >= ?3
                        from turns as t where t.id = ended.id)
                order by ended.ended_at desc limit ?4)
            order by id";
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let query = sqlx::query(sql).bind(names(channels)).bind(millis(span)).bind(millis(waited)).bind(limit);
        all(&self.readers, query, |row| row.value("id")).await
    }
}

pub(in crate::sqlite) async fn dossier(pool: &SqlitePool, turn: TurnId) -> Result<Option<Dossier>, StoreError> {
    // One transaction: all rows are from the same moment.
    let mut reading = pool.begin().await.map_err(store_error)?;
    let of_it = |sql: &'static str| sqlx::query(sql).bind(turn.as_uuid());
    let query = of_it(select_turns!("where t.id = ?"));
    let Some(row) = query.fetch_optional(&mut *reading).await.map_err(store_error)? else { return Ok(None) };
    let absent = of_it(
        "select exists (select 1 from turns where id = ?1 and absent = 1)
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
        turn: turn::record(&row)?,
        accepted_at: row.value("accepted_at")?,
        ended_at: row.value("ended_at")?,
        absent: one(&mut *reading, absent, |row| row.value("absent")).await?.unwrap_or_default(),
        paused: one(&mut *reading, paused.bind(row.value::<String>("channel")?), delivery::pause).await?,
        runs: all(&mut *reading, of_it(SELECT_RUNS), run::record).await?,
        contents: all(&mut *reading, contents, run::content).await?.into_iter().collect(),
        deliveries: all(&mut *reading, deliveries, delivery::record).await?,
        attempts: all(&mut *reading, attempts, delivery::attempt).await?,
        remarks: all(&mut *reading, of_it("select * from remarks where turn_id = ? order by id"), turn::remark).await?,
        files: all(&mut *reading, of_it(SELECT_FILES), |row| row.value::<FileDigest>("digest"))
            .await?
            .into_iter()
            .collect(),
    };
    reading.commit().await.map_err(store_error)?;
    Ok(Some(dossier))
}

const SELECT_FILES: &str = "select digest from file_uses where turn_id = ?";

const SELECT_RUNS: &str = "
    select r.*, r.run & 65535 as number
    from turns as t cross join runs as r on r.run between t.seq << 16 and t.seq << 16 | 65535
    where t.id = ? order by r.run";

/// Settings that are missing although a run refers to them are an empty object: the rest is worth reading.
const SELECT_CONTENTS: &str = "
    select c.run & 65535 as number, c.messages, c.left_out, c.tools, c.tools_left_out, coalesce(s.body, '{}') as settings
    from run_contents as c left join run_settings as s on s.id = c.settings
    where c.run between ?1 << 16 and ?1 << 16 | 65535 order by c.run";

#[cfg(test)]
mod tests {
    use sqlx::{Connection, Row, SqliteConnection};

    use super::WAITING;
    use crate::sqlite::schema::MIGRATIONS;

    /// However many conversations wait, and however many turns in each, only the beginnings of the lines are read.
    #[tokio::test]
    async fn what_waits_is_read_by_an_index_of_first_turns() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("it opens");
        MIGRATIONS.run_direct(None, &mut connection, false).await.expect("the schema is made");

        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("explain query plan {WAITING}"))).bind(10);
        let plan = plan.fetch_all(&mut connection).await.expect("there is a plan");

        let steps = plan.iter().map(|row| row.get::<String, _>("detail"));
        let reads: Vec<String> = steps.filter(|step| step.contains("turns") || step.contains(" USING ")).collect();
        let line = "USING COVERING INDEX turns_line";
        let row = "USING INTEGER PRIMARY KEY (rowid=?)";
        let expected = [
            format!("SEARCH turns {row}"),
            // With a limit of one row.
            format!("SCAN turns {line}"),
            format!("SEARCH t {row}"),
            format!("SEARCH n {line} (channel=? AND next_agent>?)"),
            format!("SEARCH n {line} (channel>?)"),
            format!("SEARCH t {row}"),
            format!("SEARCH w {line} (channel=? AND next_agent=? AND place>?)"),
            "SEARCH m USING COVERING INDEX turns_waiting (conversation_id=?)".to_owned(),
        ];
        assert_eq!(reads, expected);
    }
}
