//! `[channels.discord.<name>]`: a Discord application and its bot, as the operator configured them.

use std::time::Duration;

use rejoinder_config::{
    Account, ChannelKeys, ChannelSection, Checks, Common, IdFormat, People, Secret, Section, Size,
    duration::{self, HOUR},
    number::number_or_text,
    text,
};
use rejoinder_core::{GroupPolicy, Rate};
use serde::{Deserialize, Deserializer, Serialize};
use url::Url;

/// Discord's own REST server.
pub const API_URL: &str = "https://discord.com";

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct DiscordSection {
    pub token: Secret,
    /// The address of the REST API, without `/api/v10`.
    #[serde(deserialize_with = "text::http_url")]
    pub api_url: Url,
    /// The address of the Gateway. `None`: the REST API returns it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text::websocket_url_option")]
    pub gateway_url: Option<Url>,
    /// Whether the bot reads messages in servers that do not mention it. Needs the privileged intent of that name.
    pub message_content: bool,
    #[serde(rename = "..people")]
    pub people: People,
    /// Whether the slash commands are registered.
    pub commands: bool,
    /// The servers that get the commands, by id. Empty: all servers and direct chats.
    #[serde(deserialize_with = "servers")]
    pub command_guilds: Vec<String>,
    /// Whether a mention in a server's channel is answered in a thread of its own.
    pub auto_thread: bool,
    pub streaming: Streaming,
    /// Whether to hide the previews of links in answers.
    pub suppress_embeds: bool,
    /// Whether the agent is told when somebody reacts to one of its messages.
    pub tell_reactions: bool,
    /// The maximum age of missed messages that are accepted.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 0, { 720 * HOUR }>")]
    pub backfill_max_age: Duration,
    /// The largest file that is accepted from a person.
    pub max_attachment: Size,
    /// The largest file that is sent.
    pub max_upload: Size,
    pub pace: Pace,
    #[serde(rename = "..common")]
    pub common: ChannelKeys,
}

/// How an answer is shown while it is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// As a message that is edited until it is complete.
    #[default]
    Edit,
    /// Not at all.
    Off,
}

/// How fast messages are sent. Limits that the server reports are kept in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Within the limits that Discord sets for every bot.
    #[default]
    Discord,
    /// As fast as the server accepts them.
    Server,
}

impl Default for DiscordSection {
    fn default() -> Self {
        Self {
            token: Secret::default(),
            api_url: API_URL.parse().expect("a constant address"),
            gateway_url: None,
            message_content: true,
            people: People::default(),
            commands: true,
            command_guilds: Vec::new(),
            auto_thread: false,
            streaming: Streaming::default(),
            suppress_embeds: true,
            tell_reactions: false,
            backfill_max_age: Duration::from_hours(24),
            max_attachment: Size::mib(25),
            max_upload: Size::mib(25),
            pace: Pace::default(),
            common: ChannelKeys::default(),
        }
    }
}

impl Pace {
    /// The rate limits to keep. Discord enforces any further limit with headers and 429s.
    pub(crate) fn limits(self) -> Limits {
        let rate = |per, burst| Some(Rate { per, burst });
        match self {
            // Discord's limits at the time of writing: five messages in five seconds to a channel, fifty requests per
            // second in total (https://discord.com/developers/docs/topics/rate-limits#global-rate-limit), the burst included.
            Self::Discord => {
                Limits { conversation: rate(Duration::from_secs(1), 5), account: rate(Duration::from_secs(1) / 40, 10) }
            }
            Self::Server => Limits { conversation: None, account: None },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) conversation: Option<Rate>,
    pub(crate) account: Option<Rate>,
}

fn servers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let servers = Vec::<Server>::deserialize(deserializer)?;
    Ok(servers.into_iter().map(|server| server.0).collect())
}

/// A server's id, given as a string or a number.
struct Server(String);

impl<'de> Deserialize<'de> for Server {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = |text: &str| Some(text.trim().to_owned()).filter(|id| is_id(id));
        let number = |number: i64| id(&number.to_string());
        number_or_text(deserializer, "a server's id such as \"197038439483310086\"", number, id).map(Self)
    }
}

impl DiscordSection {
    /// The first part of the token, which encodes the bot's id.
    fn bot(&self) -> &str {
        let token = self.token.expose();
        token.split_once('.').map_or(token, |(bot, _)| bot)
    }

    fn check_urls(&self, checks: &mut Checks<'_>) {
        let gateway_url = self.gateway_url.iter().map(|url| ("gateway_url", url));
        for (name, url) in [("api_url", &self.api_url)].into_iter().chain(gateway_url) {
            if url.query().is_some() || url.fragment().is_some() {
                checks.wrong(checks.key(&[name]), "must end with the path: remove the part from the `?` or `#` on");
            }
        }
    }
}

impl Section for DiscordSection {
    const REQUIRED: &'static [&'static str] = &["token"];

    fn check(&self, checks: &mut Checks<'_>) {
        if !is_token(self.token.expose()) {
            let what = "must be the token from \"Bot\" in the developer portal: three parts separated by dots";
            checks.wrong(checks.key(&["token"]), what);
        }
        self.check_urls(checks);
        if self.people.group_policy == GroupPolicy::All && !self.message_content {
            let what = "is \"all\", but message_content is false, so most messages arrive without text: set it to true, or \
                        use \"mention\" here";
            checks.wrong(checks.key(&["group_policy"]), what);
        }
        if !self.commands && !self.command_guilds.is_empty() {
            let what = "is not used while commands is false: remove one of the two";
            checks.wrong(checks.key(&["command_guilds"]), what);
        }
        self.people.check(&ID_FORMAT, checks);
        self.common.groups.check(&ID_FORMAT, checks);
    }
}

impl ChannelSection for DiscordSection {
    const PLATFORM: &'static str = "discord";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common {
            notify_reactions: self.tell_reactions,
            max_attachment: Some(self.max_attachment),
            ..self.common.common(&self.people)
        }
    }

    fn account(&self) -> Option<Account<'_>> {
        Some(Account { key: "token", id: self.bot(), rule: "a bot can be used by one channel only" })
    }
}

/// The format of ids and names on Discord.
pub const ID_FORMAT: IdFormat = IdFormat {
    is_person: |entry| is_id(entry) || is_username(entry),
    is_group: is_id,
    is_agent: is_id,
    person: "a person's id such as 80351110224678912, a username such as \"@ada_l\", or \"*\"",
    group: "a channel's id",
    agent: "a bot's or webhook's id",
};

/// Whether `text` has the format of a bot token.
pub(crate) fn is_token(text: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=');
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_char);
    text.split('.').count() == 3 && text.split('.').all(is_part)
}

/// Ids are numbers of 64 bits (<https://discord.com/developers/docs/reference#snowflakes>).
fn is_id(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok_and(|id| id != 0)
}

/// `@` and 2 to 32 of a-z, 0-9, `_` and `.` (<https://support.discord.com/hc/en-us/articles/12620128861463>).
fn is_username(text: &str) -> bool {
    let Some(name) = text.strip_prefix('@') else { return false };
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    // Digits alone were meant as an id.
    (2..=32).contains(&name.len()) && name.bytes().all(is_char) && !name.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
