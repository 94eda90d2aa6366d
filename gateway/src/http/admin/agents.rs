//! The list of agents, with how their runs ended.

use std::time::Duration;

use rejoinder_core::{AgentHealth, store::AgentFigures};

use super::prelude::*;
use crate::view::CostDetail;

/// The time within which runs are counted.
const DAY: Duration = Duration::from_hours(24);

/// How many runs are counted at most.
const MOST: u32 = 100_000;

whole! {
    /// The configured agents.
    AgentList of AgentItem
}

/// One agent. The figures are those of the last 24 hours, and of 100,000 runs at most.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AgentItem {
    pub(super) name: String,
    /// The `kind` of its section, for example `openai`.
    kind: &'static str,
    /// What the agent is, and where it runs.
    description: String,
    /// Whether channels without an agent of their own use this one.
    is_default: bool,
    /// False if its last runs failed, three or more.
    pub(super) up: bool,
    /// When a run last ended without a failure, since the start of the gateway.
    #[schema(format = DateTime)]
    ok_at: Option<String>,
    /// Since when its runs fail, if the last one did.
    #[schema(format = DateTime)]
    failing_since: Option<String>,
    /// The latest error, without what the agent said.
    pub(super) error: Option<String>,
    runs: u64,
    /// How many of the runs failed.
    failed: u64,
    /// The time that half of the runs took at most, in milliseconds.
    p50_ms: u64,
    /// The time that 95 in 100 runs took at most, in milliseconds.
    p95_ms: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// What the runs cost, if the agent has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostDetail>,
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
    let items = app.agents.iter().map(|agent| {
        let known = health.iter().find(|(name, _)| *name == agent.name);
        let AgentHealth { ok_at, failing_since, error, .. } =
            known.map(|(_, health)| health.clone()).unwrap_or_default();
        let figures = figures.iter().find(|figures| figures.agent == agent.name).cloned();
        let AgentFigures { runs, failed, p50, p95, usage, cost, .. } = figures.unwrap_or_default();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        AgentItem {
            name: agent.name.to_string(),
            kind: agent.kind,
            description: app.engine.describe_agent(&agent.name).unwrap_or_default(),
            is_default: agent.is_default,
            up: !known.is_some_and(|(_, health)| health.is_down()),
            ok_at: ok_at.map(rfc3339),
            failing_since: failing_since.map(rfc3339),
            error,
            runs,
            failed,
            p50_ms: millis(p50),
            p95_ms: millis(p95),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost: cost.map(CostDetail::from),
        }
    });
    Ok(items.collect())
}
