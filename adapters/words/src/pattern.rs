//! The name of a file, which may hold the day.

use jiff::{Timestamp, Zoned, civil::date, fmt::strtime, tz::TimeZone};
use serde::{Deserialize, Serialize};

/// A path below the folder of words, in which `%Y-%m-%d` and the like stand for a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

impl Pattern {
    /// The path for a point in time; `None` if it would lead out of the folder.
    pub(crate) fn path(&self, at: Timestamp, zone: &TimeZone) -> Option<String> {
        self.path_on(&at.to_zoned(zone.clone()))
    }

    fn path_on(&self, day: &Zoned) -> Option<String> {
        let path = strtime::format(&self.0, day).ok()?;
        path.split('/').all(is_name).then_some(path)
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a part of a path is a name of its own.
fn is_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && !part.contains(|c: char| c.is_control() || c == '\\') && part.len() <= 200
}

impl TryFrom<String> for Pattern {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let pattern = Self(text);
        let day = date(2030, 12, 31).at(23, 59, 59, 0).to_zoned(TimeZone::UTC).expect("it is in range");
        if pattern.path_on(&day).is_none() {
            return Err(
                "must be a path below the folder `words` of the data directory, such as \"journal/%Y-%m-%d.md\": \
                        without `..` and a `/` at its beginning or end, and with `%` only before what stands for a part of a date",
            );
        }
        Ok(pattern)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn pattern(text: &str) -> Option<Pattern> {
        Pattern::try_from(text.to_owned()).ok()
    }

    /// The day is that of the zone.
    #[test]
    fn a_file_is_named_after_the_day() {
        let pattern = pattern("journal/%Y-%m-%d.md").expect("a pattern");
        let at: Timestamp = "2026-11-26T23:30:00Z".parse().expect("a time");
        let vienna = TimeZone::get("Europe/Vienna").expect("it is known");

        assert_eq!(pattern.path(at, &TimeZone::UTC).as_deref(), Some("journal/2026-11-26.md"));
        assert_eq!(pattern.path(at, &vienna).as_deref(), Some("journal/2026-11-27.md"));
    }

    #[rstest]
    #[case("")]
    #[case("/etc/passwd")]
    #[case("../rejoinder.db")]
    #[case("journal/../../rejoinder.db")]
    #[case("journal/")]
    #[case("./journal")]
    #[case("journal\\..\\x")]
    #[case("journal%!")]
    #[case("journal/%n.md")]
    fn a_path_stays_in_its_folder(#[case] text: &str) {
        assert_eq!(pattern(text), None);
    }
}
