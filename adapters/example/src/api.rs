//! The client of the server: a connection, and one request with its answer.

use std::{io, time::Duration};

use futures_util::{SinkExt, StreamExt};
use rejoinder_kit::calls::redacted;
use secrecy::{ExposeSecret, SecretString};
use tokio::{net::TcpStream, time::timeout};
use tokio_util::codec::Framed;

use crate::{
    ExampleSection,
    lines::Lines,
    payload::{Line, escaped},
};

/// The timeout of a login and of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a connection or a request failed. The texts contain no secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// No request was written.
    #[error("cannot connect: {0}")]
    NotConnected(String),
    /// The server rejected the token.
    #[error("{0}")]
    Denied(String),
    /// The connection was lost after a request was written.
    #[error("connection lost: {0}")]
    Lost(String),
}

impl From<io::Error> for ApiError {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

/// The server's address and our token.
#[derive(Debug)]
pub(crate) struct Api {
    address: String,
    token: SecretString,
}

/// A connection after the login.
#[derive(Debug)]
pub(crate) struct Connection {
    lines: Framed<TcpStream, Lines>,
    /// Our own name.
    pub(crate) name: String,
}

impl Api {
    pub(crate) fn new(options: &ExampleSection) -> Self {
        Self { address: options.address.clone(), token: options.token.get().clone() }
    }

    pub(crate) async fn connect(&self) -> Result<Connection, ApiError> {
        let logging_in = async {
            let socket = TcpStream::connect(&self.address).await?;
            let mut lines = Framed::new(socket, Lines::default());
            lines.send(&format!("hello {}", self.token.expose_secret())).await?;
            let line = lines.next().await.transpose()?;
            match line.as_deref().map(Line::parse) {
                Some(Line::Welcome(name)) => Ok(Connection { lines, name }),
                Some(Line::Denied(why)) => Err(ApiError::Denied(redacted(&why, &self.token))),
                _ => Err(ApiError::NotConnected("the server did not welcome us".to_owned())),
            }
        };
        let late = |_| ApiError::NotConnected("the server did not welcome us in time".to_owned());
        timeout(PATIENCE, logging_in).await.map_err(late)?.map_err(|error| match error {
            // Only the `hello` was written.
            ApiError::Lost(why) => ApiError::NotConnected(why),
            error => error,
        })
    }

    /// Sends `text` to a chat. `key` is the same for each attempt.
    pub(crate) async fn say(&self, key: &str, chat: &str, text: &str) -> Result<Line, ApiError> {
        let mut connection = self.connect().await?;
        let asking = async {
            connection.write(&format!("say {key} {chat} {}", escaped(text))).await?;
            connection.read().await.map(|line| Line::parse(&line))
        };
        timeout(PATIENCE, asking).await.map_err(|_| ApiError::Lost("the server did not answer in time".to_owned()))?
    }
}

impl Connection {
    pub(crate) async fn write(&mut self, line: &str) -> Result<(), ApiError> {
        let late = |_| ApiError::Lost("the server does not read".to_owned());
        Ok(timeout(PATIENCE, self.lines.send(line)).await.map_err(late)??)
    }

    /// The next line. Cancel safe.
    pub(crate) async fn read(&mut self) -> Result<String, ApiError> {
        let line = self.lines.next().await.transpose()?;
        line.ok_or_else(|| ApiError::Lost("the server closed it".to_owned()))
    }
}
