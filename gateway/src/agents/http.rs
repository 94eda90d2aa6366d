//! A service that gets one request for each turn.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use rejoinder_agents::{HttpSection, response::chain};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::AgentName;
use reqwest::Client;
use utoipa::openapi::OpenApi;

use super::factory::{AgentFactory, role, section};
use crate::{
    built_agent::BuiltAgent,
    client::{CHECK_TIMEOUT, is_readable_on_the_way, may_have_proxy},
    console::finding::Finding,
    materials::{Materials, WiringError},
    own_tools::Caller,
};

pub(super) struct Http;

#[async_trait]
impl AgentFactory for Http {
    fn section(&self) -> AgentKind {
        AgentKind::of::<HttpSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let section = section::<HttpSection>(agent);
        let http = rejoinder_agents::Http::new(Arc::clone(name), section.clone(), materials.http.clone());
        let http = if may_have_proxy() { http } else { http.with_probe() };
        Ok(materials.with_tools(name, Arc::new(http), section.mcp, Caller::At(&section.url))?.into())
    }

    fn openapi(&self) -> Option<OpenApi> {
        Some(rejoinder_agents::http_openapi())
    }

    fn counts_requests(&self) -> bool {
        true
    }

    fn remarks_on(&self, name: &str, agent: &Agent) -> Vec<String> {
        let remark = is_readable_on_the_way(&section::<HttpSection>(agent).url)
            .then(|| format!("agents.{name}.url begins with http://: all messages can be read on the way."));
        remark.into_iter().collect()
    }

    /// Asks for the headers only: no turn is sent.
    async fn check(&self, name: &str, agent: &Agent, is_default: bool, http: &Client) -> Vec<Finding> {
        let (about, service) = (format!("agents.{name}"), section::<HttpSection>(agent));
        let role = role(is_default);
        let url = rejoinder_agents::redacted_url(&service.url);
        let who = format!("the service at {}{role}", url.as_str().trim_end_matches('/'));
        let asked = Instant::now();
        let reached = http.head(service.url.clone()).timeout(CHECK_TIMEOUT).send().await;
        if let Err(error) = reached {
            let found = Finding::wrong(about.as_str(), format!("{who} cannot be reached: {}", chain(error)));
            return vec![found.with_advice(format!("Start the service, or correct its address in {about}.url."))];
        }
        let took = asked.elapsed().as_secs_f64();
        let found = Finding::ok(about.as_str(), format!("{who} can be reached: it responds after {took:.1} s"));
        let found = match service.secret {
            Some(_) => found,
            None => found.with_advice(format!("Set {about}.secret, so that the service knows who sends the turns.")),
        };
        vec![found]
    }
}
