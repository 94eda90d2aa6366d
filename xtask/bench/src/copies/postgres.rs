//! The same on PostgreSQL: rows are copied with other ids, earlier times and earlier places in the order. The originals stay.

use anyhow::{Context, Result, ensure};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::PERIOD;

/// The turns to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Settled ones. Their conversations get more turns, at earlier times.
    Settled,
    /// Those that wait for a run, with their conversations: in each, one waits.
    Waiting,
}

/// A table, the columns that contain ids of what is copied, and the condition of the rows that belong to the originals.
type Table = (&'static str, &'static [&'static str], &'static str);

/// What belongs to a settled turn, and is copied on SQLite, too.
const OF_SETTLED: [Table; 7] = [
    ("events", &["id", "turn_id"], "turn_id in (select id from original)"),
    ("turns", &["id"], "id in (select id from original)"),
    ("runs", &[], "run >> 16 in (select seq from original)"),
    ("deliveries", &["id", "turn_id"], "turn_id in (select id from original)"),
    (
        "attempts",
        &["delivery_id"],
        "delivery_id in (select d.id from deliveries as d join original on original.id = d.turn_id)",
    ),
    ("transcript", &["turn_id"], "turn_id in (select id from original)"),
    ("remarks", &["turn_id"], "turn_id in (select id from original)"),
];

/// What belongs to a turn that waits for its first run.
const OF_WAITING: [Table; 4] = [
    ("conversations", &["id", "session_id"], "id in (select conversation_id from original)"),
    ("sessions", &["id", "conversation_id"], "id in (select session_id from original)"),
    ("events", &["id", "turn_id"], "turn_id in (select id from original)"),
    ("turns", &["id", "conversation_id", "session_id"], "id in (select id from original)"),
];

impl Which {
    const fn tables(self) -> &'static [Table] {
        match self {
            Self::Settled => &OF_SETTLED,
            Self::Waiting => &OF_WAITING,
        }
    }

    /// Selects the originals.
    const fn condition(self) -> &'static str {
        match self {
            Self::Settled => "state = 'settled'",
            Self::Waiting => {
                "work = 'waiting' and place is not null and not exists (
                    select 1 from runs as r where r.run between turns.seq << 16 and turns.seq << 16 | 65535)"
            }
        }
    }
}

