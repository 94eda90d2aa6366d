//! The bare Telegram bot: the cost of answering on Telegram without an agent, storage or guarantees.

use std::time::Duration;

use anyhow::Result;
use axum::Router;
use serde::Deserialize;
use serde_json::json;

use super::agent::ANSWER;

#[derive(Deserialize)]
struct Updates {
    result: Vec<Update>,
}

#[derive(Deserialize)]
struct Update {
    update_id: i64,
    message: TelegramMessage,
}

#[derive(Deserialize)]
struct TelegramMessage {
    chat: Chat,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
}

/// Starts a bot that answers every message, those of one batch concurrently. The router is empty.
///
/// # Errors
///
/// When there is no HTTP client.
pub(crate) fn router(api: &str, token: &str) -> Result<Router> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_mins(1)).build()?;
    let base = format!("{api}/bot{token}");
    tokio::spawn(async move {
        if let Err(error) = answer_all(&client, &base).await {
            eprintln!("the bare bot failed: {}", error.without_url());
        }
    });
    Ok(Router::new())
}

async fn answer_all(client: &reqwest::Client, base: &str) -> reqwest::Result<()> {
    let mut offset = 0;
    loop {
        let parameters = json!({ "offset": offset, "timeout": 30, "allowed_updates": ["message"] });
        let updates = client.post(format!("{base}/getUpdates")).json(&parameters).send().await?.error_for_status()?;
        for update in updates.json::<Updates>().await?.result {
            offset = update.update_id + 1;
            let reply = json!({ "chat_id": update.message.chat.id, "text": ANSWER });
            let sent = client.post(format!("{base}/sendMessage")).json(&reply).send();
            tokio::spawn(async move {
                if let Err(error) = sent.await.and_then(reqwest::Response::error_for_status) {
                    eprintln!("the bare bot could not answer: {}", error.without_url());
                }
            });
        }
    }
}
