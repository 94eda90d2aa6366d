//! What becomes of writes when connections are lost, or others are in the way.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rejoinder_core::{
    Clock, NodeId, StoreError, StoredFile, SystemClock, TurnId,
    store::{
        Beside, Commit, FileStore, Granted, HousekeepingStore, InboxStore, LeaseName, LogFilter, LogStore, NewEvent,
        NewFile, NodeReport, NodeStore, Remark, StoreState, Stored, Transition, Transitions, TurnStore,
    },
};
use rejoinder_store::{PostgresOptions, PostgresStore};
use sqlx::{AssertSqlSafe, Executor, PgConnection};

use crate::{
    common::{Database, new_turn, open, set_recovery},
    proxy::{Loss, Proxy},
};

/// Connections of the store in the database of the connection.
macro_rules! connections {
    ($what:literal, $condition:literal) => {
        concat!(
            "select ",
            $what,
            " from pg_stat_activity
            where datname = current_database() and starts_with(application_name, 'rejoinder') and ",
            $condition
        )
    };
}

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.expect("it is read")
}

/// Waits until a statement finds a number that is not 0, or is 0.
async fn wait_for(connection: &mut PgConnection, sql: &'static str, is_zero: bool) {
    let begun = Instant::now();
    while (number(connection, sql).await == 0) != is_zero {
        assert!(begun.elapsed() < Duration::from_mins(1), "{sql}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Has both lanes of a store connect.
async fn connect_lanes(store: &PostgresStore, elsewhere: &mut PgConnection) {
    let lanes = connections!("count(*)", "starts_with(application_name, 'rejoinder-writer')");
    while number(elsewhere, lanes).await < 2 {
        let (one, other) = tokio::join!(store.probe(), store.probe());
        one.and(other).expect("it writes");
    }
}

/// Waits until a store knows that writes fail.
async fn wait_for_trouble(store: &PostgresStore) {
    let begun = Instant::now();
    while store.trouble().is_none() {
        assert!(begun.elapsed() < Duration::from_mins(1), "writes do not fail");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn accept(store: &PostgresStore, event: NewEvent) -> Stored {
    store.accept(vec![event], None).await.expect("the event is accepted").remove(0)
}

fn id(event: &NewEvent) -> TurnId {
    event.turn.as_ref().expect("it has a turn").id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_not_repeated() {
    let Some(database) = Database::new().await else { return };
    let proxy = Proxy::start(&database.url);
    let store = open(&proxy.url).await;
    let event = new_turn("1");

    proxy.lose(Loss::Answer);
    let stored = accept(&store, event.clone()).await;

    assert!(!proxy.is_waiting());
    // A second try would find the event of the first one.
    assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    assert!(database.store.turn(id(&event)).await.expect("turns are read").is_some());
    assert!(store.trouble().is_none());
    store.close().await;
}

/// A standby shows less than what was committed, until it has repeated all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whether_a_change_was_committed_is_not_asked_of_a_standby() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let proxy = Proxy::start(&database.url);
    let store = Arc::new(open(&proxy.url).await);
    connect_lanes(&store, &mut elsewhere).await;

    proxy.lose(Loss::Answer);
    set_recovery(&mut elsewhere, true).await;
    let accepting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { accept(&store, new_turn("1")).await }
    });
    wait_for_trouble(&store).await;
    assert!(!accepting.is_finished());
    set_recovery(&mut elsewhere, false).await;

    let stored = accepting.await.expect("it ends");
    assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    store.close().await;
}

/// The name of the only server may lead to a standby for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_read_from_a_standby() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let turn = TurnId::new(SystemClock.now());

    set_recovery(&mut elsewhere, true).await;
    let refused = database.store.turn(turn).await;

    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    set_recovery(&mut elsewhere, false).await;
    assert!(database.store.turn(turn).await.expect("it reads").is_none());
}

/// The end of a lost connection has ended its wait for a synchronous standby. Another one that waits stands for all that are later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_answer_is_lost_is_not_stored_before_a_later_one_is() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let proxy = Proxy::start(&database.url);
    let store = Arc::new(open(&proxy.url).await);
    connect_lanes(&store, &mut elsewhere).await;
    let refuse = "
        create function refuse() returns trigger language plpgsql as $$ begin
            raise exception 'no standby confirms it' using errcode = '53000';
        end $$;
        create trigger refuse before update on writers for each row when (new.batch = old.batch)
            execute function refuse();";
    elsewhere.execute(refuse).await.expect("it is made");

    proxy.lose(Loss::Answer);
    let accepting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { accept(&store, new_turn("1")).await }
    });
    wait_for_trouble(&store).await;
    assert!(!accepting.is_finished());
    elsewhere.execute("drop trigger refuse on writers").await.expect("it is removed");

    let stored = accepting.await.expect("it ends");
    assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_refused_while_no_lane_knows_whether_its_last_one_was_committed() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let proxy = Proxy::start(&database.url);
    let store = Arc::new(open(&proxy.url).await);
    connect_lanes(&store, &mut elsewhere).await;

    proxy.cut(true);
    let accepting = ["1", "2"].map(|key| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { accept(&store, new_turn(key)).await })
    });
    wait_for(&mut elsewhere, "select (count(*) = 2)::int::bigint from turns", false).await;
    wait_for_trouble(&store).await;
    let refused = tokio::time::timeout(Duration::from_secs(5), store.accept(vec![new_turn("3")], None)).await;
    assert!(matches!(refused, Ok(Err(StoreError::Unavailable(_)))), "{refused:?}");
    proxy.cut(false);

    for accepting in accepting {
        let stored = accepting.await.expect("it ends");
        assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    }
    store.close().await;
}

