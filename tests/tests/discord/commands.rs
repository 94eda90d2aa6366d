//! Every command, as a text and as one of Discord's own.

use rejoinder_discord_server::{Channel, Person};
use rejoinder_tests::promise::{Platform, every_command_is_answered};
use serde_json::json;

use crate::promise::Discord;

/// Commands that are not registered as Discord's own: for owners, for nobody there, and other names of others.
const UNREGISTERED: [&str; 7] = ["start", "cancel", "sessions", "reset", "approve", "decline", "fly"];

/// Commands with choices, and what is none of these: Discord lets nobody send that.
const CHOOSING: [&str; 6] = ["agent", "model", "queue", "voice", "home", "language"];
const UNOFFERED: [&str; 3] = ["nobody", "nothing", "nonsense"];

/// A11, B3, D18, N1.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_is_answered_as_a_text() {
    every_command_is_answered("", async |discord: &Discord, ada, said| discord.says(ada, said).await).await;
}

/// A11, B3, D18, N1.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_is_answered_as_discords_own() {
    every_command_is_answered("", sends).await;
}

/// Sends a text, as a command of Discord's if it is one that is registered.
async fn sends(discord: &Discord, ada: &(Person, Channel), said: &str) {
    let words = said.strip_prefix('/').map(|rest| rest.split_once(' ').unwrap_or((rest, "")));
    match words {
        Some((name, rest)) if !UNREGISTERED.contains(&name) && !UNOFFERED.contains(&rest) && said != "/stop it now" => {
            let text = if CHOOSING.contains(&name) { rest.to_lowercase() } else { rest.to_owned() };
            let options = if text.is_empty() { json!({}) } else { json!({ "text": text }) };
            ada.0.slash(&ada.1, &name.to_lowercase(), options).await;
        }
        _ => discord.says(ada, said).await,
    }
}
