//! Formats and parses times for people and programs.

use std::time::Duration;

use jiff::{
    Zoned,
    civil::{Date, Time},
    tz::TimeZone,
};
use rejoinder_config::duration::parse_with_days;
pub(crate) use rejoinder_core::age;
use rejoinder_core::{Timestamp, zone};

use rejoinder_terminal::output::local_time;

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

/// Parses a time of day in `time_zone`: `09:00` is the next one, `today 9:00` and `tomorrow 9:00` name the day.
pub(crate) fn time_of_day(text: &str, time_zone: &str, now: Timestamp) -> Option<Timestamp> {
    let (day, time) = text.trim().rsplit_once(' ').unwrap_or(("", text.trim()));
    let (hour, minute) = time.split_once(':')?;
    let time = Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
    let zone = zone(time_zone)?;
    let today = zoned(now, &zone).date();
    match &*day.trim().to_ascii_lowercase() {
        "today" => on(today, time, &zone),
        "tomorrow" => on(today.tomorrow().ok()?, time, &zone),
        "" => next(now, time, &zone),
        _ => None,
    }
}

/// When it is next this time of day. If the clocks skip it, the moment after.
pub(crate) fn next(now: Timestamp, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    let today = zoned(now, zone).date();
    on(today, time, zone).filter(|at| *at > now).or_else(|| on(today.tomorrow().ok()?, time, zone))
}

fn on(date: Date, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    let at = date.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp();
    Some(Timestamp::from_millis(at.as_millisecond()))
}

pub(crate) fn zoned(at: Timestamp, zone: &TimeZone) -> Zoned {
    jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default().to_zoned(zone.clone())
}

/// A time on this machine's clock and in its time zone, to the second, with the zone.
pub(crate) fn local(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_or_else(|_| at.to_string(), local_time)
}

/// A time for people, with how long ago it was: `10:58 CET (5 min ago)`, with the day if it is another one.
pub(crate) fn since(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
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
    fn a_time_of_day_is_the_next_one_of_its_zone() {
        let now = parse("2026-01-01T10:00:00Z").unwrap();
        let read = |text| time_of_day(text, "Europe/Vienna", now).map(rfc3339);

        assert_eq!(read("12:30").as_deref(), Some("2026-01-01T11:30:00.000Z"));
        assert_eq!(read("09:00").as_deref(), Some("2026-01-02T08:00:00.000Z"));
        assert_eq!(read("tomorrow 9:00").as_deref(), Some("2026-01-02T08:00:00.000Z"));
        assert_eq!(read("Today 23:59").as_deref(), Some("2026-01-01T22:59:00.000Z"));
        for text in ["", "9", "25:00", "someday 9:00", "2026-01-01 9:00"] {
            assert_eq!(read(text), None, "{text}");
        }
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

    #[test]
    fn the_next_time_of_day_follows_the_clocks_when_they_change() {
        let zone = TimeZone::get("Europe/Vienna").unwrap();
        let at = |text: &str| Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
        let eight = Time::strptime("%H:%M", "08:00").unwrap();

        assert_eq!(next(at("2026-03-28T05:00:00Z"), eight, &zone), Some(at("2026-03-28T07:00:00Z")));
        assert_eq!(next(at("2026-03-28T07:00:00Z"), eight, &zone), Some(at("2026-03-29T06:00:00Z")));
        assert_eq!(next(at("2026-10-24T12:00:00Z"), eight, &zone), Some(at("2026-10-25T07:00:00Z")));
        // 02:30 does not exist on that day.
        let skipped = Time::strptime("%H:%M", "02:30").unwrap();
        assert_eq!(next(at("2026-03-28T12:00:00Z"), skipped, &zone), Some(at("2026-03-29T01:30:00Z")));
    }
}