/// The store goes on when the database is back, and what it was asked to write is written once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_of_unknown_fate_if_the_database_does_not_come_back() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let proxy = Proxy::start(&database.url);
    let store = open(&proxy.url).await;
    connect_lanes(&store, &mut elsewhere).await;
    let event = new_turn("1");

    proxy.cut(true);
    let unknown = store.accept(vec![event.clone()], None).await;
    assert!(matches!(unknown, Err(StoreError::Unknown(_))), "{unknown:?}");
    proxy.cut(false);

    let begun = Instant::now();
    let again = loop {
        match store.accept(vec![event.clone()], None).await {
            Ok(mut stored) => break stored.remove(0),
            Err(error) => assert!(begun.elapsed() < Duration::from_mins(1), "{error}"),
        }
    };
    assert!(matches!(again, Stored::Duplicate { turn, .. } if turn == Some(id(&event))), "{again:?}");
    store.close().await;
}

/// The lease has ended by then: what the holder writes is stored before another node has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_not_taken_before_what_is_written_under_it_is_stored() {
    let Some(database) = Database::new().await else { return };
    let (mut lock, mut elsewhere) = (database.elsewhere().await, database.elsewhere().await);
    let [one, other] = [(); 2].map(|()| NodeId::new(SystemClock.now()));
    let wanted = [LeaseName::Housekeeper];
    let Granted::These(leases) = database.store.take_leases(one, &wanted).await.expect("leases are taken") else {
        panic!("leases end")
    };
    let fence = (LeaseName::Housekeeper, leases[0].fence);
    let accept = |key| database.store.accept(vec![new_turn(key)], Some(Beside::Lease(fence.clone())));
    let same_key = "
        begin;
        insert into events (seq, id, channel, chat, thread, external_id, revision, received_at)
        values (0, gen_random_uuid(), 'test.main', '', '', '1', 0, 0)";
    lock.execute(same_key).await.expect("it is inserted");
    let end_of_lease = async {
        wait_for(&mut elsewhere, connections!("count(*)", "wait_event_type = 'Lock'"), false).await;
        let end = "update leases set until = clock_timestamp() - interval '1 second'";
        elsewhere.execute(end).await.expect("the holder's lock does not stop it");
        let two = connections!("(count(*) = 2)::int::bigint", "wait_event_type = 'Lock'");
        wait_for(&mut elsewhere, two, false).await;
        lock.execute("rollback").await.expect("it is unlocked");
    };
    let take = async {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < Duration::from_mins(1), "it is not taken");
            match database.store.take_leases(other, &wanted).await {
                Ok(Granted::These(leases)) if leases.is_empty() => tokio::time::sleep(Duration::from_millis(5)).await,
                taken => break taken.expect("leases are taken"),
            }
        }
    };

    let (stored, (), taken) = tokio::join!(accept("1"), end_of_lease, take);

    assert!(matches!(stored.as_deref(), Ok([Stored::Turn { .. }])), "{stored:?}");
    assert!(matches!(&taken, Granted::These(leases) if leases[0].fence > fence.1), "{taken:?}");
    let late = accept("2").await;
    assert!(matches!(late, Err(StoreError::NotOwner)), "{late:?}");
}

