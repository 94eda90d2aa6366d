//! The core as a whole: what the gateway starts, asks and stops.

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::{
    AgentName, AgentRuntime, ChannelAdapter, ChannelHealth, ChannelId, Settings, SharedClock, Store, StoreError,
};

/// What the core is made of.
pub struct Parts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: SharedClock,
    /// The channels.
    pub channels: Vec<Arc<dyn ChannelAdapter>>,
    /// The agents, by name. Holds every agent that the settings name.
    pub agents: HashMap<AgentName, Arc<dyn AgentRuntime>>,
    /// What the operator chose.
    pub settings: Settings,
}

/// The running core. Cheap to clone.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Takes up what is owed from before, and starts: the sweep, the dispatcher, every channel.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn start(parts: Parts) -> Result<Self, StoreError> {
        unimplemented!()
    }

    /// Stops taking events in, lets running turns end for up to `drain`, and leaves the rest as rows.
    pub async fn stop(&self, drain: Duration) {
        unimplemented!()
    }

    /// How every channel is doing.
    #[must_use]
    pub fn channels(&self) -> Vec<(ChannelId, ChannelHealth)> {
        unimplemented!()
    }
}
