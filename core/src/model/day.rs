//! Calendar days.

use jiff::{ToSpan, Zoned, civil::Date, tz::TimeZone};
use rejoinder_guard::Timestamp;

/// A calendar day in the gateway's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day {
    /// The days since 1970-01-01.
    pub(crate) number: i64,
    pub(crate) began_at: Timestamp,
    pub(crate) ends_at: Timestamp,
}

impl Day {
    pub(crate) fn of(at: Timestamp, zone: &TimeZone) -> Self {
        let zoned = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default().to_zoned(zone.clone());
        let epoch = Date::constant(1970, 1, 1);
        let number = zoned.date().since((jiff::Unit::Day, epoch)).map_or(0, |span| i64::from(span.get_days()));
        let began = zoned.start_of_day().unwrap_or_else(|_| zoned.clone());
        let ends = began.date().checked_add(1.day()).and_then(|next| next.to_zoned(zone.clone())).unwrap_or(zoned);
        let time = |zoned: &Zoned| Timestamp::from_millis(zoned.timestamp().as_millisecond());
        Self { number, began_at: time(&began), ends_at: time(&ends) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_that_of_the_time_zone() {
        let zone = TimeZone::get("Europe/Vienna").expect("it is known");
        let at = |text: &str| Timestamp::from_millis(text.parse::<jiff::Timestamp>().expect("a time").as_millisecond());

        // The day on which summer time ends has 25 hours.
        let day = Day::of(at("2026-10-24T22:00:00Z"), &zone);
        assert_eq!((day.began_at, day.ends_at), (at("2026-10-24T22:00:00Z"), at("2026-10-25T23:00:00Z")));
        assert_eq!(Day::of(at("2026-10-25T22:59:59Z"), &zone), day);
        assert_eq!(Day::of(day.ends_at, &zone).number, day.number + 1);
        assert_eq!(Day::of(at("1970-01-01T00:00:00Z"), &TimeZone::UTC).number, 0);
    }
}
