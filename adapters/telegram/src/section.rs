//! `[channels.telegram.<name>]`: a Telegram bot, as the operator configured it.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_config::{
    Account, ChannelKeys, ChannelSection, Checks, Common, IdFormat, People, Secret, Section, Size,
    duration::{self, SECOND},
    number, text,
};
use rejoinder_core::{OnUnknown, Rate};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::reactions::{self, ALLOWED};

/// The public server of the Bot API.
pub const API_URL: &str = "https://api.telegram.org";

/// The ports that Telegram posts to (<https://core.telegram.org/bots/api#setwebhook>).
const WEBHOOK_PORTS: [u16; 4] = [443, 80, 88, 8443];

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelegramSection {
    pub token: Secret,
    /// The address of the Bot API.
    #[serde(deserialize_with = "text::http_url")]
    pub api_url: Url,
    pub mode: UpdateMode,
    /// How long one request for updates waits for an update.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 50 * SECOND }>")]
    pub poll_timeout: Duration,
    /// Set if and only if `mode` is [`UpdateMode::Webhook`].
    pub webhook: Option<TelegramWebhook>,
    #[serde(rename = "..people")]
    pub people: People,
    pub streaming: Streaming,
    /// Whether links in answers get a preview.
    pub link_previews: bool,
    /// Replacements for emoji that Telegram does not offer as reactions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reactions: BTreeMap<String, String>,
    /// Whether the agent is told when somebody reacts to one of its messages.
    pub tell_reactions: bool,
    /// The largest file that is accepted from a person.
    pub max_attachment: Size,
    /// The largest file that is sent.
    pub max_upload: Size,
    pub pace: Pace,
    /// What happens to a message when it is unclear whether Telegram accepted it. Overrides `guard.on_unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
    #[serde(rename = "..common")]
    pub common: ChannelKeys,
}

/// How updates arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UpdateMode {
    /// The gateway asks for them.
    #[default]
    Polling,
    /// Telegram posts them.
    Webhook,
}

/// How an answer is shown while it is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// As a message that is edited until it is complete.
    #[default]
    Edit,
    /// As a draft, if the server supports `sendMessageDraft`.
    Draft,
    /// Not at all.
    Off,
}

/// How fast messages are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// Within the limits that Telegram sets for every bot.
    #[default]
    Telegram,
    /// As fast as the server accepts them.
    Server,
}

/// Where and how Telegram posts updates.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TelegramWebhook {
    /// The public address that leads to `/telegram/<name>` of the gateway.
    #[serde(deserialize_with = "text::http_url")]
    pub url: Url,
    /// Telegram sends it with each update. `None`: derived from the token.
    pub secret: Option<Secret>,
    /// How many updates Telegram may post at the same time.
    #[serde(default = "default_max_connections", deserialize_with = "number::between::<_, 1, 100>")]
    pub max_connections: u32,
}

impl Default for TelegramSection {
    fn default() -> Self {
        Self {
            token: Secret::default(),
            api_url: default_api_url(),
            mode: UpdateMode::default(),
            poll_timeout: Duration::from_secs(30),
            webhook: None,
            people: People::default(),
            streaming: Streaming::default(),
            link_previews: false,
            reactions: BTreeMap::new(),
            tell_reactions: false,
            // https://core.telegram.org/bots/api#getfile
            max_attachment: Size::mib(20),
            // https://core.telegram.org/bots/api#sending-files
            max_upload: Size::mib(50),
            pace: Pace::default(),
            on_unknown: None,
            common: ChannelKeys::default(),
        }
    }
}

fn default_api_url() -> Url {
    API_URL.parse().expect("a constant address")
}

const fn default_max_connections() -> u32 {
    40
}

impl TelegramWebhook {
    /// Posts to `url`, with a secret derived from the token.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self { url, secret: None, max_connections: default_max_connections() }
    }
}

impl Pace {
    /// The rate limits to keep. Telegram enforces any further limit with a 429.
    pub(crate) fn limits(self) -> Limits {
        let rate = |per, burst| Some(Rate { per, burst });
        match self {
            // https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this: one message a second to a chat, of which short
            // bursts are allowed; 20 a minute to a group, and about 30 a second in all, the burst included.
            Self::Telegram => Limits {
                chat: rate(Duration::from_secs(1), 5),
                group: rate(Duration::from_secs(4), 5),
                account: rate(Duration::from_secs(1) / 20, 10),
            },
            Self::Server => Limits { chat: None, group: None, account: None },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) chat: Option<Rate>,
    pub(crate) group: Option<Rate>,
    pub(crate) account: Option<Rate>,
}

impl TelegramSection {
    /// The webhook; `None`: the gateway polls.
    #[must_use]
    pub fn active_webhook(&self) -> Option<&TelegramWebhook> {
        self.webhook.as_ref().filter(|_| self.mode == UpdateMode::Webhook)
    }

