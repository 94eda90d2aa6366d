//! Which build this is.

use std::sync::LazyLock;

use jiff::Timestamp;

/// The beginning of the commit, or `unknown`.
pub(crate) const COMMIT: &str = env!("REJOINDER_BUILD_COMMIT");

/// Version, commit and its day: `0.1.0 (abc1234567, 2026-11-23)`.
pub(crate) static LONG: LazyLock<String> =
    LazyLock::new(|| format!("{} ({COMMIT}, {})", env!("CARGO_PKG_VERSION"), day(env!("REJOINDER_BUILD_TIME"))));

/// The day in UTC, `unknown` if there is none. `time` is in seconds since the Unix epoch.
fn day(time: &str) -> String {
    let time = time.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "unknown".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_known_or_said_to_be_unknown() {
        assert_eq!(day("1795425579"), "2026-11-23");
        assert_eq!(day(""), "unknown");
        assert_eq!(day("yesterday"), "unknown");
    }
}
