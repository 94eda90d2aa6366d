//! Numbers with limits.
#![expect(
    clippy::missing_errors_doc,
    reason = "called by serde; a value that does not fit a function's first line is an error"
)]

use std::fmt;

use serde::{
    Deserializer, Serializer,
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

/// As [`between`], but `"off"` is `None`.
pub(crate) fn between_or_off<'de, D, const MIN: u32, const MAX: u32>(deserializer: D) -> Result<Option<u32>, D::Error>
where
    D: Deserializer<'de>,
{
    struct BetweenOrOff<const MIN: u32, const MAX: u32>;
    impl<const MIN: u32, const MAX: u32> Visitor<'_> for BetweenOrOff<MIN, MAX> {
        type Value = Option<u32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number from {MIN} to {MAX}, or \"off\"")
        }

        fn visit_i64<E: Error>(self, written: i64) -> Result<Option<u32>, E> {
            let number = u32::try_from(written).ok().filter(|number| (MIN..=MAX).contains(number));
            number.map(Some).ok_or_else(|| E::invalid_value(Unexpected::Signed(written), &self))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Option<u32>, E> {
            if text == "off" { Ok(None) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
        }
    }
    deserializer.deserialize_any(BetweenOrOff::<MIN, MAX>)
}

/// Writes a number; `None` is `"off"`.
#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to the field")]
pub(crate) fn write_or_off<S: Serializer>(number: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => serializer.serialize_u32(*number),
        None => serializer.serialize_str("off"),
    }
}

/// As [`between`], for an optional key.
pub fn between_option<'de, D, const MIN: u32, const MAX: u32>(deserializer: D) -> Result<Option<u32>, D::Error>
where
    D: Deserializer<'de>,
{
    between::<D, MIN, MAX>(deserializer).map(Some)
}
