use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use rejoinder_config::KeepLevel;
use rejoinder_core::{
    SystemClock, Timestamp,
    conformance::layered::{self, Layered, NullStore},
    store::{LogLineFilter, LogLineRecord},
};
use rejoinder_store::{OpenOptions, SqliteStore};
use tracing::{debug, error, info, subscriber, trace};
use tracing_subscriber::{layer::SubscriberExt, registry};

use super::*;
use crate::logging;

/// The lines that `log` leaves in the queue at this level.
fn logged_at(level: KeepLevel, log: impl FnOnce()) -> Lines {
    let (collector, lines) = LineCollector::new(Arc::new(SystemClock));
    subscriber::with_default(registry().with(collector.with_filter(logging::kept(level))), log);
    lines
}

fn logged(log: impl FnOnce()) -> LogLine {
    logged_at(KeepLevel::Debug, log).queue.try_recv().expect("a line waits")
}

fn writing(lines: Lines, store: Arc<dyn LineStore>) -> Writing {
    let masker = Masker::new(["sk-12345678"]);
    Writing { lines, store, masker, batch: Vec::new(), lost: 0, pace: PACE }
}

/// A store that cannot write until it is told to.
#[derive(Clone, Default)]
struct Full(Arc<AtomicBool>);

#[async_trait]
impl layered::Layer for Full {
    type Pass = ();

    async fn before_read(&self, _method: &'static str) {}

    async fn before_write(&self, _method: &'static str) -> Result<(), StoreError> {
        if self.0.load(Ordering::Relaxed) { Ok(()) } else { Err(StoreError::Unavailable("no room".to_owned())) }
    }
}

#[test]
fn an_event_becomes_a_line() {
    let turn = TurnId::new(Timestamp::from_millis(1_750_000_000_000));
    let failed = std::io::Error::other("no room");

    let line = logged(|| {
        let error: &(dyn std::error::Error + 'static) = &failed;
        warn!(%turn, channel = "telegram.main", count = 3, late = true, share = 0.5, took_ms = 7_u128, error, "a {}", "run");
    });

    assert_eq!((line.level, &*line.message, &*line.target), (LineLevel::Warn, "a run", "rejoinder::log_lines::tests"));
    assert_eq!((line.turn_id, line.channel), (Some(turn), Some(ChannelId::new("telegram", "main"))));
    let fields = serde_json::json!({ "count": 3, "late": true, "share": 0.5, "took_ms": 7, "error": "no room" });
    assert_eq!(Value::from(line.fields), fields);
}

#[test]
fn what_the_store_has_stored_by_itself_is_not_kept_again() {
    let line = logged(|| {
        error!(target: STORED_LINES, "1");
        error!("2");
    });

    assert_eq!(line.message, "2");
}

#[test]
fn fields_that_are_no_ids_are_fields() {
    let line = logged(|| info!(turn = "first", channel = "mpsc", message = "b", "a"));

    assert_eq!((&*line.message, line.turn_id, line.channel), ("a", None, None));
    assert_eq!(Value::from(line.fields), serde_json::json!({ "turn": "first", "channel": "mpsc", "message": "b" }));
}

#[test]
fn only_lines_at_the_level_are_kept() {
    let log = || {
        error!("1");
        warn!("2");
        info!("3");
        debug!("4");
        trace!("5");
    };
    let kept = |level| {
        let mut lines = logged_at(level, log);
        std::iter::from_fn(|| lines.queue.try_recv().ok()).map(|line| line.message).collect::<String>()
    };

    let levels = [KeepLevel::Error, KeepLevel::Warn, KeepLevel::Info];
    assert_eq!(levels.map(kept), ["1", "12", "123"]);
    // The own details of this module would go on without end.
    assert_eq!(kept(KeepLevel::Debug), "123");
    let mut others = logged_at(KeepLevel::Debug, || {
        debug!(target: "rejoinder_core::ledger", "a turn is settled");
        debug!(target: "rejoinder_store::sqlite::writer", "checkpoint failed");
        info!(target: "sqlx::query", "select");
    });
    assert_eq!(others.queue.try_recv().expect("one is kept").message, "a turn is settled");
    assert!(others.queue.try_recv().is_err());
}

/// A value that logs when it is printed, as the clock does when it is set back.
#[derive(Debug)]
struct Chatty;

impl fmt::Display for Chatty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        warn!(what = %Chatty, "printed");
        f.write_str("chatty")
    }
}

