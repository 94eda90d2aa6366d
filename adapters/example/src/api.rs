//! The server, as a client of it sees it: a connection, and one question with its answer.

use std::{io, time::Duration};

use futures_util::{SinkExt, StreamExt};
use rejoinder_config::Secret;
use tokio::{net::TcpStream, time::timeout};
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};

use crate::{
    ExampleSection,
    payload::{Line, escaped},
};

/// How long the server may take to let us in, and to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 64 * 1024;

/// Why there is no connection, or no answer on it. It holds no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// Nothing was asked yet.
    #[error("cannot connect: {0}")]
    NotConnected(String),
    /// The server does not accept the token.
    #[error("{0}")]
    Denied(String),
    /// The connection was lost after something was written.
    #[error("connection lost: {0}")]
    Lost(String),
}

impl From<LinesCodecError> for ApiError {
    fn from(error: LinesCodecError) -> Self {
        Self::Lost(error.to_string())
    }
}

impl From<io::Error> for ApiError {
    fn from(error: io::Error) -> Self {
        Self::NotConnected(error.to_string())
    }
}

/// Where the server is, and how it knows us.
#[derive(Debug)]
pub(crate) struct Api {
    address: String,
    token: Secret,
}

/// A connection on which we are logged in.
#[derive(Debug)]
pub(crate) struct Connection {
    lines: Framed<TcpStream, LinesCodec>,
    /// Our own name.
    pub(crate) name: String,
}

impl Api {
    pub(crate) fn new(options: &ExampleSection) -> Self {
        Self { address: options.address.clone(), token: options.token.clone() }
    }

    pub(crate) async fn connect(&self) -> Result<Connection, ApiError> {
        let logging_in = async {
            let socket = TcpStream::connect(&self.address).await?;
            let mut lines = Framed::new(socket, LinesCodec::new_with_max_length(MAX_LINE));
            lines.send(format!("hello {}", self.token.expose())).await?;
            let line = lines.next().await.transpose()?;
            match line.as_deref().map(Line::parse) {
                Some(Line::Welcome { name }) => Ok(Connection { lines, name }),
                Some(Line::Denied { why }) => Err(ApiError::Denied(why)),
                _ => Err(ApiError::NotConnected("the server did not welcome us".to_owned())),
            }
        };
        let late = |_| ApiError::NotConnected("the server did not welcome us in time".to_owned());
        timeout(PATIENCE, logging_in).await.map_err(late)?.map_err(|error| match error {
            // Only the greeting was written.
            ApiError::Lost(why) => ApiError::NotConnected(why),
            error => error,
        })
    }

    /// Writes `text` into a chat. `key` is the same for every attempt.
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
        Ok(self.lines.send(line).await?)
    }

    /// The next line. Cancel safe.
    pub(crate) async fn read(&mut self) -> Result<String, ApiError> {
        let line = self.lines.next().await.transpose()?;
        line.ok_or_else(|| ApiError::Lost("the server closed it".to_owned()))
    }
}
