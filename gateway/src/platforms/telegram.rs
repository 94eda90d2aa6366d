//! Telegram: bots.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_config::{Config, IdFormat, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId, GroupPolicy};
use rejoinder_telegram::{API_URL, BotProfile, ID_FORMAT, TelegramSection, WebhookStatus};
use reqwest::Client;
use url::Url;

use super::{
    bot::{BotPlatform, OptionNames, Profile},
    people::remarks_on_people,
    platform::{Built, ChannelNotice, CheckContext, CheckError, Platform, Setup},
};
use crate::{
    client::CHECK_TIMEOUT,
    console::{finding::Finding, output::printable},
    materials::{Materials, WiringError},
    time::rfc3339,
};

pub(super) struct Telegram;

static BOTS: BotPlatform = BotPlatform {
    name: "Telegram",
    key: "telegram",
    options: OptionNames {
        token_env: "telegram-token-env",
        token_file: "telegram-token-file",
        allow: "telegram-allow",
        api_url: "telegram-api-url",
    },
    api_url: API_URL,
    token_variable: "TELEGRAM_BOT_TOKEN",
    token_source: "from https://t.me/BotFather, with /newbot",
    token_issuer: "BotFather",
    api: "the Bot API, if it is not at api.telegram.org",
    example: "rejoinder init --yes --telegram-token-env TELEGRAM_BOT_TOKEN --telegram-allow @ada_l",
    id_format: ID_FORMAT,
    fetch_profile: |http, api_url, token| {
        async move {
            let bot = with_timeout(rejoinder_telegram::check(http, api_url, token)).await?;
            Ok(Profile { introduction: introduction(&bot), advice: format!("{}\n", group_visibility(&bot)) })
        }
        .boxed()
    },
};

impl Platform for Telegram {
    fn name(&self) -> &'static str {
        BOTS.name
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<TelegramSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let (mut bots, mut built) = (Vec::new(), Built::default());
        for (name, section) in materials.config.channels.of::<TelegramSection>() {
            let channel = ChannelId::new(BOTS.key, name);
            let (section_of, clock, http) = (section.clone(), Arc::clone(materials.clock), materials.http.clone());
            bots.push(Arc::new(rejoinder_telegram::Telegram::new(channel.clone(), section_of, clock, http)));
            let description = match section.active_webhook() {
                Some(webhook) => format!("updates are posted to {}", webhook.url),
                None => format!("polls {}", section.api_url.host_str().unwrap_or_default()),
            };
            built.notices.push(ChannelNotice::Account { channel, description });
        }
        built.channels = bots.iter().map(|bot| Arc::clone(bot) as Arc<dyn ChannelAdapter>).collect();
        built.routes = Some(Box::new(|_| rejoinder_telegram::webhook_routes(bots)));
        Ok(built)
    }

    fn id_format(&self) -> Option<&'static IdFormat> {
        Some(&ID_FORMAT)
    }

    fn remarks(&self, config: &Config) -> Vec<String> {
        let mut remarks = remarks_on_people(config, BOTS.key, |key| {
            format!("send the bot a message, and it tells you the id to put into {key}.allow_from")
        });
        for (name, bot) in config.channels.of::<TelegramSection>() {
            remarks.extend(BOTS.remark_on_api_url(name, &bot.api_url));
            let path = format!("/telegram/{name}");
            if let Some(webhook) = bot.webhook.as_ref().filter(|webhook| webhook.url.path() != path) {
                remarks.push(format!(
                    "channels.telegram.{name}.webhook.url does not have the path {path}: the proxy in front of the \
                     gateway must forward {} to it.",
                    webhook.url
                ));
            }
        }
        remarks
    }

    fn setup(&self) -> Option<&dyn Setup> {
        Some(&BOTS)
    }

    fn checks<'a>(&self, context: CheckContext<'a>) -> Vec<BoxFuture<'a, Vec<Finding>>> {
        let bots = context.config.channels.of::<TelegramSection>();
        bots.map(|(name, bot)| check_bot(ChannelId::new(BOTS.key, name), bot, context).boxed()).collect()
    }
}

async fn with_timeout<T>(
    request: impl Future<Output = Result<T, rejoinder_telegram::CheckError>>,
) -> Result<T, CheckError> {
    use rejoinder_telegram::CheckError as Refusal;
    let Ok(checked) = tokio::time::timeout(CHECK_TIMEOUT, request).await else {
        return Err(CheckError::Unchecked("Telegram cannot be reached: it does not answer".to_owned()));
    };
    checked.map_err(|error| match error {
        Refusal::Unreachable(_) => CheckError::Unchecked(error.to_string()),
        Refusal::Malformed | Refusal::Unknown => CheckError::Rejected(error.to_string()),
    })
}

