//! A minimal HTTP client for the Bot API.

use std::time::Duration;

use rejoinder_telegram_double::TelegramDouble;
use reqwest::Client;
use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) http: Client,
    pub(crate) base: String,
}

/// The code and the description of an error.
pub(crate) type Refusal = (u64, String);

impl Api {
    pub(crate) fn of(telegram: &TelegramDouble) -> Self {
        let http = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().expect("a client is built");
        Self { http, base: format!("{}/bot{}", telegram.url(), telegram.token()) }
    }

    pub(crate) fn url(&self, method: &str) -> String {
        format!("{}/{method}", self.base)
    }

    /// The whole response.
    pub(crate) async fn answer(&self, method: &str, params: Value) -> reqwest::Result<Value> {
        self.http.post(self.url(method)).json(&params).send().await?.json().await
    }

    /// The result of a call that must succeed.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params).await.expect("the call gets a response");
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer["result"].clone()
    }

    /// The error of a call that must fail.
    pub(crate) async fn refused(&self, method: &str, params: Value) -> Refusal {
        let answer = self.answer(method, params).await.expect("the call gets a response");
        assert_eq!(answer["ok"], false, "{method}: {answer}");
        (answer["error_code"].as_u64().unwrap(), answer["description"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn send(&self, chat: i64, text: &str) -> i64 {
        let sent = self.call("sendMessage", json!({ "chat_id": chat, "text": text })).await;
        sent["message_id"].as_i64().unwrap()
    }

    pub(crate) async fn updates(&self, params: Value) -> Vec<Value> {
        self.call("getUpdates", params).await.as_array().unwrap().clone()
    }

    /// The waiting updates, without confirming any.
    pub(crate) async fn waiting(&self) -> Vec<Value> {
        self.updates(json!({})).await
    }

    /// The only waiting update.
    pub(crate) async fn one(&self) -> Value {
        let mut waiting = self.waiting().await;
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        waiting.remove(0)
    }
}

/// A double and a client for it.
pub(crate) async fn started() -> (TelegramDouble, Api) {
    let telegram = TelegramDouble::start().await;
    let api = Api::of(&telegram);
    (telegram, api)
}
