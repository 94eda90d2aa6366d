//! How many rows statements read, and how many statements there are.

use std::time::{Duration, Instant};

use rejoinder_core::{
    CancelledBy, Clock, NodeId, Policy, SessionId, SystemClock, Timestamp, TurnId,
    store::{
        Commit, InboxStore, LogEvent, NewLogEntry, RunStart, SessionStore, StoreState, Stored, Subject, Transition,
        Transitions, TurnChange,
    },
};
use rejoinder_guard::Event;
use rejoinder_store::PostgresStore;
use sqlx::{Executor, PgConnection};
use uuid::Uuid;

use crate::common::{Database, new_turn, open};

/// Four sessions with a thousand turns each, a message and an answer of each turn, and slots of other conversations.
const FILL: &str = "
    create function pg_temp.id(bigint) returns uuid immutable language sql as
        $$ select ('00000000-0000-0000-0000-' || lpad($1::text, 12, '0'))::uuid $$;
    insert into turns (
        seq, id, conversation_id, session_id, agent, accepted_at, channel, event, person, next_agent, version, owed, state, rank, body)
    select 10000 + n, pg_temp.id(n), pg_temp.id(n % 4), pg_temp.id(n % 4), 'main', n, 'test.main', n, 'ann', 'main', 1, false,
        'settled', 0, '{}'
    from generate_series(1, 4000) as n;
    insert into transcript (session_id, seq, claim, turn_id, speaker, text, at)
    select pg_temp.id(n % 4), 10000 + n, claim, pg_temp.id(n), case claim when 0 then 'person' else 'agent' end, 'hi', n
    from generate_series(1, 4000) as n cross join generate_series(0, 1) as claim;
    insert into deliveries (
        seq, id, turn_id, claim, part, parts, conversation_id, channel, class, signal, via, is_copy, action, state, attempts,
        next_attempt_at, parked, message_ids, created_at)
    select n << 16, pg_temp.id(n), pg_temp.id(n), 1, 1, 1, pg_temp.id(n % 4), 'test.main', 'final', 'reply', '{}', false, '{}',
        'delivered', 1, 0, false, '[]', 0
    from generate_series(1, 4000) as n;
    insert into slots (conversation_id) select pg_temp.id(n) from generate_series(10001, 14000) as n";

/// The rows and index entries that were read so far. A connection reports them when it ends, at the latest.
const READ: &str = "
    with tables (name) as (values ('turns'), ('transcript'), ('deliveries'), ('slots'))
    select ((select sum(seq_tup_read) from pg_stat_user_tables where relname in (select name from tables))
        + (select sum(idx_tup_read) from pg_stat_user_indexes where relname in (select name from tables)))::bigint";

const CONNECTIONS: &str = "
    select count(*) from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()";

/// Counts the statements that mark answers as fetched.
const COUNT_MARKS: &str = "
    create sequence marks;
    create function count_mark() returns trigger language plpgsql as $$
        begin
            perform nextval('marks');
            return null;
        end $$;
    create trigger count_mark after update of fetched_at on deliveries for each statement execute function count_mark()";

/// Makes each look at the transactions of others take 20 ms, on new connections.
const SLOW_LOOKS: &str = "
    create function public.pg_stat_get_activity(asked integer)
    returns table (datid oid, pid integer, application_name text, backend_xid xid) language sql as $$
        select a.datid, a.pid, a.application_name, a.backend_xid
        from pg_sleep(0.02), pg_catalog.pg_stat_get_activity(asked) as a $$;
    do $$ begin
        execute format('alter database %I set search_path = public, pg_catalog', current_database());
    end $$";

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("it is read")
}

async fn last_lines(store: &PostgresStore, session: u128) -> usize {
    store.transcript(SessionId::from(Uuid::from_u128(session)), 20).await.expect("it is read").len()
}

/// How many rows the last lines of a long session take. Closes the store.
async fn rows_of_last_lines(store: &PostgresStore, elsewhere: &mut PgConnection) -> i64 {
    rows_read(store, elsewhere, async { assert_eq!(last_lines(store, 3).await, 20) }).await
}

async fn open_turn(store: &PostgresStore, key: &str) {
    let stored = store.accept(vec![new_turn(key)], None).await.expect("it is accepted");
    assert!(matches!(stored[..], [Stored::Turn { .. }]), "{stored:?}");
}