/// Gives what is accepted from now on places from `first` on, so that there is room for those of copies before them.
///
/// # Errors
///
/// When it is not the database of a gateway.
pub(crate) async fn begin_at(connection: &mut PgConnection, first: i64) -> Result<()> {
    for sequence in ["turn_seq", "event_seq", "claim_seq"] {
        sqlx::query("select setval($1::regclass, $2)").bind(sequence).bind(first).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Copies turns until there are `wanted` or a few more. No gateway uses the database. `connection` is a superuser's, as foreign keys are
/// not checked. `first` is where the places of the originals [begin](begin_at). Returns their number.
///
/// # Errors
///
/// When it is not the database of a gateway, or there are no such turns.
pub(crate) async fn multiply(connection: &mut PgConnection, which: Which, wanted: u64, first: i64) -> Result<u64> {
    let turns = copy_all(connection, which, i64::try_from(wanted)?, first).await;
    let turns = turns.with_context(|| format!("cannot multiply turns on PostgreSQL: {which:?}"))?;
    connection.execute("vacuum analyze").await?;
    Ok(u64::try_from(turns)?)
}

async fn copy_all(connection: &mut PgConnection, which: Which, wanted: i64, first: i64) -> Result<i64> {
    let mut transaction = connection.begin().await?;
    transaction.execute("set local session_replication_role = replica").await?;
    transaction.execute("set local maintenance_work_mem = '512MB'").await?;
    let original = format!(
        "create temp table original on commit drop as
         select id, seq, conversation_id, session_id, ended_at - accepted_at as took from turns where {}",
        which.condition()
    );
    transaction.execute(AssertSqlSafe(original)).await?;
    let (turns, length, last): (i64, i64, Option<i64>) = sqlx::query_as(LOOK).fetch_one(&mut *transaction).await?;
    ensure!(turns > 0, "there are none");
    // Not the distance between the originals: turns beside them that are not copied have places, too, such as those that ran.
    let steps = last.unwrap_or(first) - first + 1;
    ensure!(steps > 0, "they have places before {first}");
    let copies = (wanted.max(1) - 1) / turns;
    let apart = if which == Which::Settled { PERIOD / (copies + 1) } else { 0 };
    ensure!(apart == 0 || length < apart, "the turns took {length} ms: their copies would overlap");
    transaction.execute(AssertSqlSafe(COPY_OF.replace("APART", &apart.to_string()))).await?;

    // Written at once at the end, indexes take a fraction of the time.
    let names: Vec<_> = which.tables().iter().map(|(table, ..)| (*table).to_owned()).collect();
    let indexes: Vec<(String, String)> = sqlx::query_as(INDEXES).bind(names).fetch_all(&mut *transaction).await?;
    for (name, _) in &indexes {
        transaction.execute(AssertSqlSafe(format!("drop index {name}"))).await?;
    }
    for (table, ids, condition) in which.tables() {
        let columns: Vec<(String, bool, bool)> =
            sqlx::query_as(COLUMNS).bind(*table).fetch_all(&mut *transaction).await?;
        let (columns, values) = values(which, table, ids, &columns, &Spacing { apart, steps });
        let copy = format!(
            "insert into {table} ({columns})
             select {values} from generate_series(1::bigint, {copies}) as copy cross join {table} as o
             where o.{condition}"
        );
        transaction.execute(AssertSqlSafe(copy)).await?;
    }
    for (_, sql) in indexes {
        transaction.execute(AssertSqlSafe(sql)).await?;
    }
    transaction.commit().await?;
    Ok(turns * (copies + 1))
}

/// How copies differ.
struct Spacing {
    /// In milliseconds.
    apart: i64,
    /// The distance in the order of events, turns and deliveries.
    steps: i64,
}

/// The columns of a table, of which it is known whether they are numbers and whether the database gives them out, and their values in a
/// copy, in SQL. There, `copy` counts from the latest one, and `o` is the original.
fn values(
    which: Which,
    table: &str,
    ids: &[&str],
    columns: &[(String, bool, bool)],
    spacing: &Spacing,
) -> (String, String) {
    let Spacing { apart, steps } = spacing;
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (name, is_number, is_given_out) in columns {
        let value = match &**name {
            _ if *is_given_out => continue,
            id if ids.contains(&id) => format!("pg_temp.copy_of(o.{id}, copy)"),
            "run" => format!("o.run - (copy * {steps} << 16)"),
            "seq" if table == "deliveries" => format!("o.seq - (copy * {steps} << 16)"),
            "seq" | "rank" | "place" | "event" => format!("o.{name} - copy * {steps}"),
            "external_id" => "o.external_id || '-' || copy".to_owned(),
            // Who writes to a hook is their conversation.
            "chat" | "person" if which == Which::Waiting => format!("o.{name} || '-' || copy"),
            _ if *is_number && (name == "at" || name.ends_with("_at")) => format!("o.{name} - copy * {apart}"),
            _ => format!("o.{name}"),
        };
        names.push(name.as_str());
        values.push(value);
    }
    (names.join(", "), values.join(", "))
}

/// The id of a copy: the milliseconds before the original's with which a UUIDv7 begins, and other last bits.
const COPY_OF: &str = "
    create or replace function pg_temp.copy_of(id uuid, copy bigint) returns uuid language sql immutable as $$
        select (
            lpad(to_hex(
                ('x' || left(id::text, 8) || substr(id::text, 10, 4))::bit(48)::bigint - copy * APART), 12, '0')
            || substr(id::text, 14, 15)
            || lpad(to_hex(('x' || right(id::text, 8))::bit(32)::bigint # copy), 8, '0'))::uuid
    $$";

/// The number of the originals, the longest of them in milliseconds, and the last of their places.
const LOOK: &str = "
    select count(*), coalesce(max(took), 0)::bigint, greatest(
        max(seq),
        (select max(e.seq) from events as e join original as o on o.id = e.turn_id),
        (select max(d.seq) >> 16 from deliveries as d join original as o on o.id = d.turn_id))
    from original";

/// Those that belong to no constraint.
const INDEXES: &str = "
    select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
    from pg_index as i join pg_class as t on t.oid = i.indrelid
    where t.relname = any($1) and t.relnamespace = 'public'::regnamespace
        and not exists (select 1 from pg_constraint as c where c.conindid = i.indexrelid)";

const COLUMNS: &str = "
    select column_name::text, data_type = 'bigint', is_identity = 'YES'
    from information_schema.columns
    where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'
    order by ordinal_position";

#[cfg(test)]
mod tests {
    use super::*;

    /// The columns and values of a copy, of columns with these names. Those that end with `#` are no numbers.
    fn copied(which: Which, table: &str, ids: &[&str], names: &[&str]) -> (String, String) {
        let column = |name: &&str| (name.trim_end_matches('#').to_owned(), !name.ends_with('#'), false);
        let columns: Vec<_> = names.iter().map(column).collect();
        values(which, table, ids, &columns, &Spacing { apart: 5, steps: 7 })
    }

    #[test]
    fn copies_of_settled_turns_are_earlier_in_the_same_conversations() {
        let names = ["seq", "id#", "conversation_id#", "ended_at", "place", "person#"];
        let (columns, values) = copied(Which::Settled, "turns", &["id"], &names);
        assert_eq!(columns, "seq, id, conversation_id, ended_at, place, person");
        assert_eq!(
            values,
            "o.seq - copy * 7, pg_temp.copy_of(o.id, copy), o.conversation_id, o.ended_at - copy * 5, o.place - copy * 7, \
             o.person"
        );
        let (_, values) = copied(Which::Settled, "deliveries", &[], &["seq", "created_at"]);
        assert_eq!(values, "o.seq - (copy * 7 << 16), o.created_at - copy * 5");
    }

    #[test]
    fn copies_of_waiting_turns_have_conversations_of_their_own() {
        let (_, values) = copied(Which::Waiting, "conversations", &["id", "session_id"], &["id#", "chat#"]);
        assert_eq!(values, "pg_temp.copy_of(o.id, copy), o.chat || '-' || copy");
        let (_, values) = copied(Which::Waiting, "turns", &["conversation_id"], &["conversation_id#", "person#"]);
        assert_eq!(values, "pg_temp.copy_of(o.conversation_id, copy), o.person || '-' || copy");
    }

    #[test]
    fn what_the_database_gives_out_is_not_copied() {
        let columns = [("id".to_owned(), true, true), ("at".to_owned(), true, false)];
        let spacing = Spacing { apart: 5, steps: 7 };
        let copied = values(Which::Settled, "remarks", &["turn_id"], &columns, &spacing);
        assert_eq!(copied, ("at".to_owned(), "o.at - copy * 5".to_owned()));
    }
}
