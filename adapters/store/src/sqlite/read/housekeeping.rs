//! Rows that are past their time, and the size of the database.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use rejoinder_core::{
    Identity, Lifetimes, StoreError, Timestamp, TurnId,
    store::{Cutoffs, ExpiredRows, HousekeepingStore, Removal, StoreStats},
};
use sqlx::{
    AssertSqlSafe, Sqlite, SqlitePool,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::rows::{all, one};
use crate::{
    records::columns::{Column, Columns, record},
    shared::{
        bounds::TABLES,
        request::{WriteRequest, WriteResult},
    },
    sqlite::{error::store_error, store::SqliteStore},
};

/// Free pages are kept for new rows until they are this part of the database.
const FREE_SHARE: i64 = 10;

/// How many bytes of free pages are given back in place of a row.
const BYTES_PER_ROW: i64 = 4096;

/// A query of ended turns that are past their time. ?1: the time for settled turns, ?2: for dead letters.
macro_rules! expired_turns {
    ($what:literal, $rest:literal) => {
        concat!(
            "select ",
            $what,
            " from turns as t indexed by turns_ended
            where t.ended_at < ?1 and (t.state <> 'undeliverable' or t.ended_at < ?2) and t.work is null
                and not exists (
                    select 1 from deliveries as d
                    where d.turn_id = t.id and d.state not in ('delivered', 'withdrawn', 'refused', 'held')
                        and not (d.state = 'dead' and t.ended_at < ?2)) ",
            $rest
        )
    };
}

macro_rules! expired_payloads {
    ($what:literal, $rest:literal) => {
        concat!(
            "select ",
            $what,
            " from events indexed by events_with_payload where raw is not null and received_at < ?1 ",
            $rest
        )
    };
}

macro_rules! expired_keys {
    ($what:literal, $rest:literal) => {
        concat!(
            "select ",
            $what,
            " from events indexed by events_of_key_only where details is null and raw is null and received_at < ?1 ",
            $rest
        )
    };
}

/// Only the contents of runs that come first are read, because what is past its time is among them: they are in the order
/// in which turns were accepted, and few turns run again much later.
const EXPIRED_CONTENTS: &str = "
    select t.id, c.run & 65535 as number
    from (select run, at from run_contents order by run limit ?2) as c cross join turns as t on t.seq = c.run >> 16
    where c.at < ?1";

/// The oldest entries of the log, as far as they are past their time; never the last one of all.
const EXPIRED_LOG: &str = "
    select max(seq) as through, count(*) as count
    from (select seq, at from log order by seq limit ?2)
    where at < ?1 and seq < (select max(seq) from log)";

/// The oldest lines, as far as they are past their time.
const EXPIRED_LINES: &str = "
    select max(id) as through, count(*) as count from (select id, at from log_lines order by id limit ?2) where at < ?1";

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
    "select distinct t.id from file_uses as u indexed by file_uses_spoken cross join turns as t on t.id = u.turn_id
    where u.spoken_at < ?1 and ",
    removable!(),
    " limit ?2"
);

/// The conversations of a person, and whether others were in them. ?1: the channel, ?2: the person.
macro_rules! with_theirs {
    ($query:literal) => {
        concat!(
            "with theirs (conversation_id, is_shared) as materialized (
                select o.conversation_id, exists (
                    select 1 from turns as p cross join events as e on e.seq = p.event
                    where p.conversation_id = o.conversation_id and p.person <> ?2
                        and coalesce(json_extract(e.details, '$.sender.kind'), 'person') <> 'operator')
                from turns as o where o.channel = ?1 and o.person = ?2 group by o.conversation_id
            )",
            $query
        )
    };
}

/// What the models of runs were shown in conversations with others.
const SHARED_CONTENTS: &str = with_theirs!(
    "select t.id, c.run & 65535 as number
    from theirs as h cross join turns as t on t.conversation_id = h.conversation_id
        cross join run_contents as c on c.run between t.seq << 16 and t.seq << 16 | 65535
    where h.is_shared limit ?3"
);

/// Events with a quote or a payload, in conversations with others. All events of a turn have the same key but for the revision.
const SHARED_QUOTES: &str = with_theirs!(
    "select f.seq
    from theirs as h cross join turns as t on t.conversation_id = h.conversation_id
        cross join events as e on e.seq = t.event
        cross join events as f on f.channel = e.channel and f.external_id = e.external_id
    where h.is_shared and (f.raw is not null or json_type(f.details, '$.quoted') is not null) limit ?3"
);

