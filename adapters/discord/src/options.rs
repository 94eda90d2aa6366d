//! What the operator chose for one application.

use std::{collections::BTreeSet, time::Duration};

use rejoinder_core::Rate;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// Discord's own REST server.
pub const API_URL: &str = "https://discord.com";

/// One application, as the operator configured it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration")]
pub struct DiscordOptions {
    /// The token of the application's bot user.
    pub token: SecretString,
    /// The REST server, without `/api/v10`; another one in tests.
    pub api_url: Url,
    /// The Gateway; `None`: the one that the REST server names.
    pub gateway_url: Option<Url>,
    /// Whether what is said in servers is read when it does not mention the agent. Needs the privileged
    /// intent `MESSAGE_CONTENT`. Without it, mentions, replies to the agent, direct chats and commands are
    /// still read.
    pub message_content: bool,
    /// The servers that get the commands, by id. Empty: every server and direct chat, which Discord may take
    /// an hour to show.
    pub command_guilds: Vec<String>,
    /// Whether the slash commands are registered at all.
    pub commands: bool,
    /// Whether a mention in a server's channel is answered in a thread of its own.
    pub auto_thread: bool,
    /// How the text of a run that is still going on is shown.
    pub streaming: Streaming,
    /// Whether links in answers are shown without a preview.
    pub suppress_embeds: bool,
    /// The other agents that are answered like people: ids or unique names of bots, ids of webhooks, or `*`.
    /// Two agents that answer each other do so for ever.
    pub allow_bots: BTreeSet<String>,
    /// How far back is read what was said while the gateway was away.
    pub backfill_max_age: Duration,
    /// The largest file that is fetched, in bytes.
    pub max_download: usize,
    /// The largest file that is sent, in bytes.
    pub max_upload: usize,
    /// How fast messages are sent.
    pub limits: Limits,
}

impl Default for DiscordOptions {
    fn default() -> Self {
        Self {
            token: SecretString::default(),
            api_url: Url::parse(API_URL).expect("a constant address"),
            gateway_url: None,
            message_content: true,
            command_guilds: Vec::new(),
            commands: true,
            auto_thread: false,
            streaming: Streaming::default(),
            suppress_embeds: false,
            allow_bots: BTreeSet::new(),
            backfill_max_age: Duration::from_hours(24),
            max_download: 25 << 20,
            max_upload: 25 << 20,
            limits: Limits::default(),
        }
    }
}

/// How the text of a run that is still going on is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streaming {
    /// As a message that is edited as it grows, and becomes the answer.
    #[default]
    Edit,
    /// Not at all.
    Off,
}

/// How fast messages are sent. What Discord limits beyond that, it says in its headers and with 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// To one channel; `None`: as fast as it takes them.
    pub conversation: Option<Rate>,
    /// To everyone together.
    pub account: Option<Rate>,
}

impl Default for Limits {
    /// What Discord gives at the time of writing: five messages in five seconds to a channel, fifty requests a
    /// second in all (<https://discord.com/developers/docs/topics/rate-limits#global-rate-limit>).
    fn default() -> Self {
        let rate = |per, burst| Some(Rate { per, burst });
        Self { conversation: rate(Duration::from_secs(1), 5), account: rate(Duration::from_secs(1) / 50, 50) }
    }
}

impl Limits {
    /// None of our own, for a server that has others.
    #[must_use]
    pub const fn none() -> Self {
        Self { conversation: None, account: None }
    }
}

/// Why a channel cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The token is none.
    #[error("the token must be three parts with dots between, as the developer portal shows it under \"Bot\"")]
    Token,
    /// The address of the REST server is none.
    #[error("api_url must be an http or https address without a query")]
    ApiUrl,
    /// The address of the Gateway is none.
    #[error("gateway_url must be a ws or wss address without a query")]
    GatewayUrl,
    /// A server's id is none.
    #[error("`{0}` in command_guilds is no server's id, which is a number")]
    Guild(String),
}

impl DiscordOptions {
    /// Checks what configuration could get wrong.
    ///
    /// # Errors
    /// What must be changed.
    pub fn check(&self) -> Result<(), OptionsError> {
        if !is_token(self.token.expose_secret()) {
            return Err(OptionsError::Token);
        }
        let is_one =
            |url: &Url, schemes: [&str; 2]| schemes.contains(&url.scheme()) && url.has_host() && url.query().is_none();
        if !is_one(&self.api_url, ["http", "https"]) {
            return Err(OptionsError::ApiUrl);
        }
        if !self.gateway_url.as_ref().is_none_or(|url| is_one(url, ["ws", "wss"])) {
            return Err(OptionsError::GatewayUrl);
        }
        let is_id = |text: &str| text.parse::<u64>().is_ok_and(|id| id != 0);
        match self.command_guilds.iter().find(|guild| !is_id(guild)) {
            Some(guild) => Err(OptionsError::Guild(guild.clone())),
            None => Ok(()),
        }
    }
}

/// Whether a text looks like a bot's token.
#[must_use]
pub fn is_token(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'='))
    };
    text.split('.').count() == 3 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn options() -> DiscordOptions {
        DiscordOptions { token: "MTA.abc-DEF.ghi_jkl".into(), ..DiscordOptions::default() }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).expect("an address")
    }

    #[test]
    fn the_defaults_need_a_token_and_no_more() {
        assert_eq!(options().check(), Ok(()));
        assert_eq!(DiscordOptions::default().check(), Err(OptionsError::Token));
    }

    #[rstest]
    #[case("")]
    #[case("one.two")]
    #[case("one..three")]
    #[case("one.two.three.four")]
    #[case("Bot one.two.three")]
    #[case("one.two.three\n")]
    fn what_is_no_token_is_refused(#[case] token: &str) {
        assert_eq!(DiscordOptions { token: token.into(), ..options() }.check(), Err(OptionsError::Token));
    }

    #[test]
    fn what_could_never_work_is_refused_at_once() {
        let with = |change: fn(&mut DiscordOptions)| {
            let mut options = options();
            change(&mut options);
            options.check().unwrap_err()
        };

        assert_eq!(with(|it| it.api_url = url("ftp://example.org")), OptionsError::ApiUrl);
        assert_eq!(with(|it| it.gateway_url = Some(url("https://example.org"))), OptionsError::GatewayUrl);
        assert_eq!(with(|it| it.command_guilds = vec!["us".to_owned()]), OptionsError::Guild("us".to_owned()));
    }

    #[test]
    fn the_token_is_never_shown() {
        assert!(!format!("{:?}", options()).contains("abc-DEF"));
    }
}
