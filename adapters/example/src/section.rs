//! `[channels.example.<name>]`: an account on an example chat server, as the operator configured it.

use rejoinder_config::{ChannelKeys, ChannelSection, Checks, Common, IdFormat, People, Secret, Section, text};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExampleSection {
    #[serde(deserialize_with = "text::filled")]
    pub address: String,
    pub token: Secret,
    #[serde(rename = "..people")]
    pub people: People,
    #[serde(rename = "..common")]
    pub common: ChannelKeys,
}

impl Default for ExampleSection {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:7421".to_owned(),
            token: Secret::default(),
            people: People::default(),
            common: ChannelKeys::default(),
        }
    }
}

impl Section for ExampleSection {
    const REQUIRED: &'static [&'static str] = &["token"];

    fn check(&self, checks: &mut Checks<'_>) {
        if !is_word(self.token.expose()) {
            checks.wrong(checks.key(&["token"]), "must be one word, without spaces");
        }
        if !self.address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
            checks.wrong(checks.key(&["address"]), "must be a host and a port such as \"127.0.0.1:7421\"");
        }
        self.people.check(&ID_FORMAT, checks);
        self.common.groups.check(&ID_FORMAT, checks);
    }
}

impl ChannelSection for ExampleSection {
    const PLATFORM: &'static str = "example";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        self.common.common(&self.people)
    }
}

/// The format of the names of people and rooms.
const ID_FORMAT: IdFormat = IdFormat {
    is_person: |entry| is_word(entry) && !entry.starts_with('#'),
    is_group: |entry| is_word(entry) && entry.starts_with('#') && entry.len() > 1,
    is_agent: is_word,
    agent: "an agent's name",
    person: "a person's name such as \"ada\", or \"*\"",
    group: "a room's name such as \"#kitchen\"",
};

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::{Machine, check_channel_manual};

    use super::*;

    #[test]
    fn the_manual_says_what_the_section_has() {
        check_channel_manual::<ExampleSection>(
            &[("EXAMPLE_TOKEN", "open-sesame")],
            &["agent", "language", "queue", "group_queue", "voice", "groups"],
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let toml =
            "[channels.example.main]\naddress = \"nowhere\"\ntoken = \"two words\"\nallow_from = [\"#kitchen\"]\n";
        let errors = Machine::with_channel::<ExampleSection>(toml).errors();

        for key in ["address", "token", "allow_from[0]"] {
            assert!(errors.contains(&format!("`channels.example.main.{key}`")), "{key}: {errors}");
        }
    }

    #[test]
    fn the_keys_of_every_channel_stand_among_its_own() {
        let toml = "[channels.example.main]\ntoken = \"open-sesame\"\ncolour = 1\n\"..people\" = {}\n";
        let errors = Machine::with_channel::<ExampleSection>(toml).errors();

        let known = "is unknown; known here: `address`, `token`, `dm_policy`, `allow_from`, `group_policy`, `group_allow_from`, \
                     `quote_strangers`, `allow_bots`, `queue`, `group_queue`, `voice`, `agent`, `language` and `groups`";
        assert_eq!(errors.matches(known).count(), 2, "{errors}");
        assert!(errors.contains("`channels.example.main.colour`") && errors.contains("(rejoinder.toml:3)"), "{errors}");
    }
}
