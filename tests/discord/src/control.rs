//! A client for the control API, which `README.md` describes.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A client for the control API of one server. An error is a mistake in the test, so it panics.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    http: reqwest::Client,
    url: Arc<str>,
}

impl Control {
    pub(crate) fn new(server: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        Self { http, url: format!("{server}/__sim/").into() }
    }

    /// Performs an action and returns its result.
    pub(crate) async fn post<T: DeserializeOwned>(&self, what: &str, given: &Value) -> T {
        self.read(what, self.http.post(format!("{}{what}", self.url)).json(given)).await
    }

    /// Performs an action without a result.
    pub(crate) async fn act(&self, what: &str, given: &Value) {
        let _: Value = self.post(what, given).await;
    }

    /// Reads state.
    pub(crate) async fn get<T: DeserializeOwned>(&self, what: &str, query: &[(&str, &str)]) -> T {
        self.read(what, self.http.get(format!("{}{what}", self.url)).query(query)).await
    }

    async fn read<T: DeserializeOwned>(&self, what: &str, request: reqwest::RequestBuilder) -> T {
        let response = request.send().await.unwrap_or_else(|error| panic!("the Discord server is gone: {error}"));
        let status = response.status();
        let body: Value = response.json().await.unwrap_or_else(|error| panic!("{what}: not JSON: {error}"));
        assert!(status.is_success(), "the Discord server rejects this: {}", body["error"]);
        serde_json::from_value(body.clone())
            .unwrap_or_else(|error| panic!("{what}: unexpected response: {error}: {body}"))
    }
}

/// The id in the field `name` of a response.
pub(crate) fn id(answer: &Value, name: &str) -> String {
    answer[name].as_str().unwrap_or_else(|| panic!("no {name} in {answer}")).to_owned()
}
