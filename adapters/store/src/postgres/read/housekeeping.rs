//! Rows that are past their time, and the size of the database.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{
    Identity, Lifetimes, StoreError, Timestamp, TurnId,
    store::{Cutoffs, ExpiredRows, HousekeepingStore, Removal, StoreStats},
};
use sqlx::{AssertSqlSafe, postgres::PgRow};
use tokio::time::{Instant, sleep};

use crate::{
    postgres::{
        connections::Connections,
        store::PostgresStore,
        values::{Statement, statement},
    },
    records::columns::{Column, Columns},
    shared::{
        bounds::TABLES,
        request::{WriteRequest, WriteResult},
    },
};

/// Further tables with rows about people.
const ABOUT_PEOPLE: [&str; 8] =
    ["answers", "approval_notices", "approvals", "blocked", "guesses", "schedule_runs", "schedules", "search"];

/// How long a step of scrubbing waits for transactions to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it looks whether they have.
const PAUSE: Duration = Duration::from_millis(20);

/// All rows that are deleted already were deleted by transactions with lower ids.
const SELECT_XID: &str = "select pg_current_xact_id()::xid::text::bigint as xid";

/// What may still read rows that were deleted before the transaction $1: `vacuum` does not remove these.
const COUNT_OLD: &str = "
    select count(*) as count from (
        select x.xid
        from pg_stat_get_activity(null) as a cross join lateral (values (a.backend_xid), (a.backend_xmin)) as x (xid)
        where a.pid <> pg_backend_pid()
            and (a.datid is null or a.datid = (select oid from pg_database where datname = current_database()))
        union all
        select transaction from pg_prepared_xacts where database = current_database()
        union all
        select xmin from pg_replication_slots) as old
    where age(xid) >= age($1::bigint::text::xid)";

/// The size of all tables, with their indexes.
const SIZE: &str = "
    select coalesce(sum(pg_total_relation_size(t.oid)), 0)::bigint as bytes
    from pg_class as t join pg_namespace as s on s.oid = t.relnamespace
    where s.nspname = current_schema() and t.relkind = 'r'";

/// A query of ended turns that are past their time. $1: the time for settled turns, $2: for dead letters.
macro_rules! expired_turns {
    ($what:literal, $rest:literal) => {
        concat!(
            "select ",
            $what,
            " from turns as t
            where t.ended_at < $1 and (t.state <> 'undeliverable' or t.ended_at < $2) and t.work is null
                and not exists (
                    select 1 from deliveries as d
                    where d.turn_id = t.id and d.state not in ('delivered', 'withdrawn', 'refused', 'held')
                        and not (d.state = 'dead' and t.ended_at < $2)) ",
            $rest
        )
    };
}

macro_rules! expired_payloads {
    ($what:literal, $rest:literal) => {
        concat!("select ", $what, " from events where raw is not null and received_at < $1 ", $rest)
    };
}

macro_rules! expired_keys {
    ($what:literal, $rest:literal) => {
        concat!("select ", $what, " from events where details is null and raw is null and received_at < $1 ", $rest)
    };
}

/// Only the contents of runs that come first are read, because what is past its time is among them: they are in the order
/// in which turns were accepted, and few turns run again much later.
const EXPIRED_CONTENTS: &str = "
    select t.id, c.run & 65535 as number
    from (select run, at from run_contents order by run limit $2) as c join turns as t on t.seq = c.run >> 16
    where c.at < $1";

/// The oldest entries of the log, as far as they are past their time; never the last one of all.
const EXPIRED_LOG: &str = "
    select max(seq) as through, count(*) as count
    from (select seq, at from log order by seq limit $2) as l
    where at < $1 and seq < (select max(seq) from log)";

/// The oldest lines, as far as they are past their time.
const EXPIRED_LINES: &str = "
    select max(id) as through, count(*) as count
    from (select id, at from log_lines order by id limit $2) as l where at < $1";

/// Turns that can be removed: `t` has ended, and nothing of it is under way.
macro_rules! removable {
    () => {
        "t.ended_at is not null and t.work is null and not exists (
            select 1 from deliveries as d
            where d.turn_id = t.id and d.state not in ('delivered', 'withdrawn', 'refused', 'dead', 'held'))"
    };
}

/// Turns with sounds of spoken words that are past their time.
const EXPIRED_SOUNDS: &str = concat!(
    "select distinct t.id from file_uses as u join turns as t on t.id = u.turn_id
    where u.spoken_at < $1 and ",
    removable!(),
    " limit $2"
);

