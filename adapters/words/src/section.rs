//! `[channels.words.<name>]`: a place for words, as the operator configured it.

use rejoinder_config::{ChannelSection, Checks, Common, Secret, Section, text};
use rejoinder_kit::signing_key;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::Pattern;

/// One place. With neither a file nor a URL, words are recorded only.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WordsSection {
    /// The file to which words are appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Pattern>,
    /// Where words are posted.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "text::write_origin",
        deserialize_with = "text::http_url_option"
    )]
    pub url: Option<Url>,
    /// Signs the posts: `whsec_` and 24 to 64 bytes in base64. Set if and only if `url` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
}

impl Section for WordsSection {
    fn check(&self, checks: &mut Checks<'_>) {
        let key = checks.key(&["secret"]);
        match (&self.url, &self.secret) {
            (Some(_), None) => checks.wrong(key, "must be set: the posts to `url` are signed with it"),
            (None, Some(_)) => checks.wrong(key, "is not used without `url`: set that, or remove this key"),
            (Some(_), Some(secret))
                if !secret.expose().starts_with("whsec_") || signing_key(secret.expose()).is_none() =>
            {
                let what =
                    "must be \"whsec_\" followed by a base64 key of 24 to 64 bytes, as Standard Webhooks requires";
                checks.wrong(key, what);
            }
            _ => {}
        }
        if self.file.is_some() && self.url.is_some() {
            checks.wrong(checks.key(&["file"]), "is set beside `url`: a place is one of them, so make two places");
        }
    }
}

impl ChannelSection for WordsSection {
    const PLATFORM: &'static str = rejoinder_core::WordsTo::PLATFORM;
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common { only_agents_words: true, ..Common::default() }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::{Machine, check_channel_manual};
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_says_what_the_section_has() {
        let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
        check_channel_manual::<WordsSection>(&[("ARCHIVE_SECRET", secret)], &["file", "url", "secret"]);
    }

    /// Nothing has to be configured for it.
    #[rstest]
    #[case("[triggers.one]\nidle = \"1h\"\nprompt = \"Reflect.\"\nwords_to = \"nowhere\"", 1)]
    #[case("[schedules.one]\nevery = \"1h\"\nto = \"ada\"\nprompt = \"Reflect.\"\nwords_to = \"nowhere\"", 1)]
    #[case("[triggers.one]\nidle = \"1h\"\nprompt = \"Reflect.\"", 0)]
    fn nowhere_is_a_place_where_it_is_named(#[case] toml: &str, #[case] places: usize) {
        let config = Machine::with_channel::<WordsSection>(toml).config();

        let found: Vec<_> = config.channels.of::<WordsSection>().map(|(name, _)| name).collect();
        assert_eq!(found, vec!["nowhere"; places]);
    }

    #[rstest]
    #[case("file = \"../rejoinder.db\"", "`channels.words.journal.file` must be a path below the folder `words`")]
    #[case("file = \"/etc/journal\"", "`channels.words.journal.file` must be a path below")]
    #[case("file = \"a.md\"\nurl = \"https://example.org\"", "`channels.words.journal.file` is set beside `url`")]
    #[case("url = \"https://example.org\"", "`channels.words.journal.secret` must be set")]
    #[case("url = \"https://example.org\"\nsecret = \"short\"", "`channels.words.journal.secret` must be \"whsec_\"")]
    #[case("secret = \"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\"", "`channels.words.journal.secret` is not used")]
    #[case("url = \"file:///etc/passwd\"", "`channels.words.journal.url` must be a URL that begins with http")]
    fn what_is_wrong_is_named(#[case] keys: &str, #[case] told: &str) {
        let errors = Machine::with_channel::<WordsSection>(&format!("[channels.words.journal]\n{keys}\n")).errors();

        assert!(errors.contains(told), "{errors}");
    }
}
