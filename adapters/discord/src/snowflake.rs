//! Discord's ids: numbers that grow with time (<https://discord.com/developers/docs/reference#snowflakes>).

use rejoinder_core::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de};

/// The first millisecond of 2015, from which ids count.
const EPOCH_MS: i64 = 1_420_070_400_000;

/// An id. Serialised as a string, as Discord does. Zero means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Snowflake(u64);

impl Snowflake {
    /// The smallest id that something created at `at` can have.
    pub(crate) fn at(at: Timestamp) -> Self {
        Self(u64::try_from(at.as_millis() - EPOCH_MS).unwrap_or(0) << 22)
    }

    pub(crate) fn created_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0 >> 22).unwrap_or(0) + EPOCH_MS)
    }

    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl std::fmt::Display for Snowflake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Snowflake {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Snowflake {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Snowflake;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an id")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Snowflake, E> {
                Snowflake::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Snowflake, E> {
                Ok(Snowflake(number))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example from Discord's documentation.
    #[test]
    fn an_id_says_when_it_was_made() {
        let id = Snowflake::parse("175928847299117063").expect("an id");

        assert_eq!(id.created_at(), Timestamp::from_millis(1_462_015_105_796));
        assert!(Snowflake::at(id.created_at()) <= id);
        assert!(Snowflake::at(Timestamp::from_millis(1_462_015_105_797)) > id);
    }

    #[test]
    fn an_id_is_a_text_and_may_be_read_from_a_number() {
        let read = |json: &str| serde_json::from_str::<Snowflake>(json).ok().map(|id| id.to_string());

        assert_eq!(read("\"42\"").as_deref(), Some("42"));
        assert_eq!(read("42").as_deref(), Some("42"));
        assert_eq!(read("\"x\""), None);
    }
}
