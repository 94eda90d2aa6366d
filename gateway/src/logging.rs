//! What is written to standard error.

use std::{
    io::{self, IsTerminal},
    panic,
};

use rejoinder_config::{Log, LogFormat, LogLevel};
use tracing::{Subscriber, error, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

/// Starts logging. A second call, in the same process, changes nothing.
pub(crate) fn start(log: Log) {
    // Fails where something else logs already, which is then what is wanted.
    let _ = match log.format {
        LogFormat::Text => registry().with(text().with_filter(filter(log.level))).try_init(),
        LogFormat::Json => registry().with(json().with_filter(filter(log.level))).try_init(),
    };
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        error!(location, message = panic.payload_as_str(), "something panicked; the gateway goes on");
    }));
}

fn text<S>() -> impl Layer<S>
where
    S: Subscriber + for<'span> registry::LookupSpan<'span>,
{
    let is_colourful = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    fmt::layer().with_writer(io::stderr).with_ansi(is_colourful).with_target(false)
}

fn json<S>() -> impl Layer<S>
where
    S: Subscriber + for<'span> registry::LookupSpan<'span>,
{
    fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false).with_writer(io::stderr)
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