/// The turns of others about a person: questions to owners whether to let them in, to the maker of a code whether they
/// used it, and to approvers about their agent; and the turns that answered these or decided on them. ?1: the channel,
/// ?2: the person, ?4: the channel and the person, ?5: how the keys of questions to owners about them begin.
macro_rules! about_them {
    ($query:literal) => {
        concat!(
            "with channels (channel) as materialized (select distinct channel from conversations),
            asked (turn_id) as materialized (
                select e.turn_id
                from channels as c cross join events as e on e.channel = c.channel
                    and e.external_id >= ?5 and e.external_id < substr(?5, 1, length(?5) - 1) || ';'
                -- A time, a colon and the id of the owner follow: not an id that begins with this one.
                where substr(e.external_id, -37, 1) = ':'
                    and substr(e.external_id, length(?5) + 1, length(e.external_id) - length(?5) - 37)
                        not glob '*[^0-9]*'
                union select e.turn_id
                from turns as t cross join channels as c cross join events as e on e.channel = c.channel and e.external_id =
                        'operator:link:' || lower(
                            substr(hex(t.id), 1, 8) || '-' || substr(hex(t.id), 9, 4) || '-' || substr(hex(t.id), 13, 4)
                            || '-' || substr(hex(t.id), 17, 4) || '-' || substr(hex(t.id), 21))
                where t.command = 'link' and t.channel = ?1 and t.person = ?2
                union select n.turn_id
                from turns as o cross join approvals as a on a.turn_id = o.id
                    cross join approval_notices as n on n.approval_id = a.id
                where o.channel = ?1 and o.person = ?2
            ),
            about (turn_id) as materialized (
                select turn_id from asked
                union select turn_id from audit where target = ?4
                union select t.id
                from asked as a cross join turns as q on q.id = a.turn_id
                    cross join turns as t on t.conversation_id = q.conversation_id
                    cross join events as e on e.seq = t.event
                where unhex(json_extract(e.details, '$.kind.choice.turn'), '-') = a.turn_id
            )",
            $query
        )
    };
}

/// The answers first, and none before all can go: they are found by the questions.
const ABOUT_THEM: &str = concat!(
    about_them!(
        "select t.id from about as h cross join turns as t on t.id = h.turn_id
        where not exists (select 1 from about as h cross join turns as t on t.id = h.turn_id where not ("
    ),
    removable!(),
    ")) order by t.seq desc limit ?3"
);

/// What the gateway itself began in conversations without others.
const BEGUN_THERE: &str = concat!(
    with_theirs!(
        "select t.id
        from theirs as h cross join turns as t on t.conversation_id = h.conversation_id
            cross join events as e on e.seq = t.event
        where not h.is_shared and json_extract(e.details, '$.sender.kind') = 'operator' and "
    ),
    removable!(),
    " limit ?3"
);

/// Turns about conversations without others, whose words went elsewhere.
const ABOUT_THERE: &str = concat!(
    with_theirs!(
        "select t.id
        from theirs as h cross join asides as a on a.conversation_id = h.conversation_id
            cross join turns as t on t.id = a.turn_id
        where not h.is_shared and "
    ),
    removable!(),
    " limit ?3"
);

/// What the models of such runs were shown of conversations with others.
const SHARED_CONTENTS_ELSEWHERE: &str = with_theirs!(
    "select t.id, c.run & 65535 as number
    from theirs as h cross join asides as a on a.conversation_id = h.conversation_id
        cross join turns as t on t.id = a.turn_id
        cross join run_contents as c on c.run between t.seq << 16 and t.seq << 16 | 65535
    where h.is_shared limit ?3"
);

/// Not before what is about them is gone, which is found by their turns.
const TURNS_OF_THEM: &str = concat!(
    about_them!(
        "select t.id from turns as t where t.channel = ?1 and t.person = ?2
            and not exists (select 1 from about as h cross join turns as p on p.id = h.turn_id
                where (p.channel, p.person) <> (?1, ?2)) and "
    ),
    removable!(),
    " limit ?3"
);

/// Those about them go first: they are found by their turns.
const UNENDED: &str = concat!(
    about_them!("select t.id from about as h cross join turns as t on t.id = h.turn_id where not ("),
    removable!(),
    ") union select t.id from turns as t where t.channel = ?1 and t.person = ?2 and not (",
    removable!(),
    ") limit ?3"
);

fn query_of<'a>(
    sql: &'static str,
    person: &'a Identity,
    limit: u32,
) -> sqlx::query::Query<'a, Sqlite, SqliteArguments> {
    let whole = person.to_string();
    let asked = format!("operator:asks:{whole}:");
    sqlx::query(sql).bind(person.channel.as_str()).bind(&person.id).bind(limit).bind(whole).bind(asked)
}

fn id<T: Column>(row: &SqliteRow) -> Result<T, StoreError> {
    row.value("id")
}

