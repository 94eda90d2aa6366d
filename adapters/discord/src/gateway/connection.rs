//! One WebSocket to the Gateway, over an HTTP client, to use its certificates and proxies.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{SinkExt, StreamExt};
use reqwest::{Client, StatusCode, Upgraded, header};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};
use url::Url;

use crate::api::USER_AGENT;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The largest frame, in bytes. A large server arrives in one frame.
const MAX_FRAME: usize = 64 << 20;

/// A close with this code keeps the session; 1000 and 1001 would end it
/// (<https://discord.com/developers/docs/events/gateway#initiating-a-disconnect>).
const KEEPS_SESSION: u16 = 4000;

pub(super) struct Connection(WebSocketStream<Upgraded>);

#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("Discord's gateway cannot be reached: {0}")]
    Unreachable(String),
    #[error("Discord's gateway answered {0} to the WebSocket upgrade")]
    NotUpgraded(StatusCode),
    #[error("the connection to Discord's gateway broke: {0}")]
    Broken(#[from] tungstenite::Error),
    #[error("Discord's gateway closed the connection ({0})")]
    Closed(Closed),
}

/// The close frame from Discord.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) code: Option<u16>,
    reason: String,
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(code) if self.reason.is_empty() => code.fmt(f),
            Some(code) => write!(f, "{code} {}", self.reason),
            None => f.write_str("no code"),
        }
    }
}

impl Connection {
    pub(super) async fn open(http: &Client, url: &str) -> Result<Self, ConnectionError> {
        let unreachable = |error: &dyn std::fmt::Display| ConnectionError::Unreachable(error.to_string());
        let mut url = Url::parse(url).map_err(|error| unreachable(&error))?;
        let scheme = if url.scheme() == "ws" { "http" } else { "https" };
        // A change between web schemes always succeeds.
        let _ = url.set_scheme(scheme);
        url.query_pairs_mut().append_pair("v", "10").append_pair("encoding", "json");
        let key = STANDARD.encode(rand::random::<[u8; 16]>());
        let request = http
            .get(url)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &key);
        let opening = async {
            let response = request.send().await.map_err(|error| unreachable(&error.without_url()))?;
            let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
            let is_for_us =
                accepted.is_some_and(|accept| accept.as_bytes() == derive_accept_key(key.as_bytes()).as_bytes());
            if response.status() != StatusCode::SWITCHING_PROTOCOLS || !is_for_us {
                return Err(ConnectionError::NotUpgraded(response.status()));
            }
            response.upgrade().await.map_err(|error| unreachable(&error.without_url()))
        };
        let upgraded = tokio::time::timeout(CONNECT_TIMEOUT, opening).await;
        let upgraded = upgraded.map_err(|_| ConnectionError::Unreachable("no response in time".to_owned()))??;
        let config = WebSocketConfig::default().max_message_size(Some(MAX_FRAME)).max_frame_size(Some(MAX_FRAME));
        Ok(Self(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await))
    }

    /// Receives the next text. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<String, ConnectionError> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Close(frame))) => {
                    let (code, reason) =
                        frame.map_or((None, String::new()), |it| (Some(it.code.into()), it.reason.to_string()));
                    return Err(ConnectionError::Closed(Closed { code, reason }));
                }
                // The library answers pings; without compression there are no binary messages.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(ConnectionError::Closed(Closed { code: None, reason: String::new() })),
            }
        }
    }

    pub(super) async fn send(&mut self, text: String) -> Result<(), ConnectionError> {
        Ok(self.0.send(Message::text(text)).await?)
    }

    pub(super) async fn close(mut self) {
        let closing = async {
            let frame = CloseFrame { code: KEEPS_SESSION.into(), reason: "".into() };
            if self.0.close(Some(frame)).await.is_ok() {
                while let Some(Ok(_)) = self.0.next().await {}
            }
        };
        // It does not matter whether Discord replies.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    }
}
