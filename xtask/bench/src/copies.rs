//! Multiplies the settled turns of a store: rows are copied with other ids, earlier times and other places in the order.
//!
//! Which columns those are follows from their names and types, so that a new column or table needs no change here.

pub(crate) mod postgres;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, functions::FunctionFlags};
use uuid::Uuid;

/// How long ago the first copy was accepted, in milliseconds: three days, so that nothing is old enough to be removed.
const PERIOD: i64 = 3 * 24 * 60 * 60 * 1000;

/// What belongs to one turn, with the columns that contain its ids. Conversations and sessions are not copied: a
/// conversation gets more turns.
const TABLES: [(&str, &[&str]); 7] = [
    ("events", &["id", "turn_id"]),
    ("turns", &["id"]),
    ("runs", &[]),
    ("deliveries", &["id", "turn_id"]),
    ("attempts", &["delivery_id"]),
    ("transcript", &["turn_id"]),
    ("remarks", &["turn_id"]),
];

/// Copies all turns in a database that no process has open, until there are `wanted` or a few more. Conversations and their
/// order stay plausible: each copy is a period before the next. Returns the number of turns.
///
/// # Errors
///
/// When it is not the database of a gateway, or a turn in it is not settled.
pub(crate) fn multiply(database: &Path, wanted: u64) -> Result<u64> {
    let multiplied = || -> Result<u64> {
        let mut connection = Connection::open(database)?;
        // If the machine fails meanwhile, the bench makes another store.
        connection.execute_batch(
            "pragma journal_mode = off; pragma synchronous = off; pragma foreign_keys = off;
             pragma temp_store = memory; pragma cache_size = -500000;",
        )?;
        connection.create_scalar_function(
            "id_earlier_by",
            2,
            FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC,
            |arguments| Ok(earlier(arguments.get(0)?, arguments.get(1)?)),
        )?;
        let transaction = connection.transaction()?;
        let turns = copy_all(&transaction, wanted)?;
        transaction.commit()?;
        Ok(turns)
    };
    multiplied().with_context(|| format!("cannot multiply the turns in {}", database.display()))
}

fn copy_all(connection: &Connection, wanted: u64) -> Result<u64> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let turns = number("select count(*) from turns")?;
    ensure!(turns > 0, "it has no turns");
    let open = number("select count(*) from turns where state <> 'settled'")?;
    ensure!(open == 0, "{open} turns are not settled");
    let copies = (i64::try_from(wanted)?.max(1) - 1) / turns + 1;
    let apart = PERIOD / copies;
    let length = number("select max(ended_at) - min(accepted_at) from turns")?;
    ensure!(length < apart, "its turns took {length} ms: their copies would overlap");
    let steps = number(
        "select max(seq) from (select seq from events union all select seq from turns union all select seq from deliveries)",
    )?;
    let spacing = Spacing { copies, apart, steps };

    // Written at once at the end, indexes take a fraction of the time.
    let mut indexes =
        connection.prepare("select name, sql from sqlite_schema where type = 'index' and sql is not null")?;
    let indexes: Vec<(String, String)> =
        indexes.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    for (name, _) in &indexes {
        connection.execute_batch(&format!("drop index {name}"))?;
    }
    for (table, ids) in TABLES {
        let (columns, values) = columns(connection, table, ids, &spacing)?;
        connection.execute_batch(&format!(
            "create temp table original as select * from main.{table}; delete from main.{table}"
        ))?;
        let copy = format!(
            "with recursive copies (copy) as (select 0 union all select copy + 1 from copies where copy + 1 < {copies})
             insert into main.{table} ({columns}) select {values} from copies cross join temp.original"
        );
        connection.execute_batch(&copy)?;
        connection.execute_batch("drop table temp.original")?;
    }
    for (_, sql) in &indexes {
        connection.execute_batch(sql)?;
    }
    Ok(u64::try_from(turns * copies)?)
}

/// How copies differ.
struct Spacing {
    copies: i64,
    /// In milliseconds.
    apart: i64,
    /// The distance in the order of events, turns and deliveries.
    steps: i64,
}

