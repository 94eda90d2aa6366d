//! Durations: `"250ms"`, `"20s"`, `"10m"`, `"1h30m"`.
#![expect(
    clippy::missing_errors_doc,
    reason = "called by serde; a value that does not fit a function's first line is an error"
)]

use std::time::Duration;

use jiff::SignedDuration;
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
    within::<D::Error, MIN, MAX>(written)
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
    written.map(within::<D::Error, MIN, MAX>).transpose()
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SignedDuration, D::Error> {
    text::parsed(deserializer, "a duration such as \"250ms\", \"20s\", \"10m\" or \"1h30m\"", parse)
}

fn parse(text: &str) -> Option<SignedDuration> {
    text.parse().ok()
}

fn within<E: Error, const MIN: u64, const MAX: u64>(written: SignedDuration) -> Result<Duration, E> {
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

/// In milliseconds.
pub const SECOND: u64 = 1_000;
/// In milliseconds.
pub const MINUTE: u64 = 60 * SECOND;
/// In milliseconds.
pub const HOUR: u64 = 60 * MINUTE;