/// Its name, username and link.
fn introduction(bot: &BotProfile) -> String {
    let (name, username) = (printable(&bot.first_name), printable(&bot.username));
    format!("{name} (@{username}), at https://t.me/{username}")
}

/// Which messages it sees in groups.
const fn group_visibility(bot: &BotProfile) -> &'static str {
    if !bot.can_join_groups {
        "It cannot be added to groups; to change that, send /setjoingroups to BotFather."
    } else if bot.can_read_all_group_messages {
        "In groups it sees every message, because its privacy mode is off. It answers mentions, replies and commands; \
         group_policy changes that."
    } else {
        "In groups it sees only commands, mentions and replies to it: its privacy mode is on. To have it see \
         everything, send /setprivacy to BotFather and add it to the group again, or make it an administrator."
    }
}

async fn check_bot(channel: ChannelId, bot: &TelegramSection, context: CheckContext<'_>) -> Vec<Finding> {
    let about = channel.to_string();
    let (profile, status) = match fetch_profile_and_webhook(bot, context.http).await {
        Ok(fetched) => fetched,
        Err(CheckError::Rejected(why)) => {
            let advice = "Get the token from BotFather with /token, set it, and restart.";
            return vec![Finding::wrong(about, why).with_advice(advice)];
        }
        Err(CheckError::Unchecked(why)) => {
            let advice = format!("Check this machine's network and channels.{about}.api_url.");
            return vec![Finding::wrong(about, why).with_advice(advice)];
        }
    };
    let mut findings = vec![Finding::ok(&*about, introduction(&profile))];
    let hears_all = bot.people.group_policy == GroupPolicy::All
        || bot.common.groups.policies().any(|(_, policy)| policy == GroupPolicy::All);
    if hears_all && !profile.can_read_all_group_messages {
        let what = format!("channels.{about}.group_policy is \"all\", and privacy mode is on");
        findings.push(Finding::warning(&*about, what).with_advice(group_visibility(&profile)));
    } else {
        findings.push(Finding::ok(&*about, group_visibility(&profile)));
    }
    match bot.active_webhook() {
        Some(webhook) => findings.push(webhook_finding(&about, &webhook.url, &status, context.is_running)),
        None => findings.extend(polling_finding(&about, &status)),
    }
    findings
}

/// Asks for its profile, and where its updates go.
async fn fetch_profile_and_webhook(
    bot: &TelegramSection,
    http: &Client,
) -> Result<(BotProfile, WebhookStatus), CheckError> {
    let (api_url, token) = (&bot.api_url, bot.token.get());
    tokio::try_join!(
        with_timeout(rejoinder_telegram::check(http, api_url, token)),
        with_timeout(rejoinder_telegram::check_webhook(http, api_url, token))
    )
}

/// The finding for a bot that polls: a warning if a webhook is set.
fn polling_finding(about: &str, status: &WebhookStatus) -> Option<Finding> {
    let url = status.url.as_ref()?;
    let what = format!("a webhook is set, {url}, though channels.{about}.mode is \"polling\"");
    let advice =
        "The gateway deletes it at its start. If it is set again, another program uses this token: stop that program.";
    Some(Finding::warning(about, what).with_advice(advice))
}

/// The finding for a bot whose updates are posted to the gateway.
fn webhook_finding(about: &str, ours: &Url, status: &WebhookStatus, is_running: bool) -> Finding {
    let waiting = match status.pending {
        0 => "no update is waiting".to_owned(),
        1 => "one update is waiting".to_owned(),
        pending => format!("{pending} updates are waiting"),
    };
    match (&status.url, &status.last_error) {
        (None, _) if is_running => Finding::warning(about, "no webhook is set, though a gateway is running")
            .with_advice("See its log for the reason; it keeps retrying."),
        (None, _) => Finding::ok(about, "no webhook is set yet: the gateway sets it when it starts"),
        (Some(url), _) if url != ours.as_str() => {
            let advice = "The gateway sets it again. If it changes back, another program uses this token: stop it.";
            Finding::warning(about, format!("Telegram posts updates to {url} instead of {ours}")).with_advice(advice)
        }
        (Some(url), Some((why, at))) if status.pending > 0 => {
            let what = format!("Telegram cannot reach {url}: {why} (at {}; {waiting})", rfc3339(*at));
            let advice = if is_running {
                "Check the proxy in front of the gateway: host name, certificate, port and path."
            } else {
                "No gateway is running: start it. Telegram keeps undelivered updates for a day."
            };
            Finding::wrong(about, what).with_advice(advice)
        }
        (Some(url), Some((why, at))) => {
            let what = format!("Telegram posts updates to {url}; {waiting}. It last failed at {}: {why}", rfc3339(*at));
            Finding::ok(about, what)
        }
        (Some(url), None) => Finding::ok(about, format!("Telegram posts updates to {url}; {waiting}")),
    }
}

#[cfg(test)]
mod tests;
