//! Tests for SQLite alone: its file, lock and schema version, and a full disk.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use futures_util::future::join_all;
use rejoinder_core::{
    CancelledBy, ChannelId, ChatKind, Clock, ConversationId, ConversationRef, Directed, EventId, Expectation, Handler,
    HistoryLine, InboundEvent, Obligation, OwnerId, Policy, Sender, SenderKind, SessionId, Speaker, Store, StoreError,
    SystemClock, TurnId,
    store::{
        Backlog, Commit, Housekeeping, NewEvent, NewTurn, Operator, Removal, RunStart, Stored, TranscriptLine,
        Transition, TurnChange, Turns,
    },
};
use rejoinder_guard::Event;
use rejoinder_store::{OpenError, OpenOptions, SqliteStore, is_in_use};
use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::common::Database;

fn new_turn(chat: &str, key: &str, text: String) -> NewEvent {
    let now = SystemClock.now();
    let event = InboundEvent {
        directed: Directed::DirectChat,
        text,
        ..InboundEvent::new(
            ConversationRef::new(ChannelId::new("test", "main"), chat),
            ChatKind::Direct,
            key.to_owned(),
            Sender { id: "ann".to_owned(), name: None, username: None, kind: SenderKind::Person },
            now,
        )
    };
    let turn = NewTurn {
        id: TurnId::new(now),
        handler: Handler::Agent("main".into()),
        obligation: Obligation::open(Expectation::Answer, &Policy::default(), None, now),
        run: None,
        conversation: ConversationId::new(now),
        session: SessionId::new(now),
    };
    NewEvent { id: EventId::new(now), event: Arc::new(event), turn: Some(turn) }
}

async fn accept(store: &SqliteStore, chat: &str, key: &str, text: String) -> Result<Stored, StoreError> {
    Ok(store.accept(vec![new_turn(chat, key, text)], None).await?.remove(0))
}

/// A connection to the database as another program opens it.
async fn elsewhere(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.expect("the file opens")
}

#[tokio::test]
async fn a_second_process_is_kept_out_until_the_first_has_closed() {
    let database = Database::new().await;
    let error = SqliteStore::open(OpenOptions::new(&database.path)).await.expect_err("it is in use");
    assert!(matches!(error, OpenError::InUse { .. }));
    let lock = format!("{}.lock", database.path.display());
    assert!(error.to_string().contains(&lock), "{error}");

    database.store.close().await;
    let store = SqliteStore::open(OpenOptions::new(&database.path)).await.expect("it is free again");
    store.probe().await.expect("it writes");
}

