//! An agent whose workers fetch its turns over HTTP.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_agents::{PullSection, PullSettings};
use rejoinder_config::{Agent, AgentKind, TokenValue};
use rejoinder_core::AgentName;
use reqwest::Client;
use utoipa::openapi::OpenApi;

use super::factory::{AgentFactory, role, section};
use crate::{
    built_agent::BuiltAgent,
    console::finding::Finding,
    materials::{Materials, WiringError},
    own_tools::Caller,
};

pub(super) struct Pull;

#[async_trait]
impl AgentFactory for Pull {
    fn section(&self) -> AgentKind {
        AgentKind::of::<PullSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let section = section::<PullSection>(agent);
        let shared = section.token.as_ref().map(|token| materials.tokens(token, &token_file(name)));
        let worker = |worker: &String| {
            let tokens = materials.tokens(&section.workers[worker].token, &worker_token_file(name, worker))?;
            Ok((worker.clone(), tokens.0))
        };
        let agent = Arc::new(rejoinder_agents::Pull::new(PullSettings {
            name: Arc::clone(name),
            section: section.clone(),
            token: shared.transpose()?.map(|(tokens, _)| tokens),
            workers: section.workers.keys().map(worker).collect::<Result<_, _>>()?,
            guesses: Arc::clone(&materials.guesses),
            body_timeout: materials.config.server.request_timeout,
            stop_waiting: materials.stop_waiting.clone(),
            refusals: Arc::clone(materials.runtimes.refusals()),
            handed_out: materials.handed_out.clone(),
        }));
        let routes = Some(agent.routes());
        let runtime = materials.with_tools(name, agent, section.mcp, Caller::Anywhere)?;
        Ok(BuiltAgent { routes, ..runtime.into() })
    }

    fn has_workers(&self) -> bool {
        true
    }

    fn openapi(&self) -> Option<OpenApi> {
        Some(rejoinder_agents::pull_openapi())
    }

    async fn check(&self, name: &str, agent: &Agent, is_default: bool, _: &Client) -> Vec<Finding> {
        let (about, section) = (format!("agents.{name}"), section::<PullSection>(agent));
        let role = role(is_default);
        let named = match section.workers.len() {
            0 => String::new(),
            1 => ", 1 worker has a token of its own".to_owned(),
            count => format!(", {count} workers have tokens of their own"),
        };
        let finding = Finding::ok(about, format!("workers fetch its turns at /agents/{name}/next{role}{named}"));
        let generated = section.token.as_ref().filter(|token| matches!(token.current, TokenValue::Generate));
        let advice = match generated {
            Some(_) => format!("The token of the workers is in the file {} of the data directory.", token_file(name)),
            None => "Whether workers ask for turns is said while the gateway runs.".to_owned(),
        };
        vec![finding.with_advice(advice)]
    }
}

/// The file in the data directory with the generated token.
fn token_file(agent: &str) -> String {
    format!("agent-{agent}-token")
}

/// The same of a worker with a token of its own. No agent has an `@` in its name, and no worker.
fn worker_token_file(agent: &str, worker: &str) -> String {
    format!("agent-{agent}@{worker}-token")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_tokens_share_a_file() {
        let files = [
            token_file("a"),
            token_file("a-b"),
            token_file("a-worker-b"),
            worker_token_file("a", "b"),
            worker_token_file("a", "b-c"),
            worker_token_file("a-b", "c"),
            worker_token_file("a", "worker-b"),
        ];

        assert_eq!(BTreeSet::from(files.clone()).len(), files.len(), "{files:?}");
    }
}
