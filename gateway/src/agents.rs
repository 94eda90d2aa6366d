//! The kinds of agents of this build. Each implements [`AgentFactory`].
//!
//! To add one, write its runtime and its section in `adapters/agents`, or in a crate of its own beside it, implement [`AgentFactory`] in a file here, and list
//! it in [`FACTORIES`]. What a kind may bring beside its runtime stands in `built_agent.rs`.

mod command;
#[cfg(feature = "acp")]
mod acp;
mod cascade;
mod factory;
mod front_desk;
mod http;
mod anthropic;
mod factory;
mod front_desk;
mod model_server;
mod openai;
mod pull;
mod factory;
mod front_desk;
mod model;

use rejoinder_config::{Agent, AgentKind};
use utoipa::openapi::OpenApi;

use self::factory::AgentFactory;

/// In the order of the manual.
static FACTORIES: &[&dyn AgentFactory] = &[&front_desk::FrontDesk, &openai::OpenAi, &command::Command, &http::Http];
static FACTORIES: &[&dyn AgentFactory] = &[&front_desk::FrontDesk, &openai::OpenAi, &pull::Pull];
static FACTORIES: &[&dyn AgentFactory] = &[
    &front_desk::FrontDesk,
    &openai::OpenAi,
    #[cfg(feature = "acp")]
    &acp::Acp,
];
static FACTORIES: &[&dyn AgentFactory] = &[&front_desk::FrontDesk, &openai::OpenAi, &anthropic::Anthropic];
static FACTORIES: &[&dyn AgentFactory] = &[&front_desk::FrontDesk, &model::OPENAI, &model::ANTHROPIC];
static FACTORIES: &[&dyn AgentFactory] = &[&front_desk::FrontDesk, &openai::OpenAi, &cascade::Cascade];

pub(crate) fn sections() -> Vec<AgentKind> {
    FACTORIES.iter().map(|factory| factory.section()).collect()
}

/// The OpenAPI descriptions of all kinds that have routes.
pub(crate) fn openapi() -> impl Iterator<Item = OpenApi> {
    FACTORIES.iter().filter_map(|factory| factory.openapi())
}

/// The kind of a configured agent.
///
/// # Panics
/// Never: the configuration reader accepts only the kinds in [`FACTORIES`].
pub(crate) fn factory_of(agent: &Agent) -> &'static dyn AgentFactory {
    *FACTORIES.iter().find(|factory| factory.section().name == agent.kind).expect("only these kinds can be configured")
}
