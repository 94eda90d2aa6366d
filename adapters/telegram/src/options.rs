//! What the operator chose for one bot.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_core::Rate;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::reactions;

/// The public Bot API server.
pub const API_URL: &str = "https://api.telegram.org";

/// The longest a `getUpdates` may wait (<https://core.telegram.org/bots/api#getupdates>).
pub const MAX_POLL_TIMEOUT: Duration = Duration::from_secs(50);

/// One bot, as the operator configured it.
#[derive(Clone, Debug)]
pub struct TelegramOptions {
    /// The token that BotFather gave.
    pub token: SecretString,
    /// The Bot API server; another one for a server of one's own, and in tests.
    pub api_url: Url,
    /// How updates come in.
    pub mode: Mode,
    /// How the text of a run that is still going on is shown.
    pub streaming: Streaming,
    /// Whether links in answers get a preview.
    pub link_previews: bool,
    /// What stands for an emoji that Telegram has no reaction for, besides what is built in and before it.
    pub reactions: BTreeMap<String, String>,
    /// How long one `getUpdates` waits for something to come: at most [`MAX_POLL_TIMEOUT`].
    pub poll_timeout: Duration,
    /// The largest file that is sent, in bytes.
    pub max_upload: usize,
    /// The largest file that is fetched, in bytes.
    pub max_download: usize,
    /// How fast messages are sent.
    pub limits: Limits,
}

impl Default for TelegramOptions {
    fn default() -> Self {
        Self {
            token: SecretString::default(),
            api_url: Url::parse(API_URL).expect("a constant address"),
            mode: Mode::default(),
            streaming: Streaming::default(),
            link_previews: false,
            reactions: BTreeMap::new(),
            poll_timeout: Duration::from_secs(30),
            // https://core.telegram.org/bots/api#sending-files
            max_upload: 50 << 20,
            // https://core.telegram.org/bots/api#getfile
            max_download: 20 << 20,
            limits: Limits::default(),
        }
    }
}

/// How updates come in.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    /// The gateway asks for them.
    #[default]
    Polling,
    /// Telegram posts them to the gateway.
    Webhook(WebhookOptions),
}

/// Where Telegram posts updates to.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// The public address that reaches `/telegram/{name}` of this gateway, as a whole.
    pub url: Url,
    /// What Telegram shows with every post: 1 to 256 of `A-Z`, `a-z`, `0-9`, `_`, `-`. Without one it is made
    /// from the token.
    pub secret: Option<SecretString>,
    /// How many posts may be under way at once: 1 to 100.
    pub max_connections: u8,
}

impl WebhookOptions {
    /// Posts to `url`, with a secret made from the token.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self { url, secret: None, max_connections: 40 }
    }
}

/// How the text of a run that is still going on is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streaming {
    /// As a message that is edited as it grows, and becomes the answer.
    #[default]
    Edit,
    /// As a draft, in private chats of servers that know `sendMessageDraft`.
    Draft,
    /// Not at all.
    Off,
}

/// How fast messages are sent. What Telegram limits beyond that, it says with 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// To one private chat; `None`: as fast as it takes them.
    pub chat: Option<Rate>,
    /// To one group.
    pub group: Option<Rate>,
    /// To everyone together.
    pub account: Option<Rate>,
}

impl Default for Limits {
    /// Those of <https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this>.
    fn default() -> Self {
        let rate = |per, burst| Some(Rate { per, burst });
        Self {
            chat: rate(Duration::from_secs(1), 5),
            group: rate(Duration::from_secs(3), 5),
            account: rate(Duration::from_secs(1) / 30, 30),
        }
    }
}

impl Limits {
    /// None of our own, for a server that has others.
    #[must_use]
    pub const fn none() -> Self {
        Self { chat: None, group: None, account: None }
    }
}

