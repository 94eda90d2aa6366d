//! Discord: applications and their bots.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_config::{Config, IdFormat, PlatformSection};
use rejoinder_core::{ChannelAdapter, ChannelId};
use rejoinder_discord::{API_URL, BotProfile, DiscordSection, ID_FORMAT};
use reqwest::Client;
use secrecy::SecretString;
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
};

pub(super) struct Discord;

static BOTS: BotPlatform = BotPlatform {
    name: "Discord",
    key: "discord",
    options: OptionNames {
        token_env: "discord-token-env",
        token_file: "discord-token-file",
        allow: "discord-allow",
        api_url: "discord-api-url",
    },
    api_url: API_URL,
    token_variable: "DISCORD_BOT_TOKEN",
    token_source: "from https://discord.com/developers/applications, \"Bot\", \"Reset Token\"",
    token_issuer: "the developer portal",
    api: "Discord's REST API, if it is not at discord.com",
    example: "rejoinder init --yes --discord-token-env DISCORD_BOT_TOKEN --discord-allow @ada_l",
    id_format: ID_FORMAT,
    fetch_profile: |http, api_url, token| {
        async move { fetch_profile(http, api_url, token).await.map(|bot| profile(&bot)) }.boxed()
    },
};

impl Platform for Discord {
    fn name(&self) -> &'static str {
        BOTS.name
    }

    fn section(&self) -> PlatformSection {
        PlatformSection::of::<DiscordSection>()
    }

    fn build(&self, materials: &Materials<'_>) -> Result<Built, WiringError> {
        let mut built = Built::default();
        for (name, section) in materials.config.channels.of::<DiscordSection>() {
            let channel = ChannelId::new(BOTS.key, name);
            let (clock, http) = (Arc::clone(materials.clock), materials.http.clone());
            let bot = rejoinder_discord::Discord::new(channel.clone(), section.clone(), clock, http);
            built.channels.push(Arc::new(bot) as Arc<dyn ChannelAdapter>);
            let description = format!("connects to {}", section.api_url.host_str().unwrap_or_default());
            built.notices.push(ChannelNotice::Account { channel, description });
        }
        Ok(built)
    }

    fn id_format(&self) -> Option<&'static IdFormat> {
        Some(&ID_FORMAT)
    }

    fn remarks(&self, config: &Config) -> Vec<String> {
        let mut remarks = remarks_on_people(config, BOTS.key, |key| {
            format!("send the bot a message, and it tells you the id to put into {key}.allow_from")
        });
        for (name, bot) in config.channels.of::<DiscordSection>() {
            remarks.extend(BOTS.remark_on_api_url(name, &bot.api_url));
            if bot.auto_thread && !bot.message_content {
                remarks.push(format!(
                    "channels.discord.{name}.message_content is false: even in the threads that auto_thread opens, the \
                     agent reads only messages that mention it."
                ));
            }
        }
        remarks
    }

    fn setup(&self) -> Option<&dyn Setup> {
        Some(&BOTS)
    }

    fn checks<'a>(&self, context: CheckContext<'a>) -> Vec<BoxFuture<'a, Vec<Finding>>> {
        let bots = context.config.channels.of::<DiscordSection>();
        bots.map(|(name, bot)| check_bot(ChannelId::new(BOTS.key, name), bot, context.http).boxed()).collect()
    }
}

async fn fetch_profile(http: &Client, api_url: &Url, token: &SecretString) -> Result<BotProfile, CheckError> {
    use rejoinder_discord::CheckError as Refusal;
    let request = rejoinder_discord::check(http, api_url, token);
    let Ok(checked) = tokio::time::timeout(CHECK_TIMEOUT, request).await else {
        return Err(CheckError::Unchecked("Discord cannot be reached: it does not answer".to_owned()));
    };
    checked.map_err(|error| match error {
        Refusal::Unreachable(_) => CheckError::Unchecked(error.to_string()),
        Refusal::Malformed | Refusal::Unknown => CheckError::Rejected(error.to_string()),
    })
}

/// Its name and username.
fn introduction(bot: &BotProfile) -> String {
    let (name, username) = (printable(&bot.name), printable(&bot.username));
    if name == username { name } else { format!("{name} ({username})") }
}

fn profile(bot: &BotProfile) -> Profile {
    let who = if bot.is_public { "" } else { " (its application is private, so only its owner can)" };
    let (invite_url, content) = (printable(&bot.invite_url), content_advice(bot.reads_message_content));
    let advice = format!("Add it to a server{who}:\n  {invite_url}\n{content}\n");
    Profile { introduction: introduction(bot), advice }
}

/// Which messages it reads in servers.
const fn content_advice(reads: Option<bool>) -> &'static str {
    match reads {
        Some(true) => "Its Message Content intent is on: it reads all messages in the channels that it sees.",
        Some(false) => {
            "Its Message Content intent is off. Switch it on in the developer portal (\"Bot\", \"Message Content Intent\") \
             before you start, or set message_content = false: it then reads only direct chats, mentions and commands."
        }
        None => {
            "Discord did not say whether its Message Content intent is on: check in the developer portal under \"Bot\". \
             Without it, set message_content = false."
        }
    }
}

async fn check_bot(channel: ChannelId, bot: &DiscordSection, http: &Client) -> Vec<Finding> {
    let about = channel.to_string();
    match fetch_profile(http, &bot.api_url, bot.token.get()).await {
        Ok(profile) => {
            let mut findings = vec![Finding::ok(&*about, introduction(&profile))];
            findings.extend(message_content_finding(&about, bot, &profile));
            findings
        }
        Err(CheckError::Rejected(why)) => {
            let advice = "Get a new token in the developer portal (\"Bot\", \"Reset Token\"), set it, and restart.";
            vec![Finding::wrong(about, why).with_advice(advice)]
        }
        Err(CheckError::Unchecked(why)) => {
            let advice = format!("Check this machine's network and channels.{about}.api_url.");
            vec![Finding::wrong(about, why).with_advice(advice)]
        }
    }
}

fn message_content_finding(about: &str, bot: &DiscordSection, profile: &BotProfile) -> Option<Finding> {
    let advice = format!(
        "Switch it on in the developer portal (\"Bot\", \"Message Content Intent\") and restart, or set \
         channels.{about}.message_content = false: it then reads only direct chats, mentions and commands."
    );
    match profile.reads_message_content {
        _ if !bot.message_content => None,
        Some(true) => Some(Finding::ok(about, "the MESSAGE CONTENT INTENT is switched on")),
        Some(false) => Some(Finding::wrong(about, "the MESSAGE CONTENT INTENT is not switched on").with_advice(advice)),
        None => {
            let what = "Discord did not say whether the MESSAGE CONTENT INTENT is switched on";
            Some(Finding::warning(about, what).with_advice("Check in the developer portal under \"Bot\"."))
        }
    }
}

#[cfg(test)]
mod tests;
