//! The chat page's socket, and people who repeat a message with its id until the gateway has accepted it.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{SinkExt, StreamExt};
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

use super::{Channel, NAME, Platform, Seen};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How long a page waits for a frame, and for a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a message is repeated.
const PAUSE: Duration = Duration::from_millis(300);
/// How long a page stays open after its message was accepted.
const STAY: Duration = Duration::from_secs(4);

pub(super) struct Webchat {
    url: String,
    count: AtomicUsize,
    /// Whether pages close as soon as they have written.
    hang_up: AtomicBool,
}

impl Webchat {
    pub(super) fn new(gateway: &str) -> Self {
        let url = format!("{}/chat/{NAME}/ws", gateway.replacen("http", "ws", 1));
        Self { url, count: AtomicUsize::new(0), hang_up: AtomicBool::new(false) }
    }

    /// Opens a conversation; returns the socket and the turns in it.
    async fn connect(&self, chat: &str) -> Option<(Socket, Vec<Value>)> {
        let (mut socket, _) = timeout(PATIENCE, connect_async(&self.url)).await.ok()?.ok()?;
        send(&mut socket, &json!({ "type": "hello", "conversation": chat })).await?;
        let welcome = frame(&mut socket, "welcome").await?;
        Some((socket, welcome["turns"].as_array().cloned().unwrap_or_default()))
    }

    /// Writes once. `None` unless the gateway accepts.
    async fn write(&self, chat: &str, id: &str, text: &str) -> Option<String> {
        let (mut socket, _) = self.connect(chat).await?;
        send(&mut socket, &json!({ "type": "message", "id": id, "text": text })).await?;
        if self.hang_up.load(Ordering::Relaxed) {
            return None;
        }
        let accepted = frame(&mut socket, "accepted").await?;
        let turn = accepted["turn_id"].as_str()?.to_owned();
        // The page looks on while the answer is written.
        tokio::spawn(timeout(STAY, async move { while socket.next().await.is_some() {} }));
        Some(turn)
    }
}

async fn send(socket: &mut Socket, frame: &Value) -> Option<()> {
    socket.send(Message::text(frame.to_string())).await.ok()
}

/// The next frame of a type.
async fn frame(socket: &mut Socket, kind: &str) -> Option<Value> {
    let reading = async {
        loop {
            let Message::Text(text) = socket.next().await?.ok()? else { continue };
            let frame: Value = serde_json::from_str(&text).ok()?;
            if frame["type"] == kind {
                return Some(frame);
            }
        }
    };
    timeout(PATIENCE, reading).await.ok()?
}

#[async_trait]
impl Channel for Webchat {
    fn platform(&self) -> Platform {
        Platform::Webchat
    }

    fn section(&self) -> String {
        format!("[channels.webchat.{NAME}]\n")
    }

    async fn open(&self) -> String {
        format!("emil-in-the-soak-{:06}", self.count.fetch_add(1, Ordering::Relaxed))
    }

    fn takes_commands(&self, _chat: &str) -> bool {
        true
    }

    async fn say(&self, chat: &str, key: &str, text: &str) -> Option<String> {
        loop {
            if let Some(turn) = self.write(chat, key, text).await {
                return Some(turn);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn fail(&self, _random: &mut StdRng) -> &'static str {
        self.hang_up.store(true, Ordering::Relaxed);
        "pages close at once"
    }

    async fn heal(&self) {
        self.hang_up.store(false, Ordering::Relaxed);
    }

    fn unacknowledged(&self) -> usize {
        0
    }

    async fn seen(&self, chat: &str) -> Vec<Seen> {
        let turns = self.connect(chat).await.map(|(_, turns)| turns).unwrap_or_default();
        let seen = turns.into_iter().filter_map(|turn| {
            if turn["status"] != "answered" {
                return None;
            }
            if turn["shown"]["signal"] == "reaction" {
                return Some(Seen::Reaction { to: turn["text"].as_str()?.to_owned() });
            }
            Some(Seen::Text(turn["shown"]["text"].as_str()?.to_owned()))
        });
        seen.collect()
    }
}
