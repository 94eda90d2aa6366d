//! The channels: their list with their health, pause and resume.

use rejoinder_core::{ChannelId, store::Pause};

use super::prelude::*;
use crate::http::health::problem;

whole! {
    /// The configured channels.
    ChannelList of ChannelItem
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
    /// Since when it cannot send.
    #[schema(format = DateTime)]
    failing_since: Option<String>,
    /// When the platform last acknowledged something, since the start of the gateway.
    #[schema(format = DateTime)]
    sent_at: Option<String>,
    /// Who paused it, and why; null if nobody did.
    pub(super) paused: Option<PauseItem>,
    /// Until when the platform's rate limit holds for the whole account.
    #[schema(format = DateTime)]
    limited_until: Option<String>,
    /// What is wrong, if anything. A live channel has a problem with single chats only.
    pub(super) problem: Option<String>,
}

/// Since when nothing is sent, because an operator wants it so.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PauseItem {
    #[schema(format = DateTime)]
    since: String,
    /// The name of the operator's token.
    pub(super) by: String,
    pub(super) reason: Option<String>,
}

impl From<Pause> for PauseItem {
    fn from(Pause { since, by, reason }: Pause) -> Self {
        Self { since: rfc3339(since), by, reason }
    }
}

/// Lists the channels with their health.
#[utoipa::path(get, path = "/channels", operation_id = "list_channels",
    responses((status = 200, description = "The channels", body = ChannelList)))]
pub(super) async fn list(State(app): Shared, caller: Caller) -> Json<ChannelList> {
    Json(items(&app, &caller).into_iter().collect())
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
        failing_since: app.engine.outbound(&channel).failing_since.map(rfc3339),
        sent_at: app.engine.outbound(&channel).sent_at.map(rfc3339),
        paused: app.engine.paused(&channel).map(PauseItem::from),
        limited_until: app.engine.limited_until(&channel).map(rfc3339),
        problem: problem(&app.engine, &channel, &health, now),
    });
    items.collect()
}

/// Pauses a channel: what comes in is stored and answered, and nothing is sent until it is resumed, also over a restart.
#[utoipa::path(post, path = "/channels/{channel}/pause", operation_id = "pause_channel",
    params(("channel" = String, Path, description = "The channel, for example `telegram.main`"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 202, description = "It is paused", body = Accepted)))]
pub(super) async fn pause(State(app): Shared, channel: Segment, operation: Operation<Reason>) -> Done {
    act(named(channel), operation, |channel, actor| app.engine.operations().pause_channel(channel, true, actor)).await
}

/// Resumes a channel that is paused: what waits is sent.
#[utoipa::path(post, path = "/channels/{channel}/resume", operation_id = "resume_channel",
    params(("channel" = String, Path, description = "The channel, for example `telegram.main`"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 202, description = "It is resumed", body = Accepted)))]
pub(super) async fn resume(State(app): Shared, channel: Segment, operation: Operation<Reason>) -> Done {
    act(named(channel), operation, |channel, actor| app.engine.operations().pause_channel(channel, false, actor)).await
}

/// Has what waits for a channel tried now, and does not wait for the end of its pauses. What may have arrived is sent again only once
/// the platform answers a message, with a label.
#[utoipa::path(post, path = "/channels/{channel}/try", operation_id = "try_channel",
    params(("channel" = String, Path, description = "The channel, for example `telegram.main`"), IdempotencyKey),
    request_body(content = Option<Reason>),
    responses((status = 202, description = "What waits is tried", body = Accepted)))]
pub(super) async fn try_now(State(app): Shared, channel: Segment, operation: Operation<Reason>) -> Done {
    act(named(channel), operation, |channel, actor| app.engine.operations().try_channel(channel, actor)).await
}

fn named(channel: Segment) -> Result<ChannelId, ApiError> {
    parsed(channel, "there is no channel with this name").map(|name: String| ChannelId::from_stored(&name))
}
