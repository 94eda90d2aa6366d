//! Hours of the day, as the operator writes them.

use rejoinder_core::Hours;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{alerts::parse_hours, text};

/// `22:00-07:00`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) Hours);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "two different times of day such as \"22:00-07:00\"";
        text::parsed(deserializer, expected, |text| {
            parse_hours(text).filter(|hours| hours.from != hours.until).map(Self)
        })
    }
}
