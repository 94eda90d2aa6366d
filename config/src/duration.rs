//! Durations: `"250ms"`, `"20s"`, `"10m"`, `"1h30m"`, and for what is kept also `"90d"`.
#![expect(
    clippy::missing_errors_doc,
    reason = "called by serde; a value that does not fit a function's first line is an error"
)]

use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::{
    Deserializer, Serializer,
    de::{Error, Unexpected},
};

use crate::text;

/// Reads a duration from `MIN` to `MAX` milliseconds.
pub fn between<'de, D, const MIN: u64, const MAX: u64>(deserializer: D) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    let written = read(deserializer)?;
    within::<D::Error, MIN, MAX>(written, print)
}

/// As [`between`], also in days.
pub(crate) fn between_with_days<'de, D, const MIN: u64, const MAX: u64>(deserializer: D) -> Result<Duration, D::Error>
where
    D: Deserializer<'de>,
{
    let written = text::parsed(deserializer, "a duration such as \"30m\", \"6h\" or \"2d\"", parse_with_days)?;
    within::<D::Error, MIN, MAX>(written, print_days)
}

/// As [`between`], but `"off"` is `None`.
pub(crate) fn between_or_off<'de, D, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error>
where
    D: Deserializer<'de>,
{
    let written = text::parsed(deserializer, "a duration such as \"20s\", \"10m\" or \"1h30m\", or \"off\"", |text| {
        if text == "off" { Some(None) } else { parse(text).map(Some) }
    })?;
    written.map(|written| within::<D::Error, MIN, MAX>(written, print)).transpose()
}

/// Reads how long something is kept: from a second to ten years, or `"forever"` (`None`).
pub(crate) fn kept_or_forever<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let expected = "a duration such as \"90d\" or \"12h\", or \"forever\"";
    let written = text::parsed(deserializer, expected, |text| {
        if text == "forever" { Some(None) } else { parse_with_days(text).map(Some) }
    })?;
    written.map(|written| within::<D::Error, SECOND, { 3650 * DAY }>(written, print_days)).transpose()
}

/// Reads how long something is kept: from a second to ten years, or `"off"` for not at all.
pub(crate) fn kept_or_off<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let written = text::parsed(deserializer, "a duration such as \"7d\" or \"12h\", or \"off\"", |text| {
        if text == "off" { Some(None) } else { parse_with_days(text).map(Some) }
    })?;
    written.map_or(Ok(Duration::ZERO), |written| within::<D::Error, SECOND, { 3650 * DAY }>(written, print_days))
}

/// Reads how long something is kept: up to ten years, `"0s"` for not at all.
pub(crate) fn kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let written = text::parsed(deserializer, "a duration such as \"7d\" or \"12h\"", parse_with_days)?;
    within::<D::Error, 0, { 3650 * DAY }>(written, print_days)
}

/// Parses a duration, also in days: a day has 24 hours.
pub fn parse_with_days(text: &str) -> Option<SignedDuration> {
    let span: Span = text.parse().ok()?;
    span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SignedDuration, D::Error> {
    text::parsed(deserializer, "a duration such as \"250ms\", \"20s\", \"10m\" or \"1h30m\"", parse)
}

fn parse(text: &str) -> Option<SignedDuration> {
    text.parse().ok()
}

fn within<E: Error, const MIN: u64, const MAX: u64>(
    written: SignedDuration,
    print: fn(Duration) -> String,
) -> Result<Duration, E> {
    let (min, max) = (Duration::from_millis(MIN), Duration::from_millis(MAX));
    Duration::try_from(written).ok().filter(|duration| (min..=max).contains(duration)).ok_or_else(|| {
        let expected = format!("from {} to {}", print(min), print(max));
        let sign = if written.is_negative() { "-" } else { "" };
        E::invalid_value(Unexpected::Other(&format!("{sign}{}", print(written.unsigned_abs()))), &&*expected)
    })
}

fn print(duration: Duration) -> String {
    // Durations in a configuration are limited to far less than jiff's maximum.
    SignedDuration::try_from(duration).map_or_else(|_| format!("{duration:?}"), |duration| format!("{duration:#}"))
}

/// As [`print`], whole days as days.
fn print_days(duration: Duration) -> String {
    let day = Duration::from_millis(DAY).as_secs();
    let (days, is_whole) = (duration.as_secs() / day, duration.as_secs().is_multiple_of(day));
    if days > 0 && is_whole && duration.subsec_nanos() == 0 { format!("{days}d") } else { print(duration) }
}

/// Writes a duration in the format of the file.
pub fn write<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&print(*duration))
}

/// As [`write`]; `None` is `"off"`.
#[expect(clippy::ref_option, reason = "serde hands a reference to the field")]
pub(crate) fn write_or_off<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => write(duration, serializer),
        None => serializer.serialize_str("off"),
    }
}

/// As [`write`], whole days as days.
pub(crate) fn write_days<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&print_days(*duration))
}

/// As [`write`], whole days as days; `None` is `"forever"`.
#[expect(clippy::ref_option, reason = "serde hands a reference to the field")]
pub(crate) fn write_or_forever<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => serializer.serialize_str(&print_days(*duration)),
        None => serializer.serialize_str("forever"),
    }
}

/// As [`write_days`]; zero is `"off"`.
pub(crate) fn write_kept_or_off<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    if duration.is_zero() { serializer.serialize_str("off") } else { write_days(duration, serializer) }
}

/// In milliseconds.
pub const SECOND: u64 = 1_000;
/// In milliseconds.
pub const MINUTE: u64 = 60 * SECOND;
/// In milliseconds.
pub const HOUR: u64 = 60 * MINUTE;
/// In milliseconds.
pub const DAY: u64 = 24 * HOUR;
