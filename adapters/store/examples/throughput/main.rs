//! Measures how many turns per second the store takes: each is accepted in one commit and settled in another.
//!
//! `cargo run --release -p rejoinder-store --example throughput [callers] [turns] [history] [directory] [readers]`
//!
//! With a `history` of so many settled turns, also measures what these cost: reading, and removing an eighth of them.
//!
//! Meanwhile, `readers` tasks list turns as an operator does, and as many read turns, without a pause. The largest size of
//! the log is printed.

mod history;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rejoinder_core::{
    ChannelId, ChatKind, Clock, ConversationId, ConversationRef, Directed, EventId, Expectation, Handler, HistoryLine,
    InboundEvent, LineState, NodeId, Obligation, Outcome, Policy, Reply, Sender, SenderKind, SessionId, Speaker, Store,
    SystemClock, TurnId,
    conformance::{answer, new_delivery},
    store::{
        Commit, DeliveryRecord, DeliveryState, NewEvent, NewTurn, OperatorStore, RunEnd, RunStart, SessionUse,
        StoreState, Stored, TranscriptLine, Transition, TurnChange, TurnFilter, ViewStore,
    },
};
use rejoinder_guard::Event;
use rejoinder_store::{OpenOptions, SqliteStore};
use tokio::task::JoinSet;

/// The number of the next turn: its key must be new.
static NUMBER: AtomicUsize = AtomicUsize::new(1);

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let callers: usize = arguments.next().map_or(64, |text| text.parse().expect("callers is a number"));
    let turns: usize = arguments.next().map_or(40_000, |text| text.parse().expect("turns is a number"));
    let history: usize = arguments.next().map_or(0, |text| text.parse().expect("history is a number"));
    let directory = arguments.next().map_or_else(tempfile::tempdir, tempfile::tempdir_in).expect("a directory is made");
    let readers: usize = arguments.next().map_or(0, |text| text.parse().expect("readers is a number"));

    let path = directory.path().join("throughput.db");
    let open = async || Arc::new(SqliteStore::open(OpenOptions::new(&path)).await.expect("the store opens"));
    let mut store = open().await;
    if history > 0 {
        turn(&*store, callers, 0).await;
        store.close().await;
        history::fill(&path, history).await;
        store = open().await;
        history::measure_reads(&*store).await;
    }
    let (mut reading, largest_log) = (read(&store, readers), watch_log(path.with_extension("db-wal")));
    run(&store, callers, turns).await;
    reading.shutdown().await;
    println!("the log had {} KiB at most", largest_log.load(Ordering::Relaxed) >> 10);
    if history > 0 {
        // One at a time: what a person waits for.
        run(&store, 1, turns / 20).await;
        history::measure_removal(&*store).await;
        let removing = tokio::spawn({
            let store = Arc::clone(&store);
            async move { history::remove_in_the_background(&*store).await }
        });
        println!("while turns are removed:");
        run(&store, 1, turns / 20).await;
        run(&store, callers, turns).await;
        removing.abort();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")) {
        println!("{line}");
    }
    store.close().await;
}

