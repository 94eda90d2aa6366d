//! Tests for SQLite alone: batches, a full disk, damaged rows, flushes, and what rows take.

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use futures_util::future::join_all;
use rejoinder_core::{
    CancelledBy, ChannelId, Clock, ConversationRef, Handler, HistoryLine, LineState, NodeId, Policy, Speaker,
    StoreError, SystemClock,
    conformance::{answer, new_delivery},
    store::{
        AttemptStart, Backlog, Commit, DeliveryRecord, DeliveryState, HousekeepingStore, InboxStore, LogEvent,
        NewLogEntry, NewTurn, OperatorStore, OutboxStore, QueueStore, Removal, RunStart, SearchStore, SessionStore,
        StoreState, Stored, Subject, TranscriptLine, Transition, Transitions, TurnChange, TurnFilter, TurnStore,
        ViewStore,
    },
};
use rejoinder_guard::Event;
use rejoinder_store::{OpenError, OpenOptions, SqliteStore};
use sqlx::Connection;

use crate::{
    common::{Database, accept, elsewhere},
    turns::new_turn,
};

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
    let events = [Event::Begin, Event::Tick { ran: None }, Event::Failed("no".to_owned()), Event::Tick { ran: None }];
    let transitions = (1..).zip(events).map(|(expected, event)| {
        let _ = obligation.on(event, &Policy::default(), now);
        let run = RunStart {
            turn: turn.id,
            number: u32::try_from(expected).expect("it is small"),
            handler: Handler::Agent("main".into()),
            node: NodeId::new(now),
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
    until_no_trouble(store).await;
}

async fn until_no_trouble(store: &SqliteStore) {
    while store.trouble().is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_would_be_lost_is_not_accepted() {
    let database = Database::new().await;
    let (store, path) = (&database.store, &database.path);
    accept(store, "a", "1", String::new()).await.expect("it is accepted");
    let other = path.with_extension("other");
    std::fs::write(&other, "something else").expect("it is written");
    let refused = async |key: &str| {
        let refused = accept(store, "a", key, String::new()).await;
        let Err(StoreError::Unavailable(why)) = refused else { panic!("it was accepted: {refused:?}") };
        assert!(why.contains(&path.display().to_string()), "{why}");
        assert!(store.trouble().is_some() && store.probe().await.is_err());
    };

    let moved = path.with_extension("moved");
    std::fs::rename(path, &moved).expect("it is moved");
    refused("while it is gone").await;
    std::fs::rename(&other, path).expect("it is moved");
    refused("while there is another").await;
    std::fs::rename(&moved, path).expect("it is moved");

    until_no_trouble(store).await;
    accept(store, "a", "2", String::new()).await.expect("the file is back");
    assert_eq!(store.backlog().await.expect("the backlog is read").open, 2);
}

#[cfg(target_os = "linux")]
fn limit_files(to: &str) {
    let limit = format!("--fsize={to}:unlimited");
    let this = std::process::id().to_string();
    let status = Command::new("prlimit").args(["--pid", &this, &limit]).status().expect("prlimit starts");
    assert!(status.success());
}

/// More turns than one batch holds.
#[tokio::test]
async fn many_waiting_turns_are_read_by_their_conversations() {
    const EACH: usize = 500;
    let mut database = Database::new().await;
    for batch in 0..10 {
        let events = (0..EACH)
            .map(|number| new_turn(&format!("chat {}", number % 25), &format!("{batch} {number}"), "hi".into()));
        database.store.accept(events.collect(), None).await.expect("they are accepted");
    }
    rejoinder_core::conformance::store::Subject::reopen(&mut database).await;
    let store = &database.store;
    assert_eq!(store.waiting(7).await.expect("turns are read").len(), 7);
    assert_eq!(store.waiting(1_000_000).await.expect("turns are read").len(), 25);
    assert_eq!(store.backlog().await.expect("the backlog is read").waiting, 10 * EACH as u64);
}

/// For example one that a newer version wrote.
#[tokio::test]
async fn a_row_that_cannot_be_read_costs_itself() {
    let database = Database::new().await;
    let store = &database.store;
    let now = SystemClock.now();
    let mut turns = Vec::new();
    for key in ["1", "2"] {
        let event = new_turn("a", key, key.to_owned());
        let (id, conversation) = (event.turn.as_ref().expect("it has a turn").id, event.event.conversation.clone());
        let stored = store.accept(vec![event], None).await.expect("it is accepted").remove(0);
        let Stored::Turn { seq, conversation: conversation_id, session, .. } = stored else { panic!("{stored:?}") };
        let delivery = DeliveryRecord {
            state: DeliveryState::Sending,
            attempts: 1,
            ..answer(id, conversation_id, conversation, "", now)
        };
        let attempt = AttemptStart { delivery: delivery.id, number: 1, node: NodeId::new(now), at: now };
        let line = HistoryLine {
            spoken: false,
            speaker: Speaker::Person,
            author: None,
            forwarded: None,
            text: key.to_owned(),
            at: now,
            state: LineState::Seen,
        };
        let transition = Transition {
            deliveries: vec![new_delivery(delivery)],
            transcript: vec![TranscriptLine { session, turn: id, seq, claim: 0, line }],
            ..Transition::default()
        };
        store.commit(transition).await.expect("it is written");
        let begins = Transition { attempts_started: vec![attempt], ..Transition::default() };
        store.commit(begins).await.expect("it is written");
        turns.push((id, session));
    }
    let [(bad, session), (good, _)] = turns[..] else { panic!("two turns were accepted") };
    let mut other = elsewhere(&database.path).await;
    for change in [
        "update turns set body = '{}' where id = ?",
        "update deliveries set action = '{}' where turn_id = ?",
        "update transcript set speaker = 'somebody new' where turn_id = ?",
    ] {
        sqlx::query(change).bind(bad.as_uuid()).execute(&mut other).await.expect("the row is changed");
    }

    let left = store.attempts_left(None).await.expect("deliveries are read");
    let filter = TurnFilter { limit: 10, ..TurnFilter::default() };
    let listed = store.list_turns(&filter).await.expect("turns are listed");
    let chat = ConversationRef::new(ChannelId::new("test", "main"), "a");
    let views = store.views(&chat, None, 10).await.expect("views are read");
    let lines = store.transcript(session, 10).await.expect("transcripts are read");

    assert_eq!(left.iter().map(|left| left.turn).collect::<Vec<_>>(), [good]);
    let listed: Vec<_> = listed.iter().map(|turn| (turn.turn_id, turn.is_unreadable)).collect();
    assert_eq!(listed, [(good, false), (bad, true)]);
    assert_eq!(views.iter().map(|view| view.turn_id).collect::<Vec<_>>(), [good]);
    assert_eq!(lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["2"]);
}

/// At any moment somebody reads, and nobody for long.
#[tokio::test]
async fn the_log_stays_small_while_readers_never_pause() {
    const TEXT: usize = 200_000;
    const TURNS: usize = 400;
    let database = Database::new().await;
    let store = &database.store;
    let (mut one, mut other) = (elsewhere(&database.path).await, elsewhere(&database.path).await);
    let reading = tokio::spawn(async move {
        let read = "select count(*) from turns";
        for sql in ["begin", read] {
            sqlx::query(sql).execute(&mut one).await.expect("it reads");
        }
        loop {
            for sql in ["begin", read] {
                sqlx::query(sql).execute(&mut other).await.expect("it reads");
            }
            sqlx::query("commit").execute(&mut one).await.expect("it ends");
            std::mem::swap(&mut one, &mut other);
        }
    });
    let log = format!("{}-wal", database.path.display());
    let mut largest = 0;
    for number in 0..TURNS {
        accept(store, "a", &number.to_string(), "x".repeat(TEXT)).await.expect("it is accepted");
        largest = largest.max(std::fs::metadata(&log).expect("there is a log").len());
    }
    reading.abort();

    assert!(largest < 32 << 20, "the log had {largest} bytes");
}

/// How many transactions the log of a database holds. Its header has the size of a page. A frame is a header of 24 bytes and a page; the
/// header of a transaction's last frame tells the size of the database, <https://sqlite.org/fileformat2.html#the_write_ahead_log>.
fn commits(database: &Path) -> usize {
    let log = std::fs::read(format!("{}-wal", database.display())).expect("there is a log");
    let page = u32::from_be_bytes(log[8..12].try_into().expect("it has a header")) as usize;
    log[32..].chunks_exact(24 + page).filter(|frame| frame[4..8] != [0; 4]).count()
}

/// A lone caller pays no flush for it.
#[tokio::test]
async fn what_nobody_waits_for_shares_the_next_flush() {
    const MARKS: usize = 20;
    let database = Database::new().await;
    let store = &database.store;
    let mut turns = Vec::new();
    for number in 0..MARKS {
        let event = new_turn("a", &number.to_string(), "hi".to_owned());
        let (id, address) = (event.turn.as_ref().expect("it has a turn").id, event.event.conversation.clone());
        let stored = store.accept(vec![event], None).await.expect("it is accepted").remove(0);
        let Stored::Turn { conversation, .. } = stored else { panic!("{stored:?}") };
        let delivered = answer(id, conversation, address, "hello", SystemClock.now());
        let deliveries = vec![new_delivery(DeliveryRecord { state: DeliveryState::Delivered, ..delivered })];
        store.commit(Transition { deliveries, ..Transition::default() }).await.expect("it is written");
        turns.push(id);
    }

    let before = commits(&database.path);
    for turn in &turns {
        store.mark_fetched(*turn, SystemClock.now());
        store.probe().await.expect("it writes");
    }

    // A machine that hangs for long may have flushed a mark by itself.
    let made = commits(&database.path) - before;
    assert!((MARKS..MARKS + MARKS / 2).contains(&made), "{made} transactions");
    for turn in turns {
        let deliveries = store.deliveries(turn).await.expect("deliveries are read");
        assert!(deliveries.iter().all(|delivery| delivery.fetched_at.is_some()));
    }
}

#[tokio::test]
async fn the_text_of_a_message_is_stored_once() {
    let database = Database::new().await;
    let store = &database.store;
    let new = new_turn("a", "1", "words".to_owned());
    let turn = new.turn.as_ref().expect("it has a turn").id;
    let Ok(Stored::Turn { seq, session, .. }) = store.accept(vec![new], None).await.map(|mut stored| stored.remove(0))
    else {
        panic!("it is a turn");
    };
    let at = SystemClock.now();
    let line = |speaker| {
        let line = HistoryLine {
            spoken: false,
            speaker,
            author: None,
            forwarded: None,
            text: "words".to_owned(),
            at,
            state: LineState::Seen,
        };
        TranscriptLine { session, turn, seq, claim: u32::from(speaker != Speaker::Person), line }
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
        let Stored::Turn { seq, session, .. } = stored else { panic!("it is a turn") };
        let _ = obligation.on(Event::Cancelled { by: CancelledBy::Deletion }, &Policy::default(), now);
        let line = HistoryLine {
            spoken: false,
            speaker: Speaker::Person,
            author: None,
            forwarded: None,
            text: "words".to_owned(),
            at: now,
            state: LineState::Seen,
        };
        let subject = Subject { turn_id: Some(id), ..Subject::default() };
        let event = LogEvent::TurnUndeliverable { cause: None };
        let transition = Transition {
            turns: vec![TurnChange { turn: id, expected: 1, obligation, at: now }],
            transcript: vec![TranscriptLine { session, turn: id, seq, claim: 0, line }],
            log: vec![NewLogEntry { at: now, subject, event }],
            ..Transition::default()
        };
        assert_eq!(store.commit(transition).await.expect("it is written"), Commit::Done);
        ids.push(id);
    }
    store.index(100).await.expect("they are indexed");

    store.remove(Removal::Turns(ids[..2].to_vec())).await.expect("they are removed");

    let mut other = elsewhere(&database.path).await;
    for sql in [
        "select count(*) from pragma_foreign_key_check",
        "select count(*) from transcript where turn_id not in (select id from turns)",
        "select count(*) from turns where event not in (select seq from events where details is not null)",
        "select count(*) from events where details is not null and seq not in (select event from turns)",
        "select count(*) - 1 from turns",
        "select count(*) - 1 from search where search match 'words'",
    ] {
        let dangling: i64 = sqlx::query_scalar(sql).fetch_one(&mut other).await.expect("they are counted");
        assert_eq!(dangling, 0, "{sql}");
    }
}

/// PostgreSQL leaves out numbers. Only what was removed unread has all turns indexed anew.
#[tokio::test]
async fn the_index_goes_on_after_a_gap_in_the_log() {
    let database = Database::new().await;
    let store = &database.store;
    store.accept(vec![new_turn("a", "1", "words".to_owned())], None).await.expect("it is accepted");
    let first = *store.logged().borrow() + 1;
    let index = async |limit| store.index(limit).await.expect("lines are indexed");
    let write = async |entries| {
        let up = NewLogEntry { at: SystemClock.now(), subject: Subject::default(), event: LogEvent::ChannelUp };
        store.commit(Transition { log: vec![up; entries], ..Transition::default() }).await.expect("they are written");
    };
    let remove = async |through| {
        store.remove(Removal::Log { through, entries: 1 }).await.expect("they are removed");
    };
    write(5).await;
    assert_eq!(index(100).await, first + 4);

    write(3).await;
    let mut other = elsewhere(&database.path).await;
    let sql = "delete from log where seq = ?";
    sqlx::query(sql).bind(first + 5).execute(&mut other).await.expect("it is removed");
    assert_eq!(index(1).await, first + 6);
    remove(first + 6).await;
    assert_eq!(index(1).await, first + 7);

    write(2).await;
    remove(first + 8).await;
    assert_eq!((index(1).await, index(1).await), (0, first + 9));
}

/// One row that was stored while the clock was far ahead does not remove what others have used today.
#[tokio::test]
async fn what_was_used_on_days_that_do_not_count_is_removed() {
    let database = Database::new().await;
    let today = SystemClock.now().as_millis() / (24 * 60 * 60 * 1000);
    for (person, day) in [("ann", today), ("bob", today - 7), ("cid", today - 20), ("dan", today + 1000)] {
        let mut new = new_turn(person, person, String::new());
        Arc::get_mut(&mut new.event).expect("it is not shared").sender.id = person.to_owned();
        new.turn.as_mut().expect("it has a turn").day = Some(day);
        database.store.accept(vec![new], None).await.expect("it is accepted");
    }

    database.store.remove(Removal::Turns(Vec::new())).await.expect("they are removed");

    let query = sqlx::query_scalar("select id from daily_use order by id");
    let left: Vec<String> = query.fetch_all(&mut elsewhere(&database.path).await).await.expect("they are read");
    assert_eq!(left, ["ann", "bob"]);
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
