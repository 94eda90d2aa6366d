//! A person at the web chat, connected by its socket alone.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, tungstenite::Message};

use crate::PATIENCE;

/// A socket of the chat `main`, open on one conversation.
#[derive(Debug)]
pub struct Chat {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The turns in the `welcome` frame.
    pub turns: Vec<Value>,
}

impl Chat {
    /// Opens `conversation` at the gateway at `url`.
    ///
    /// # Panics
    /// If there is no `welcome`.
    pub async fn open(url: &str, conversation: &str) -> Self {
        let url = format!("{}/chat/ws", url.replacen("http", "ws", 1));
        let (socket, _) = tokio_tungstenite::connect_async(url).await.expect("the socket opens");
        let mut chat = Self { socket, turns: Vec::new() };
        chat.send_frame(&json!({ "type": "hello", "conversation": conversation })).await;
        let welcome = chat.next_frame("welcome").await;
        chat.turns.clone_from(welcome["turns"].as_array().expect("the welcome has turns"));
        chat
    }

    /// Sends a message and waits until it is accepted; returns the turn's id.
    ///
    /// # Panics
    /// If it is not accepted.
    pub async fn says(&mut self, id: &str, text: &str) -> String {
        self.send_frame(&json!({ "type": "message", "id": id, "text": text })).await;
        let accepted = self.next_frame("accepted").await;
        accepted["turn_id"].as_str().expect("a turn has an id").to_owned()
    }

    async fn send_frame(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).await.expect("the socket is open");
    }

    /// The next frame of a type.
    async fn next_frame(&mut self, kind: &str) -> Value {
        let reading = async {
            loop {
                let message = self.socket.next().await.expect("the socket is open").expect("a frame is read");
                let Message::Text(text) = message else { continue };
                let frame: Value = serde_json::from_str(&text).expect("a frame is JSON");
                if frame["type"] == kind {
                    return frame;
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading)
            .await
            .unwrap_or_else(|_| panic!("no `{kind}` frame within {PATIENCE:?}"))
    }
}
