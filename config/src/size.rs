//! Sizes in bytes: `"1 MiB"`, `"512KiB"`, `65536`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::number::number_or_text;

/// A size from 1 KiB to 64 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u32);

/// Unit names and their sizes in bytes.
const UNITS: [(&str, u32); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("B", 1),
];

impl Size {
    const MIN: u32 = 1 << 10;
    const MAX: u32 = 64 << 20;

    /// `count` MiB; not checked against the limits.
    pub const fn mib(count: u32) -> Self {
        Self(count << 20)
    }

    /// `count` bytes; not checked against the limits.
    pub const fn of_bytes(count: u32) -> Self {
        Self(count)
    }

    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    fn parse(text: &str) -> Option<Self> {
        parse_bytes(text).and_then(Self::within)
    }

    fn within(bytes: u64) -> Option<Self> {
        Self::between(bytes, Self::MIN, Self::MAX)
    }

    fn between(bytes: u64, min: u32, max: u32) -> Option<Self> {
        u32::try_from(bytes).ok().filter(|bytes| (min..=max).contains(bytes)).map(Self)
    }
}

/// Reads a size from `MIN` to `MAX` MiB.
pub(crate) fn between_mib<'de, D, const MIN: u32, const MAX: u32>(deserializer: D) -> Result<Size, D::Error>
where
    D: Deserializer<'de>,
{
    let within = |bytes| Size::between(bytes, MIN << 20, MAX << 20);
    let number = |bytes| u64::try_from(bytes).ok().and_then(within);
    let expected = format_args!("a size from \"{MIN} MiB\" to \"{MAX} MiB\"");
    number_or_text(deserializer, expected, number, |text| parse_bytes(text).and_then(within))
}

fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = match unit.trim() {
        "" => ("B", 1),
        unit => *UNITS.iter().find(|(name, _)| *name == unit)?,
    };
    number.parse::<u64>().ok()?.checked_mul(factor.into())
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes.is_multiple_of(1 << 20) => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes.is_multiple_of(1 << 10) => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = |bytes| u64::try_from(bytes).ok().and_then(Self::within);
        number_or_text(deserializer, "a size from \"1 KiB\" to \"64 MiB\"", number, Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_with_and_without_a_space_and_printed_with_one() {
        let read = |text| Size::parse(text).map(|size| size.to_string());

        assert_eq!(read("1MiB").as_deref(), Some("1 MiB"));
        assert_eq!(read("64 KiB").as_deref(), Some("64 KiB"));
        assert_eq!(read("1500").as_deref(), Some("1500 B"));
        assert_eq!(read("2 MB").as_deref(), Some("2000000 B"));
    }

    #[test]
    fn a_size_out_of_bounds_or_of_another_unit_is_none() {
        for text in ["", "MiB", "0", "1023", "65 MiB", "1 GiB", "1.5 MiB", "99999999999999999999 MiB", "1 parsec"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
