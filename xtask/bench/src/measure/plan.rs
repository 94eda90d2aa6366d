//! The load of hooks that several measurements put on a server, and its figures.

use std::time::Duration;

use crate::{
    bench::Bench,
    client::Endpoint,
    figures::{
        Sample,
        Unit::{Milliseconds, PerSecond},
    },
    load::{Plan, Report},
};

/// Long enough for pools to fill and connections to open.
pub(super) const WARM_UP: Duration = Duration::from_secs(1);

/// A load of this many callers, each with a conversation of its own.
pub(super) fn plan(bench: &Bench, server: &Endpoint, callers: u32) -> Plan {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Plan {
        endpoint: server.clone(),
        callers,
        length_ms: Some(ms(bench.length)),
        warm_up_ms: ms(WARM_UP),
        requests: None,
        wait: 30,
        expect: Some(200),
        conversations: None,
    }
}

pub(super) fn throughput_and_waits(who: &str, callers: &str, report: &Report) -> [Sample; 3] {
    [
        Sample::untargeted(format!("{who}, {callers}"), report.throughput, PerSecond),
        Sample::untargeted(format!("{who}, {callers}, median"), report.median_ms, Milliseconds),
        Sample::untargeted(format!("{who}, {callers}, 99 of 100"), report.p99_ms, Milliseconds),
    ]
}
