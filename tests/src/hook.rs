//! A client that calls hooks.

use reqwest::{RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Hook {
    http: reqwest::Client,
    url: String,
    token: String,
}

/// The response of a hook.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// JSON, or the text as a JSON string.
    pub body: Value,
}

impl Reply {
    /// The id of the turn.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn turn(&self) -> String {
        self.body["turn_id"].as_str().unwrap_or_else(|| panic!("no turn in {self:?}")).to_owned()
    }

    /// The turn's status: `answered`, `deferred`, …
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn state(&self) -> &str {
        self.body["status"].as_str().unwrap_or_else(|| panic!("no status in {self:?}"))
    }

    /// The text of the reply.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn text(&self) -> &str {
        self.body["reply"].as_str().unwrap_or_else(|| panic!("no reply in {self:?}"))
    }
}

impl Hook {
    pub(crate) fn new(http: reqwest::Client, url: String, token: &str) -> Self {
        Self { http, url, token: token.to_owned() }
    }

    /// A call without a body or authentication.
    pub fn bare(&self) -> RequestBuilder {
        self.http.post(&self.url)
    }

    /// A call with the hook's token.
    pub fn call(&self) -> RequestBuilder {
        self.bare().bearer_auth(&self.token)
    }

    /// A turn with `message`, in a conversation of its own.
    pub fn message(&self, message: &str) -> RequestBuilder {
        self.call().json(&json!({ "message": message }))
    }

    /// A turn with `message` in `conversation`.
    pub fn message_in(&self, conversation: &str, message: &str) -> RequestBuilder {
        self.call().json(&json!({ "message": message, "conversation": conversation }))
    }

    /// Sends a message and waits for the response.
    ///
    /// # Panics
    /// If there is none.
    pub async fn ask(&self, message: &str) -> Reply {
        read(self.message(message)).await
    }

    /// Sends a message without waiting for the answer.
    ///
    /// # Panics
    /// If there is no response.
    pub async fn send(&self, message: &str) -> Reply {
        read(self.message(message).header("Prefer", "wait=0")).await
    }

    /// The result of a turn after waiting for up to `wait` seconds.
    ///
    /// # Panics
    /// If there is none.
    pub async fn result(&self, turn: &str, wait: u32) -> Reply {
        let request = self.http.get(format!("{}/turns/{turn}", self.url)).bearer_auth(&self.token);
        read(request.header("Prefer", format!("wait={wait}"))).await
    }

    /// Waits until a turn is neither accepted nor deferred any more.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub async fn until_settled(&self, turn: &str) -> Reply {
        crate::eventually("the turn is settled", async || {
            let reply = self.result(turn, 5).await;
            (!matches!(reply.state(), "accepted" | "deferred")).then_some(reply)
        })
        .await
    }
}

async fn read(request: RequestBuilder) -> Reply {
    Reply::of(request).await
}

impl Reply {
    /// Sends a request and reads the response.
    ///
    /// # Panics
    /// If there is none.
    pub async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("the hook responds");
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.expect("the hook's response is read");
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, headers, body }
    }
}
