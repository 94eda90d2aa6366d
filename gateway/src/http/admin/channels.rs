//! The list of channels, with their health.

use axum::{Extension, Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{caller::Caller, responses::Reading};
use crate::{
    http::{App, Shared, health::problem},
    time::rfc3339,
};

/// The configured channels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelList {
    items: Vec<ChannelItem>,
    /// Always null: there is only one page.
    #[schema(value_type = Option<String>)]
    next: Option<&'static str>,
}

/// One channel and its health.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChannelItem {
    /// Platform and name, for example `webhook.siri`.
    pub(super) channel: String,
    platform: String,
    name: String,
    /// Whether the channel has proved recently that it receives events.
    pub(super) live: bool,
    /// When it last proved that.
    #[schema(format = DateTime)]
    inbound_at: Option<String>,
    /// After how many milliseconds without proof it counts as dead; null if it never does.
    #[schema(minimum = 0)]
    stale_after_ms: Option<u64>,
    /// Whether it can send, as far as its latest sends tell.
    pub(super) sends: bool,
    /// When the platform last acknowledged something, since the start of the gateway.
    #[schema(format = DateTime)]
    sent_at: Option<String>,
    /// What is wrong, if anything. A live channel has a problem with single chats only.
    pub(super) problem: Option<String>,
}

/// Lists the channels with their health.
#[utoipa::path(get, path = "/admin/api/channels", tag = "admin", operation_id = "list_channels",
    responses(
        (status = 200, description = "The channels", body = ChannelList),
        Reading,
    ),
    security(("admin_token" = [])))]
pub(in crate::http) async fn list(State(app): Shared, Extension(caller): Extension<Caller>) -> Json<ChannelList> {
    Json(ChannelList { items: items(&app, &caller), next: None })
}

/// The channels that a caller may see.
pub(super) fn items(app: &App, caller: &Caller) -> Vec<ChannelItem> {
    let now = app.clock.now();
    let visible = app.engine.channels().into_iter().filter(|(channel, _)| caller.may_see(channel));
    let items = visible.map(|(channel, health)| ChannelItem {
        channel: channel.to_string(),
        platform: channel.platform().to_owned(),
        name: channel.name().to_owned(),
        live: health.is_live(now),
        inbound_at: health.inbound_at.map(rfc3339),
        stale_after_ms: health.stale_after.and_then(|after| u64::try_from(after.as_millis()).ok()),
        sends: app.engine.outbound(&channel).failing_since.is_none(),
        sent_at: app.engine.outbound(&channel).sent_at.map(rfc3339),
        problem: problem(&app.engine, &channel, &health, now),
    });
    items.collect()
}
