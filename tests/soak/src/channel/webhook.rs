//! A hook, and callers who repeat a call with its key until the gateway has accepted it.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use async_trait::async_trait;
use rand::rngs::StdRng;
use reqwest::Client;
use serde_json::{Value, json};

use super::{Channel, NAME, Platform, Seen};

const TOKEN: &str = "token-of-the-soak-run";

/// The pause before a call is repeated.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) struct Webhook {
    http: Client,
    url: String,
    /// The accepted calls of each conversation: turn and message.
    accepted: Mutex<HashMap<String, Vec<(String, String)>>>,
    count: AtomicUsize,
    /// Whether callers hang up before they have an answer.
    hang_up: AtomicBool,
}

impl Webhook {
    pub(super) fn new(gateway: &str) -> Result<Self> {
        let http = Client::builder().no_proxy().timeout(Duration::from_secs(20)).build()?;
        Ok(Self {
            http,
            url: format!("{gateway}/hooks/{NAME}"),
            accepted: Mutex::default(),
            count: AtomicUsize::new(0),
            hang_up: AtomicBool::new(false),
        })
    }

    /// Calls the hook once. `None` unless it accepts.
    async fn call(&self, chat: &str, key: &str, text: &str) -> Option<Value> {
        let wait = if key.ends_with(['0', '2', '4', '6', '8']) { "wait=0" } else { "wait=3" };
        let mut call =
            self.http.post(&self.url).bearer_auth(TOKEN).header("Idempotency-Key", key).header("Prefer", wait);
        if self.hang_up.load(Ordering::Relaxed) {
            call = call.timeout(PAUSE);
        }
        let response = call.json(&json!({ "message": text, "conversation": chat })).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        response.json().await.ok()
    }

    async fn result(&self, turn: &str) -> Option<Value> {
        let response = self.http.get(format!("{}/turns/{turn}", self.url)).bearer_auth(TOKEN).send().await.ok()?;
        response.json().await.ok()
    }
}

#[async_trait]
impl Channel for Webhook {
    fn platform(&self) -> Platform {
        Platform::Webhook
    }

    fn section(&self) -> String {
        format!("[channels.webhook.{NAME}]\ntoken = \"{TOKEN}\"\n")
    }

    async fn open(&self) -> String {
        format!("dora-{}", self.count.fetch_add(1, Ordering::Relaxed))
    }

    fn takes_commands(&self, _chat: &str) -> bool {
        true
    }

    async fn say(&self, chat: &str, key: &str, text: &str) -> Option<String> {
        loop {
            if let Some(answer) = self.call(chat, key, text).await
                && let Some(turn) = answer["turn_id"].as_str()
            {
                let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
                accepted.entry(chat.to_owned()).or_default().push((turn.to_owned(), text.to_owned()));
                return Some(turn.to_owned());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn fail(&self, _random: &mut StdRng) -> &'static str {
        self.hang_up.store(true, Ordering::Relaxed);
        "callers hang up"
    }

    async fn heal(&self) {
        self.hang_up.store(false, Ordering::Relaxed);
    }

    fn unacknowledged(&self) -> usize {
        0
    }

    async fn seen(&self, chat: &str) -> Vec<Seen> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner).get(chat).cloned();
        let mut seen = Vec::new();
        for (turn, text) in accepted.unwrap_or_default() {
            let Some(result) = self.result(&turn).await else { continue };
            match (result["status"].as_str(), result["signal"].as_str()) {
                (Some("answered"), Some("reaction")) => seen.push(Seen::Reaction { to: text }),
                (Some("answered"), _) => {
                    seen.extend(result["reply"].as_str().map(|reply| Seen::Text(reply.to_owned())));
                }
                _ => {}
            }
        }
        seen
    }
}
