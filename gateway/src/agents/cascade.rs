//! An agent whose members answer in its place.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_agents::{CascadeMember, CascadeSection, Order};
use rejoinder_config::{Agent, AgentKind};
use rejoinder_core::{AgentName, AgentRuntime, Price};
use reqwest::Client;

use super::factory::{AgentFactory, role, section};
use crate::{
    built_agent::BuiltAgent,
    console::finding::Finding,
    materials::{Materials, WiringError},
};

pub(super) struct Cascade;

#[async_trait]
impl AgentFactory for Cascade {
    fn section(&self) -> AgentKind {
        AgentKind::of::<CascadeSection>()
    }

    fn build(&self, name: &AgentName, agent: &Agent, materials: &Materials<'_>) -> Result<BuiltAgent, WiringError> {
        let CascadeSection { members, order, .. } = section::<CascadeSection>(agent);
        let member = |name: &String| {
            let configured = materials.config.agents.get(name);
            let models = configured.map(|agent| agent.models.clone()).unwrap_or_default();
            CascadeMember {
                name: name.as_str().into(),
                models,
                price: configured.and_then(|agent| agent.price),
                shows_activity: configured.is_some_and(|agent| agent.shows_activity),
            }
        };
        let members: Vec<_> = members.iter().map(member).collect();
        if *order == Order::Cheapest {
            let reason = compare(members.iter().filter_map(|member| member.price));
            reason.map_err(|reason| WiringError::Agent { name: Arc::clone(name), reason })?;
        }
        let runtimes = Arc::downgrade(&materials.runtimes);
        let cascade = rejoinder_agents::Cascade::new(Arc::clone(name), members, *order, runtimes);
        let cascade: Arc<dyn AgentRuntime> = Arc::new(cascade);
        Ok(cascade.into())
    }

    async fn check(&self, name: &str, agent: &Agent, is_default: bool, _: &Client) -> Vec<Finding> {
        let role = role(is_default);
        let members = section::<CascadeSection>(agent).members.join(", ");
        vec![Finding::ok(format!("agents.{name}"), format!("a cascade of {members}{role}"))]
    }
}

/// Whether prices can be compared.
fn compare(mut prices: impl Iterator<Item = Price>) -> Result<(), String> {
    let Some(Price { currency, .. }) = prices.next() else {
        return Err("order = \"cheapest\" needs the price of a member: set it there".to_owned());
    };
    match prices.find(|price| price.currency != currency) {
        None => Ok(()),
        Some(Price { currency: other, .. }) => Err(format!(
            "order = \"cheapest\" cannot compare prices in {currency} and {other}: set the prices of all members in one currency"
        )),
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::Machine;

    /// It would not be told what to forget.
    #[cfg(feature = "acp")]
    #[test]
    fn an_agent_with_a_memory_of_its_own_is_no_member() {
        let toml = "[routing]\ndefault_agent = \"both\"\n\
                    [agents.coder]\nkind = \"acp\"\ncommand = [\"opencode\", \"acp\"]\n\
                    [agents.other]\nkind = \"front-desk\"\n\
                    [agents.both]\nkind = \"cascade\"\nmembers = [\"coder\", \"other\"]\n";

        let errors = Machine::of(crate::build()).with_file("rejoinder.toml", toml).errors();

        assert!(
            errors.contains("agents.both.members[0]` names `coder`, which remembers its conversations itself"),
            "{errors}"
        );
    }
}
