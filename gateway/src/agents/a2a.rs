//! An agent behind a server with the Agent2Agent protocol.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_a2a::{A2aSection, FoundAgent};
use rejoinder_agents::AddedToPrompt;
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentRuntime, AgentTurn};
use reqwest::Client;

use super::factory::{AgentFactory, role, section};
use crate::{
    built_agent::BuiltAgent,
    client::is_readable_on_the_way,
    console::finding::Finding,
    materials::{Materials, WiringError},
};

pub(super) struct A2a;

#[async_trait]
impl AgentFactory for A2a {
    fn section(&self) -> AgentKind {
        AgentKind::of::<A2aSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let section = section::<A2aSection>(agent).clone();
        let agent = rejoinder_a2a::A2a::new(Arc::clone(name), section, materials.http.clone());
        let agent: Arc<dyn AgentRuntime> =
            Arc::new(agent.map_err(|reason| WiringError::Agent { name: Arc::clone(name), reason })?);
        Ok(agent.into())
    }

    fn added_to_prompt(&self, agent: &Agent, turn: &AgentTurn) -> Option<AddedToPrompt> {
        section::<A2aSection>(agent).introduction.then(|| rejoinder_agents::added_to_session(turn))
    }

    fn remarks_on(&self, name: &str, agent: &Agent) -> Vec<String> {
        let section = section::<A2aSection>(agent);
        let secret = if section.sends_secrets() { "the secrets and " } else { "" };
        let remark = is_readable_on_the_way(&section.url)
            .then(|| format!("agents.{name}.url begins with http://: {secret}all messages can be read on the way."));
        remark.into_iter().collect()
    }

    /// Reads the card: no turn is sent.
    async fn check(&self, name: &str, agent: &Agent, is_default: bool, http: &Client) -> Vec<Finding> {
        let (about, section) = (format!("agents.{name}"), section::<A2aSection>(agent));
        let role = role(is_default);
        let url = rejoinder_agents::redacted_url(&section.url);
        let who = format!("the A2A agent at {}{role}", url.as_str().trim_end_matches('/'));
        vec![match rejoinder_a2a::find(section, http.clone()).await {
            Ok(FoundAgent { name, binding, streams, took }) => {
                let how = if streams { "streams its answers" } else { "does not stream its answers" };
                Finding::ok(
                    about,
                    format!("{who}: {name} answers after {:.1} s over {binding}, and {how}", took.as_secs_f64()),
                )
            }
            Err(reason) => {
                let advice = format!("Start the agent, or correct {about}.url and {about}.token.");
                Finding::wrong(about, format!("{who}: {reason}")).with_advice(advice)
            }
        }]
    }
}
