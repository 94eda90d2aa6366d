//! What a kind of agent implements.

use async_trait::async_trait;
use rejoinder_agents::{AddedToPrompt, serving::ServingProgram};
use rejoinder_config::{Agent, AgentKind, AgentSection, Config};
use rejoinder_core::{AgentName, AgentTurn};
use reqwest::Client;
use utoipa::openapi::OpenApi;

use crate::{
    built_agent::BuiltAgent,
    console::finding::Finding,
    materials::{Materials, WiringError},
    mcp_servers::Tried,
};

/// What the gateway needs to know about a kind of agent.
#[async_trait]
pub(crate) trait AgentFactory: Sync {
    /// The configuration section of its agents.
    fn section(&self) -> AgentKind;

    /// Builds an agent. Sends no request and starts no loop yet.
    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError>;

    /// The OpenAPI description of the routes of its agents, with their whole paths: `/agents/{name}/…`; and of the requests that
    /// they get, as webhooks.
    fn openapi(&self) -> Option<OpenApi> {
        None
    }

    /// Whether its agents send requests to a server, which they count (`rejoinder_agent_requests_total`).
    fn counts_requests(&self) -> bool {
        false
    }

    /// Whether workers fetch the turns of its agents, from a running gateway only: no other process can ask them.
    fn has_workers(&self) -> bool {
        false
    }

    /// What the gateway adds to an agent's prompt in this turn; `None` for a kind without a prompt.
    fn added_to_prompt(&self, _agent: &Agent, _turn: &AgentTurn) -> Option<AddedToPrompt> {
        None
    }

    /// Tries the MCP servers of an agent, by name.
    async fn mcp_servers(&self, _agent: &Agent, _http: &Client) -> Vec<Tried> {
        Vec::new()
    }

    /// Remarks on a valid section that the operator should know.
    fn remarks_on(&self, _name: &str, _agent: &Agent) -> Vec<String> {
        Vec::new()
    }

    /// A remark that the gateway prints at its start when the default agent is of this kind.
    fn remark(&self, _config: &Config) -> Option<String> {
        None
    }

    /// Checks an agent for `rejoinder doctor`.
    async fn check(&self, name: &str, agent: &Agent, is_default: bool, http: &Client) -> Vec<Finding>;
}

/// The section of an agent whose kind has sections of this type.
///
/// # Panics
/// If it is of another kind.
pub(super) fn section<S: AgentSection>(agent: &Agent) -> &S {
    agent.section().expect("an agent of this kind has this section")
}

/// Says that a program is not there, and where `key` of the agent's section names it. `None` if it is there.
pub(super) fn missing_program(program: ServingProgram<'_>, agent: &Agent, key: &str) -> Option<String> {
    let is_missing = program.find().is_none();
    is_missing.then(|| format!("{} (`{key}`, {})", program.missing(), agent.origin_of(key)))
}

/// What a finding says of the agent's role, after its name.
pub(super) const fn role(is_default: bool) -> &'static str {
    if is_default { ", the default" } else { "" }
}