/// The server still works for the lost connection: without an end of that, the second try would wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_lost_is_repeated() {
    let Some(database) = Database::new().await else { return };
    let proxy = Proxy::start(&database.url);
    let store = open(&proxy.url).await;
    let event = new_turn("1");

    proxy.lose(Loss::Commit);
    let begun = Instant::now();
    let stored = accept(&store, event.clone()).await;

    assert!(!proxy.is_waiting());
    assert!(matches!(stored, Stored::Turn { .. }), "{stored:?}");
    assert!(database.store.turn(id(&event)).await.expect("turns are read").is_some());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    store.close().await;
}

/// One of a lane that commits by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_written_once_if_it_is_lost_or_its_answer() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let proxy = Proxy::start(&database.url);
    let store = open(&proxy.url).await;
    let event = new_turn("1");
    accept(&store, event.clone()).await;

    for (loss, number_of_remarks) in [(Loss::Answer, 1), (Loss::Commit, 2)] {
        proxy.lose(loss);
        let (kind, detail) = ("noted".to_owned(), format!("{loss:?}"));
        let remarks = vec![Remark { turn: id(&event), at: SystemClock.now(), kind, detail }];
        let committed = store.commit(Transition { remarks, ..Transition::default() }).await;

        assert!(!proxy.is_waiting());
        assert!(matches!(committed, Ok(Commit::Done)), "{committed:?}");
        assert_eq!(number(&mut elsewhere, "select count(*) from remarks").await, number_of_remarks);
    }
    assert!(store.trouble().is_none());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_closed_while_nothing_was_written_is_replaced() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    database.store.probe().await.expect("it writes");

    let ended = connections!("count(*) filter (where pg_terminate_backend(pid, 10000))", "true");
    assert!(number(&mut elsewhere, ended).await > 0);

    for _ in 0..4 {
        database.store.probe().await.expect("it writes");
    }
    assert!(database.store.trouble().is_none());
}

/// As after a restart of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_go_on_when_all_idle_connections_were_closed() {
    let Some(database) = Database::new().await else { return };
    let (store, mut elsewhere) = (&database.store, database.elsewhere().await);
    let (now, turn) = (SystemClock.now(), TurnId::new(SystemClock.now()));
    let (name, version) = ("machine".to_owned(), "1.0.0".to_owned());
    let (channels, agents, downs) = Default::default();
    let (node, revision, draining) = (NodeId::new(now), None, false);
    let report = NodeReport { node, name, version, revision, draining, channels, agents, downs, now };
    let read = async || {
        let (one, other, lost) = tokio::join!(store.turn(turn), store.turn(turn), store.heartbeat(&report, &[]));
        one.and(other).map(drop).and(lost).expect("the database answers");
    };
    read().await;

    let ended = connections!("count(*) filter (where pg_terminate_backend(pid, 10000))", "true");
    assert!(number(&mut elsewhere, ended).await > 0);

    for _ in 0..3 {
        read().await;
    }
}

