//! The kinds of agents of this build. Each implements [`AgentFactory`] in a file of its own.
//!
//! To add one, write its runtime and its section in `adapters/agents`, implement [`AgentFactory`] in a file here, and list
//! it in [`FACTORIES`].

mod front_desk;
mod openai;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rejoinder_config::{Agent, AgentKind, Config};
use rejoinder_core::{AgentName, AgentRuntime};
use reqwest::Client;

use crate::{
    console::finding::Finding,
    materials::{Materials, WiringError},
};

/// In the order of the manual.
static FACTORIES: &[&dyn AgentFactory] = &[&front_desk::FrontDesk, &openai::OpenAi];

/// What the gateway needs to know about a kind of agent.
pub(crate) trait AgentFactory: Sync {
    /// The configuration section of its agents.
    fn section(&self) -> AgentKind;

    /// Builds an agent. Sends no request yet.
    ///
    /// # Errors
    /// When its section is invalid.
    fn build(
        &self,
        name: &AgentName,
        agent: &Agent,
        materials: &Materials<'_>,
    ) -> Result<Arc<dyn AgentRuntime>, WiringError>;

    /// A remark on a valid section that the operator should know.
    fn remark_on(&self, _name: &str, _agent: &Agent) -> Option<String> {
        None
    }

    /// A remark that the gateway prints at its start when the default agent is of this kind.
    fn remark(&self, _config: &Config) -> Option<String> {
        None
    }

    /// Checks an agent for `rejoinder doctor`.
    fn check<'a>(
        &self,
        name: &str,
        agent: &'a Agent,
        is_default: bool,
        http: &'a Client,
    ) -> BoxFuture<'a, Vec<Finding>>;
}

/// The configuration sections of all kinds.
pub(crate) fn sections() -> Vec<AgentKind> {
    FACTORIES.iter().map(|factory| factory.section()).collect()
}

/// The kind of a configured agent.
///
/// # Panics
/// Never: the configuration reader accepts only the kinds in [`FACTORIES`].
pub(crate) fn factory_of(agent: &Agent) -> &'static dyn AgentFactory {
    *FACTORIES
        .iter()
        .find(|factory| factory.section().name == agent.kind())
        .expect("only these kinds can be configured")
}
