//! What is written to standard error.
//!
//! Whoever logs never waits for whoever reads. Lines go through a buffer to a thread that writes them; when nobody reads
//! (a pager, Ctrl-S, a log driver that hangs) and the buffer is full, lines are dropped and counted, and the log says how
//! many when it is read again.

use std::{
    io::{self, IsTerminal, Write},
    panic,
    sync::{Mutex, OnceLock, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rejoinder_config::{Log, LogFormat, LogLevel};
use tracing::{Dispatch, Subscriber, dispatcher, error, level_filters::LevelFilter, warn};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry,
    util::SubscriberInitExt,
};

/// How many lines may wait to be written.
const LINES: usize = 4096;

/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

static WRITER: Mutex<Option<WorkerGuard>> = Mutex::new(None);
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Starts logging, until [`finish()`]. A second call, in the same process, changes nothing.
pub(crate) fn start(log: Log) {
    let lines = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).thread_name("log");
    let (writer, guard) = lines.finish(Stderr { log, dropped: 0 });
    let dropped = writer.error_counter();
    // Fails where something else logs already, which is then what is wanted.
    if subscriber(log, writer).try_init().is_ok() {
        DROPPED.get_or_init(|| dropped);
        *WRITER.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    }
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        error!(location, message = panic.payload_as_str(), "something panicked; the gateway goes on");
    }));
}

/// Writes what still waits to be written, as far as somebody reads it. What is logged later is dropped.
pub(crate) fn finish() {
    let writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Ending the writer has a time-out of its own; but when that is over it prints a remark, which may be stuck too.
    within(LAST_LINES, move || drop(writer));
}

/// How many lines were dropped so far.
pub(crate) fn dropped_lines() -> u64 {
    DROPPED.get().map_or(0, |dropped| dropped.dropped_lines() as u64)
}

/// Does what writes to an output that nobody may be reading, and goes on when it is done or `patience` is over.
pub(crate) fn within(patience: Duration, write: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        write();
        // Fails when nobody waits any more.
        let _ = done.send(());
    });
    let _ = is_done.recv_timeout(patience);
}

/// Standard error, as the thread that writes sees it: every wait for a reader is here.
struct Stderr {
    log: Log,
    /// How many dropped lines the log has told of.
    dropped: u64,
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write(line)
    }

    /// Called when all lines that waited have been written.
    fn flush(&mut self) -> io::Result<()> {
        let dropped = dropped_lines();
        let lines = dropped - self.dropped;
        if lines > 0 {
            self.dropped = dropped;
            // Past the buffer, which may be full again, and whatever level the operator chose.
            let told = subscriber(Log { level: LogLevel::Warn, ..self.log }, io::stderr);
            dispatcher::with_default(&told, || warn!(lines, "log lines were lost here: nobody read standard error"));
        }
        Ok(())
    }
}

fn subscriber<W>(log: Log, writer: W) -> Dispatch
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    match log.format {
        LogFormat::Text => registry().with(text(writer).with_filter(filter(log.level))).into(),
        LogFormat::Json => registry().with(json(writer).with_filter(filter(log.level))).into(),
    }
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

/// `level` for what is ours; of the libraries only what goes wrong, since what they say at finer levels may
/// hold what people said.
fn filter(level: LogLevel) -> Targets {
    let ours = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let libraries = ours.min(LevelFilter::WARN);
    // To it, every question that has no answer is an error, and an account without a backup worth a warning at each sync.
    // What matters of that the adapter says.
    let matrix = if ours >= LevelFilter::DEBUG { libraries } else { LevelFilter::OFF };
    Targets::new().with_default(libraries).with_target("matrix_sdk", matrix).with_target("rejoinder", ours)
}
