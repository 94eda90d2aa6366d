//! The kinds of agents of this build. Each implements [`AgentFactory`].
//!
//! To add one, write its runtime and its section in `adapters/agents`, or in a crate of its own beside it, implement
//! [`AgentFactory`] in a file here, and list it in [`FACTORIES`]. What a kind may bring beside its runtime stands in `built_agent.rs`.

#[cfg(feature = "a2a")]
mod a2a;
#[cfg(feature = "acp")]
mod acp;
mod cascade;
mod command;
mod factory;
mod front_desk;
mod http;
mod model;
mod pull;

use rejoinder_config::{Agent, AgentKind};
use utoipa::openapi::OpenApi;

use self::factory::AgentFactory;

/// In the order of the manual.
static FACTORIES: &[&dyn AgentFactory] = &[
    &front_desk::FrontDesk,
    &model::OPENAI,
    &model::ANTHROPIC,
    #[cfg(feature = "acp")]
    &acp::Acp,
    #[cfg(feature = "a2a")]
    &a2a::A2a,
    &command::Command,
    &http::Http,
    &pull::Pull,
    &cascade::Cascade,
];

pub(crate) fn sections() -> Vec<AgentKind> {
    FACTORIES.iter().map(|factory| factory.section()).collect()
}

/// The OpenAPI descriptions of all kinds that have routes or get requests that are described.
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

#[cfg(all(test, feature = "acp"))]
mod tests {
    use rejoinder_config::testing::Machine;

    #[test]
    fn a_key_of_other_kinds_is_named_with_them() {
        let toml = "[agents.main]\nkind = \"acp\"\ncommand = [\"opencode\", \"acp\"]\nmodel = \"x\"\nmod = \"y\"\n";

        let errors = Machine::of(crate::build()).with_file("rejoinder.toml", toml).errors();

        let model =
            "agents.main.model` is a key of the kinds `openai` and `anthropic`, not of `acp`; known here: `command`, ";
        assert!(errors.contains(model), "{errors}");
        assert!(errors.contains("agents.main.mod` is unknown: did you mean `mode`?"), "{errors}");
    }
}
