//! `kind = "cascade"`: the configuration of an agent with members.

use rejoinder_config::{AgentSection, Checks, Section, number};
use serde::{Deserialize, Serialize};

/// Several agents of which one answers.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CascadeSection {
    /// The names of other agents.
    pub members: Vec<String>,
    /// Which member is asked first.
    pub order: Order,
    /// How many turns the agent works on at once; the others wait.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent: u32,
}

/// Which member of a cascade is asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// As they are listed.
    #[default]
    Listed,
    /// By the median time of their recent answers; those without an answer first, so that they are measured.
    Fastest,
    /// By their prices; those without a price last.
    Cheapest,
}

impl Default for CascadeSection {
    fn default() -> Self {
        Self { members: Vec::new(), order: Order::default(), max_concurrent: 32 }
    }
}

impl Section for CascadeSection {
    const REQUIRED: &'static [&'static str] = &["members"];

    fn check(&self, checks: &mut Checks<'_>) {
        let key = checks.key(&["members"]);
        if self.members.len() < 2 {
            checks.wrong(key.clone(), "must name at least two agents: another one is asked when one fails");
        }
        for (index, member) in self.members.iter().enumerate() {
            if self.members[..index].contains(member) {
                checks.wrong(key.index(index), format!("names `{member}` for the second time: name each agent once"));
            }
        }
    }
}

impl AgentSection for CascadeSection {
    const KIND: &'static str = "cascade";
    const MANUAL: &'static str = include_str!("../../cascade.toml");

    fn max_concurrent(&self) -> Option<u32> {
        Some(self.max_concurrent)
    }

    fn members(&self) -> Vec<String> {
        self.members.clone()
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::{Machine, check_agent_manual_beside};
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_holds() {
        let members = "[agents.main]\nkind = \"front-desk\"\n[agents.front-desk]\nkind = \"front-desk\"\n";
        check_agent_manual_beside::<CascadeSection>(members, &[], &[]);
    }

    const OTHERS: &str = "[routing]\ndefault_agent = \"both\"\n[agents.one]\nkind = \"front-desk\"\n\
                          [agents.two]\nkind = \"front-desk\"\n[agents.more]\nkind = \"cascade\"\nmembers = [\"one\", \"two\"]\n";

    #[rstest]
    #[case::none("", "agents.both.members` must be set (rejoinder.toml:10)")]
    #[case::one(
        "members = [\"one\"]",
        "agents.both.members` must name at least two agents: another one is asked when one fails (rejoinder.toml:12)"
    )]
    #[case::twice(
        "members = [\"one\", \"one\"]",
        "agents.both.members[1]` names `one` for the second time: name each agent once (rejoinder.toml:12)"
    )]
    #[case::unknown(
        "members = [\"one\", \"twoo\"]",
        "agents.both.members[1]` names the agent `twoo`, which does not exist: did you mean `two`? (rejoinder.toml:12)"
    )]
    #[case::another_cascade(
        "members = [\"one\", \"more\"]",
        "agents.both.members[1]` names `more`, which has members itself: name one of `one` or `two` (rejoinder.toml:12)"
    )]
    #[case::itself(
        "members = [\"one\", \"both\"]",
        "agents.both.members[1]` names `both`, which has members itself: name one of `one` or `two` (rejoinder.toml:12)"
    )]
    #[case::an_order(
        "members = [\"one\", \"two\"]\norder = \"quickest\"",
        "agents.both.order` must be one of `listed`, `fastest` or `cheapest`, not `quickest` (rejoinder.toml:13)"
    )]
    #[case::a_budget_without_prices(
        "members = [\"one\", \"two\"]\n[limits.agents.both]\ncost_per_day = 5",
        "limits.agents.both.cost_per_day` needs what the agent's tokens cost: set agents.one.price (rejoinder.toml:14)"
    )]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let toml = format!("{OTHERS}[agents.both]\nkind = \"cascade\"\n{keys}");

        assert_eq!(Machine::with_agent::<CascadeSection>(&toml).errors(), format!("config key `{said}"));
    }
}
