//! A minimal HTTP client: one keep-alive connection.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, StatusCode,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

/// The token of the hook `bench` and of the admin interface.
pub(crate) const TOKEN: &str = "bench-token-of-no-worth";

/// How long a response may take; longer than any `Prefer: wait` of a measurement.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Client {
    server: SocketAddr,
    connection: SendRequest<Full<Bytes>>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Client {
    /// Opens the connection.
    ///
    /// # Errors
    ///
    /// When nothing listens there.
    pub(crate) async fn connect(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(Self { server, connection })
    }

    /// Fetches `path`.
    ///
    /// # Errors
    ///
    /// When the connection fails, or no complete response comes within a minute.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer> {
        let request = self.request("GET", path).body(Full::default())?;
        self.send(request).await
    }

    /// Posts a turn to the hook `bench` with `Prefer: wait`, in seconds.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    pub(crate) async fn post_turn(&mut self, wait: u32, body: Bytes) -> Result<Answer> {
        let request = self
            .request("POST", "/hooks/bench")
            .header(CONTENT_TYPE, "application/json")
            .header("prefer", format!("wait={wait}"))
            .body(Full::new(body))?;
        self.send(request).await
    }

    fn request(&self, method: &str, path: &str) -> hyper::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.server.to_string())
            .header(AUTHORIZATION, format!("Bearer {TOKEN}"))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer> {
        let exchange = async {
            self.connection.ready().await?;
            let answer = self.connection.send_request(request).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            anyhow::Ok(Answer { status, body })
        };
        timeout(RESPONSE_TIMEOUT, exchange).await.context("no response within a minute")?
    }
}

/// The body of a turn in one conversation.
pub(crate) fn turn(conversation: &str) -> Bytes {
    serde_json::json!({ "message": "ping", "conversation": conversation }).to_string().into()
}

/// The body of a turn that is a conversation of its own, without history.
pub(crate) fn turn_alone() -> Bytes {
    serde_json::json!({ "message": "ping" }).to_string().into()
}
