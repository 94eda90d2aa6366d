//! A configured agent, built outside of a gateway.

use std::{collections::HashMap, path::Path, sync::Arc};

use anyhow::anyhow;
use rejoinder_config::{Agent, Config};
use rejoinder_core::{AgentName, SharedClock, SystemClock};

use crate::{
    agents,
    built_agent::BuiltAgent,
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

/// Builds an agent as a start would. Sends nothing and writes nothing.
pub(super) fn build(config: &Config, data_dir: &Path, name: &str, agent: &Agent) -> Result<BuiltAgent, Failure> {
    let (clock, none): (SharedClock, _) = (Arc::new(SystemClock), HashMap::new());
    let materials =
        Materials::new(config, data_dir, TokenMode::CheckOnly, &clock, &none).map_err(anyhow::Error::new)?;
    let built = agents::factory_of(agent).build(&AgentName::from(name), agent, &materials);
    Ok(built.map_err(anyhow::Error::new)?)
}
