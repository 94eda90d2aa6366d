//! Times that are typed, and texts on lines of their own.

use rejoinder_core::{Clock as _, SystemClock, Timestamp};

use crate::time;

pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    time::parse_or_ago(text, SystemClock.now())
        .ok_or_else(|| "use a time such as 2026-05-01T12:00:00Z, or how long ago: 90s, 2h, 1d".to_owned())
}

pub(super) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  | {line}")).collect::<Vec<_>>().join("\n")
}