/// A run: its turn and its number.
fn run_id(row: &SqliteRow) -> Result<(TurnId, u32), StoreError> {
    Ok((row.value("id")?, row.value("number")?))
}

struct Pages {
    size: i64,
    all: i64,
    free: i64,
    /// Whether free pages can be given back one by one: the database was created so.
    can_shrink: bool,
}

impl Pages {
    async fn read(pool: &SqlitePool) -> Result<Self, StoreError> {
        let sql = "
            select page_size as size, page_count as pages, freelist_count as free, auto_vacuum = 2 as can_shrink
            from pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_auto_vacuum";
        let row = sqlx::query(sql).fetch_one(pool).await.map_err(store_error)?;
        Ok(record!(row => Self { size, all: pages, free, can_shrink }))
    }

    /// The number of free pages to give back next: as many bytes with pages of any size.
    fn spare(&self, limit: u32) -> Option<u32> {
        let spare = self.free - self.all / FREE_SHARE;
        let most = (i64::from(limit) * BYTES_PER_ROW / self.size).max(1);
        (self.can_shrink && spare > 0).then(|| u32::try_from(spare.min(most)).unwrap_or(u32::MAX))
    }
}

#[async_trait]
impl HousekeepingStore for SqliteStore {
    async fn stored_of(&self, person: &Identity, limit: u32) -> Result<Option<Removal>, StoreError> {
        let query = |sql| query_of(sql, person, limit);
        // First what is found by their turns.
        for sql in [SHARED_CONTENTS, SHARED_CONTENTS_ELSEWHERE] {
            let contents = all(&self.counter, query(sql), run_id).await?;
            if !contents.is_empty() {
                return Ok(Some(Removal::Contents(contents)));
            }
        }
        let quotes = all(&self.counter, query(SHARED_QUOTES), |row| row.value("seq")).await?;
        if !quotes.is_empty() {
            return Ok(Some(Removal::Quotes(quotes)));
        }
        for sql in [BEGUN_THERE, ABOUT_THERE, ABOUT_THEM, TURNS_OF_THEM] {
            let turns = all(&self.counter, query(sql), id).await?;
            if !turns.is_empty() {
                return Ok(Some(Removal::Turns(turns)));
            }
        }
        Ok(None)
    }

    async fn unended_of(&self, person: &Identity) -> Result<Vec<TurnId>, StoreError> {
        all(&self.counter, query_of(UNENDED, person, u32::MAX), id).await
    }

    async fn size(&self) -> Result<u64, StoreError> {
        let pages = Pages::read(&self.operator).await?;
        Ok(unsigned(pages.all * pages.size))
    }

    async fn stats(&self, cutoffs: &Cutoffs) -> Result<StoreStats, StoreError> {
        // Not in one transaction: a long one keeps the log from being written back.
        let mut rows = BTreeMap::new();
        for table in TABLES {
            let sql = AssertSqlSafe(format!("select count(*) from {table}"));
            let count: i64 = sqlx::query_scalar(sql).fetch_one(&self.counter).await.map_err(store_error)?;
            rows.insert(table.to_owned(), unsigned(count));
        }
        let oldest: Option<i64> = sqlx::query_scalar("select accepted_at from turns order by id limit 1")
            .fetch_optional(&self.counter)
            .await
            .map_err(store_error)?;
        let turns: i64 = sqlx::query_scalar(expired_turns!("count(*)", ""))
            .bind(cutoffs.turns.as_millis())
            .bind(cutoffs.dead_letters.as_millis())
            .fetch_one(&self.counter)
            .await
            .map_err(store_error)?;
        let events = async |sql: &'static str, before: Timestamp| {
            let query = sqlx::query_scalar::<_, i64>(sql).bind(before.as_millis());
            query.fetch_one(&self.counter).await.map(unsigned).map_err(store_error)
        };
        let payloads = events(expired_payloads!("count(*)", ""), cutoffs.payloads).await?;
        let keys = events(expired_keys!("count(*)", ""), cutoffs.keys).await?;
        let log = "select count(*) from log where at < ?1 and seq < (select max(seq) from log)";
        let log = events(log, cutoffs.turns).await?;
        let lines = events("select count(*) from log_lines where at < ?1", cutoffs.lines).await?;
        let contents = events("select count(*) from run_contents where at < ?1", cutoffs.payloads).await?;
        let sounds = events("select count(*) from file_uses where spoken_at < ?1", cutoffs.voice).await?;
        let pages = Pages::read(&self.counter).await?;
        Ok(StoreStats {
            bytes: unsigned(pages.all * pages.size),
            free_bytes: unsigned(pages.free * pages.size),
            rows,
            oldest_turn: oldest.map(Timestamp::from_millis),
            expired: ExpiredRows { turns: unsigned(turns), payloads, contents, keys, log, lines, sounds },
        })
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

