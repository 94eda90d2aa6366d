//! A model server whose model calls the tool that the message names.

use std::sync::{Arc, Mutex, PoisonError};

use axum::{Json, Router, extract::State, routing::post};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// A server with the Chat Completions API. A message such as `call files_echo {"text": "a"}` is answered with this call, and the result of
/// the call with `The tool said: …`.
#[derive(Debug)]
pub struct ToolModel {
    port: u16,
    requests: Requests,
    serving: JoinHandle<()>,
}

type Requests = Arc<Mutex<Vec<Value>>>;

impl ToolModel {
    /// Starts it.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Requests::default();
        let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(Arc::clone(&requests));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { port, requests, serving }
    }

    /// The section of an agent `main` that uses it.
    #[must_use]
    pub fn section(&self) -> String {
        let base_url = format!("http://127.0.0.1:{}/v1", self.port);
        format!("[agents.main]\nkind = \"openai\"\nbase_url = \"{base_url}\"\nmodel = \"test-model\"\n")
    }

    /// The names of the tools that were offered in the last request.
    #[must_use]
    pub fn offered(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = requests.last().and_then(|body| body["tools"].as_array().cloned()).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect()
    }
}

impl Drop for ToolModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(requests): State<Requests>, Json(body): Json<Value>) -> Json<Value> {
    let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(body);
    let text = last["content"].as_str().unwrap_or_default();
    let called = text.split_once("call ").and_then(|(_, call)| call.split_once(' '));
    let message = match called {
        _ if last["role"] == "tool" => json!({ "role": "assistant", "content": format!("The tool said: {text}") }),
        Some((name, arguments)) => json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": "call_1", "type": "function", "function": { "name": name, "arguments": arguments } },
        ] }),
        None => json!({ "role": "assistant", "content": "Hello." }),
    };
    Json(json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] }))
}
