//! The channels, and how they are doing.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Shared, error::ProblemDocument};
use crate::time::rfc3339;

/// The channels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelList {
    items: Vec<ChannelItem>,
    /// There is one page.
    #[schema(value_type = Option<String>)]
    next: Option<&'static str>,
}

/// One channel.
#[derive(Debug, Serialize, ToSchema)]
struct ChannelItem {
    /// `webhook.siri`.
    channel: String,
    platform: String,
    name: String,
    /// Whether it has proved that events come in.
    live: bool,
    /// When it was last proved.
    #[schema(format = DateTime)]
    inbound_at: Option<String>,
    /// After how many milliseconds without proof it counts as dead; null for an open door.
    #[schema(minimum = 0)]
    stale_after_ms: Option<u64>,
    /// What is wrong.
    problem: Option<String>,
}

/// The channels, and how they are doing.
#[utoipa::path(get, path = "/admin/api/channels", tag = "admin", operation_id = "list_channels",
    responses(
        (status = 200, description = "The channels", body = ChannelList),
        (status = 401, description = "The caller is not known", body = ProblemDocument, content_type = "application/problem+json"),
    ),
    security(("admin_token" = [])))]
pub(super) async fn list(State(app): Shared) -> Json<ChannelList> {
    let now = app.clock.now();
    let items = app.engine.channels().into_iter().map(|(channel, health)| ChannelItem {
        channel: channel.to_string(),
        platform: channel.platform().to_owned(),
        name: channel.name().to_owned(),
        live: health.is_live(now),
        inbound_at: health.inbound_at.map(rfc3339),
        stale_after_ms: health.stale_after.and_then(|after| u64::try_from(after.as_millis()).ok()),
        problem: health.problem,
    });
    Json(ChannelList { items: items.collect(), next: None })
}
