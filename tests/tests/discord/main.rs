//! End to end on Discord: the real binary against a test double that fails on demand.

mod access;
mod answers;
mod backlog;
mod commands;
mod connections;
mod crashes;
mod crowd;
mod deferrals;
mod failures;
mod files;
mod interactions;
mod limits;
mod outages;
mod promise;
mod servers;
mod setup;
mod streaming;
mod threads;

use rejoinder_discord_server::{Channel, DiscordServer, Interaction, Message};
use rejoinder_tests::{Gateway, GatewayBuilder, ScriptedAgent};

const SILENT: &str = "I have nothing to add to that.";
const FAILED: &str = "Sorry, I could not finish that. Please try again.";
const LATE: &str = "Sorry, that took too long. Please try again.";
const DEFERRAL: &str = "Still working on this.";

/// The section of the channel `discord.test`, which admits everybody unless `keys` says otherwise.
fn discord(server: &DiscordServer, keys: &str) -> String {
    let unless_set =
        |key: &str, value: &str| if keys.contains(key) { String::new() } else { format!("{key} = {value}") };
    let policy = unless_set("dm_policy", "\"open\"");
    let pace = unless_set("pace", "\"server\"");
    format!(
        "[channels.discord.test]\ntoken = \"{}\"\napi_url = \"{}\"\n{pace}\n{policy}\n{keys}\n",
        server.token(),
        server.api_url()
    )
}

/// A gateway between `server` and `agent`, to be started.
fn between(server: &DiscordServer, agent: &ScriptedAgent) -> GatewayBuilder {
    Gateway::builder().config(&discord(server, "")).config(&agent.section())
}

/// As [`between`], with additional keys of the channel.
fn between_with(server: &DiscordServer, agent: &ScriptedAgent, keys: &str) -> GatewayBuilder {
    Gateway::builder().config(&discord(server, keys)).config(&agent.section())
}

/// Waits for a message in a channel for which `is_it` holds.
async fn finds(server: &DiscordServer, channel: &Channel, about: &str, is_it: impl Fn(&Message) -> bool) -> Message {
    server.until(about, async || server.visible(channel).await.into_iter().find(|message| is_it(message))).await
}

/// Waits until a command or a press is acknowledged, and returns it.
async fn acknowledged(server: &DiscordServer, asked: &Interaction) -> Interaction {
    server
        .until("an acknowledgement", async || Some(server.interaction(asked).await).filter(|it| it.acknowledged))
        .await
}

/// Waits until the bot has sent exactly this text to a channel.
async fn hears(server: &DiscordServer, channel: &Channel, words: &str) -> Message {
    let about = format!("the bot's message `{words}`");
    finds(server, channel, &about, |message| message.ours && !message.loading && message.content == words).await
}

/// Waits until these are the bot's only messages in a channel.
async fn says_only(server: &DiscordServer, channel: &Channel, words: &[&str]) {
    let about = format!("the bot's only messages are {words:?}");
    server.until(&about, async || (server.bot_texts(channel).await == words).then_some(())).await;
}
