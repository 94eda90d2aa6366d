//! Discord applications.

use std::sync::Arc;

use axum::Router;
use rejoinder_config::{Discord as Configured, DiscordPace, DiscordStreaming};
use rejoinder_core::{ChannelAdapter, ChannelId};
use rejoinder_discord::{CheckError, Discord, DiscordOptions, Limits, Streaming};
use reqwest::Client;
use secrecy::SecretString;
use url::Url;

use super::{BotCheckError, Bots, CHECK_TIMEOUT, DiscordBot, Wiring, WiringError};

pub(super) fn bots(wiring: &Wiring<'_>, http: &Client) -> Result<Bots, WiringError> {
    let mut channels: Vec<Arc<dyn ChannelAdapter>> = Vec::new();
    for (name, bot) in &wiring.config.channels.discord {
        let channel = ChannelId::new("discord", name);
        let bot = Discord::new(channel.clone(), options(bot), Arc::clone(wiring.clock), http.clone())
            .map_err(|error| WiringError::Bot { channel, reason: error.to_string() })?;
        channels.push(Arc::new(bot));
    }
    // Everything comes in over connections of our own.
    Ok(Bots { channels, routes: Router::new() })
}

fn options(bot: &Configured) -> DiscordOptions {
    DiscordOptions {
        token: bot.token.get().clone(),
        api_url: bot.api_url.clone(),
        gateway_url: bot.gateway_url.clone(),
        message_content: bot.message_content,
        command_guilds: bot.command_guilds.clone(),
        commands: bot.commands,
        auto_thread: bot.auto_thread,
        streaming: match bot.streaming {
            DiscordStreaming::Edit => Streaming::Edit,
            DiscordStreaming::Off => Streaming::Off,
        },
        suppress_embeds: bot.suppress_embeds,
        allow_bots: bot.allow_bots.iter().map(str::to_owned).collect(),
        backfill_max_age: bot.backfill_max_age,
        max_download: bot.max_attachment.bytes(),
        max_upload: bot.max_upload.bytes(),
        limits: match bot.pace {
            DiscordPace::Discord => Limits::default(),
            DiscordPace::Server => Limits::none(),
        },
    }
}

pub(super) async fn check(http: &Client, api_url: &Url, token: &SecretString) -> Result<DiscordBot, BotCheckError> {
    let asking = rejoinder_discord::check(http, api_url, token);
    let Ok(checked) = tokio::time::timeout(CHECK_TIMEOUT, asking).await else {
        return Err(BotCheckError::Unreachable("Discord cannot be reached: it does not answer".to_owned()));
    };
    match checked {
        Ok(bot) => Ok(DiscordBot {
            name: bot.name,
            username: bot.username,
            reads_message_content: bot.reads_message_content,
            is_public: bot.is_public,
            invite_url: bot.invite_url,
        }),
        Err(error @ CheckError::Unreachable(_)) => Err(BotCheckError::Unreachable(error.to_string())),
        Err(error @ (CheckError::Malformed | CheckError::Unknown)) => Err(BotCheckError::Wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rejoinder_config::{Environment, Options};
    use secrecy::ExposeSecret;

    use super::*;

    /// What the adapter is given where the section has `keys`, besides its token.
    fn options_of(keys: &str) -> DiscordOptions {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rejoinder.toml");
        std::fs::write(&path, format!("[channels.discord.main]\ntoken = \"MTIz.abc.def\"\n{keys}")).unwrap();
        let (working_dir, environment) = (folder.path().to_owned(), Environment::default());
        let config = rejoinder_config::load(&Options { path: Some(path), working_dir, environment }).unwrap().config;
        options(&config.channels.discord["main"])
    }

    fn same(options: &DiscordOptions, expected: &DiscordOptions) {
        assert_eq!(options.check(), Ok(()));
        assert_eq!(format!("{options:?}"), format!("{expected:?}"));
        assert_eq!(options.token.expose_secret(), expected.token.expose_secret());
    }

    /// The configuration knows no adapter, and has the defaults once more.
    #[test]
    fn what_is_not_configured_is_as_the_adapter_has_it() {
        same(&options_of(""), &DiscordOptions { token: "MTIz.abc.def".into(), ..DiscordOptions::default() });
    }

    #[test]
    fn what_is_configured_reaches_the_adapter() {
        let chosen = options_of(
            r#"
            api_url = "http://127.0.0.1:1/base"
            gateway_url = "ws://127.0.0.1:2/"
            message_content = false
            command_guilds = [7]
            auto_thread = true
            streaming = "off"
            suppress_embeds = true
            allow_bots = ["robot"]
            backfill_max_age = "1h"
            max_attachment = "1 MiB"
            max_upload = "2 MiB"
            pace = "server"
            "#,
        );

        let expected = DiscordOptions {
            token: "MTIz.abc.def".into(),
            api_url: "http://127.0.0.1:1/base".parse().unwrap(),
            gateway_url: Some("ws://127.0.0.1:2/".parse().unwrap()),
            message_content: false,
            command_guilds: vec!["7".to_owned()],
            commands: true,
            auto_thread: true,
            streaming: Streaming::Off,
            suppress_embeds: true,
            allow_bots: ["robot".to_owned()].into(),
            backfill_max_age: Duration::from_hours(1),
            max_download: 1 << 20,
            max_upload: 2 << 20,
            limits: Limits::none(),
        };
        same(&chosen, &expected);
        assert!(!options_of("commands = false").commands);
    }
}