    /// The bot's number, with which its token starts.
    fn bot(&self) -> &str {
        let token = self.token.expose();
        token.split_once(':').map_or(token, |(bot, _)| bot)
    }

    fn check_webhook(&self, checks: &mut Checks<'_>) {
        let webhook = match (self.mode, &self.webhook) {
            (UpdateMode::Polling, None) => return,
            (UpdateMode::Polling, Some(_)) => {
                let what = "is not used while mode is \"polling\": set mode = \"webhook\", or remove this table";
                checks.wrong(checks.key(&["webhook"]), what);
                return;
            }
            (UpdateMode::Webhook, None) => {
                let what = "must be set: with mode \"webhook\" Telegram needs the public address that leads to this \
                            channel";
                checks.wrong(checks.key(&["webhook", "url"]), what);
                return;
            }
            (UpdateMode::Webhook, Some(webhook)) => webhook,
        };
        let key = checks.key(&["webhook", "url"]);
        if !is_at_telegram(&self.api_url) {
            // A self-hosted server posts to any address.
        } else if webhook.url.scheme() != "https" {
            checks.wrong(key, "must begin with https://: Telegram posts over https only");
        } else if !webhook.url.port_or_known_default().is_some_and(|port| WEBHOOK_PORTS.contains(&port)) {
            checks.wrong(key, "must use port 443, 80, 88 or 8443: Telegram posts to no other port");
        }
        if webhook.secret.as_ref().is_some_and(|secret| !is_webhook_secret(secret.expose())) {
            checks.wrong(checks.key(&["webhook", "secret"]), "must be 1 to 256 characters of A-Z, a-z, 0-9, _ and -");
        }
    }

    fn check_reactions(&self, checks: &mut Checks<'_>) {
        for (emoji, reaction) in &self.reactions {
            let key = checks.key(&["reactions", emoji]);
            if !is_emoji(emoji) {
                checks.wrong(key, "is not an emoji: write it as \"✅\" = \"👍\"");
            } else if !reactions::is_allowed(reaction) {
                let what = format!("must be an emoji that Telegram offers as a reaction, not {reaction:?}: {ALLOWED}");
                checks.wrong(key, what);
            }
        }
    }
}

impl Section for TelegramSection {
    const REQUIRED: &'static [&'static str] = &["token"];

    fn check(&self, checks: &mut Checks<'_>) {
        if !is_token(self.token.expose()) {
            let what = "must be the token from BotFather: the bot's number, a colon, and letters, digits, _ and -";
            checks.wrong(checks.key(&["token"]), what);
        }
        if self.api_url.query().is_some() || self.api_url.fragment().is_some() {
            checks.wrong(checks.key(&["api_url"]), "must end with the path: remove the part from the `?` or `#` on");
        }
        self.check_webhook(checks);
        self.check_reactions(checks);
        self.people.check(&ID_FORMAT, checks);
        self.common.groups.check(&ID_FORMAT, checks);
    }
}

impl ChannelSection for TelegramSection {
    const PLATFORM: &'static str = "telegram";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common {
            notify_reactions: self.tell_reactions,
            max_attachment: Some(self.max_attachment),
            on_unknown: self.on_unknown,
            ..self.common.common(&self.people)
        }
    }

    fn account(&self) -> Option<Account<'_>> {
        Some(Account { key: "token", id: self.bot(), rule: "a bot can be used by one channel only" })
    }
}

/// The format of ids and names on Telegram.
pub const ID_FORMAT: IdFormat = IdFormat {
    is_person: |entry| is_id(entry) || is_username(entry),
    is_group: |entry| entry.strip_prefix('-').is_some_and(is_id),
    is_agent: is_id,
    person: "a person's id such as 123456789, a username such as \"@ada_l\", or \"*\"",
    group: "a group's id such as -1001234567890",
    agent: "a bot's id such as 123456789",
};

fn is_at_telegram(api_url: &Url) -> bool {
    api_url.host_str() == default_api_url().host_str()
}

/// Whether `text` has the format of a bot token.
pub(crate) fn is_token(text: &str) -> bool {
    text.split_once(':').is_some_and(|(bot, key)| {
        !bot.is_empty() && bot.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty() && key.bytes().all(is_key)
    })
}

pub(crate) fn is_webhook_secret(text: &str) -> bool {
    (1..=256).contains(&text.len()) && text.bytes().all(is_key)
}

const fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Ids have at most 52 significant bits.
fn is_id(text: &str) -> bool {
    (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_username(text: &str) -> bool {
    let Some(name) = text.strip_prefix('@') else { return false };
    (4..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

fn is_emoji(text: &str) -> bool {
    (1..=16).contains(&text.chars().count()) && !text.chars().any(|char| char.is_alphanumeric() || char.is_whitespace())
}

#[cfg(test)]
mod tests;
