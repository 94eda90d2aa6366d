//! Keeps log lines in the store, for `/admin/api/logs` and `/admin/api/errors`.
//!
//! A caller that logs does not wait: [`LineCollector`] puts lines into a queue, from which a task writes them in batches. When the
//! queue is full, lines are dropped, and a line tells how many. The lines are those of the log on standard error, except
//! that they have a level of their own and no secrets.

use std::{
    cell::Cell,
    fmt::{self, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rejoinder_core::{
    ChannelId, Masker, SharedClock, StoreError, TurnId,
    store::{LineLevel, LineStore, LogLine, STORED_LINES},
};
use serde_json::{Map, Value};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    warn,
};
use tracing_subscriber::{Layer, layer::Context};

/// The most lines that wait to be stored.
const WAITING: usize = 4096;

/// The most lines of one write.
const BATCH: usize = 256;

/// The shortest time between two writes, unless there are enough lines for one.
const PACE: Duration = Duration::from_secs(1);

/// The longest time between two writes while the store fails.
const LONGEST_PACE: Duration = Duration::from_mins(1);

/// How long the last lines are tried to be stored at the end.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// How much text of a line waits to be stored, in bytes. More than is stored: secrets are masked before a text is cut, and
/// one that is cut would not be found.
const MOST_CAPTURED: usize = 12 << 10;

/// How large a message may be, in bytes.
const MOST_MESSAGE: usize = 2 << 10;

/// How large the texts of a line's fields may be together, in bytes.
const MOST_FIELDS: usize = 4 << 10;

/// Lines that wait for a gateway that stores them.
static WAITING_LINES: Mutex<Option<Lines>> = Mutex::new(None);

thread_local! {
    /// Whether this thread makes a line. What is logged meanwhile is left out, as it would go on without end.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the lines of this process from now on, for the gateway that it starts.
pub(crate) fn start(clock: SharedClock) -> LineCollector {
    let (collector, lines) = LineCollector::new(clock);
    *WAITING_LINES.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    collector
}

/// Puts log lines into a queue.
pub(crate) struct LineCollector {
    queue: mpsc::Sender<LogLine>,
    dropped: Arc<AtomicU64>,
    clock: SharedClock,
}

/// The other end of the queue.
struct Lines {
    queue: mpsc::Receiver<LogLine>,
    /// How many lines did not fit into the queue since the last write.
    dropped: Arc<AtomicU64>,
    clock: SharedClock,
}

impl LineCollector {
    fn new(clock: SharedClock) -> (Self, Lines) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let lines = Lines { queue: receiver, dropped: Arc::clone(&dropped), clock: Arc::clone(&clock) };
        (Self { queue: sender, dropped, clock }, lines)
    }
}

impl<S: Subscriber> Layer<S> for LineCollector {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == STORED_LINES {
            return;
        }
        let Some(_making) = Making::begin() else { return };
        match self.queue.try_reserve() {
            Ok(place) => place.send(line(event, &self.clock)),
            Err(mpsc::error::TrySendError::Full(())) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            // The gateway has stopped.
            Err(mpsc::error::TrySendError::Closed(())) => {}
        }
    }
}

/// While it exists, its thread makes a line.
struct Making;

impl Making {
    /// `None` if the thread makes a line already.
    fn begin() -> Option<Self> {
        (!IS_BUSY.replace(true)).then_some(Self)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        IS_BUSY.set(false);
    }
}

fn line(event: &Event<'_>, clock: &SharedClock) -> LogLine {
    let metadata = event.metadata();
    let line = LogLine {
        at: clock.now(),
        level: match *metadata.level() {
            Level::ERROR => LineLevel::Error,
            Level::WARN => LineLevel::Warn,
            Level::INFO => LineLevel::Info,
            Level::DEBUG | Level::TRACE => LineLevel::Debug,
        },
        target: metadata.target().to_owned(),
        message: String::new(),
        channel: None,
        turn_id: None,
        fields: Map::new(),
    };
    let mut reader = FieldReader { line, room: MOST_CAPTURED };
    event.record(&mut reader);
    reader.line
}

/// Reads the fields of an event into a line.
struct FieldReader {
    line: LogLine,
    /// How much more text fits, in bytes.
    room: usize,
}

impl FieldReader {
    fn text(&mut self, field: &Field, text: fmt::Arguments<'_>) {
        let mut captured = Bounded { text: String::new(), room: self.room };
        // It fails when the text does not fit; what does is there.
        let _ = captured.write_fmt(text);
        let text = captured.text;
        self.room -= text.len();
        match field.name() {
            "message" if self.line.message.is_empty() => self.line.message = text,
            "channel" if text.contains('.') => self.line.channel = Some(ChannelId::from_stored(&text)),
            "turn" | "turn_id" => match text.parse::<TurnId>() {
                Ok(turn) => self.line.turn_id = Some(turn),
                Err(_) => self.field(field, text.into()),
            },
            // Of a library that does not use `tracing`: the module, and where in its code this is.
            "log.target" => self.line.target = text,
            name if name.starts_with("log.") => {}
            _ => self.field(field, text.into()),
        }
    }

    fn field(&mut self, field: &Field, value: Value) {
        let name = field.name();
        self.line.fields.insert(name.strip_prefix("r#").unwrap_or(name).to_owned(), value);
    }
}