#[tokio::test]
async fn whoever_looks_sees_whether_it_is_held_and_leaves_nothing_behind() {
    let database = Database::new().await;
    let folder = database.path.parent().expect("it is in a folder");
    let files = || {
        let mut files: Vec<_> = folder.read_dir().expect("it is read").flatten().map(|file| file.file_name()).collect();
        files.sort();
        files
    };
    let looked = async || SqliteStore::open_read_only(&database.path).await.expect("it opens").close().await;

    let is_held = is_in_use(&database.path).expect("it is seen");
    looked().await;
    database.store.close().await;
    let before = files();
    let is_held_later = is_in_use(&database.path).expect("it is seen");
    looked().await;

    assert!(is_held && !is_held_later);
    assert_eq!(files(), before);
    assert!(!is_in_use(&folder.join("none.db")).expect("it is seen"));
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let database = Database::new().await;
    database.store.close().await;
    database.store.close().await;
    assert!(matches!(database.store.probe().await, Err(StoreError::Unavailable(_))));
    assert!(matches!(database.store.backlog().await, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn closing_leaves_no_log_behind() {
    let database = Database::new().await;
    accept(&database.store, "a", "1", "hello".to_owned()).await.expect("it is accepted");
    database.store.close().await;
    let log = format!("{}-wal", database.path.display());
    assert!(!Path::new(&log).exists());
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let database = Database::new().await;
    database.store.close().await;
    let mut connection = elsewhere(&database.path).await;
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
        values (9999, 'later', 1, x'00', 0)",
    )
    .execute(&mut connection)
    .await
    .expect("the version is written");
    connection.close().await.expect("it closes");

    for error in [
        SqliteStore::open(OpenOptions::new(&database.path)).await.expect_err("it is newer"),
        SqliteStore::open_read_only(&database.path).await.expect_err("it is newer"),
    ] {
        assert!(matches!(error, OpenError::Newer { found: 9999, .. }), "{error:?}");
        assert!(error.to_string().contains("schema version 9999"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "dear diary, ".repeat(1000)).expect("the file is written");
    let error = SqliteStore::open(OpenOptions::new(&path)).await.expect_err("it is no database");
    assert!(matches!(error, OpenError::Unreadable { .. }), "{error:?}");
    assert!(error.to_string().contains("notes.txt"), "{error}");
    let error = SqliteStore::open_read_only(&path).await.expect_err("it is no database");
    assert!(matches!(error, OpenError::Unreadable { .. }), "{error:?}");
    assert_eq!(std::fs::read_to_string(&path).expect("the file is read").len(), 12_000);
}

#[tokio::test]
async fn a_reader_sees_what_a_running_gateway_writes_and_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let missing = directory.path().join("none.db");
    let error = SqliteStore::open_read_only(&missing).await.expect_err("there is none");
    assert!(matches!(error, OpenError::Missing { .. }), "{error:?}");
    assert!(!missing.exists());

    let database = Database::new().await;
    let reader = SqliteStore::open_read_only(&database.path).await.expect("it opens beside the gateway");
    assert_eq!(reader.backlog().await.expect("the backlog is read").open, 0);
    accept(&database.store, "a", "1", "hello".to_owned()).await.expect("it is accepted");
    assert_eq!(reader.backlog().await.expect("the backlog is read").open, 1);
    assert!(matches!(accept(&reader, "a", "2", String::new()).await, Err(StoreError::Failed(_))));
    reader.probe().await.expect_err("it only reads");

    database.store.close().await;
    reader.close().await;
    let reader = SqliteStore::open_read_only(&database.path).await.expect("it opens after the gateway, too");
    assert_eq!(reader.backlog().await.expect("the backlog is read").open, 1);
}

#[tokio::test]
async fn what_is_dropped_without_being_closed_is_kept() {
    let mut database = Database::new().await;
    accept(&database.store, "a", "1", "hello".to_owned()).await.expect("it is accepted");
    let path = database.path.clone();
    let spare = tempfile::tempdir().expect("a directory is made");
    let other = SqliteStore::open(OpenOptions::new(spare.path().join("x.db"))).await.expect("it opens");
    drop(std::mem::replace(&mut database.store, Arc::new(other)));

    // The writer's thread releases the lock a moment later.
    let store = loop {
        match SqliteStore::open(OpenOptions::new(&path)).await {
            Ok(store) => break store,
            Err(OpenError::InUse { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(store.backlog().await.expect("the backlog is read").open, 1);
}

/// E4: one bad request among many that are written together.
#[tokio::test]
async fn a_poisoned_request_fails_alone() {
    let database = Database::new().await;
    let store = &database.store;
    let known = new_turn("a", "known", String::new());
    let id = known.turn.as_ref().expect("it has a turn").id;
    store.accept(vec![known], None).await.expect("it is accepted");
    // Sent at once, so that they are written in one batch.
    let requests = (0..100).map(|number| {
        let mut event = new_turn("a", &number.to_string(), String::new());
        if number % 40 == 7 {
            event.turn.as_mut().expect("it has a turn").id = id;
        }
        store.accept(vec![event], None)
    });
    let results = join_all(requests).await;
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.is_err(), number % 40 == 7, "{number}: {result:?}");
    }
    assert_eq!(store.backlog().await.expect("the backlog is read").open, 98);
}

#[tokio::test]
async fn transitions_on_one_turn_in_one_batch_happen_in_order() {
    let database = Database::new().await;
    let store = &database.store;
    let event = new_turn("a", "1", String::new());
    let turn = event.turn.clone().expect("it has a turn");
    store.accept(vec![event], None).await.expect("it is accepted");
    let now = SystemClock.now();
    let mut obligation = turn.obligation.clone();
    let events = [Event::Begin, Event::Tick, Event::Failed("no".to_owned()), Event::Tick];
    let transitions = (1..).zip(events).map(|(expected, event)| {
        let _ = obligation.on(event, &Policy::default(), now);
        let run = RunStart {
            turn: turn.id,
            number: u32::try_from(expected).expect("it is small"),
            handler: Handler::Agent("main".into()),
            owner: OwnerId::new(now),
            at: now,
        };
        let change = TurnChange { turn: turn.id, expected, obligation: obligation.clone(), at: now };
        store.commit(Transition { turns: vec![change], runs_started: vec![run], ..Transition::default() })
    });
    let transitions: Vec<_> = transitions.collect();
    let commits = join_all(transitions).await;
    assert!(commits.iter().all(|commit| matches!(commit, Ok(Commit::Done))), "{commits:?}");
    let record = store.turn(turn.id).await.expect("turns are read").expect("the turn is there");
    assert_eq!((record.version, record.runs), (5, 4));
    assert_eq!(record.obligation, obligation);
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_written_all_the_same() {
    let database = Database::new().await;
    let store = Arc::clone(&database.store);
    let asked = tokio::spawn(async move { accept(&store, "a", "1", String::new()).await });
    asked.abort();
    let _ = asked.await;
    // The request may have been sent before the abort; if so, it was written whole.
    database.store.probe().await.expect("it writes");
    let backlog = database.store.backlog().await.expect("the backlog is read");
    assert_eq!(backlog.open, backlog.waiting);

    let store = &database.store;
    let mut pending = Box::pin(accept(store, "a", "2", String::new()));
    assert!(futures_util::poll!(&mut pending).is_pending());
    drop(pending);
    store.probe().await.expect("it writes");
    let again = accept(store, "a", "2", String::new()).await.expect("it is accepted");
    assert!(matches!(again, Stored::Duplicate { .. }), "{again:?}");
}

#[tokio::test]
async fn while_another_program_holds_the_database_it_is_unavailable() {
    let directory = tempfile::tempdir().expect("a directory is made");
    let path = directory.path().join("rejoinder.db");
    let options = OpenOptions { busy_timeout: Duration::from_millis(10), ..OpenOptions::new(&path) };
    let store = SqliteStore::open(options).await.expect("it opens");
    let mut other = elsewhere(&path).await;
    sqlx::query("begin immediate").execute(&mut other).await.expect("it is held");

    assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
    assert!(matches!(accept(&store, "a", "1", String::new()).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.backlog().await.expect("reading still works"), Backlog::default());
    sqlx::query("rollback").execute(&mut other).await.expect("the lock is released");
    assert!(matches!(accept(&store, "a", "1", String::new()).await, Ok(Stored::Turn { .. })));
}

/// Set in the child process of the next test.
const CHILD: &str = "REJOINDER_TEST_FULL_DISK";

/// A limit on file sizes stands in for a full disk. It applies to the whole process, so the test runs in a child
/// process.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_full_disk_loses_nothing_and_is_recovered_from() {
    if std::env::var_os(CHILD).is_some() {
        return fill_the_disk().await;
    }
    let this = std::env::current_exe().expect("a test knows its file");
    // The signal that comes with the limit would end the process; ignored, the write fails instead.
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(this)
        .args(["--exact", "sqlite::a_full_disk_loses_nothing_and_is_recovered_from", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the shell starts");
    assert!(
        child.status.success(),
        "{}{}",
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
}

#[cfg(target_os = "linux")]
async fn fill_the_disk() {
    let database = Database::new().await;
    let store = &database.store;
    let large = || "x".repeat(100_000);
    accept(store, "a", "before", large()).await.expect("there is room");

    limit_files("4096");
    for number in 0..3 {
        let refused = accept(store, "a", &format!("during {number}"), large()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
    }
    assert_eq!(store.backlog().await.expect("reading still works").open, 1);

    limit_files("unlimited");
    store.probe().await.expect("it writes again");
    accept(store, "a", "during 1", large()).await.expect("there is room again");
    assert_eq!(store.backlog().await.expect("the backlog is read").open, 2);
}

#[cfg(target_os = "linux")]
fn limit_files(to: &str) {
    let limit = format!("--fsize={to}:unlimited");
    let this = std::process::id().to_string();
    let status = Command::new("prlimit").args(["--pid", &this, &limit]).status().expect("prlimit starts");
    assert!(status.success());
}

/// More turns than one batch holds, in more conversations than one page holds.
#[tokio::test]
async fn many_waiting_turns_are_read_by_their_conversations_page_by_page() {
    const EACH: usize = 500;
    let mut database = Database::new().await;
    for batch in 0..10 {
        let events = (0..EACH)
            .map(|number| new_turn(&format!("chat {}", number % 25), &format!("{batch} {number}"), "hi".into()));
        database.store.accept(events.collect(), None).await.expect("they are accepted");
    }
    rejoinder_core::conformance::store::Subject::reopen(&mut database).await;
    let store = &database.store;
    let (mut after, mut seen) = (None, 0);
    loop {
        let page = store.waiting(after, 7).await.expect("turns are read");
        let Some(last) = page.last() else { break };
        (after, seen) = (Some(last.conversation), seen + page.len());
    }
    assert_eq!(seen, 25);
    assert_eq!(store.backlog().await.expect("the backlog is read").waiting, 10 * EACH as u64);
}

#[tokio::test]
async fn the_text_of_a_message_is_stored_once() {
    let database = Database::new().await;
    let store = &database.store;
    let new = new_turn("a", "1", "words".to_owned());
    let turn = new.turn.as_ref().expect("it has a turn").id;
    let Ok(Stored::Turn { session, .. }) = store.accept(vec![new], None).await.map(|mut stored| stored.remove(0))
    else {
        panic!("it is a turn");
    };
    let at = SystemClock.now();
    let line = |speaker| {
        let line = HistoryLine { speaker, name: None, text: "words".to_owned(), at };
        TranscriptLine { session, turn, line }
    };
    let transcript = vec![line(Speaker::Person), line(Speaker::Agent)];
    store.commit(Transition { transcript, ..Transition::default() }).await.expect("it is written");

    let mut other = elsewhere(&database.path).await;
    let sql = "select text from transcript order by speaker desc";
    let texts: Vec<Option<String>> = sqlx::query_scalar(sql).fetch_all(&mut other).await.expect("they are read");
    assert_eq!(texts, [None, Some("words".to_owned())]);
}

/// Removing a turn leaves no row behind that refers to it, although not every reference is a foreign key.
#[tokio::test]
async fn a_removed_turn_leaves_no_reference_to_it_behind() {
    let database = Database::new().await;
    let store = &database.store;
    let now = SystemClock.now();
    let mut ids = Vec::new();
    for number in 0..3 {
        let new = new_turn(&format!("chat {}", number % 2), &number.to_string(), "words".to_owned());
        let NewTurn { id, mut obligation, .. } = new.turn.clone().expect("it has a turn");
        let stored = store.accept(vec![new], None).await.expect("it is accepted").remove(0);
        let Stored::Turn { session, .. } = stored else { panic!("it is a turn") };
        let _ = obligation.on(Event::Cancelled { by: CancelledBy::Deletion }, &Policy::default(), now);
        let line = HistoryLine { speaker: Speaker::Person, name: None, text: "words".to_owned(), at: now };
        let transition = Transition {
            turns: vec![TurnChange { turn: id, expected: 1, obligation, at: now }],
            transcript: vec![TranscriptLine { session, turn: id, line }],
            ..Transition::default()
        };
        assert_eq!(store.commit(transition).await.expect("it is written"), Commit::Done);
        ids.push(id);
    }

    store.remove(Removal::Turns(ids[..2].to_vec())).await.expect("they are removed");

    let mut other = elsewhere(&database.path).await;
    for sql in [
        "select count(*) from pragma_foreign_key_check",
        "select count(*) from transcript where turn_id not in (select id from turns)",
        "select count(*) from turns where event_id not in (select id from events where details is not null)",
        "select count(*) from events where details is not null and id not in (select event_id from turns)",
        "select count(*) - 1 from turns",
    ] {
        let dangling: i64 = sqlx::query_scalar(sql).fetch_one(&mut other).await.expect("they are counted");
        assert_eq!(dangling, 0, "{sql}");
    }
}

#[tokio::test]
async fn a_compacted_database_is_smaller_and_complete() {
    let database = Database::new().await;
    let size = || database.path.metadata().expect("the file is there").len();
    for number in 0..50 {
        accept(&database.store, "a", &number.to_string(), "x".repeat(20_000)).await.expect("it is accepted");
    }
    let held = rejoinder_store::vacuum(&database.path).await.expect_err("it is in use");
    assert!(matches!(held, OpenError::InUse { .. }), "{held:?}");
    database.store.close().await;
    let mut other = elsewhere(&database.path).await;
    sqlx::query("update events set text = ''").execute(&mut other).await.expect("it is written");
    other.close().await.expect("it closes");
    let before = size();

    rejoinder_store::vacuum(&database.path).await.expect("it is compacted");

    assert!(size() < before / 2, "{before} bytes before, {} after", size());
    let store = SqliteStore::open(OpenOptions::new(&database.path)).await.expect("it opens");
    assert_eq!(store.backlog().await.expect("the backlog is read").open, 50);
}
