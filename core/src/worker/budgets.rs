//! The budgets of agents: a run begins only while its agent has something left of the day.

use std::sync::Arc;

use rejoinder_guard::Timestamp;
use tracing::info;

use super::{record::Share, runtimes::Runtimes};
use crate::{
    events::Run,
    model::{AgentName, Budget, BudgetLeft, Cost, Currency, Day, LiveSettings, Price, Settings, TurnId, Usage, Used},
    ports::{AgentUse, DayUse, PeopleStore, Remark, SharedClock, StoreError},
};

/// Knows what agents with a budget have used today. Nothing is kept in memory: it is a row, which only these agents have.
pub(crate) struct Budgets {
    pub(crate) usage: Arc<dyn PeopleStore>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

/// The budget of an agent, and what it has used of today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedBudget {
    /// The agent.
    pub agent: AgentName,
    /// What it may use of a day.
    pub budget: Budget,
    /// What it has used of today.
    pub used: DayUse,
    /// The currency of the money; `None` if no price is known.
    pub currency: Option<Currency>,
}

/// What a run may use of its agent's budget.
pub(super) enum Rest {
    /// Nothing, of the agent or of each of its members: it may begin no run, for this reason.
    Nothing(String),
    Some {
        /// Of the agent, if it has a budget.
        left: Option<BudgetLeft>,
        /// The members of it that have nothing left.
        spent: Vec<AgentName>,
    },
}

/// What a run costs, and for whom what it used counts.
#[derive(Default)]
pub(super) struct Bill {
    pub(super) cost: Option<Cost>,
    /// Whether the cost is in a currency in which nothing is counted.
    pub(super) is_foreign: bool,
    pub(super) used: Used,
    pub(super) agents: Vec<AgentUse>,
}

impl Budgets {
    /// The budgets, in the order of the agents' names, with what is used of them.
    pub(crate) async fn today(&self, runtimes: &Runtimes) -> Result<Vec<UsedBudget>, StoreError> {
        let settings = self.settings.get();
        let today = Day::of(self.clock.now(), &settings.time_zone);
        let mut budgets = Vec::new();
        for (agent, budget) in &settings.budgets {
            let used = self.usage.agent_use(agent, today.number).await?;
            let currency = currency(agent, &members(agent, runtimes), &settings);
            budgets.push(UsedBudget { agent: agent.clone(), budget: *budget, used, currency });
        }
        Ok(budgets)
    }

    /// What is left today for a run of an agent.
    pub(super) async fn rest(&self, run: &Run, runtimes: &Runtimes) -> Result<Rest, StoreError> {
        let settings = self.settings.get();
        let Some(agent) = run.handler.agent().filter(|_| !settings.budgets.is_empty()) else {
            return Ok(Rest::Some { left: None, spent: Vec::new() });
        };
        let used = self.used(agent).await?;
        if used.is_some_and(is_spent) {
            return Ok(Rest::Nothing(format!("the agent {agent} has used its budget of the day")));
        }
        let members = members(agent, runtimes);
        let currency = || currency(agent, &members, &settings);
        let left = used.map(|(budget, used)| budget.left(used.tokens, used.micros, currency()));
        let mut spent = Vec::new();
        for member in &members {
            if self.used(member).await?.is_some_and(is_spent) {
                spent.push(member.clone());
            }
        }
        if !spent.is_empty() && spent.len() == members.len() {
            return Ok(Rest::Nothing(format!("all members of the agent {agent} have used their budgets of the day")));
        }
        Ok(Rest::Some { left, spent })
    }

    /// The budget of an agent, if it has one, and what it has used of it today.
    async fn used(&self, agent: &AgentName) -> Result<Option<(Budget, DayUse)>, StoreError> {
        let Some((budget, today)) = self.budget(agent) else { return Ok(None) };
        Ok(Some((budget, self.usage.agent_use(agent, today.number).await?)))
    }

    /// Whether a run counts for a budget.
    pub(super) fn counts(&self, run: &Run, shares: &[Share]) -> bool {
        let settings = self.settings.read();
        let mut agents = shares.iter().filter_map(|share| share.member.as_ref()).chain(run.handler.agent());
        agents.any(|agent| settings.budgets.contains_key(agent))
    }