impl Visit for FieldReader {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.text(field, format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, value.into());
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match u64::try_from(value) {
            Ok(value) => self.field(field, value.into()),
            Err(_) => self.text(field, format_args!("{value}")),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, value.into());
    }
}

/// A text that takes only so many bytes.
struct Bounded {
    text: String,
    room: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let left = self.room - self.text.len();
        let fitting = &part[..part.floor_char_boundary(left)];
        self.text.push_str(fitting);
        if fitting.len() == part.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

pub(crate) struct LineWriter {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl LineWriter {
    /// Stores the lines of this process until [`finish`](Self::finish), or until it is dropped. `None` if none are kept, or
    /// another gateway in this process has them.
    pub(crate) fn of_process(store: Arc<dyn LineStore>, masker: &Masker) -> Option<Self> {
        let lines = WAITING_LINES.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Self::start(lines, store, masker.clone()))
    }

    fn start(lines: Lines, store: Arc<dyn LineStore>, masker: Masker) -> Self {
        let stop = CancellationToken::new();
        let writing = Writing { lines, store, masker, batch: Vec::new(), lost: 0, pace: PACE };
        let task = tokio::spawn(writing.run(stop.clone()));
        Self { stop: stop.drop_guard(), task }
    }

    /// Stores what waits. Later lines are dropped.
    pub(crate) async fn finish(self) {
        self.stop.disarm().cancel();
        // It has nothing to say but that it panicked.
        let _ = tokio::time::timeout(FINISH_TIMEOUT, self.task).await;
    }
}

struct Writing {
    lines: Lines,
    store: Arc<dyn LineStore>,
    masker: Masker,
    /// What is written next.
    batch: Vec<LogLine>,
    /// How many lines were lost since a line told of them.
    lost: u64,
    /// The shortest time between two writes now.
    pace: Duration,
}

impl Writing {
    async fn run(mut self, stop: CancellationToken) {
        let mut next_at = Instant::now();
        while stop.run_until_cancelled(self.collect(next_at)).await.is_some() {
            // When it fails, it has set a longer pace.
            let _ = self.write().await;
            next_at = Instant::now() + self.pace;
        }
        self.lines.queue.close();
        // Only as long as it works: what cannot be stored now is lost.
        while !self.batch.is_empty() || self.lines.queue.recv_many(&mut self.batch, BATCH).await > 0 {
            if self.write().await.is_err() {
                return;
            }
        }
    }

    /// Waits for lines to write, at least until `next_at` or until there are many.
    async fn collect(&mut self, next_at: Instant) {
        let Self { lines, batch, pace, .. } = self;
        // While the store fails, a batch is waiting, and nothing but time helps.
        let is_failing = *pace > PACE;
        if is_failing {
            return tokio::time::sleep_until(next_at).await;
        }
        while batch.is_empty() {
            if lines.queue.recv_many(batch, BATCH).await == 0 {
                // Nothing can be logged any more.
                return std::future::pending().await;
            }
        }
        let more = async {
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                if lines.queue.recv_many(batch, room).await == 0 {
                    return std::future::pending().await;
                }
            }
        };
        // It elapses when lines come slowly.
        let _ = timeout_at(next_at, more).await;
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        self.lost += self.lines.dropped.swap(0, Ordering::Relaxed);
        if self.lost > 0 {
            self.batch.push(self.remark());
        }
        let masker = &self.masker;
        let lines: Arc<[LogLine]> = self.batch.drain(..).map(|line| cleaned(masker, line)).collect();
        let written = self.store.keep_lines(Arc::clone(&lines)).await;
        match &written {
            Ok(()) => {
                self.lost = 0;
                self.pace = PACE;
            }
            Err(error) => {
                let is_new = self.pace == PACE;
                self.pace = (self.pace * 2).min(LONGEST_PACE);
                // Said once, because this line is to be stored as well.
                if is_new {
                    warn!(%error, "log lines cannot be stored, trying again");
                }
                // Without the remark, which is made anew.
                let rest = &lines[..lines.len() - usize::from(self.lost > 0)];
                // After an unknown end they may be there twice, which is better than not at all.
                if error.is_outage() {
                    self.batch.extend_from_slice(rest);
                } else {
                    self.lost += rest.len() as u64;
                }
            }
        }
        written
    }

    /// The line about lost lines.
    fn remark(&self) -> LogLine {
        LogLine {
            at: self.lines.clock.now(),
            level: LineLevel::Warn,
            target: module_path!().to_owned(),
            message: "log lines were lost here: they could not be stored".to_owned(),
            channel: None,
            turn_id: None,
            fields: Map::from_iter([("lines".to_owned(), self.lost.into())]),
        }
    }
}

/// The line without secrets, and not too long.
fn cleaned(masker: &Masker, line: LogLine) -> LogLine {
    let cut = |mut text: String, most: usize| {
        if text.len() > most {
            text.truncate(text.floor_char_boundary(most));
            text.push('…');
        }
        text
    };
    let mut room = MOST_FIELDS;
    let fields = line.fields.into_iter().map(|(name, value)| {
        let value = match value {
            Value::String(text) => {
                let text = cut(masker.text(text), room);
                room = room.saturating_sub(text.len());
                text.into()
            }
            value => value,
        };
        (name, value)
    });
    LogLine { fields: fields.collect(), message: cut(masker.text(line.message), MOST_MESSAGE), ..line }
}

#[cfg(test)]
mod tests;
