//! The bare Discord bot: the cost of answering on Discord without an agent, storage or guarantees.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::Router;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::agent::ANSWER;

/// `DIRECT_MESSAGES`.
const INTENTS: u64 = 1 << 12;

#[derive(Deserialize)]
struct Payload {
    op: u8,
    s: Option<u64>,
    t: Option<String>,
    d: Value,
}

#[derive(Deserialize)]
struct DiscordMessage {
    channel_id: String,
    author: Author,
}

#[derive(Deserialize)]
struct Author {
    #[serde(default)]
    bot: bool,
}

/// Starts a bot that answers every direct message. The router is empty.
///
/// # Errors
///
/// When there is no HTTP client.
pub(crate) fn router(api: String, gateway: String, token: String) -> Result<Router> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_mins(1)).build()?;
    tokio::spawn(async move {
        if let Err(error) = answer_all(&client, &api, &gateway, &token).await {
            eprintln!("the bare bot failed: {error:#}");
        }
    });
    Ok(Router::new())
}

async fn answer_all(client: &reqwest::Client, api: &str, gateway: &str, token: &str) -> Result<()> {
    let (mut socket, _) = tokio_tungstenite::connect_async(format!("{gateway}/?v=10&encoding=json")).await?;
    let hello = text(socket.next().await)?.context("the first message is not a Hello")?;
    let interval = hello.d["heartbeat_interval"].as_u64().context("the Hello has no heartbeat interval")?;
    let mut heartbeats = tokio::time::interval(Duration::from_millis(interval));
    let identify = json!({ "op": 2, "d": { "token": token, "intents": INTENTS, "properties": {} } });
    socket.send(Message::text(identify.to_string())).await?;
    let mut seq = None;
    loop {
        let payload = tokio::select! {
            _ = heartbeats.tick() => {
                socket.send(Message::text(json!({ "op": 1, "d": seq }).to_string())).await?;
                continue;
            }
            message = socket.next() => text(message)?,
        };
        let Some(payload) = payload else { continue };
        seq = payload.s.or(seq);
        if payload.op != 0 || payload.t.as_deref() != Some("MESSAGE_CREATE") {
            continue;
        }
        let received: DiscordMessage = serde_json::from_value(payload.d)?;
        if received.author.bot {
            continue;
        }
        let url = format!("{api}/api/v10/channels/{}/messages", received.channel_id);
        let sent =
            client.post(url).header("Authorization", format!("Bot {token}")).json(&json!({ "content": ANSWER })).send();
        tokio::spawn(async move {
            if let Err(error) = sent.await.and_then(reqwest::Response::error_for_status) {
                eprintln!("the bare bot could not answer: {}", error.without_url());
            }
        });
    }
}

/// Parses the payload of a text message. `None` for other messages.
fn text<E: std::error::Error + Send + Sync + 'static>(message: Option<Result<Message, E>>) -> Result<Option<Payload>> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(Some(serde_json::from_str(&text)?)),
        Some(Ok(Message::Close(_))) | None => bail!("the connection was closed"),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(error.into()),
    }
}