/// Its heartbeats tell it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_writes_nothing_notices_an_outage_and_its_end() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let proxy = Proxy::start(&database.url);
    let (store, now) = (open(&proxy.url).await, SystemClock.now());
    let (name, version) = ("machine".to_owned(), "1.0.0".to_owned());
    let (channels, agents, downs) = Default::default();
    let (node, revision, draining) = (NodeId::new(now), None, false);
    let report = NodeReport { node, name, version, revision, draining, channels, agents, downs, now };
    store.heartbeat(&report, &[]).await.expect("the database answers");
    assert!(store.trouble().is_none());

    proxy.cut(true);
    let ended = connections!("count(*) filter (where pg_terminate_backend(pid, 10000))", "true");
    assert!(number(&mut elsewhere, ended).await > 0);
    store.heartbeat(&report, &[]).await.expect_err("the database is away");
    assert!(store.trouble().is_some());

    proxy.cut(false);
    let begun = Instant::now();
    while store.trouble().is_some() {
        assert!(begun.elapsed() < Duration::from_mins(1), "writes still fail");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_connection_is_lost_changes_nothing_and_the_outage_is_logged() {
    let Some(database) = Database::new().await else { return };
    let (mut lock, mut elsewhere) = (database.elsewhere().await, database.elsewhere().await);
    lock.execute("begin; lock table events in access exclusive mode").await.expect("it is locked");
    let event = new_turn("1");

    let end = connections!("count(*) filter (where pg_terminate_backend(pid, 10000))", "wait_event_type = 'Lock'");
    let ((), stored) =
        tokio::join!(wait_for(&mut elsewhere, end, false), database.store.accept(vec![event.clone()], None),);
    assert!(matches!(stored, Err(StoreError::Unavailable(_))), "{stored:?}");
    lock.execute("rollback").await.expect("it is unlocked");

    let topics = "select count(*) from log where topic = 'store.up'";
    wait_for(&mut elsewhere, topics, false).await;
    let log = database.store.log(&LogFilter { limit: 10, ..LogFilter::default() }).await.expect("the log is read");
    assert_eq!(log.iter().map(|entry| &*entry.topic).collect::<Vec<_>>(), ["store.down", "store.up"]);
    assert!(database.store.turn(id(&event)).await.expect("turns are read").is_none());
    assert!(matches!(accept(&database.store, event).await, Stored::Turn { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_takes_too_long_is_no_outage() {
    let Some(database) = Database::new().await else { return };
    let mut lock = database.elsewhere().await;
    lock.execute("begin; lock table events in access exclusive mode").await.expect("it is locked");

    let stored = database.store.accept(vec![new_turn("1")], None).await;

    assert!(matches!(stored, Err(StoreError::Unavailable(_))), "{stored:?}");
    assert!(database.store.trouble().is_none());
    for _ in 0..4 {
        database.store.probe().await.expect("it writes");
    }
    assert!(database.store.trouble().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_the_server_ends_because_of_a_deadlock_is_repeated() {
    let Some(database) = Database::new().await else { return };
    let (mut other, mut elsewhere) = (database.elsewhere().await, database.elsewhere().await);
    // So that the server ends the write, and not this. Only a superuser may say so.
    let _ = other.execute("set deadlock_timeout = '30s'").await;
    // The write gets the row of `probe`, and then waits for this.
    other.execute("begin; lock table writers in share mode").await.expect("it is locked");
    let deadlock = async {
        wait_for(&mut elsewhere, connections!("count(*)", "wait_event_type = 'Lock'"), false).await;
        other.execute("update probe set count = 100").await.expect("the write has ended");
        other.execute("commit").await.expect("it is committed");
    };

    let (probed, ()) = tokio::join!(database.store.probe(), deadlock);

    probed.expect("it is repeated");
    assert_eq!(number(&mut elsewhere, "select count from probe").await, 101);
    assert!(database.store.trouble().is_none());
}

/// As on a primary that has become read-only: its connections stay open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_on_which_nothing_can_be_written_any_more_is_replaced() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    connect_lanes(&database.store, &mut elsewhere).await;
    let refuse = "
        create table read_only as
            select pid from pg_stat_activity
            where datname = current_database() and starts_with(application_name, 'rejoinder-writer');
        create function refuse() returns trigger language plpgsql as $$ begin
            if exists (select 1 from read_only where pid = pg_backend_pid()) then
                raise exception 'nothing can be written' using errcode = '25006';
            end if;
            return new;
        end $$;
        create trigger refuse before update on probe for each row execute function refuse();";
    elsewhere.execute(refuse).await.expect("it is made");

    let begun = Instant::now();
    while let Err(error) = database.store.probe().await {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(begun.elapsed() < Duration::from_mins(1), "{error:?}");
    }

    for _ in 0..4 {
        database.store.probe().await.expect("it writes");
    }
}

/// As while another version changes the tables: the event would be refused for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_is_not_to_blame_for_tables_that_do_not_fit() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    elsewhere.execute("alter table turns rename column rule to other").await.expect("it is renamed");

    let refused = database.store.accept(vec![new_turn("1")], None).await;

    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    elsewhere.execute("alter table turns rename column other to rule").await.expect("it is renamed");
    assert!(matches!(accept(&database.store, new_turn("1")).await, Stored::Turn { .. }));
}

/// A prepared statement has the types that its columns had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_whose_statements_do_not_fit_the_tables_any_more_is_replaced() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let options = PostgresOptions::new(&*database.url, Arc::new(SystemClock)).without_batches();
    let store = options.open().await.expect("the store opens");
    let turn = TurnId::new(SystemClock.now());
    let go_on = async |keys: [&str; 4]| {
        for key in keys {
            assert!(matches!(accept(&store, new_turn(key)).await, Stored::Turn { .. }));
        }
        assert!(store.turn(turn).await.expect("it reads").is_none());
    };
    go_on(["1", "2", "3", "4"]).await;

    for table in ["turns", "sessions"] {
        let change = format!("alter table {table} alter column model type varchar collate \"C\"");
        elsewhere.execute(AssertSqlSafe(change)).await.expect("it is changed");
    }

    go_on(["5", "6", "7", "8"]).await;
    assert!(store.trouble().is_none());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_comes_while_a_removal_deletes_it_is_stored_again() {
    let Some(database) = Database::new().await else { return };
    let (mut removal, mut elsewhere) = (database.elsewhere().await, database.elsewhere().await);
    let content = b"what is in the file";
    let file = StoredFile::of(content);
    let with_file = |key| NewEvent {
        files: vec![NewFile { file, bytes: Some(content.to_vec().into()), spoken_at: None }],
        ..new_turn(key)
    };
    accept(&database.store, with_file("1")).await;
    removal.execute("begin; select digest from files for update").await.expect("it is locked");
    let deletion = async {
        wait_for(&mut elsewhere, connections!("count(*)", "wait_event_type = 'Lock'"), false).await;
        removal.execute("delete from files; delete from file_uses; commit").await.expect("it is deleted");
    };

    tokio::join!(accept(&database.store, with_file("2")), deletion);

    let found = database.store.file(file.digest).await.expect("files are read");
    assert_eq!(found.as_deref(), Some(&content[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_rows_are_not_gone_while_a_transaction_can_read_them() {
    let Some(database) = Database::new().await else { return };
    let mut reader = database.elsewhere().await;
    reader.execute("begin isolation level repeatable read; select 1 from turns").await.expect("it reads");

    assert!(database.store.scrub().await.expect("it waits"), "all rows are gone");
    reader.execute("commit").await.expect("it ends");

    let begun = Instant::now();
    while database.store.scrub().await.expect("rows are removed") {
        assert!(begun.elapsed() < Duration::from_mins(1), "rows are left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_wants_a_lease_does_not_wait_for_its_holder() {
    let Some(database) = Database::new().await else { return };
    let mut holder = database.elsewhere().await;
    let [one, other] = [(); 2].map(|()| NodeId::new(SystemClock.now()));
    let wanted = [LeaseName::Housekeeper];
    let granted = database.store.take_leases(one, &wanted).await.expect("leases are taken");
    assert!(matches!(&granted, Granted::These(leases) if leases.len() == 1), "{granted:?}");
    holder.execute("begin; select name from leases for update").await.expect("it is locked");

    let granted = database.store.take_leases(other, &wanted).await.expect("it waits for nobody");

    assert!(matches!(&granted, Granted::These(leases) if leases.is_empty()), "{granted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_ends_all_connections() {
    let Some(database) = Database::new().await else { return };
    let mut elsewhere = database.elsewhere().await;
    let open_ones = connections!("count(*)", "true");
    accept(&database.store, new_turn("1")).await;
    assert!(number(&mut elsewhere, open_ones).await > 0);

    database.store.close().await;

    wait_for(&mut elsewhere, open_ones, true).await;
    assert_eq!(number(&mut elsewhere, "select count(*) from writers").await, 0);
    let late = database.store.probe().await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_dropped_leaves_no_connection() {
    let Some(database) = Database::new().await else { return };
    database.store.close().await;
    let mut elsewhere = database.elsewhere().await;
    let open_ones = connections!("count(*)", "true");
    wait_for(&mut elsewhere, open_ones, true).await;
    let store = open(&database.url).await;
    accept(&store, new_turn("1")).await;
    assert!(number(&mut elsewhere, open_ones).await > 0);

    drop(store);

    wait_for(&mut elsewhere, open_ones, true).await;
}