    async fn scrub(&self) -> Result<bool, StoreError> {
        let Some(writer) = &self.writer else { return Ok(false) };
        if !writer.is_compacting().await {
            match self.write(WriteRequest::Scrub).await? {
                WriteResult::Scrubbed(true) => return Ok(true),
                WriteResult::Scrubbed(false) => {}
                other => unreachable!("`Scrub` ended with {other:?}"),
            }
        }
        writer.compact().await.map(|is_done| !is_done)
    }

    async fn expired(&self, cutoffs: &Cutoffs, limit: u32) -> Result<Option<Removal>, StoreError> {
        let events = async |sql: &'static str, before: Timestamp| {
            all(&self.operator, sqlx::query(sql).bind(before.as_millis()).bind(limit), |row| row.value("seq")).await
        };
        let payloads = events(expired_payloads!("seq", "order by received_at limit ?2"), cutoffs.payloads).await?;
        if !payloads.is_empty() {
            return Ok(Some(Removal::Payloads(payloads)));
        }
        let contents = sqlx::query(EXPIRED_CONTENTS).bind(cutoffs.payloads.as_millis()).bind(limit);
        let contents = all(&self.operator, contents, run_id).await?;
        if !contents.is_empty() {
            return Ok(Some(Removal::Contents(contents)));
        }
        let sounds = sqlx::query(EXPIRED_SOUNDS).bind(cutoffs.voice.as_millis()).bind(limit);
        let sounds = all(&self.operator, sounds, id).await?;
        if !sounds.is_empty() {
            return Ok(Some(Removal::Sounds(sounds)));
        }
        let turns = sqlx::query(expired_turns!("t.id", "order by t.ended_at limit ?3"))
            .bind(cutoffs.turns.as_millis())
            .bind(cutoffs.dead_letters.as_millis())
            .bind(limit);
        let turns = all(&self.operator, turns, id).await?;
        if !turns.is_empty() {
            return Ok(Some(Removal::Turns(turns)));
        }
        let keys = events(expired_keys!("seq", "order by received_at limit ?2"), cutoffs.keys).await?;
        if !keys.is_empty() {
            return Ok(Some(Removal::Keys(keys)));
        }
        let through = |row: &SqliteRow| Ok((row.value("through")?, row.value("count")?));
        let log = sqlx::query(EXPIRED_LOG).bind(cutoffs.turns.as_millis()).bind(limit);
        if let Some((Some(through), entries)) = one(&self.operator, log, through).await? {
            return Ok(Some(Removal::Log { through, entries }));
        }
        let lines = sqlx::query(EXPIRED_LINES).bind(cutoffs.lines.as_millis()).bind(limit);
        if let Some((Some(through), lines)) = one(&self.operator, lines, through).await? {
            return Ok(Some(Removal::Lines { through, lines }));
        }
        let pages = Pages::read(&self.operator).await?;
        Ok(pages.spare(limit).map(Removal::Pages))
    }

    async fn next_expiry(&self, lifetimes: &Lifetimes) -> Result<Option<Timestamp>, StoreError> {
        let sql = "
            select min(at) from (
                select min(received_at) + ?1 as at from events where raw is not null
                union all
                select min(at) + ?1 from (select at from run_contents order by run limit 100)
                union all
                select min(ended_at) + ?2 from turns indexed by turns_ended where ended_at is not null and state <> 'undeliverable'
                union all
                select min(received_at) + ?3 from events where details is null
                union all
                select min(at) + ?4 from (select at from log_lines order by id limit 1)
                union all
                select min(spoken_at) + ?5 from file_uses where spoken_at is not null)";
        let millis = |lifetime: Duration| i64::try_from(lifetime.as_millis()).ok();
        let at: Option<i64> = sqlx::query_scalar(sql)
            .bind(lifetimes.payloads.and_then(millis))
            .bind(lifetimes.turns.and_then(millis))
            .bind(millis(Lifetimes::KEYS))
            .bind(lifetimes.lines.and_then(millis))
            .bind(lifetimes.voice.and_then(millis))
            .fetch_one(&self.operator)
            .await
            .map_err(store_error)?;
        Ok(at.map(Timestamp::from_millis))
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_gives_back_as_many_bytes_with_pages_of_any_size() {
        let spare = |size, free, limit| Pages { size, all: 10_000, free, can_shrink: true }.spare(limit);
        for (size, pages) in [(1024, 400), (4096, 100), (32_768, 12)] {
            assert_eq!(spare(size, 9000, 100), Some(pages), "of {size} bytes");
        }
        assert_eq!(spare(32_768, 9000, 1), Some(1));
        assert_eq!((spare(1024, 1001, 100), spare(1024, 1000, 100)), (Some(1), None));
    }
}