/// The conversations of a person, and whether others were in them. $1: the channel, $2: the person.
macro_rules! with_theirs {
    ($query:literal) => {
        concat!(
            "with theirs (conversation_id, is_shared) as materialized (
                select o.conversation_id, exists (
                    select 1 from turns as p join events as e on e.seq = p.event
                    where p.conversation_id = o.conversation_id and p.person <> $2
                        and coalesce(e.details #>> '{sender,kind}', 'person') <> 'operator')
                from turns as o where o.channel = $1 and o.person = $2 group by o.conversation_id
            )",
            $query
        )
    };
}

/// What the models of runs were shown in conversations with others. `offset 0`: they are found by their keys, turn by turn.
const SHARED_CONTENTS: &str = with_theirs!(
    "select t.id, c.run & 65535 as number
    from theirs as h join turns as t on t.conversation_id = h.conversation_id
        cross join lateral (
            select run from run_contents where run between t.seq << 16 and (t.seq << 16) | 65535 offset 0) as c
    where h.is_shared limit $3"
);

/// Events with a quote or a payload, in conversations with others. All events of a turn have the same key but for the revision.
const SHARED_QUOTES: &str = with_theirs!(
    "select f.seq
    from theirs as h join turns as t on t.conversation_id = h.conversation_id
        join events as e on e.seq = t.event
        join events as f on f.channel = e.channel and f.external_id = e.external_id
    where h.is_shared and (f.raw is not null or f.details -> 'quoted' is not null) limit $3"
);

/// The turns of others about a person: questions to owners whether to let them in, to the maker of a code whether they
/// used it, and to approvers about their agent; and the turns that answered these or decided on them. $1: the channel,
/// $2: the person, $4: the channel and the person, $5: how the keys of questions to owners about them begin.
macro_rules! about_them {
    ($query:literal) => {
        concat!(
            "with channels (channel) as materialized (select distinct channel from conversations),
            asked (turn_id) as materialized (
                select e.turn_id
                from channels as c join events as e on e.channel = c.channel
                    and e.external_id >= $5 and e.external_id < substr($5, 1, length($5) - 1) || ';'
                -- A time, a colon and the id of the owner follow: not an id that begins with this one.
                where substr(e.external_id, length($5) + 1) ~ '^[0-9]*:.{36}$'
                union select e.turn_id
                from turns as t cross join channels as c join events as e on e.channel = c.channel
                    and e.external_id = 'operator:link:' || t.id::text
                where t.command = 'link' and t.channel = $1 and t.person = $2
                union select n.turn_id
                from turns as o join approvals as a on a.turn_id = o.id
                    join approval_notices as n on n.approval_id = a.id
                where o.channel = $1 and o.person = $2
            ),
            about (turn_id) as materialized (
                select turn_id from asked
                union select turn_id from audit where target = $4
                union select t.id
                from asked as a join turns as q on q.id = a.turn_id
                    join turns as t on t.conversation_id = q.conversation_id
                    join events as e on e.seq = t.event
                where e.details #>> '{kind,choice,turn}' = a.turn_id::text
            )",
            $query
        )
    };
}

/// The answers first, and none before all can go: they are found by the questions.
const ABOUT_THEM: &str = concat!(
    about_them!(
        "select t.id from about as h join turns as t on t.id = h.turn_id
        where not exists (select 1 from about as h join turns as t on t.id = h.turn_id where not ("
    ),
    removable!(),
    ")) order by t.seq desc limit $3"
);

/// What the gateway itself began in conversations without others.
const BEGUN_THERE: &str = concat!(
    with_theirs!(
        "select t.id
        from theirs as h join turns as t on t.conversation_id = h.conversation_id
            join events as e on e.seq = t.event
        where not h.is_shared and e.details #>> '{sender,kind}' = 'operator' and "
    ),
    removable!(),
    " limit $3"
);

/// Turns about conversations without others, whose words went elsewhere.
const ABOUT_THERE: &str = concat!(
    with_theirs!(
        "select t.id
        from theirs as h join asides as a on a.conversation_id = h.conversation_id
            join turns as t on t.id = a.turn_id
        where not h.is_shared and "
    ),
    removable!(),
    " limit $3"
);

/// What the models of such runs were shown of conversations with others.
const SHARED_CONTENTS_ELSEWHERE: &str = with_theirs!(
    "select t.id, c.run & 65535 as number
    from theirs as h join asides as a on a.conversation_id = h.conversation_id
        join turns as t on t.id = a.turn_id
        cross join lateral (
            select run from run_contents where run between t.seq << 16 and (t.seq << 16) | 65535 offset 0) as c
    where h.is_shared limit $3"
);

/// Not before what is about them is gone, which is found by their turns.
const TURNS_OF_THEM: &str = concat!(
    about_them!(
        "select t.id from turns as t where t.channel = $1 and t.person = $2
            and not exists (select 1 from about as h join turns as p on p.id = h.turn_id
                where (p.channel, p.person) <> ($1, $2)) and "
    ),
    removable!(),
    " limit $3"
);

/// Those about them go first: they are found by their turns.
const UNENDED: &str = concat!(
    about_them!("select t.id from about as h join turns as t on t.id = h.turn_id where not ("),
    removable!(),
    ") union select t.id from turns as t where t.channel = $1 and t.person = $2 and not (",
    removable!(),
    ") limit $3"
);

/// When the first row of each kind is past its time. $1: how long payloads and contents are kept, $2: turns, $3: keys, $4: lines,
/// $5: sounds.
const NEXT_EXPIRY: &str = "
    select min(at) as at from (
        select min(received_at) + $1 as at from events where raw is not null
        union all
        select min(at) + $1 from (select at from run_contents order by run limit 100) as c
        union all
        select min(ended_at) + $2 from turns where ended_at is not null and state <> 'undeliverable'
        union all
        select min(received_at) + $3 from events where details is null
        union all
        select min(at) + $4 from (select at from log_lines order by id limit 1) as l
        union all
        select min(spoken_at) + $5 from file_uses where spoken_at is not null) as n";

fn query_of(sql: &'static str, person: &Identity, limit: u32) -> Statement<'static> {
    let whole = person.to_string();
    let asked = format!("operator:asks:{whole}:");
    statement!(sql, person.channel, person.id, limit, whole, asked)
}

fn id<T: Column>(row: &PgRow) -> Result<T, StoreError> {
    row.value("id")
}

/// A run: its turn and its number.
fn run_id(row: &PgRow) -> Result<(TurnId, u32), StoreError> {
    Ok((row.value("id")?, row.value("number")?))
}

/// The number in the column `count` of the one row that a statement finds.
async fn count(connections: &Connections, statement: Statement<'_>) -> Result<u64, StoreError> {
    Ok(connections.one(statement, |row| row.value("count")).await?.unwrap_or(0))
}

#[async_trait]
impl HousekeepingStore for PostgresStore {
    async fn stored_of(&self, person: &Identity, limit: u32) -> Result<Option<Removal>, StoreError> {
        let query = |sql| query_of(sql, person, limit);
        // First what is found by their turns.
        for sql in [SHARED_CONTENTS, SHARED_CONTENTS_ELSEWHERE] {
            let contents = self.counter.all(query(sql), run_id).await?;
            if !contents.is_empty() {
                return Ok(Some(Removal::Contents(contents)));
            }
        }
        let quotes = self.counter.all(query(SHARED_QUOTES), |row| row.value("seq")).await?;
        if !quotes.is_empty() {
            return Ok(Some(Removal::Quotes(quotes)));
        }
        for sql in [BEGUN_THERE, ABOUT_THERE, ABOUT_THEM, TURNS_OF_THEM] {
            let turns = self.counter.all(query(sql), id).await?;
            if !turns.is_empty() {
                return Ok(Some(Removal::Turns(turns)));
            }
        }
        Ok(None)
    }

    async fn unended_of(&self, person: &Identity) -> Result<Vec<TurnId>, StoreError> {
        self.counter.all(query_of(UNENDED, person, u32::MAX), id).await
    }

    async fn size(&self) -> Result<u64, StoreError> {
        Ok(self.operator.one(statement!(SIZE), |row| row.value("bytes")).await?.unwrap_or(0))
    }

    async fn stats(&self, cutoffs: &Cutoffs) -> Result<StoreStats, StoreError> {
        // Not in one transaction: what was deleted during a long one cannot be vacuumed.
        let counter = &self.counter;
        let mut rows = BTreeMap::new();
        for table in TABLES {
            let sql = AssertSqlSafe(format!("select count(*) from {table}"));
            rows.insert(table.to_owned(), count(counter, statement!(sql)).await?);
        }
        let oldest = "select accepted_at from turns order by id limit 1";
        let oldest_turn = counter.one(statement!(oldest), |row| row.value("accepted_at")).await?;
        let turns = statement!(expired_turns!("count(*)", ""), cutoffs.turns, cutoffs.dead_letters);
        let turns = count(counter, turns).await?;
        let payloads = count(counter, statement!(expired_payloads!("count(*)", ""), cutoffs.payloads)).await?;
        let keys = count(counter, statement!(expired_keys!("count(*)", ""), cutoffs.keys)).await?;
        let log = "select count(*) from log where at < $1 and seq < (select max(seq) from log)";
        let log = count(counter, statement!(log, cutoffs.turns)).await?;
        let lines = "select count(*) from log_lines where at < $1";
        let lines = count(counter, statement!(lines, cutoffs.lines)).await?;
        let contents = "select count(*) from run_contents where at < $1";
        let contents = count(counter, statement!(contents, cutoffs.payloads)).await?;
        let sounds = "select count(*) from file_uses where spoken_at < $1";
        let sounds = count(counter, statement!(sounds, cutoffs.voice)).await?;
        let bytes = counter.one(statement!(SIZE), |row| row.value("bytes")).await?.unwrap_or(0);
        // PostgreSQL tells of no free room in its files without an extension.
        let expired = ExpiredRows { turns, payloads, contents, keys, log, lines, sounds };
        Ok(StoreStats { bytes, free_bytes: 0, rows, oldest_turn, expired })
    }

    async fn remove(&self, removal: Removal) -> Result<(), StoreError> {
        match self.write(WriteRequest::Remove(removal, self.clock.now())).await? {
            WriteResult::Removed(sessions) => {
                for session in sessions {
                    self.transcripts.forget(session);
                }
                Ok(())
            }
            other => unreachable!("`Remove` ended with {other:?}"),
        }
    }

    /// Removes deleted rows from the tables and the index of lines. In the files their room is overwritten by later rows only: to write the
    /// tables anew, `vacuum full` keeps all others from reading them. It does not run in a transaction, so the writer cannot do it.
    /// `true` while another transaction may still read rows that were deleted.
    async fn scrub(&self) -> Result<bool, StoreError> {
        let xid: Option<i64> = self.counter.one(statement!(SELECT_XID), |row| row.value("xid")).await?;
        let until = Instant::now() + PATIENCE;
        while count(&self.counter, statement!(COUNT_OLD, xid)).await? > 0 {
            if Instant::now() >= until {
                return Ok(true);
            }
            sleep(PAUSE).await;
        }
        for table in TABLES.iter().chain(&ABOUT_PEOPLE) {
            let sql = AssertSqlSafe(format!("vacuum (analyze) {table}"));
            self.counter.rows(statement!(sql)).await?;
        }
        Ok(false)
    }

    /// Never [`Removal::Pages`]: PostgreSQL gives room back by itself, or uses it again.
    async fn expired(&self, cutoffs: &Cutoffs, limit: u32) -> Result<Option<Removal>, StoreError> {
        let events = async |sql: &'static str, before: Timestamp| {
            self.operator.all(statement!(sql, before, limit), |row| row.value("seq")).await
        };
        let payloads = events(expired_payloads!("seq", "order by received_at limit $2"), cutoffs.payloads).await?;
        if !payloads.is_empty() {
            return Ok(Some(Removal::Payloads(payloads)));
        }
        let contents = self.operator.all(statement!(EXPIRED_CONTENTS, cutoffs.payloads, limit), run_id).await?;
        if !contents.is_empty() {
            return Ok(Some(Removal::Contents(contents)));
        }
        let sounds = self.operator.all(statement!(EXPIRED_SOUNDS, cutoffs.voice, limit), id).await?;
        if !sounds.is_empty() {
            return Ok(Some(Removal::Sounds(sounds)));
        }
        let turns = expired_turns!("t.id", "order by t.ended_at limit $3");
        let turns = self.operator.all(statement!(turns, cutoffs.turns, cutoffs.dead_letters, limit), id).await?;
        if !turns.is_empty() {
            return Ok(Some(Removal::Turns(turns)));
        }
        let keys = events(expired_keys!("seq", "order by received_at limit $2"), cutoffs.keys).await?;
        if !keys.is_empty() {
            return Ok(Some(Removal::Keys(keys)));
        }
        let through = |row: &PgRow| Ok((row.value("through")?, row.value("count")?));
        let log = statement!(EXPIRED_LOG, cutoffs.turns, limit);
        if let Some((Some(through), entries)) = self.operator.one(log, through).await? {
            return Ok(Some(Removal::Log { through, entries }));
        }
        let lines = statement!(EXPIRED_LINES, cutoffs.lines, limit);
        if let Some((Some(through), lines)) = self.operator.one(lines, through).await? {
            return Ok(Some(Removal::Lines { through, lines }));
        }
        Ok(None)
    }

    async fn next_expiry(&self, lifetimes: &Lifetimes) -> Result<Option<Timestamp>, StoreError> {
        let millis = |lifetime: Duration| i64::try_from(lifetime.as_millis()).ok();
        let all = [lifetimes.payloads, lifetimes.turns, Some(Lifetimes::KEYS), lifetimes.lines, lifetimes.voice];
        let [payloads, turns, keys, lines, voice] = all.map(|it| it.and_then(millis));
        let next = statement!(NEXT_EXPIRY, payloads, turns, keys, lines, voice);
        self.operator.one(next, |row| row.value("at")).await.map(Option::flatten)
    }
}
