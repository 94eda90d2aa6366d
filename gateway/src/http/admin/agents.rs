//! The list of agents.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::responses::Reading;
use crate::http::Shared;

/// The configured agents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentList {
    items: Vec<AgentItem>,
    /// Always null: there is only one page.
    #[schema(value_type = Option<String>)]
    next: Option<&'static str>,
}

/// One agent.
#[derive(Debug, Serialize, ToSchema)]
struct AgentItem {
    name: String,
    /// `front-desk` or `openai`.
    kind: &'static str,
    /// What the agent is, and where it runs.
    description: String,
    /// Whether channels without an agent of their own use this one.
    is_default: bool,
}

/// Lists the agents.
#[utoipa::path(get, path = "/admin/api/agents", tag = "admin", operation_id = "list_agents",
    responses(
        (status = 200, description = "The agents", body = AgentList),
        Reading,
    ),
    security(("admin_token" = [])))]
pub(in crate::http) async fn list(State(app): Shared) -> Json<AgentList> {
    let items = app.agents.iter().map(|agent| AgentItem {
        name: agent.name.to_string(),
        kind: agent.kind,
        description: agent.description.clone(),
        is_default: agent.is_default,
    });
    Json(AgentList { items: items.collect(), next: None })
}