#[test]
fn a_line_causes_no_other_line() {
    let mut lines = logged_at(KeepLevel::Info, || info!(what = %Chatty, "a"));

    assert_eq!(lines.queue.try_recv().expect("a line").fields["what"], "chatty");
    assert!(lines.queue.try_recv().is_err());
}

#[test]
fn a_line_is_masked_before_it_is_cut() {
    let masker = Masker::new(["sk-12345678"]);
    let at_the_end = format!("{}sk-12345678 and more", "x".repeat(MOST_MESSAGE - 4));
    let long = "é".repeat(MOST_CAPTURED);

    let line = logged(|| info!(key = "sk-12345678", key_debug = ?"sk-12345678", long, more = "y", "{at_the_end}"));
    assert!(line.fields["long"].as_str().is_some_and(|text| text.len() < MOST_CAPTURED), "{line:?}");
    let line = cleaned(&masker, line);

    assert!(line.message.len() < MOST_MESSAGE + 4 && line.message.ends_with("x•…"), "{line:?}");
    assert_eq!((&line.fields["key"], &line.fields["key_debug"]), (&"••••".into(), &"\"••••\"".into()));
    let size = line.fields.values().filter_map(Value::as_str).map(str::len).sum::<usize>();
    assert!(size < MOST_FIELDS + 16, "{size}");
}

#[tokio::test]
async fn lines_that_do_not_fit_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(OpenOptions::new(folder.path().join("db"))).await.unwrap());
    let lines =
        logged_at(KeepLevel::Info, || (0..WAITING + 3).for_each(|number| info!(number, "a line of sk-12345678")));
    let kept = async |filter: LogLineFilter| store.log_lines(&LogLineFilter { limit: 9999, ..filter }).await.unwrap();

    let clone: Arc<dyn LineStore> = Arc::<SqliteStore>::clone(&store);
    LineWriter::start(lines, clone, Masker::new(["sk-12345678"])).finish().await;

    let all: Vec<LogLineRecord> = kept(LogLineFilter::default()).await;
    assert_eq!(all.len(), WAITING + 1);
    assert!(all.iter().all(|record| !record.line.message.contains("sk-")), "a secret is stored");
    let remarks = kept(LogLineFilter { level: Some(LineLevel::Warn), ..LogLineFilter::default() }).await;
    assert_eq!(remarks.len(), 1);
    assert_eq!(remarks[0].line.fields["lines"], 3);
}

#[tokio::test]
async fn what_cannot_be_stored_now_is_stored_later() {
    let store = Full::default();
    let lines = logged_at(KeepLevel::Info, || (0..3).for_each(|number| info!(number, "a line")));
    let mut writing = writing(lines, Arc::new(Layered { layer: store.clone(), store: Arc::new(NullStore) }));

    writing.collect(Instant::now() + PACE).await;
    assert!(writing.write().await.is_err() && writing.write().await.is_err());
    assert_eq!((writing.batch.len(), writing.pace), (3, PACE * 4));
    store.0.store(true, Ordering::Relaxed);
    assert!(writing.write().await.is_ok());

    assert_eq!((writing.batch.len(), writing.pace), (0, PACE));
}

/// The line that says so is one of those that cannot be stored.
#[tokio::test]
async fn a_store_that_fails_is_reported_once() {
    let (collector, lines) = LineCollector::new(Arc::new(SystemClock));
    let collecting = subscriber::set_default(registry().with(collector.with_filter(logging::kept(KeepLevel::Debug))));
    info!("a line");
    let mut writing = writing(lines, Arc::new(Layered { layer: Full::default(), store: Arc::new(NullStore) }));

    writing.collect(Instant::now()).await;
    for _ in 0..10 {
        assert!(writing.write().await.is_err());
    }

    assert_eq!(writing.pace, LONGEST_PACE);
    assert_eq!(writing.lines.queue.try_recv().expect("it is said").message, "log lines cannot be stored, trying again");
    assert!(writing.lines.queue.try_recv().is_err());
    drop(collecting);
}
