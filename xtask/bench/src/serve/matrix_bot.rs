//! The bare Matrix bot: the cost of answering on Matrix without an agent, storage or guarantees.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use axum::Router;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::agent::ANSWER;

/// Starts an account that answers every message and accepts every invitation. The router is empty.
///
/// # Errors
///
/// When there is no HTTP client.
pub(crate) fn router(homeserver: &str, user: String, token: String) -> Result<Router> {
    let client = Client::builder().no_proxy().timeout(Duration::from_mins(1)).build()?;
    let bot = Bot { client, base: format!("{homeserver}/_matrix/client/v3"), token, sent: AtomicU64::new(0) };
    tokio::spawn(async move {
        if let Err(error) = bot.answer_all(&user).await {
            eprintln!("the bare bot failed: {error:#}");
        }
    });
    Ok(Router::new())
}

struct Bot {
    client: Client,
    base: String,
    token: String,
    sent: AtomicU64,
}

impl Bot {
    async fn answer_all(self, user: &str) -> Result<()> {
        let bot = Arc::new(self);
        let mut since = String::new();
        loop {
            let synced = bot.call(Method::GET, &format!("/sync?timeout=30000{since}"), None).await?;
            let next = synced["next_batch"].as_str().context("the sync has no next_batch")?;
            since = format!("&since={next}");
            for room in keys(&synced["rooms"]["invite"]) {
                let bot = Arc::clone(&bot);
                tokio::spawn(async move { bot.call(Method::POST, &format!("/join/{room}"), Some(json!({}))).await });
            }
            for room in keys(&synced["rooms"]["join"]) {
                let events = synced["rooms"]["join"][&room]["timeline"]["events"].as_array();
                let messages = events.into_iter().flatten();
                for _ in messages.filter(|event| event["type"] == "m.room.message" && event["sender"] != user) {
                    let number = bot.sent.fetch_add(1, Ordering::Relaxed);
                    let path = format!("/rooms/{room}/send/m.room.message/{number}");
                    let bot = Arc::clone(&bot);
                    tokio::spawn(async move {
                        let content = json!({ "msgtype": "m.text", "body": ANSWER });
                        if let Err(error) = bot.call(Method::PUT, &path, Some(content)).await {
                            eprintln!("the bare bot could not answer: {error:#}");
                        }
                    });
                }
            }
        }
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let mut request = self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        Ok(request.send().await?.error_for_status()?.json().await?)
    }
}

fn keys(rooms: &Value) -> Vec<String> {
    rooms.as_object().map(|rooms| rooms.keys().cloned().collect()).unwrap_or_default()
}
