//! `[channels.example.<name>]`: an account on an example chat server, as the operator configured it.

use rejoinder_config::{AllowList, ChannelSection, Checks, Common, IdFormat, People, Secret, Section, text};
use rejoinder_core::{DirectPolicy, GroupPolicy, Language, QueueMode};
use serde::{Deserialize, Serialize};

/// One account.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExampleSection {
    #[serde(deserialize_with = "text::filled")]
    pub address: String,
    pub token: Secret,
    pub dm_policy: DirectPolicy,
    pub allow_from: AllowList,
    pub group_policy: GroupPolicy,
    pub group_allow_from: AllowList,
    /// What happens to a message of a direct chat that comes while a turn runs. Overrides `queue.mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueMode>,
    /// The same in groups. Overrides `queue.group_mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_queue: Option<QueueMode>,
    /// The agent that answers, if it is not the default agent.
    #[serde(deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
    /// The language of people whose own is not known, if not `guard.language`.
    #[serde(deserialize_with = "text::language_option")]
    pub language: Option<Language>,
}

impl Default for ExampleSection {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:7421".to_owned(),
            token: Secret::default(),
            dm_policy: DirectPolicy::default(),
            allow_from: AllowList::default(),
            group_policy: GroupPolicy::default(),
            group_allow_from: AllowList::default(),
            queue: None,
            group_queue: None,
            agent: None,
            language: None,
        }
    }
}

impl ExampleSection {
    fn people(&self) -> People {
        People {
            dm_policy: self.dm_policy,
            allow_from: self.allow_from.clone(),
            group_policy: self.group_policy,
            group_allow_from: self.group_allow_from.clone(),
            quote_strangers: true,
            allow_bots: AllowList::default(),
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
        self.people().check(&ID_FORMAT, checks);
    }
}

impl ChannelSection for ExampleSection {
    const PLATFORM: &'static str = "example";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common {
            agent: self.agent.clone(),
            queue: self.queue,
            group_queue: self.group_queue,
            language: self.language,
            people: Some(self.people()),
            ..Common::default()
        }
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
            &["agent", "language", "queue", "group_queue"],
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
}
