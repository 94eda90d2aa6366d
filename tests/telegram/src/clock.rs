//! The time, in one place: what the Bot API calls a date is a Unix time in seconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this server is a program of its own, and its dates are the machine's")]
pub(crate) fn unix_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the machine's clock is past 1970");
    i64::try_from(since.as_millis()).expect("the year is below 292,000,000")
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> i64 {
    unix_millis() / 1000
}
