//! The agents.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Shared, error::ProblemDocument};

/// The agents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentList {
    items: Vec<AgentItem>,
    /// There is one page.
    #[schema(value_type = Option<String>)]
    next: Option<&'static str>,
}

/// One agent.
#[derive(Debug, Serialize, ToSchema)]
struct AgentItem {
    name: String,
    /// `front-desk` or `openai`.
    kind: &'static str,
    /// What it is, and where.
    description: String,
    /// Whether channels that name no agent have this one.
    is_default: bool,
}

/// The agents.
#[utoipa::path(get, path = "/admin/api/agents", tag = "admin", operation_id = "list_agents",
    responses(
        (status = 200, description = "The agents", body = AgentList),
        (status = 401, description = "The caller is not known", body = ProblemDocument, content_type = "application/problem+json"),
    ),
    security(("admin_token" = [])))]
pub(super) async fn list(State(app): Shared) -> Json<AgentList> {
    let items = app.agents.iter().map(|agent| AgentItem {
        name: agent.name.to_string(),
        kind: agent.kind,
        description: agent.description.clone(),
        is_default: agent.is_default,
    });
    Json(AgentList { items: items.collect(), next: None })
}
