//! The clock. Dates in the Bot API are Unix times in seconds.

use std::time::{SystemTime, UNIX_EPOCH};

#[expect(clippy::disallowed_methods, reason = "this server is a program of its own, and its dates are the machine's")]
pub(crate) fn unix_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the machine's clock is after 1970");
    i64::try_from(since.as_millis()).expect("the year is below 292,000,000")
}

pub(crate) fn unix_seconds() -> i64 {
    unix_millis() / 1000
}