/// Why a bot cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The token is none.
    #[error("the token must be the bot's number, a colon, and letters, digits, `_` and `-`, as BotFather gives it")]
    Token,
    /// The address of the server is none.
    #[error("api_url must be an http or https address without a query")]
    ApiUrl,
    /// The address for posts is none.
    #[error("the webhook's url must be an http or https address")]
    WebhookUrl,
    /// The secret has characters that Telegram does not take.
    #[error("the webhook's secret must be 1 to 256 of A-Z, a-z, 0-9, _ and -")]
    WebhookSecret,
    /// The poll would be longer than Telegram lets it be.
    #[error("poll_timeout must be 1 to 50 seconds")]
    PollTimeout,
    /// An emoji is to become one that is no reaction either.
    #[error("`{0}` is no reaction on Telegram: https://core.telegram.org/bots/api#reactiontypeemoji lists them")]
    Reaction(String),
}

impl TelegramOptions {
    /// Checks what configuration could get wrong.
    ///
    /// # Errors
    /// What must be changed.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !is_token(self.token.expose_secret()) {
            return Err(OptionsError::Token);
        }
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_web(&self.api_url) || self.api_url.query().is_some() {
            return Err(OptionsError::ApiUrl);
        }
        if !(Duration::from_secs(1)..=MAX_POLL_TIMEOUT).contains(&self.poll_timeout) {
            return Err(OptionsError::PollTimeout);
        }
        if let Mode::Webhook(webhook) = &self.mode {
            if !is_web(&webhook.url) {
                return Err(OptionsError::WebhookUrl);
            }
            if !webhook.secret.as_ref().is_none_or(|secret| is_webhook_secret(secret.expose_secret())) {
                return Err(OptionsError::WebhookSecret);
            }
        }
        match self.reactions.values().find(|emoji| !reactions::is_allowed(emoji)) {
            Some(emoji) => Err(OptionsError::Reaction(emoji.clone())),
            None => Ok(()),
        }
    }
}

/// Whether a text looks like a bot's token.
#[must_use]
pub fn is_token(text: &str) -> bool {
    text.split_once(':').is_some_and(|(id, key)| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty() && key.bytes().all(is_key)
    })
}

fn is_webhook_secret(text: &str) -> bool {
    (1..=256).contains(&text.len()) && text.bytes().all(is_key)
}

const fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn options() -> TelegramOptions {
        TelegramOptions { token: "123:abc_DEF-4".into(), ..TelegramOptions::default() }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).expect("an address")
    }

    #[test]
    fn the_defaults_need_a_token_and_no_more() {
        assert_eq!(options().check(), Ok(()));
        assert_eq!(TelegramOptions::default().check(), Err(OptionsError::Token));
    }

    #[rstest]
    #[case("")]
    #[case("123")]
    #[case("123:")]
    #[case(":abc")]
    #[case("12a:abc")]
    #[case("123:a/b")]
    #[case(" 123:abc")]
    fn what_is_no_token_is_refused(#[case] token: &str) {
        assert_eq!(TelegramOptions { token: token.into(), ..options() }.check(), Err(OptionsError::Token));
    }

    #[test]
    fn what_telegram_would_refuse_is_refused_at_once() {
        let with = |change: fn(&mut TelegramOptions)| {
            let mut options = options();
            change(&mut options);
            options.check().unwrap_err()
        };

        assert_eq!(with(|it| it.api_url = url("ftp://example.org")), OptionsError::ApiUrl);
        assert_eq!(with(|it| it.poll_timeout = Duration::from_mins(1)), OptionsError::PollTimeout);
        assert_eq!(
            with(|it| {
                it.reactions.insert("🦄".to_owned(), "✅".to_owned());
            }),
            OptionsError::Reaction("✅".to_owned())
        );
        assert_eq!(
            with(|it| {
                let secret = Some("no spaces".into());
                it.mode = Mode::Webhook(WebhookOptions { secret, ..WebhookOptions::new(url("https://example.org")) });
            }),
            OptionsError::WebhookSecret
        );
        assert_eq!(
            with(|it| it.mode = Mode::Webhook(WebhookOptions::new(url("mailto:ada@example.org")))),
            OptionsError::WebhookUrl
        );
    }

    #[test]
    fn the_token_is_never_shown() {
        assert!(!format!("{:?}", options()).contains("abc_DEF-4"));
    }
}