    /// What the members of a run used, or all of it without one, counts for them and for the agent. A cost is that of the last
    /// currency: money of another one cannot be added. What is estimated counts, and is not in the cost of the run. What an agent without a
    /// price says in another currency is only the cost of the run.
    pub(super) fn bill(&self, run: &Run, shares: &[Share]) -> Bill {
        let settings = self.settings.read();
        let (mut bill, mut currency, mut foreign) = (Bill::default(), None, None);
        for share in shares.iter().rev().filter(|share| share.usage != Usage::default() || share.cost.is_some()) {
            let Share { member, usage, is_estimated, cost: reported } = share;
            let counted = || member.iter().chain(run.handler.agent());
            let price = counted().find_map(|agent| settings.prices.get(agent));
            let wanted = price.map_or_else(|| settings.currency(), |price| price.currency);
            note_currency(counted().next(), share, wanted);
            let cost = cost_of(share, price, wanted);
            foreign = foreign.or(reported.filter(|_| cost.is_none() && price.is_none() && !is_estimated));
            let summed = cost.filter(|cost| *currency.get_or_insert(cost.currency) == cost.currency);
            bill.cost = Cost::sum(bill.cost, summed.filter(|_| !is_estimated));
            bill.used = bill.used.and(Used::of(*usage, *is_estimated, summed));
            for agent in counted() {
                let cost = if member.as_ref() == Some(agent) { cost } else { summed };
                self.add(&mut bill.agents, agent, Used::of(*usage, *is_estimated, cost));
            }
        }
        bill.is_foreign = bill.cost.is_none() && foreign.is_some();
        bill.cost = bill.cost.or(foreign);
        bill
    }

    /// Adds what was used to what counts for an agent, if that has a budget.
    fn add(&self, agents: &mut Vec<AgentUse>, agent: &AgentName, used: Used) {
        let Some((budget, today)) = self.budget(agent) else { return };
        match agents.iter_mut().find(|known| known.agent == *agent) {
            Some(known) => known.used = known.used.and(used),
            None => agents.push(AgentUse { agent: agent.clone(), day: today.number, used, budget }),
        }
    }

    fn budget(&self, agent: &AgentName) -> Option<(Budget, Day)> {
        let settings = self.settings.get();
        let budget = settings.budgets.get(agent)?;
        Some((*budget, Day::of(self.clock.now(), &settings.time_zone)))
    }
}

/// Logs that an agent says its cost in another currency than the one that is wanted.
fn note_currency(agent: Option<&AgentName>, share: &Share, wanted: Currency) {
    if let Some(reported) = share.cost.filter(|reported| reported.currency != wanted && !share.is_estimated) {
        let agent = agent.map_or("", |agent| &**agent);
        info!(agent, reported = %reported.currency, %wanted, "an agent reports its cost in another currency");
    }
}

/// What a share cost: what its agent says in the currency that is wanted, else what the tokens cost at the price.
fn cost_of(share: &Share, price: Option<&Price>, wanted: Currency) -> Option<Cost> {
    let reported = share.cost.filter(|reported| reported.currency == wanted);
    reported.or_else(|| price.filter(|_| share.usage != Usage::default()).map(|price| price.cost(share.usage)))
}

fn is_spent((budget, used): (Budget, DayUse)) -> bool {
    budget.percent(used.tokens, used.micros) >= 100
}

/// The agents of which one answers in the agent's place.
fn members(agent: &AgentName, runtimes: &Runtimes) -> Vec<AgentName> {
    runtimes.get(agent).map(|runtime| runtime.member_names()).unwrap_or_default()
}

/// The currency of the agent's money. All prices of a cascade's members are in one currency.
fn currency(agent: &AgentName, members: &[AgentName], settings: &Settings) -> Option<Currency> {
    let mut priced = std::iter::once(agent).chain(members);
    priced.find_map(|agent| settings.prices.get(agent)).map(|price| price.currency)
}

/// Says which members a run did not ask.
pub(super) fn left_out(turn: TurnId, members: &[AgentName], at: Timestamp) -> Remark {
    Remark { turn, at, kind: "spent".to_owned(), detail: members.join(", ") }
}
