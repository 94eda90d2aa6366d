//! The list of agents, with how their runs ended, and the sessions of one with a memory of its own.

use std::time::Duration;

use rejoinder_core::{
    AgentHealth, Cost, MemberHealth, UsedBudget,
    store::{AgentFigures, AgentSessionFilter, AgentSessionSummary},
};

use super::prelude::*;
use crate::{
    view::{AddressItem, CostDetail},
    wiring::AgentInfo,
};

/// The time within which runs are counted.
const DAY: Duration = Duration::from_hours(24);

/// How many runs are counted at most.
const MOST: u32 = 100_000;

whole! {
    /// The configured agents.
    AgentList of AgentItem
}

item! {
    /// One agent. The figures are those of the last 24 hours, and of 100,000 runs at most.
    pub(super) AgentItem of (agent: &AgentInfo, description: String, members: Vec<MemberHealth>, health: Option<&AgentHealth>, figures: Option<&AgentFigures>, budget: Option<&UsedBudget>) {
        let AgentHealth { ok_at, failing_since, error, running, .. } = health.cloned().unwrap_or_default();
        let AgentFigures { runs, failed, p50, p95, usage, cost, waiting, sessions, .. } = figures.cloned().unwrap_or_default();
    } with {
        name: String = agent.name.to_string(),
        /// The `kind` of its section, for example `openai` or `pull`.
        kind: &'static str = agent.kind,
        /// What the agent is, and where it runs.
        description: String = description,
        /// Whether channels without an agent of their own use this one.
        is_default: bool = agent.is_default,
        /// False if its last runs failed, three or more, or its server could not be reached twice in a row.
        up: bool = !health.is_some_and(AgentHealth::is_down),
        /// When a run last ended without a failure, since the start of the gateway.
        #[schema(format = DateTime)] ok_at: Option<String> = ok_at.map(rfc3339),
        /// Since when it fails, if its last run failed or its server cannot be reached.
        #[schema(format = DateTime)] failing_since: Option<String> = failing_since.map(rfc3339),
        /// The latest error, without what the agent said.
        error: Option<String> = error,
        /// The agents that answer in its place.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        members: Vec<MemberItem> = members.into_iter().map(MemberItem::of).collect(),
        /// How many runs it has now.
        running: u32 = running,
        /// How many turns wait for a run of it now.
        waiting: u64 = waiting,
        /// How many sessions it remembers by itself.
        sessions: u64 = sessions,
        runs: u64 = runs,
        /// How many of the runs failed.
        failed: u64 = failed,
        /// The time that half of the runs took at most, in milliseconds.
        p50_ms: u64 = millis(p50),
        /// The time that 95 in 100 runs took at most, in milliseconds.
        p95_ms: u64 = millis(p95),
        input_tokens: u64 = usage.input_tokens,
        output_tokens: u64 = usage.output_tokens,
        /// What the runs cost, as the agent says itself or by its price.
        #[serde(skip_serializing_if = "Option::is_none")] cost: Option<CostDetail> = cost.map(CostDetail::of),
        /// What it has used of its budget of the day, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")] budget: Option<BudgetItem> = budget.map(BudgetItem::of),
    }
}

item! {
    /// What an agent has used of today, and may use of it.
    pub(super) BudgetItem of (of: &UsedBudget) {
        let money = |micros| of.currency.map(|currency| CostDetail::of(Cost { micros, currency }));
    } with {
        tokens: u64 = of.used.tokens,
        /// How many of the tokens are estimated by the size of texts, because the agent did not report them.
        estimated_tokens: u64 = of.used.estimated,
        /// How many it may use.
        #[serde(skip_serializing_if = "Option::is_none")] tokens_per_day: Option<u64> = of.budget.tokens,
        /// What they cost, if their price is known.
        #[serde(skip_serializing_if = "Option::is_none")] cost: Option<CostDetail> = money(of.used.micros),
        /// What they may cost.
        #[serde(skip_serializing_if = "Option::is_none")] cost_per_day: Option<CostDetail> = of.budget.micros.and_then(money),
    }
}

item! {
    /// An agent that answers in the place of another one. The figures are those of its runs for that one since the start, or since that
    /// one or a member of it was configured anew.
    pub(super) MemberItem of (member: MemberHealth) {} with {
        name: String = member.name.to_string(),
        /// Whether it is left out for now, because it kept failing.
        left_out: bool = member.is_left_out,
        answered: u64 = member.answered,
        failed: u64 = member.failed,
        /// The median time of its latest 21 answers, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")] p50_ms: Option<u64> = member.median.map(millis),
        /// The time that 95 in 100 of its latest 200 answers took at most, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")] p95_ms: Option<u64> = member.p95.map(millis),
        /// The tokens that its runs reported, also those that failed or were stopped.
        input_tokens: u64 = member.usage.input_tokens,
        output_tokens: u64 = member.usage.output_tokens,
        /// What its runs cost, as it says itself or by its price.
        #[serde(skip_serializing_if = "Option::is_none")] cost: Option<CostDetail> = member.cost.map(CostDetail::of),
        /// Its latest error, if its latest run failed.
        #[serde(skip_serializing_if = "Option::is_none")] error: Option<String> = member.error,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Lists the agents, with how their runs ended.
#[utoipa::path(get, path = "/agents", operation_id = "list_agents",
    responses((status = 200, description = "The agents", body = AgentList)))]
