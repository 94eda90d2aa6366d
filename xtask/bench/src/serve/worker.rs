//! A worker of a `pull` agent that answers every turn at once.

use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use super::agent::ANSWER;

/// Starts a worker of the agent whose paths are below `agent`. The router is empty.
///
/// # Errors
///
/// When there is no HTTP client.
pub(crate) fn router(agent: String, token: String) -> Result<Router> {
    let client = Client::builder().no_proxy().tcp_nodelay(true).timeout(Duration::from_mins(1)).build()?;
    tokio::spawn(async move {
        if let Err(error) = work(&client, &agent, &token).await {
            eprintln!("the worker failed: {error:#}");
        }
    });
    Ok(Router::new())
}

/// Fetches turns and answers them, one after the other.
async fn work(client: &Client, agent: &str, token: &str) -> Result<()> {
    loop {
        let next = client.get(format!("{agent}/next?wait=30")).bearer_auth(token).send().await?.error_for_status()?;
        if next.status() == StatusCode::NO_CONTENT {
            continue;
        }
        let turn: Value = next.json().await?;
        let id = turn["turn_id"].as_str().context("a turn has no id")?;
        let answer = json!({ "lease": turn["lease"], "reply": ANSWER });
        let answered = client.post(format!("{agent}/turns/{id}")).bearer_auth(token).json(&answer).send().await?;
        answered.error_for_status()?;
    }
}
