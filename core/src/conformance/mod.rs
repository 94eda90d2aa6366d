//! Checks for implementations of the ports, run by the implementation's own crate, and doubles for tests.
//!
//! Behind the feature `testing`: nothing here is part of the running gateway. To add a port, add a module here.

pub mod channel;
pub mod clock;
pub mod layered;
pub mod markdown;
pub mod rejecting;
pub mod scripted;
pub mod store;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use crate::{
    engine::Parts,
    model::{
        agent::AgentName,
        settings::{Lifetimes, PersonLimits, Policies, Settings, Templates},
        stored_delivery::DeliveryRecord,
    },
    ports::{
        channel::ChannelAdapter,
        clock::SystemClock,
        store::{Store, transition::NewDelivery},
    },
};

/// The parts of a gateway that has channels but no agents, for checks of inbound events.
#[must_use]
pub fn parts_without_agents(store: Arc<dyn Store>, channels: Vec<Arc<dyn ChannelAdapter>>) -> Parts {
    let settings = Settings {
        default_agent: AgentName::from("nobody"),
        channel_agents: HashMap::new(),
        access: HashMap::new(),
        reaction_channels: HashSet::new(),
        max_attachment: 1 << 20,
        policies: Policies::default(),
        templates: Templates::default(),
        max_concurrent_turns: 1,
        agent_turns: HashMap::new(),
        limits: PersonLimits::default(),
        delivery_lifetime: Duration::from_hours(1),
        min_attempts: 1,
        max_parts: 8,
        lifetimes: Lifetimes::default(),
    };
    Parts { store, clock: Arc::new(SystemClock), channels, agents: HashMap::new(), settings }
}

/// Makes a delivery that a store can insert, without a decision of the guard. For checks of stores.
#[must_use]
pub const fn new_delivery(record: DeliveryRecord) -> NewDelivery {
    NewDelivery::new(record)
}
