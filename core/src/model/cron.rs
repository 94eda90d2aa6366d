//! Cron patterns: when their times come.

use std::time::Duration;

use croner::{
    Cron,
    errors::CronError,
    parser::{CronParser, Seconds},
};
use jiff::{
    Zoned,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};
use rejoinder_guard::Timestamp;

/// A cron pattern on the clocks of a time zone.
///
/// A time that they skip comes right after the gap, and one that they repeat comes once. Only a pattern for every hour goes by hours
/// that pass.
pub(crate) struct CronClock {
    pattern: Cron,
    zone: TimeZone,
}

impl CronClock {
    /// # Errors
    /// What is wrong with the pattern, in plain words.
    pub(crate) fn new(pattern: &str, zone: TimeZone) -> Result<Self, String> {
        parse(pattern).map(|pattern| Self { pattern, zone }).map_err(|_| complaint(pattern))
    }

    fn is_hourly(&self) -> bool {
        self.pattern.pattern.hours.values().len() == 24
    }

    pub(crate) fn next(&self, at: Timestamp) -> Option<Timestamp> {
        let start = zoned(at, self.zone.clone())?;
        if self.is_hourly() {
            return self.next_that_passes(start.timestamp());
        }
        // What they show never goes back here.
        let mut shown = on_one_clock(start.datetime())?;
        loop {
            shown = self.pattern.find_next_occurrence(&shown, false).ok()?;
            let next = self.first_at(shown.datetime())?;
            if next > at {
                return Some(next);
            }
        }
    }

    /// The last time at or before `at`.
    pub(crate) fn last(&self, at: Timestamp) -> Option<Timestamp> {
        let end = zoned(at, self.zone.clone())?;
        if self.is_hourly() {
            return self.last_that_passed(end.timestamp());
        }
        // Before they were set back, they showed a later time.
        let before = self.before_set(end.timestamp()).map(|before| before.to_zoned(self.zone.clone()).datetime());
        let shown = on_one_clock(before.map_or(end.datetime(), |before| before.max(end.datetime())))?;
        let mut shown = self.pattern.find_previous_occurrence(&shown, true).ok()?;
        loop {
            let last = self.first_at(shown.datetime())?;
            if last <= at {
                return Some(last);
            }
            shown = self.pattern.find_previous_occurrence(&shown, false).ok()?;
        }
    }

    /// As [`next`](Self::next), by the hours that pass: from one change of the clocks to the next, they are those of one offset.
    fn next_that_passes(&self, at: jiff::Timestamp) -> Option<Timestamp> {
        let (mut from, mut is_included) = (at, false);
        loop {
            let next = self.pattern.find_next_occurrence(&self.at_one_offset(from), is_included).ok()?;
            match self.zone.following(from).next().filter(|set| set.timestamp() <= next.timestamp()) {
                Some(set) => (from, is_included) = (set.timestamp(), true),
                None => return Some(timestamp(&next)),
            }
        }
    }

    /// As [`last`](Self::last), by the hours that passed.
    fn last_that_passed(&self, at: jiff::Timestamp) -> Option<Timestamp> {
        let mut until = at;
        loop {
            let last = self.pattern.find_previous_occurrence(&self.at_one_offset(until), true).ok()?;
            match self.before_set(until).filter(|before| last.timestamp() <= *before) {
                Some(before) => until = before,
                None => return Some(timestamp(&last)),
            }
        }
    }

    fn at_one_offset(&self, at: jiff::Timestamp) -> Zoned {
        at.to_zoned(TimeZone::fixed(self.zone.to_offset(at)))
    }

    /// The moment before the clocks were last set, up to `at`.
    fn before_set(&self, at: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let millisecond = Duration::from_millis(1);
        let set = self.zone.preceding(at.checked_add(millisecond).ok()?).next()?;
        set.timestamp().checked_sub(millisecond).ok()
    }

    /// When the clocks show a time first, or have skipped it.
    fn first_at(&self, shown: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(shown);
        let at = match ambiguous.offset() {
            AmbiguousOffset::Gap { after, .. } => {
                let before_gap = after.to_timestamp(shown).ok()?;
                self.zone.following(before_gap).next()?.timestamp()
            }
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.compatible().ok()?,
        };
        Some(Timestamp::from_millis(at.as_millisecond()))
    }
}

fn parse(pattern: &str) -> Result<Cron, CronError> {
    CronParser::builder().seconds(Seconds::Disallowed).build().parse(pattern)
}

const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, or L for the last"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of the week", "0 to 7, or SUN to SAT"),
];

/// What is wrong with a pattern that cannot be read.
fn complaint(pattern: &str) -> String {
    let fields: Vec<_> = pattern.split_whitespace().collect();
    let words = match fields.len() {
        5 => fields.iter().zip(0..).find_map(|(field, index)| {
            let mut alone = ["*"; 5];
            alone[index] = field;
            let (name, range) = FIELDS[index];
            parse(&alone.join(" "))
                .is_err()
                .then(|| format!("`{field}` is no {name} ({range}, with * , - and / between)"))
        }),
        1 => Some("it has one field".to_owned()),
        count => Some(format!("it has {count} fields")),
    };
    words.unwrap_or_else(|| "it has no time that ever comes".to_owned())
}

/// A time on a clock that is never set.
fn on_one_clock(shown: DateTime) -> Option<Zoned> {
    shown.to_zoned(TimeZone::UTC).ok()
}

/// `None` for a time that no clock shows.
fn zoned(at: Timestamp, zone: TimeZone) -> Option<Zoned> {
    Some(jiff::Timestamp::from_millisecond(at.as_millis()).ok()?.to_zoned(zone))
}

fn timestamp(at: &Zoned) -> Timestamp {
    Timestamp::from_millis(at.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_pattern_is_said_in_plain_words() {
        let complaint = |pattern: &str| CronClock::new(pattern, TimeZone::UTC).err().expect("it is no pattern");

        assert_eq!(complaint("0 25 * * *"), "`25` is no hour (0 to 23, with * , - and / between)");
        assert_eq!(
            complaint("0 8 * * FUN"),
            "`FUN` is no day of the week (0 to 7, or SUN to SAT, with * , - and / between)"
        );
        assert_eq!(complaint("0 8 * *"), "it has 4 fields");
        assert_eq!(complaint("hourly"), "it has one field");
    }
}
