//! The built-in agent that is used when none is configured.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use rejoinder_agents::{FrontDeskSection, NextStep, Status};
use rejoinder_config::{Agent, AgentKind, Config};
use rejoinder_core::{AgentName, AgentRuntime, Timestamp};
use reqwest::Client;

use super::factory::AgentFactory;
use crate::{
    built_agent::BuiltAgent,
    console::{command::command_line, finding::Finding},
    materials::{Materials, WiringError},
};

pub(super) struct FrontDesk;

#[async_trait]
impl AgentFactory for FrontDesk {
    fn section(&self) -> AgentKind {
        AgentKind::of::<FrontDeskSection>()
    }

    fn build(&self, _: &AgentName, _: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let (file, started) = (materials.config.file.clone(), materials.started_at);
        let channels: Vec<_> = materials.config.channels.iter().map(|(channel, _)| channel.to_string()).collect();
        let front_desk: Arc<dyn AgentRuntime> = Arc::new(rejoinder_agents::FrontDesk::new(move || Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started,
            channels: channels.clone(),
            next_step: next_step(file.as_deref(), started),
        }));
        Ok(front_desk.into())
    }

    fn remark(&self, config: &Config) -> Option<String> {
        let init = command_line("init", config.file.as_deref());
        Some(format!("It answers without a model. Run `{init}` to connect an agent."))
    }

    async fn check(&self, name: &str, _: &Agent, is_default: bool, _: &Client) -> Vec<Finding> {
        let about = format!("agents.{name}");
        let finding = if is_default {
            Finding::ok(about, "the built-in front desk answers, without a model")
                .with_advice(format!("Run {} to connect an agent.", command_line("init", None)))
        } else {
            Finding::ok(about, "the built-in front desk")
        };
        vec![finding]
    }
}

/// What the operator does next, with the configuration `file` of a gateway that was started at `started`.
fn next_step(file: Option<&Path>, started: Timestamp) -> NextStep {
    let command = command_line("init", file);
    match file {
        // `init` writes this file.
        None if Path::new("rejoinder.toml").exists() => NextStep::Restart,
        None => NextStep::Init(command),
        Some(file) if changed_at(file).is_some_and(|changed| changed > started) => NextStep::Restart,
        Some(file) => NextStep::Add { file: file.display().to_string(), command },
    }
}

fn changed_at(file: &Path) -> Option<Timestamp> {
    let changed: Duration = file.metadata().ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(changed.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_since_the_start_asks_for_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bots.toml");
        std::fs::write(&file, "").unwrap();
        let changed = changed_at(&file).unwrap();

        assert!(
            matches!(next_step(Some(&file), changed), NextStep::Add { command, .. } if command.contains("bots.toml"))
        );
        assert_eq!(next_step(Some(&file), Timestamp::from_millis(changed.as_millis() - 1)), NextStep::Restart);
        assert!(matches!(next_step(None, changed), NextStep::Init(_)));
    }
}
