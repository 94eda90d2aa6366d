//! The built-in agent that is used when none is configured.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use rejoinder_agents::{FrontDeskSection, Status};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentRuntime};
use reqwest::Client;

use super::AgentFactory;
use crate::{
    console::finding::Finding,
    materials::{Materials, WiringError},
};

pub(super) struct FrontDesk;

impl AgentFactory for FrontDesk {
    fn section(&self) -> AgentKind {
        AgentKind::of::<FrontDeskSection>()
    }

    fn build(&self, _: &AgentName, _: &Agent, materials: &Materials<'_>) -> Result<Arc<dyn AgentRuntime>, WiringError> {
        let status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: materials.started_at,
            channels: materials.config.channels.iter().map(|(channel, _)| channel.to_string()).collect(),
        };
        Ok(Arc::new(rejoinder_agents::FrontDesk::new(move || status.clone())))
    }

    fn remark(&self) -> Option<&'static str> {
        Some("It answers without a model. Run `rejoinder init` to connect an agent.")
    }

    fn check<'a>(&self, name: &str, _: &'a Agent, is_default: bool, _: &'a Client) -> BoxFuture<'a, Vec<Finding>> {
        let about = format!("agents.{name}");
        let finding = if is_default {
            Finding::ok(about, "the built-in front desk answers, without a model")
                .with_advice("Run rejoinder init to connect an agent.")
        } else {
            Finding::ok(about, "the built-in front desk")
        };
        async { vec![finding] }.boxed()
    }
}
