//! Languages of people.

use std::{fmt, str::FromStr};

/// A language: the primary part of a tag such as `de-AT` (BCP 47), in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language([u8; 3]);

impl Language {
    /// English, the language of the built-in texts without a language of their own.
    pub const ENGLISH: Self = Self(*b"en\0");

    /// The language of a tag, as platforms and browsers write them: `de`, `de-AT` or `de_AT`. `None` for anything else.
    pub fn of(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_']).next()?;
        if !(2..=3).contains(&primary.len()) || !primary.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return None;
        }
        let mut letters = [0; 3];
        for (letter, byte) in letters.iter_mut().zip(primary.bytes()) {
            *letter = byte.to_ascii_lowercase();
        }
        Some(Self(letters))
    }

    /// The tag: two or three letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default().trim_end_matches('\0')
    }

    /// The English name of a language that is spoken by many.
    pub fn english_name(self) -> Option<&'static str> {
        Some(match self.as_str() {
            "ar" => "Arabic",
            "cs" => "Czech",
            "da" => "Danish",
            "de" => "German",
            "el" => "Greek",
            "en" => "English",
            "es" => "Spanish",
            "fa" => "Persian",
            "fi" => "Finnish",
            "fr" => "French",
            "he" => "Hebrew",
            "hi" => "Hindi",
            "hu" => "Hungarian",
            "id" => "Indonesian",
            "it" => "Italian",
            "ja" => "Japanese",
            "ko" => "Korean",
            "nb" | "no" => "Norwegian",
            "nl" => "Dutch",
            "pl" => "Polish",
            "pt" => "Portuguese",
            "ro" => "Romanian",
            "ru" => "Russian",
            "sv" => "Swedish",
            "th" => "Thai",
            "tr" => "Turkish",
            "uk" => "Ukrainian",
            "vi" => "Vietnamese",
            "zh" => "Chinese",
            _ => return None,
        })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl FromStr for Language {
    type Err = &'static str;

    fn from_str(tag: &str) -> Result<Self, Self::Err> {
        Self::of(tag).ok_or("no tag of a language")
    }
}

stored_as_text!(Language);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_the_first_part_of_its_tag() {
        let of = |tag| Language::of(tag).map(|language| language.to_string());

        for tag in ["de", "DE", "de-AT", "de_DE", " de-Latn-DE-1996 "] {
            assert_eq!(of(tag).as_deref(), Some("de"), "{tag}");
        }
        assert_eq!(of("fil").as_deref(), Some("fil"));
        for wrong in ["", "d", "germ", "*", "d1", "12", "de,en", "dé", "-de", "i-klingon", "../en"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_stored_language_is_read_again() {
        let stored = serde_json::to_string(&Language::of("de-AT")).expect("it is written");

        assert_eq!(stored, "\"de\"");
        assert_eq!(serde_json::from_str::<Option<Language>>(&stored).expect("it is read"), Language::of("de"));
        assert!(serde_json::from_str::<Language>("\"nonsense\"").is_err());
    }
}
