//! Numbers with limits.
#![expect(
    clippy::missing_errors_doc,
    reason = "called by serde; a value that does not fit a function's first line is an error"
)]

use std::fmt;

use serde::{
    Deserializer,
    de::{Error, Unexpected, Visitor},
};

/// Reads a whole number from `MIN` to `MAX`.
pub fn between<'de, D, const MIN: u32, const MAX: u32>(deserializer: D) -> Result<u32, D::Error>
where
    D: Deserializer<'de>,
{
    struct Between<const MIN: u32, const MAX: u32>;
    impl<const MIN: u32, const MAX: u32> Visitor<'_> for Between<MIN, MAX> {
        type Value = u32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number from {MIN} to {MAX}")
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
            u32::try_from(number)
                .ok()
                .filter(|number| (MIN..=MAX).contains(number))
                .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
        }
    }
    deserializer.deserialize_any(Between::<MIN, MAX>)
}

/// As [`between`], for an optional key.
pub fn between_option<'de, D, const MIN: u32, const MAX: u32>(deserializer: D) -> Result<Option<u32>, D::Error>
where
    D: Deserializer<'de>,
{
    between::<D, MIN, MAX>(deserializer).map(Some)
}
