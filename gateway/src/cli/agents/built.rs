//! A configured agent, built outside of a gateway.

use std::{collections::HashMap, path::Path, sync::Arc};

use anyhow::anyhow;
use async_trait::async_trait;
use rejoinder_config::{Agent, Config};
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, Outcome, RunEvents, Runtimes, SharedClock, SystemClock,
};
use tokio_util::sync::CancellationToken;

use crate::{
    agents,
    built_agent::{AgentLoop, BuiltAgent},
    console::failure::Failure,
    materials::{Materials, TokenMode},
};

/// The configured agent of this name.
pub(super) fn find<'a>(config: &'a Config, name: &str) -> Result<&'a Agent, Failure> {
    config.agents.get(name).ok_or_else(|| {
        let names: Vec<_> = config.agents.keys().map(String::as_str).collect();
        anyhow!("there is no agent `{name}`; configured: {}", names.join(", ")).into()
    })
}

/// An agent that can be asked, with the agents that answer in its place.
pub(super) struct Askable {
    pub(super) agent: BuiltAgent,
    /// Its members by name.
    pub(super) members: Vec<(AgentName, BuiltAgent)>,
    /// The agent looks up its members here, and does not keep it alive itself.
    _runtimes: Arc<Runtimes>,
}

impl Askable {
    /// What runs beside it and its members.
    pub(super) fn loops(&self, name: &str) -> impl Iterator<Item = (AgentName, AgentLoop)> {
        let named = std::iter::once((AgentName::from(name), &self.agent));
        let all = named.chain(self.members.iter().map(|(name, built)| (Arc::clone(name), built)));
        all.filter_map(|(name, built)| Some((name, built.run.clone()?)))
    }
}

/// Builds an agent as a start would. Sends nothing and writes nothing.
pub(super) fn build(config: &Config, data_dir: &Path, name: &str, agent: &Agent) -> Result<BuiltAgent, Failure> {
    let (clock, none): (SharedClock, _) = (Arc::new(SystemClock), HashMap::new());
    let materials = materials(config, data_dir, &clock, &none)?;
    Ok(build_one(name, agent, &materials)?)
}

/// The same with its members, for asking it.
pub(super) fn build_to_ask(config: &Config, data_dir: &Path, name: &str, agent: &Agent) -> Result<Askable, Failure> {
    let (clock, none): (SharedClock, _) = (Arc::new(SystemClock), HashMap::new());
    let materials = materials(config, data_dir, &clock, &none)?;
    if agents::factory_of(agent).has_workers() {
        return Err(anyhow!(only_running(name)).into());
    }
    let member = |name: &String| -> Result<_, Failure> {
        let built = build_member(name, find(config, name)?, &materials)?;
        Ok((AgentName::from(name.as_str()), built))
    };
    let members = agent.members.iter().map(member).collect::<Result<Vec<_>, _>>()?;
    let runtimes = members.iter().map(|(name, built)| (Arc::clone(name), Arc::clone(&built.runtime)));
    materials.runtimes.set(runtimes.collect());
    let agent = build_one(name, agent, &materials)?;
    Ok(Askable { agent, members, _runtimes: materials.runtimes })
}

fn materials<'a>(
    config: &'a Config,
    data_dir: &'a Path,
    clock: &'a SharedClock,
    none: &'a HashMap<AgentName, BuiltAgent>,
) -> anyhow::Result<Materials<'a>> {
    Ok(Materials::new(config, data_dir, TokenMode::CheckOnly, clock, none)?)
}

fn build_one(name: &str, agent: &Agent, materials: &Materials<'_>) -> anyhow::Result<BuiltAgent> {
    Ok(agents::factory_of(agent).build(&AgentName::from(name), agent, materials)?)
}

/// A member whose turns would never be fetched fails at once, so that the next one is asked.
fn build_member(name: &str, agent: &Agent, materials: &Materials<'_>) -> anyhow::Result<BuiltAgent> {
    if !agents::factory_of(agent).has_workers() {
        return build_one(name, agent, materials);
    }
    let unfetched: Arc<dyn AgentRuntime> = Arc::new(Unfetched(name.to_owned()));
    Ok(unfetched.into())
}

/// Why this agent cannot be asked without a gateway.
fn only_running(name: &str) -> String {
    format!(
        "workers fetch the turns of `{name}` from a running gateway only: `rejoinder agents list` shows how many workers ask \
         it for turns, and `rejoinder ask` asks the agent of a web chat"
    )
}

/// In place of an agent whose turns nobody can fetch.
struct Unfetched(String);

#[async_trait]
impl AgentRuntime for Unfetched {
    fn describe(&self) -> String {
        "workers fetch its turns from a running gateway only".to_owned()
    }

    async fn run(&self, _: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
        Err(AgentError::Unreachable(only_running(&self.0)))
    }
}
