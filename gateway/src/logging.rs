//! Logging to standard error, and to the store (`log_lines`).
//!
//! Logging never blocks the gateway. Lines go through a buffer to a thread that writes them. When standard error is not
//! read (a pager, Ctrl-S, a log driver that hangs) and the buffer is full, lines are dropped and counted; the log reports
//! their number when it is read again.

use std::{
    io::{self, IsTerminal, Write},
    panic,
    sync::{Arc, Mutex, OnceLock, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rejoinder_config::{KeepLevel, Log, LogFormat, LogLevel};
use rejoinder_core::SystemClock;
use tracing::{Dispatch, Subscriber, dispatcher, error, level_filters::LevelFilter, warn};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{self, MakeWriter},
    layer::{Filter, SubscriberExt},
    registry, reload,
    util::SubscriberInitExt,
};

use crate::log_lines;

/// The size of the buffer, in lines.
const LINES: usize = 4096;

/// How long writing the last lines may take.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Starts logging, until [`finish()`]. Later calls in the same process do not change where log lines go.
pub(crate) fn start(log: Log) {
    let lines = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).thread_name("log");
    let (writer, guard) = lines.finish(Stderr { log, dropped: 0 });
    let dropped = writer.error_counter();
    // Fails if the process already has a subscriber; that one stays.
    let collector = (!log.keep.is_zero()).then(|| log_lines::start(Arc::new(SystemClock)));
    let collected = collector.map(|collector| collector.with_filter(kept(log.keep_level)).boxed());
    let (filter, handle) = reload::Layer::new(filter(log.level));
    if subscriber(log.format, filter, writer, collected).try_init().is_ok() {
        DROPPED.get_or_init(|| dropped);
        FILTER.get_or_init(|| handle);
        *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    }
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        error!(location, what = panic.payload_as_str(), "a panic");
    }));
}

/// Changes the least important lines to write.
pub(crate) fn set_level(level: LogLevel) {
    if let Some(handle) = FILTER.get() {
        // Fails after the end of logging.
        let _ = handle.reload(filter(level));
    }
}

/// Writes the buffered lines, unless standard error is not read. Later lines are dropped.
pub(crate) fn finish() {
    let writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Dropping the writer has a timeout of its own, but then prints a remark, which may block too.
    run_with_timeout(FINISH_TIMEOUT, move || drop(writer));
}

/// How many lines were dropped since the start.
pub(crate) fn dropped_lines() -> u64 {
    DROPPED.get().map_or(0, |dropped| dropped.dropped_lines() as u64)
}

/// Runs `write` in a thread of its own, and returns when it is done or after `timeout`: its output may not be read.
pub(crate) fn run_with_timeout(timeout: Duration, write: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        write();
        // Fails when the caller no longer waits.
        let _ = done.send(());
    });
    let _ = finished.recv_timeout(timeout);
}

/// Standard error for the thread that writes. Only this thread waits for a reader.
struct Stderr {
    log: Log,
    /// How many dropped lines have been reported.
    dropped: u64,
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write(line)
    }

    /// Called when all buffered lines have been written.
    fn flush(&mut self) -> io::Result<()> {
        let dropped = dropped_lines();
        let lines = dropped - self.dropped;
        if lines > 0 {
            self.dropped = dropped;
            // Bypasses the buffer, which may be full again, and the configured level.
            let dispatch = subscriber(self.log.format, filter(LogLevel::Warn), io::stderr, None);
            dispatcher::with_default(&dispatch, || {
                warn!(lines, "log lines were lost here: standard error was not read");
            });
        }
        Ok(())
    }
}

type Lines = Box<dyn Layer<Registry> + Send + Sync>;

fn subscriber<W, F>(format: LogFormat, filter: F, writer: W, kept: Option<Lines>) -> Dispatch
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
    F: Filter<Registry> + Send + Sync + 'static,
{
    let written = match format {
        LogFormat::Text => text(writer).with_filter(filter).boxed(),
        LogFormat::Json => json(writer).with_filter(filter).boxed(),
    };
    registry().with(std::iter::once(written).chain(kept).collect::<Vec<_>>()).into()
}

fn text<S, W>(writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'span> registry::LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + 'static,
{
    let is_colourful = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    fmt::layer().with_writer(writer).with_ansi(is_colourful).with_target(false)
}

fn json<S, W>(writer: W) -> impl Layer<S>
where
    S: Subscriber + for<'span> registry::LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + 'static,
{
    fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false).with_writer(writer)
}

/// The lines that are kept in the store. What storing them makes the store and the writer of lines log is left out below
/// `info`, or each write would cause the next.
pub(crate) fn kept(level: KeepLevel) -> Targets {
    let storing = of(level.into()).min(LevelFilter::INFO);
    filter(level.into()).with_target("rejoinder_store", storing).with_target("rejoinder::log_lines", storing)
}

const fn of(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// `level` for our own crates. Libraries log only warnings and errors, because their finer levels may contain people's
/// messages.
fn filter(level: LogLevel) -> Targets {
    let ours = of(level);
    let libraries = ours.min(LevelFilter::WARN);
    // The SDK logs every unanswered request as an error, and an account without a backup as a warning at each sync. The
    // adapter logs what matters of this.
    let matrix = if ours >= LevelFilter::DEBUG { libraries } else { LevelFilter::OFF };
    // It logs whole URLs and what servers send.
    let mcp = LevelFilter::OFF;
    // It logs each broken packet of a recording. The adapter has an error for that.
    let sound = LevelFilter::OFF;
    let libraries = Targets::new().with_default(libraries).with_target("matrix_sdk", matrix).with_target("rmcp", mcp);
    libraries.with_target("symphonia", sound).with_target("rejoinder", ours)
}