/// How many rows `work` reads. Closes the store.
async fn rows_read(store: &PostgresStore, elsewhere: &mut PgConnection, work: impl Future<Output = ()>) -> i64 {
    let before = number(elsewhere, READ).await;
    work.await;
    store.close().await;
    let closed = Instant::now();
    while number(elsewhere, CONNECTIONS).await > 0 {
        assert!(closed.elapsed() < Duration::from_mins(1), "its connections end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    number(elsewhere, READ).await - before
}

/// Neither the rest of the session nor all turns are read, whatever statistics the server has when it plans the statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_long_session_only_the_last_lines_are_read() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    assert_eq!(last_lines(&database.store, 3_000_000).await, 0);
    elsewhere.execute(FILL).await.expect("the tables are filled");

    let planned_while_empty = rows_of_last_lines(&database.store, &mut elsewhere).await;
    let without_statistics = rows_of_last_lines(&open(&database.url).await, &mut elsewhere).await;
    elsewhere.execute("analyze").await.expect("there are statistics");
    let with_statistics = rows_of_last_lines(&open(&database.url).await, &mut elsewhere).await;

    // Some are read more than once.
    let read = [planned_while_empty, without_statistics, with_statistics];
    assert!(read.iter().all(|rows| (20..200).contains(rows)), "{read:?}");
}

/// Not the lines of other sessions, although the first plans are made while there are none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_open_a_turn_little_is_read() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere) = (&database.store, database.elsewhere().await);
    // Each lane plans its statements while the tables are empty.
    for key in ["1", "2", "3", "4"] {
        open_turn(store, key).await;
    }
    elsewhere.execute(FILL).await.expect("the tables are filled");

    let read = rows_read(store, &mut elsewhere, open_turn(store, "5")).await;

    assert!(read < 200, "{read} rows");
}

/// The slot is found by its key, without a scan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_end_a_run_little_is_read() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere) = (&database.store, database.elsewhere().await);
    elsewhere.execute(FILL).await.expect("the tables are filled");
    elsewhere.execute("analyze").await.expect("there are statistics");
    let (now, policy, mut new) = (SystemClock.now(), Policy::default(), new_turn("1"));
    let turn = new.turn.as_mut().expect("it has a turn");
    let (id, handler, node) = (turn.id, turn.handler.clone(), NodeId::new(now));
    let _ = turn.obligation.on(Event::Begin, &policy, now);
    turn.run = Some(RunStart { turn: id, number: 1, handler, node, at: now });
    let mut obligation = turn.obligation.clone();
    let _ = obligation.on(Event::Cancelled { by: CancelledBy::Deletion }, &policy, now);
    let turns = vec![TurnChange { turn: id, expected: 1, obligation, at: now }];

    let read = rows_read(store, &mut elsewhere, async {
        store.accept(vec![new], None).await.expect("it is accepted");
        let ended = store.commit(Transition { turns, ..Transition::default() }).await;
        assert_eq!(ended.expect("it is written"), Commit::Done);
    });

    let read = read.await;
    assert!(read < 200, "{read} rows");
}

/// I3. Each turn of a hook has such a mark.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_fetched_are_marked_together() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    elsewhere.execute(FILL).await.expect("the tables are filled");
    elsewhere.execute(COUNT_MARKS).await.expect("statements are counted");
    for at in [1, 2] {
        for turn in 1..=9 {
            database.store.mark_fetched(TurnId::from(Uuid::from_u128(turn)), Timestamp::from_millis(at));
        }
    }

    database.store.close().await;

    let fetched = "select count(*) filter (where fetched_at = 1) * 100 + count(fetched_at) from deliveries";
    assert_eq!(number(&mut elsewhere, fetched).await, 909, "each once, at the first time");
    let statements = number(&mut elsewhere, "select last_value from marks").await;
    assert!(statements < 5, "{statements} statements");
}

/// While many write, a renewal waits for their transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_log_is_read_seldom_while_that_takes_long() {
    let Some(database) = Database::new().await else { return };
    database.elsewhere().await.execute(SLOW_LOOKS).await.expect("looks are slow");
    let store = open(&database.url).await;
    let mut logged = store.logged();
    logged.borrow_and_update();
    let (begun, mut renewals) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_millis(600) {
        let entry = NewLogEntry { at: SystemClock.now(), subject: Subject::default(), event: LogEvent::ChannelUp };
        let transition = Transition { log: vec![entry], ..Transition::default() };
        store.commit(transition).await.expect("it is written");
        if logged.has_changed().expect("the store is open") {
            logged.borrow_and_update();
            renewals += 1;
        }
    }

    let most = begun.elapsed().as_millis() / 120 + 1;
    assert!((1..=most).contains(&renewals), "{renewals} renewals");
}
