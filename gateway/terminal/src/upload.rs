//! Sends a question with files: the socket carries none.

use std::{io, path::PathBuf, time::Duration};

use rejoinder_core::Backoff;
use reqwest::{
    Client, StatusCode,
    multipart::{Form, Part},
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::sleep;

use super::door;

/// How long the gateway may take to read the files, and to store them.
const TIMEOUT: Duration = Duration::from_mins(5);

/// A question with its files.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Where messages with files are sent.
    pub(crate) url: String,
    pub(crate) token: Option<SecretString>,
    pub(crate) conversation: SecretString,
    /// The message's id.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) files: Vec<PathBuf>,
}

/// The message is stored.
#[derive(Deserialize)]
struct Stored {
    turn_id: Option<String>,
}

/// The message is refused: a problem document.
#[derive(Deserialize)]
struct Refused {
    detail: String,
}

/// Why it was not sent.
enum NotSent {
    /// It is sent again later.
    Lost,
    Refused(String),
}

/// Where messages with files are sent, of the chat whose socket has this URL: `http://127.0.0.1:7420/chat/main/messages` of
/// `ws://127.0.0.1:7420/chat/main/ws`.
pub(crate) fn url_of(socket: &str) -> String {
    let chat = socket.strip_suffix("/ws").unwrap_or(socket);
    format!("{}/messages", chat.replacen("ws", "http", 1))
}

impl Upload {
    /// Sends it, again until the gateway has stored it. Returns the turn that it opened.
    pub(crate) async fn send(&self) -> Result<Option<String>, String> {
        let http = door::http(TIMEOUT).map_err(|error| error.to_string())?;
        let mut backoff = Backoff::default();
        loop {
            match self.try_to_send(&http).await {
                Ok(turn) => return Ok(turn),
                Err(NotSent::Refused(why)) => return Err(why),
                Err(NotSent::Lost) => sleep(backoff.pause_unreachable()).await,
            }
        }
    }

    async fn try_to_send(&self, http: &Client) -> Result<Option<String>, NotSent> {
        let form = self.form().await.map_err(|error| NotSent::Refused(format!("a file cannot be read: {error}")))?;
        let mut request = http.post(&self.url).multipart(form);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        let response = request.send().await.map_err(|_| NotSent::Lost)?;
        let status = response.status();
        if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
            return Err(NotSent::Lost);
        }
        if status.is_success() {
            let stored: Stored = response.json().await.map_err(|_| NotSent::Lost)?;
            return Ok(stored.turn_id);
        }
        let refused: Option<Refused> = response.json().await.ok();
        Err(NotSent::Refused(refused.map_or_else(|| status.to_string(), |refused| refused.detail)))
    }

    async fn form(&self) -> io::Result<Form> {
        let mut form = Form::new()
            .percent_encode_noop()
            .text("conversation", self.conversation.expose_secret().to_owned())
            .text("id", self.id.clone())
            .text("text", self.text.clone());
        if let Some(language) = door::language() {
            form = form.text("language", language);
        }
        for file in &self.files {
            // Its type is guessed by its ending, and checked by the gateway.
            form = form.part("file", Part::file(file).await?);
        }
        Ok(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_files_are_sent_beside_the_socket() {
        let url = url_of("ws://127.0.0.1:7420/chat/main/ws");

        assert_eq!(url, "http://127.0.0.1:7420/chat/main/messages");
    }
}
