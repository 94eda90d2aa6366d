//! A server with Anthropic's Messages API.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_agents::{AnthropicSection, check_agent};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentRuntime};
use reqwest::Client;

use super::{factory::AgentFactory, model_server::ModelServer};
use crate::{
    built_agent::BuiltAgent,
    console::finding::Finding,
    materials::{Materials, WiringError},
};

pub(super) struct Anthropic;

#[async_trait]
impl AgentFactory for Anthropic {
    fn section(&self) -> AgentKind {
        AgentKind::of::<AnthropicSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let section = section(agent).clone();
        let agent = rejoinder_agents::Anthropic::new(Arc::clone(name), section, materials.http.clone())
            .map_err(|error| WiringError::Agent { name: Arc::clone(name), reason: error.to_string() })?;
        let agent: Arc<dyn AgentRuntime> = Arc::new(agent);
        Ok(agent.into())
    }

    fn counts_requests(&self) -> bool {
        true
    }

    fn remark_on(&self, name: &str, agent: &Agent) -> Option<String> {
        server(name, agent).remark()
    }

    async fn check(&self, name: &str, agent: &Agent, is_default: bool, http: &Client) -> Vec<Finding> {
        server(name, agent).check(is_default, check_agent(http, section(agent))).await
    }
}

fn server<'a>(name: &'a str, agent: &'a Agent) -> ModelServer<'a> {
    let AnthropicSection { base_url, model, api_key, .. } = section(agent);
    ModelServer { name, base_url, model, api_key: api_key.as_ref(), doubt: "end in /v1, which it must not" }
}

fn section(agent: &Agent) -> &AnthropicSection {
    agent.section().expect("an agent of this kind has an AnthropicSection")
}
