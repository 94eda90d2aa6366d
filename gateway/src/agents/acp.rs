//! An agent with the Agent Client Protocol, as a child process.

use std::{env, fs::DirBuilder, os::unix::fs::DirBuilderExt as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use rejoinder_acp::{AcpSection, FoundAgent, probe};
use rejoinder_agents::{AddedToPrompt, Supervisor};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentRuntime, AgentTurn};
use reqwest::Client;
use tracing::error;

use super::factory::{AgentFactory, missing_program, role, section};
use crate::{
    built_agent::{AgentLoop, BuiltAgent},
    console::finding::Finding,
    materials::{Materials, WiringError},
    own_tools::Caller,
};

/// An agent that takes longer to start keeps the first person waiting.
const SLOW: Duration = Duration::from_secs(10);

pub(super) struct Acp;

#[async_trait]
impl AgentFactory for Acp {
    fn section(&self) -> AgentKind {
        AgentKind::of::<AcpSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let section = section::<AcpSection>(agent).clone();
        let own_folder = section.cwd.is_none().then(|| materials.data_dir.join("agents").join(&**name));
        let section = own_folder.iter().fold(section, |section, folder| section.in_folder(folder));
        let supervisor = Supervisor::own().map_err(|error| WiringError::Agent {
            name: Arc::clone(name),
            reason: format!("this program cannot start itself: {error}"),
        })?;
        let is_given_tools = section.mcp;
        let acp = rejoinder_acp::Acp::new(Arc::clone(name), section, supervisor);
        let acp = Arc::new(match materials.own_tools.session_tokens().filter(|_| is_given_tools) {
            Some(tokens) => acp.with_tools(tokens),
            None => acp,
        });
        let runtime: Arc<dyn AgentRuntime> = Arc::clone(&acp) as Arc<dyn AgentRuntime>;
        let runtime = materials.with_tools(name, runtime, is_given_tools, Caller::Here)?;
        let run: AgentLoop = Arc::new(move |stop| {
            let (acp, own_folder) = (Arc::clone(&acp), own_folder.clone());
            async move {
                if let Some(folder) = &own_folder
                    && let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(folder)
                {
                    error!(folder = %folder.display(), %error, "cannot create the folder of an agent");
                }
                acp.keep_running(stop).await;
            }
            .boxed()
        });
        Ok(BuiltAgent { run: Some(run), ..runtime.into() })
    }

    fn added_to_prompt(&self, _: &Agent, turn: &AgentTurn) -> Option<AddedToPrompt> {
        Some(rejoinder_agents::added_to_session(turn))
    }

    fn remarks_on(&self, name: &str, agent: &Agent) -> Vec<String> {
        let section = section::<AcpSection>(agent);
        let remark = missing_program(section.program(), agent, "command").map(|missing| {
            format!("agents.{name} cannot answer: {missing}. Install it, or correct agents.{name}.command.")
        });
        remark.into_iter().collect()
    }

    async fn check(&self, name: &str, agent: &Agent, is_default: bool, _: &Client) -> Vec<Finding> {
        let (about, section) = (format!("agents.{name}"), section::<AcpSection>(agent));
        let role = role(is_default);
        let who = format!("{}{role}", section.command.join(" "));
        let found = match Supervisor::own() {
            Ok(supervisor) => probe(&section.clone().in_folder(&env::temp_dir()), supervisor).await,
            Err(error) => Err(format!("this program cannot start itself: {error}")),
        };
        let lacks_tools = section.mcp && found.as_ref().is_ok_and(|found| !found.calls_tools);
        let mut findings = vec![finding(about.clone(), &who, found)];
        if lacks_tools {
            findings.push(no_tools(about));
        }
        findings
    }
}

fn no_tools(about: String) -> Finding {
    let advice = format!("Update it, or set {about}.mcp = false.");
    Finding::warning(about, "it has no MCP servers over HTTP, so it cannot call the gateway's tools")
        .with_advice(advice)
}

fn finding(about: String, who: &str, found: Result<FoundAgent, String>) -> Finding {
    match found {
        Ok(FoundAgent { name, took, .. }) => {
            let name = name.unwrap_or_else(|| "an agent without a name".to_owned());
            let what = format!("{who}: {name} answers after {:.1} s", took.as_secs_f64());
            if took < SLOW {
                return Finding::ok(about, what);
            }
            Finding::warning(about, what).with_advice("The first person after a start of the gateway waits that long.")
        }
        Err(reason) => {
            let advice =
                format!("Correct {about}.command and {about}.cwd, or install the program for the user of the gateway.");
            Finding::wrong(about, format!("{who}: {reason}")).with_advice(advice)
        }
    }
}
