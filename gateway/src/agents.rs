//! The kinds of agents of this build: a [`Kind`] each, in a file of its name.
//!
//! To add one: its runtime and its section in `adapters/agents`, a file here with what it is to the gateway, and its line
//! in [`KINDS`].

mod front_desk;
mod openai;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentRuntime};
use reqwest::Client;

use crate::{
    console::finding::Finding,
    materials::{Materials, WiringError},
};

/// Every kind, in the order of the manual.
static KINDS: &[&dyn Kind] = &[&front_desk::FrontDesk, &openai::OpenAi];

/// A kind of agent, as the gateway knows it.
pub(crate) trait Kind: Sync {
    /// The section of its agents.
    fn section(&self) -> AgentKind;

    /// Makes an agent. Nothing is asked yet.
    ///
    /// # Errors
    /// When its section cannot be used.
    fn build(
        &self,
        name: &AgentName,
        agent: &Agent,
        materials: &Materials<'_>,
    ) -> Result<Arc<dyn AgentRuntime>, WiringError>;

    /// What whoever starts a gateway is told where such an agent is the default.
    fn remark(&self) -> Option<&'static str> {
        None
    }

    /// What `rejoinder doctor` finds of an agent.
    fn checkup<'a>(
        &self,
        name: &str,
        agent: &'a Agent,
        is_default: bool,
        http: &'a Client,
    ) -> BoxFuture<'a, Vec<Finding>>;
}

/// The sections of them all.
pub(crate) fn sections() -> Vec<AgentKind> {
    KINDS.iter().map(|kind| kind.section()).collect()
}

/// The kind of a configured agent.
///
/// # Panics
/// Never: what was configured is of a kind that is here.
pub(crate) fn kind_of(agent: &Agent) -> &'static dyn Kind {
    *KINDS.iter().find(|kind| kind.section().name == agent.kind()).expect("agents are read by these kinds")
}
