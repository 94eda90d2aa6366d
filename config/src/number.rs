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

/// Reads a whole number with `number`, or text with `text`. If that returns `None`, the error is "must be {expected}".
pub fn number_or_text<'de, D, T>(
    deserializer: D,
    expected: impl fmt::Display,
    number: impl FnOnce(i64) -> Option<T>,
    text: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    struct Either<N, T> {
        expected: String,
        number: N,
        text: T,
    }
    impl<V, N: FnOnce(i64) -> Option<V>, T: FnOnce(&str) -> Option<V>> Visitor<'_> for Either<N, T> {
        type Value = V;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.expected)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<V, E> {
            (self.number)(number).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &&*self.expected))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<V, E> {
            let shown = if text.trim().is_empty() { "" } else { text };
            (self.text)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(shown), &&*self.expected))
        }
    }
    deserializer.deserialize_any(Either { expected: expected.to_string(), number, text })
}

fn within<const MIN: u32, const MAX: u32>(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number))
}

/// Reads a whole number from `MIN` to `MAX`.
pub fn between<'de, D, const MIN: u32, const MAX: u32>(deserializer: D) -> Result<u32, D::Error>
where
    D: Deserializer<'de>,
{
    let expected = format_args!("a whole number from {MIN} to {MAX}");
    number_or_text(deserializer, expected, within::<MIN, MAX>, |_| None)
}

/// As [`between`], but `"off"` is `None`.
pub(crate) fn between_or_off<'de, D, const MIN: u32, const MAX: u32>(deserializer: D) -> Result<Option<u32>, D::Error>
where
    D: Deserializer<'de>,
{
    let expected = format_args!("a whole number from {MIN} to {MAX}, or \"off\"");
    let number = |number| within::<MIN, MAX>(number).map(Some);
    number_or_text(deserializer, expected, number, |text| (text == "off").then_some(None))
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