/// Measures `turns` turns of `callers` at once.
async fn run(store: &Arc<SqliteStore>, callers: usize, turns: usize) {
    let each = turns / callers;
    let started = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut latencies = Vec::with_capacity(each);
                for _ in 0..each {
                    let started = Instant::now();
                    turn(&*store, caller, NUMBER.fetch_add(1, Ordering::Relaxed)).await;
                    latencies.push(started.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::with_capacity(turns);
    for task in tasks {
        latencies.extend(task.await.expect("a caller finishes"));
    }
    let elapsed = started.elapsed();
    latencies.sort_unstable();
    let at = |share: usize| latencies[(latencies.len() - 1) * share / 1000];
    println!(
        "{} turns, {callers} callers: {} turns/s; a turn takes {:?} (median), {:?} (99 %), {:?} (worst)",
        latencies.len(),
        latencies.len() as u128 * 1000 / elapsed.as_millis().max(1),
        at(500),
        at(990),
        at(1000),
    );
}

/// Reads without a pause, as operators and as turns do.
fn read(store: &Arc<SqliteStore>, readers: usize) -> JoinSet<()> {
    let mut reading = JoinSet::new();
    for reader in 0..readers {
        let (lists, views) = (Arc::clone(store), Arc::clone(store));
        reading.spawn(async move {
            loop {
                lists.list_turns(&TurnFilter { limit: 200, ..TurnFilter::default() }).await.expect("turns are listed");
            }
        });
        let conversation = ConversationRef::new(ChannelId::new("webhook", "default"), &format!("caller-{reader}"));
        reading.spawn(async move {
            loop {
                views.views(&conversation, None, 50).await.expect("views are read");
            }
        });
    }
    reading
}

/// Watches the size of the log's file. The value is its largest size so far, in bytes.
fn watch_log(path: PathBuf) -> Arc<AtomicU64> {
    let largest = Arc::new(AtomicU64::new(0));
    let watched = Arc::clone(&largest);
    tokio::spawn(async move {
        loop {
            let size = path.metadata().map_or(0, |metadata| metadata.len());
            watched.fetch_max(size, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    largest
}

fn main_agent() -> Handler {
    Handler::Agent("main".into())
}

/// One turn with two commits, as on a hook.
async fn turn(store: &dyn Store, caller: usize, number: usize) {
    let policy = Policy::default();
    let now = SystemClock.now();
    let conversation = ConversationRef::new(ChannelId::new("webhook", "default"), &format!("caller-{caller}"));
    let id = TurnId::new(now);
    let mut obligation = Obligation::open(Expectation::Answer, &policy, None, now);
    let _ = obligation.on(Event::Begin, &policy, now);
    let event = InboundEvent {
        directed: Directed::Asked,
        text: "What is the weather like today in the city?".to_owned(),
        raw: r#"{"message":"What is the weather like today in the city?","sender":"ann"}"#.to_owned(),
        ..InboundEvent::new(
            conversation.clone(),
            ChatKind::Direct,
            format!("{caller}-{number}"),
            Sender { id: "ann".to_owned(), name: None, username: None, kind: SenderKind::Person },
            now,
        )
    };
    let new = NewEvent {
        only_if_known: false,
        id: EventId::new(now),
        event: Arc::new(event),
        files: Vec::new(),
        turn: Some(NewTurn {
            id,
            handler: main_agent(),
            rule: None,
            obligation: obligation.clone(),
            run: Some(RunStart { turn: id, number: 1, handler: main_agent(), node: NodeId::new(now), at: now }),
            conversation: ConversationId::new(now),
            about: None,
            session: SessionUse::current(SessionId::new(now)),
            model: None,
            remark: None,
            repeats: None,
            day: None,
        }),
    };
    let stored = store.accept(vec![new], None).await.expect("the event is accepted");
    let [Stored::Turn { seq, conversation: conversation_id, session, .. }] = stored[..] else {
        panic!("the event is new")
    };

    let text = "It is sunny, with a light wind from the west.";
    let _ = obligation.on(Event::Outcome(Outcome::Reply(Reply::text(text))), &policy, now);
    let _ = obligation.on(Event::Delivered { claim: 1, messages: vec![id.to_string()] }, &policy, now);
    let line = |speaker, text: &str| TranscriptLine {
        session,
        turn: id,
        seq,
        claim: u32::from(speaker != Speaker::Person),
        line: HistoryLine {
            spoken: false,
            speaker,
            author: None,
            forwarded: None,
            text: text.to_owned(),
            at: now,
            state: LineState::Seen,
        },
    };
    let transition = Transition {
        turns: vec![TurnChange { turn: id, expected: 1, obligation, at: now }],
        deliveries: vec![new_delivery(DeliveryRecord {
            state: DeliveryState::Delivered,
            message_ids: vec![id.to_string()],
            delivered_at: Some(now),
            ..answer(id, conversation_id, conversation, text, now)
        })],
        runs_ended: vec![RunEnd::new(id, 1, now, "reply".to_owned(), None)],
        transcript: vec![
            line(Speaker::Person, "What is the weather like today in the city?"),
            line(Speaker::Agent, text),
        ],
        ..Transition::default()
    };
    assert_eq!(store.commit(transition).await.expect("the transition is applied"), Commit::Done);
}