/// The columns of a table, and their values in a copy, in SQL. There, `copy` counts from the oldest one.
fn columns(connection: &Connection, table: &str, ids: &[&str], spacing: &Spacing) -> Result<(String, String)> {
    let Spacing { copies, apart, steps } = spacing;
    let earlier_by = format!("({copies} - 1 - copy) * {apart}");
    let mut query = connection.prepare("select name, type from pragma_table_info(?) order by cid")?;
    let all: Vec<(String, String)> =
        query.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    ensure!(!all.is_empty(), "it has no table `{table}`");
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (name, kind) in all {
        let is_number = kind.eq_ignore_ascii_case("integer");
        let value = match &*name {
            _ if ids.contains(&&*name) => format!("id_earlier_by({name}, {earlier_by})"),
            // A number that the database gives out.
            "id" if is_number => continue,
            "seq" | "rank" | "event" => format!("{name} + copy * {steps}"),
            "run" => format!("{name} + (copy * {steps} << 16)"),
            "external_id" => format!("{name} || '-' || copy"),
            _ if is_number && (name == "at" || name.ends_with("_at")) => format!("{name} - {earlier_by}"),
            _ => name.clone(),
        };
        names.push(name);
        values.push(value);
    }
    Ok((names.join(", "), values.join(", ")))
}

/// The UUIDv7 that is this many milliseconds before another.
fn earlier(id: Uuid, by: u64) -> Uuid {
    /// The bits after the timestamp.
    const REST: u32 = 80;
    let value = id.as_u128();
    let time = (value >> REST).saturating_sub(u128::from(by));
    Uuid::from_u128(time << REST | value & ((1 << REST) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_id_differs_only_in_its_time() {
        let id = Uuid::parse_str("01a204af-60e1-725c-95a5-f8ea42a667c4").expect("an id");
        assert_eq!(earlier(id, 0xe1).to_string(), "01a204af-6000-725c-95a5-f8ea42a667c4");
    }

    /// A database with the gateway's schema and one turn.
    fn store() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rejoinder.db");
        let connection = Connection::open(&path).expect("a database");
        for version in [
            include_str!("../../../migrations/sqlite/0001_initial.sql"),
            include_str!("../../../migrations/sqlite/0026_members.sql"),
            include_str!("../../../migrations/sqlite/0033_run_holders.sql"),
            include_str!("../../../migrations/sqlite/0039_one_row.sql"),
        ] {
            connection.execute_batch(version).expect("the schema");
        }
        connection
            .execute_batch(
                "pragma foreign_keys = off;
                 insert into events (seq, id, channel, chat, thread, external_id, revision, turn_id, received_at)
                 values (1, x'01a204af60e17000800000000000000a', 'webhook.a', 'c', '', 'e', 0,
                         x'01a204af60e17000800000000000000b', 1795374932193);
                 insert into turns (id, seq, event, conversation_id, session_id, agent, accepted_at, channel, owed, state,
                                    ended_at, rank)
                 values (x'01a204af60e17000800000000000000b', 1, 1, x'0c', x'0d', 'a', 1795374932193, 'webhook.a', 1,
                         'settled', 1795374932203, 1);
                 insert into runs (run, agent, owner, started_at) values (1 << 16 | 1, 'a', x'0e', 1795374932193);
                 insert into remarks (turn_id, at, kind, detail)
                 values (x'01a204af60e17000800000000000000b', 1795374932203, 'k', 'd');",
            )
            .expect("a turn");
        (folder, path)
    }

    #[test]
    fn copies_are_whole_turns_in_order() {
        let (_folder, path) = store();

        assert_eq!(multiply(&path, 3).expect("copies"), 3);

        let connection = Connection::open(&path).expect("a database");
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql);
        let whole = "select count(*) from turns as t join events as e on e.seq = t.event and e.turn_id = t.id
                     join remarks as a on a.turn_id = t.id join runs as r on r.run = t.seq << 16 | 1
                     where e.received_at = t.accepted_at and t.ended_at = t.accepted_at + 10 and t.rank = t.seq
                         and r.started_at = t.accepted_at";
        assert_eq!(number(whole), 3);
        assert_eq!(number("select count(*) from turns as a join turns as b on b.seq > a.seq and b.id > a.id"), 3);
        assert_eq!(number("select max(accepted_at) from turns"), 1_795_374_932_193);
        assert_eq!(number("select count(*) from sqlite_schema where name = 'turns_of_channel'"), 1);
    }

    #[test]
    fn a_turn_that_is_not_settled_is_not_copied() {
        let (_folder, path) = store();
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch("update turns set state = 'open'").expect("an update");

        let error = multiply(&path, 3).expect_err("it is open");

        assert!(format!("{error:#}").contains("1 turns are not settled"), "{error:#}");
    }
}
