//! A program that is started for each turn.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_agents::{CommandSection, Supervisor};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::AgentName;
use reqwest::Client;

use super::factory::{AgentFactory, role, section};
use crate::{
    built_agent::BuiltAgent,
    console::finding::Finding,
    materials::{Materials, WiringError},
    own_tools::Caller,
};

pub(super) struct Command;

#[async_trait]
impl AgentFactory for Command {
    fn section(&self) -> AgentKind {
        AgentKind::of::<CommandSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let wrong = |reason: String| WiringError::Agent { name: Arc::clone(name), reason };
        let supervisor =
            Supervisor::own().map_err(|error| wrong(format!("this program cannot start itself: {error}")))?;
        let section = section::<CommandSection>(agent);
        let command =
            rejoinder_agents::Command::new(Arc::clone(name), section.clone(), supervisor).map_err(|error| {
                WiringError::AgentKey {
                    key: format!("agents.{name}.{}", error.key()),
                    reason: error.to_string(),
                    origin: agent.origin_of(error.key()).clone(),
                }
            })?;
        Ok(materials.with_tools(name, Arc::new(command), section.mcp, Caller::Here)?.into())
    }

    async fn check(&self, name: &str, agent: &Agent, is_default: bool, _: &Client) -> Vec<Finding> {
        let (about, program) = (format!("agents.{name}"), section::<CommandSection>(agent));
        let role = role(is_default);
        let found = match program.find_program() {
            Err(error) => {
                let (key, origin) = (error.key(), agent.origin_of(error.key()));
                Finding::wrong(about, format!("it cannot be run{role}: {error} (`{key}`, {origin})"))
            }
            Ok(path) => {
                let who = format!("the program {}{role}", path.display());
                match program.try_program() {
                    Ok(()) => Finding::ok(about, format!("{who}: it starts")),
                    Err(error) => Finding::wrong(about, format!("{who}: it does not start: {error}"))
                        .with_advice("If it is a script, check that the program in its first line is there."),
                }
            }
        };
        vec![found]
    }
}
