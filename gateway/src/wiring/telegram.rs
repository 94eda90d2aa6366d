//! Telegram bots.

use std::sync::Arc;

use rejoinder_config::{Pace, Streaming as ConfiguredStreaming, Telegram as Configured, UpdateMode};
use rejoinder_core::{ChannelAdapter, ChannelId};
use rejoinder_telegram::{CheckError, Limits, Mode, Streaming, Telegram, TelegramOptions, WebhookOptions};
use reqwest::Client;
use secrecy::SecretString;
use url::Url;

use super::{BotCheckError, Bots, CHECK_TIMEOUT, TelegramBot, TelegramPosting, Wiring, WiringError};

pub(super) fn bots(wiring: &Wiring<'_>, http: &Client) -> Result<Bots, WiringError> {
    let mut bots = Vec::new();
    for (name, bot) in &wiring.config.channels.telegram {
        let channel = ChannelId::new("telegram", name);
        let bot = Telegram::new(channel.clone(), options(bot), Arc::clone(wiring.clock), http.clone())
            .map_err(|error| WiringError::Bot { channel, reason: error.to_string() })?;
        bots.push(Arc::new(bot));
    }
    let channels = bots.iter().map(|bot| Arc::clone(bot) as Arc<dyn ChannelAdapter>).collect();
    Ok(Bots { channels, routes: rejoinder_telegram::webhook_routes(bots) })
}

fn options(bot: &Configured) -> TelegramOptions {
    let webhook = bot.webhook.as_ref().filter(|_| bot.mode == UpdateMode::Webhook);
    TelegramOptions {
        token: bot.token.get().clone(),
        api_url: bot.api_url.clone(),
        mode: webhook.map_or(Mode::Polling, |webhook| {
            Mode::Webhook(WebhookOptions {
                url: webhook.url.clone(),
                secret: webhook.secret.clone().map(Into::into),
                max_connections: u8::try_from(webhook.max_connections).unwrap_or(u8::MAX),
            })
        }),
        streaming: match bot.streaming {
            ConfiguredStreaming::Edit => Streaming::Edit,
            ConfiguredStreaming::Draft => Streaming::Draft,
            ConfiguredStreaming::Off => Streaming::Off,
        },
        link_previews: bot.link_previews,
        reactions: bot.reactions.clone(),
        poll_timeout: bot.poll_timeout,
        max_upload: bot.max_upload.bytes(),
        max_download: bot.max_attachment.bytes(),
        limits: match bot.pace {
            Pace::Telegram => Limits::default(),
            Pace::Server => Limits::none(),
        },
    }
}

pub(super) async fn check(http: &Client, api_url: &Url, token: &SecretString) -> Result<TelegramBot, BotCheckError> {
    let bot = in_time(rejoinder_telegram::check(http, api_url, token)).await?;
    Ok(TelegramBot {
        name: bot.first_name,
        username: bot.username,
        can_join_groups: bot.can_join_groups,
        reads_groups: bot.can_read_all_group_messages,
    })
}

pub(super) async fn check_posting(
    http: &Client,
    api_url: &Url,
    token: &SecretString,
) -> Result<TelegramPosting, BotCheckError> {
    let posting = in_time(rejoinder_telegram::check_posting(http, api_url, token)).await?;
    Ok(TelegramPosting { url: posting.url, pending: posting.pending, last_error: posting.last_error })
}

async fn in_time<T>(asking: impl Future<Output = Result<T, CheckError>>) -> Result<T, BotCheckError> {
    let Ok(checked) = tokio::time::timeout(CHECK_TIMEOUT, asking).await else {
        return Err(BotCheckError::Unreachable("Telegram cannot be reached: it does not answer".to_owned()));
    };
    checked.map_err(|error| match error {
        CheckError::Unreachable(_) => BotCheckError::Unreachable(error.to_string()),
        CheckError::Malformed | CheckError::Unknown => BotCheckError::Wrong(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rejoinder_config::REACTIONS;

    use super::*;

    /// The configuration has a list of its own, since it knows no adapter.
    #[test]
    fn every_reaction_that_the_configuration_takes_the_adapter_takes() {
        let reactions: BTreeMap<_, _> =
            REACTIONS.iter().enumerate().map(|(index, emoji)| (index.to_string(), (*emoji).to_owned())).collect();

        let options = TelegramOptions { token: "1:a".into(), reactions, ..TelegramOptions::default() };

        assert_eq!(options.check(), Ok(()));
    }
}
