//! What is around the gateway: the platforms and the agent, and the configuration with which it finds them.

use std::sync::Arc;

use anyhow::Result;
use rejoinder_tests::ScriptedAgent;

use crate::{
    agent,
    channel::{Channel, Platform},
    words,
};

pub(crate) struct Scene {
    pub(crate) channels: Vec<Arc<dyn Channel>>,
    pub(crate) agent: Arc<ScriptedAgent>,
}

impl Scene {
    /// Starts these platforms, with callers who find the gateway at `url`.
    pub(crate) async fn start(platforms: &[Platform], url: &str) -> Result<Self> {
        let mut channels = Vec::new();
        for platform in platforms {
            channels.push(platform.start(url).await?);
        }
        let prefixes: Vec<_> = platforms.iter().map(|it| (it.prefix(), it.paragraph())).collect();
        let paragraph = move |token: &str| {
            prefixes.iter().find(|(prefix, _)| token.starts_with(prefix)).map_or(600, |(_, paragraph)| *paragraph)
        };
        Ok(Self { channels, agent: Arc::new(agent::start(paragraph).await) })
    }

    /// The configuration besides the channels.
    pub(crate) fn settings(&self) -> String {
        format!(
            "{agent}\n[guard]\nsoft_deadline = \"{}s\"\nhard_deadline = \"{}s\"\n[guard.templates]\nresent = \"{label}\"\nreplaces = \"{label}\"\novertaken = \"{overtaken}\"\n",
            agent::SOFT_DEADLINE.as_secs(),
            agent::HARD_DEADLINE.as_secs(),
            agent = self.agent.section(),
            label = words::LABEL,
            overtaken = words::OVERTAKEN
        )
    }
}
