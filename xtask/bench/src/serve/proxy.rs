//! The bare proxy: the cost of asking the agent without storage or guarantees.

use std::time::Duration;

use anyhow::Result;
use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use serde::Deserialize;
use serde_json::json;

use super::hook::{HookAnswer, HookRequest};

#[derive(Clone)]
struct Agent {
    client: reqwest::Client,
    url: String,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: CompletionMessage,
}

#[derive(Deserialize)]
struct CompletionMessage {
    content: String,
}

/// `POST /hooks/{name}`, answered by the agent at the base URL `agent`.
///
/// # Errors
///
/// When there is no HTTP client.
pub(crate) fn router(agent: &str) -> Result<Router> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build()?;
    let agent = Agent { client, url: format!("{agent}/chat/completions") };
    Ok(Router::new().route("/hooks/{name}", post(relay)).with_state(agent))
}

async fn relay(
    State(agent): State<Agent>,
    Json(turn): Json<HookRequest>,
) -> Result<Json<HookAnswer>, (StatusCode, String)> {
    let reply = ask(&agent, &turn.message).await.map_err(|error| (StatusCode::BAD_GATEWAY, error.to_string()))?;
    Ok(Json(HookAnswer::with(reply)))
}

/// Asks without streaming: the cheapest way, and so the strictest comparison.
async fn ask(agent: &Agent, message: &str) -> reqwest::Result<String> {
    let body = json!({ "model": "bench", "messages": [{ "role": "user", "content": message }] });
    let answer = agent.client.post(&agent.url).json(&body).send().await?.error_for_status()?;
    let completion: Completion = answer.json().await?;
    Ok(completion.choices.into_iter().map(|choice| choice.message.content).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::agent;

    #[tokio::test]
    async fn the_agents_answer_comes_back() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1/chat/completions", listener.local_addr().expect("bound"));
        tokio::spawn(async move { axum::serve(listener, agent::router(false)).await });
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");

        let reply = ask(&Agent { client, url }, "ping").await.expect("an answer");

        assert_eq!(reply, agent::ANSWER);
    }
}