pub(super) async fn list(State(app): Shared) -> Answer<AgentList> {
    Ok(Json(items(&app).await?.into_iter().collect()))
}

pub(super) async fn items(app: &App) -> Result<Vec<AgentItem>, ApiError> {
    let since = rejoinder_core::Timestamp::from_millis(
        app.clock.now().as_millis().saturating_sub_unsigned(u64::try_from(DAY.as_millis()).unwrap_or(u64::MAX)),
    );
    let figures = app.records.lists.agent_figures(since, MOST).await?;
    let health = app.engine.agents();
    let budgets = app.engine.budgets().await?;
    let items = app.agents.iter().map(|agent| {
        let known = health.iter().find(|(name, _)| *name == agent.name).map(|(_, health)| health);
        let figures = figures.iter().find(|figures| figures.agent == agent.name);
        let runtime = app.engine.runtimes().get(&agent.name);
        let description = runtime.as_ref().map(|runtime| runtime.describe()).unwrap_or_default();
        let members = runtime.map(|runtime| runtime.members()).unwrap_or_default();
        let budget = budgets.iter().find(|budget| budget.agent == agent.name);
        AgentItem::of(agent, description, members, known, figures, budget)
    });
    Ok(items.collect())
}

page! {
    /// A page of the sessions that an agent remembers by itself, newest first.
    AgentSessionList of AgentSessionItem #[schema(format = "uuid")]
}

item! {
    /// A session that an agent remembers by itself.
    pub(crate) AgentSessionItem of (session: AgentSessionSummary) {
        #[schema(format = "uuid")] session_id: String = session.session.to_string(),
        /// The conversation in which it began.
        #[serde(flatten)] address: AddressItem = AddressItem::of(&session.conversation, session.conversation_id),
        /// The name that somebody gave it.
        name: Option<String> = session.name,
        /// What it is about, as its agent says.
        title: Option<String> = session.title,
        /// The name of the person whose it is; null if it belongs to its conversation.
        person: Option<String> = session.person,
        #[schema(format = DateTime)] started_at: String = rfc3339(session.created_at),
        /// When it was last used, to the minute; null if it was not yet.
        #[schema(format = DateTime)] used_at: Option<String> = session.used_at.map(rfc3339),
        /// Whether the agent has an id of its own for it.
        has_own_id: bool = session.has_own_id,
    }
}

query! {
    /// Where a page of sessions begins.
    Sessions {
        /// Only sessions older than the one with this id: the `next` of the previous page.
        #[param(format = "uuid")] before: Option<String>,
        /// The largest number of sessions; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

/// Lists the sessions that an agent with a memory of its own remembers, newest first. A deleted one is left out at once, also if the
/// agent was not told yet.
#[utoipa::path(get, path = "/agents/{name}/sessions", operation_id = "list_agent_sessions",
    params(("name" = String, Path, description = "The agent"), Sessions),
    responses((status = 200, description = "A page of sessions", body = AgentSessionList)))]
pub(super) async fn sessions(
    State(app): Shared,
    caller: Caller,
    Query(Sessions { before, limit }): Query<Sessions>,
    name: Segment,
) -> Answer<AgentSessionList> {
    const UNKNOWN: &str = "there is no agent with this name";
    let name: String = parsed(name, UNKNOWN)?;
    let agent = app.agents.iter().find(|agent| *agent.name == *name).ok_or(ApiError::NotFound(UNKNOWN))?;
    let (before, limit) = (paging::id("before", "a session id", before)?, paging::limit(limit)?);
    let filter =
        AgentSessionFilter { agent: agent.name.clone(), channels: caller.channels(None), before, limit: limit + 1 };
    let mut found = app.records.lists.agent_sessions(&filter).await?;
    let next = paging::cut(&mut found, limit, |session| session.session.to_string());
    Ok(Json(AgentSessionList { items: found.into_iter().map(AgentSessionItem::of).collect(), next }))
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{Currency, Usage};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_has_the_figures_of_its_runs() {
        let asked = MemberHealth {
            name: "hosted".into(),
            answered: 2,
            failed: 1,
            median: Some(Duration::from_millis(1500)),
            p95: Some(Duration::from_secs(9)),
            usage: Usage { input_tokens: 1200, output_tokens: 30 },
            cost: Some(Cost { micros: 4500, currency: Currency::USD }),
            ..MemberHealth::default()
        };

        let shown = json!([MemberItem::of(asked), MemberItem::of(MemberHealth::default())]);

        let expected = json!([
            {
                "name": "hosted", "left_out": false, "answered": 2, "failed": 1, "p50_ms": 1500, "p95_ms": 9000,
                "input_tokens": 1200, "output_tokens": 30, "cost": { "amount": 0.0045, "currency": "USD" },
            },
            { "name": "", "left_out": false, "answered": 0, "failed": 0, "input_tokens": 0, "output_tokens": 0 },
        ]);
        assert_eq!(shown, expected);
    }
}
