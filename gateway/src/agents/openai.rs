//! A server with the Chat Completions API.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_agents::{AddedToPrompt, OpenAiSection, check_agent};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentRuntime, AgentTurn};
use reqwest::Client;

use super::{factory::AgentFactory, model_server::ModelServer};
use crate::{
    built_agent::BuiltAgent,
    console::finding::Finding,
    materials::{Materials, WiringError},
};

pub(super) struct OpenAi;

#[async_trait]
impl AgentFactory for OpenAi {
    fn section(&self) -> AgentKind {
        AgentKind::of::<OpenAiSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let section = section(agent).clone();
        let agent = rejoinder_agents::OpenAi::new(Arc::clone(name), section, materials.http.clone())
            .map_err(|error| WiringError::Agent { name: Arc::clone(name), reason: error.to_string() })?;
        let agent: Arc<dyn AgentRuntime> = Arc::new(agent);
        Ok(agent.into())
    }

    fn counts_requests(&self) -> bool {
        true
    }

    fn added_to_prompt(&self, agent: &Agent, turn: &AgentTurn) -> Option<AddedToPrompt> {
        Some(rejoinder_agents::added_to_prompt(turn, section(agent).tools))
    }

    fn remark_on(&self, name: &str, agent: &Agent) -> Option<String> {
        server(name, agent).remark()
    }

    async fn check(&self, name: &str, agent: &Agent, is_default: bool, http: &Client) -> Vec<Finding> {
        server(name, agent).check(is_default, check_agent(http, section(agent))).await
    }
}

fn server<'a>(name: &'a str, agent: &'a Agent) -> ModelServer<'a> {
    let OpenAiSection { base_url, model, api_key, .. } = section(agent);
    ModelServer { name, base_url, model, api_key: api_key.as_ref(), doubt: "lack a /v1 at its end" }
}

fn section(agent: &Agent) -> &OpenAiSection {
    agent.section().expect("an agent of this kind has an OpenAiSection")
}
