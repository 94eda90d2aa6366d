//! Formats and parses times for people and programs.

use std::time::Duration;

use rejoinder_config::duration::parse_with_days;
use rejoinder_core::Timestamp;
pub(crate) use rejoinder_core::age;

/// RFC 3339 in UTC with milliseconds. A time outside its range is written as the stored number.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_or_else(|_| at.to_string(), |at| format!("{at:.3}"))
}

/// Parses an RFC 3339 time (`2026-05-01T12:00:00Z`).
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.trim().parse().ok()?;
    Some(Timestamp::from_millis(at.as_millisecond()))
}

/// Parses a time as [`parse`] does, or a duration before `now` (`90s`, `2h`, `1d 12h`).
pub(crate) fn parse_or_ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    parse(text).or_else(|| {
        let before = i64::try_from(duration(text)?.as_millis()).ok()?;
        Some(Timestamp::from_millis(now.as_millis().checked_sub(before)?))
    })
}

/// Parses a duration (`90s`, `2h`, `1d 12h`). A day has 24 hours.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    Duration::try_from(parse_with_days(text.trim())?).ok()
}

/// A time on this machine's clock and in its time zone, to the second.
pub(crate) fn local(at: Timestamp) -> String {
    let zone = jiff::tz::TimeZone::system();
    jiff::Timestamp::from_millisecond(at.as_millis())
        .map_or_else(|_| at.to_string(), |at| at.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A time for people, with how long ago it was: `10:58 CET (5 min ago)`, with the day if it is another one.
pub(crate) fn since(at: Timestamp, now: Timestamp, zone: &jiff::tz::TimeZone) -> String {
    let zoned = |at: Timestamp| jiff::Timestamp::from_millisecond(at.as_millis()).map(|at| at.to_zoned(zone.clone()));
    let (Ok(then), Ok(today)) = (zoned(at), zoned(now)) else { return at.to_string() };
    let format = if then.date() == today.date() { "%H:%M %Z" } else { "%Y-%m-%d %H:%M %Z" };
    format!("{} ({} ago)", then.strftime(format), age(now.since(at)))
}

/// A short time: `850 ms`, `12.3 s`.
pub(crate) fn span(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        _ => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        let at = Timestamp::from_millis(1_700_000_000_123);

        assert_eq!(rfc3339(at), "2023-11-14T22:13:20.123Z");
        assert_eq!(parse(&rfc3339(at)), Some(at));
        assert_eq!(parse("2023-11-14T23:13:20.123+01:00"), Some(at));
    }

    #[test]
    fn how_long_ago_is_a_time_too() {
        let now = Timestamp::from_millis(200_000_000);

        assert_eq!(parse_or_ago("90s", now), Some(Timestamp::from_millis(199_910_000)));
        assert_eq!(parse_or_ago("1d 2h", now), Some(Timestamp::from_millis(200_000_000 - 26 * 3_600_000)));
        for text in ["", "yesterday", "-5m", "5 parsecs", "1 month"] {
            assert_eq!(parse_or_ago(text, now), None, "{text}");
        }
    }
}
