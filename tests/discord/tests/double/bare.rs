//! A bare WebSocket client, for what no client library does.

use futures_util::{SinkExt, StreamExt};
use rejoinder_discord_server::{DiscordServer, PATIENCE};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

/// All intents.
pub(crate) const ALL: u64 = (1 << 26) - 1;

/// A connection whose HELLO has been read.
pub(crate) struct Bare(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// What the server sent.
#[derive(Debug, PartialEq)]
pub(crate) enum Received {
    Payload(Value),
    /// The close code; 1006 if there was none.
    Closed(u16),
}

impl Bare {
    pub(crate) async fn connects(server: &DiscordServer) -> Self {
        Self::connects_to(&format!("{}/?v=10&encoding=json", server.gateway_url())).await
    }

    pub(crate) async fn connects_to(url: &str) -> Self {
        let (socket, _) = tokio_tungstenite::connect_async(url).await.expect("the Gateway accepts a connection");
        let mut bare = Self(socket);
        let hello = bare.payload().await;
        assert_eq!(hello["op"], 10, "{hello}");
        bare
    }

    /// Connects and identifies. Returns the session's id too.
    pub(crate) async fn identifies(server: &DiscordServer, intents: u64) -> (Self, String) {
        let mut bare = Self::connects(server).await;
        bare.sends(&identify(server, intents)).await;
        let ready = bare.payload().await;
        assert_eq!(ready["t"], "READY", "{ready}");
        let session = ready["d"]["session_id"].as_str().expect("a session id").to_owned();
        (bare, session)
    }

    pub(crate) async fn sends(&mut self, payload: &Value) {
        self.sends_text(&payload.to_string()).await;
    }

    pub(crate) async fn sends_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("the payload is sent");
    }

    pub(crate) async fn closes(&mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
        self.0.close(Some(frame)).await.expect("the connection is closed");
        while let Some(Ok(_)) = self.0.next().await {}
    }

    pub(crate) async fn next(&mut self) -> Received {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("the server sends something");
            return match next {
                Some(Ok(Message::Text(text))) => Received::Payload(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(Some(frame)))) => Received::Closed(frame.code.into()),
                Some(Ok(Message::Close(None)) | Err(_)) | None => Received::Closed(1006),
                Some(Ok(_)) => continue,
            };
        }
    }

    pub(crate) async fn payload(&mut self) -> Value {
        match self.next().await {
            Received::Payload(payload) => payload,
            Received::Closed(code) => panic!("the connection was closed with {code}"),
        }
    }

    /// Waits for the end and returns its code.
    pub(crate) async fn end(&mut self) -> u16 {
        loop {
            if let Received::Closed(code) = self.next().await {
                return code;
            }
        }
    }

    /// The next event's name and sequence number.
    pub(crate) async fn event(&mut self) -> (String, u64) {
        let payload = self.payload().await;
        let name = payload["t"].as_str().unwrap_or_else(|| panic!("no event: {payload}"));
        (name.to_owned(), payload["s"].as_u64().expect("an event has a number"))
    }
}

pub(crate) fn identify(server: &DiscordServer, intents: u64) -> Value {
    json!({ "op": 2, "d": { "token": server.token(), "intents": intents, "properties": {} } })
}

pub(crate) fn resume(server: &DiscordServer, session: &str, sequence: u64) -> Value {
    json!({ "op": 6, "d": { "token": server.token(), "session_id": session, "seq": sequence } })
}
