//! The channels: their list with their health, pause and resume.

use rejoinder_core::{ChannelHealth, ChannelId, Engine, Timestamp, store::Pause};

use super::prelude::*;
use crate::http::health::problem;

whole! {
    /// The configured channels.
    ChannelList of ChannelItem
}

item! {
    /// One channel and its health.
    pub(super) ChannelItem of (engine: &Engine, channel: &ChannelId, health: &ChannelHealth, now: Timestamp) {
        let outbound = engine.outbound(channel);
    } with {
        /// Platform and name, for example `webhook.siri`.
        channel: String = channel.to_string(),
        platform: String = channel.platform().to_owned(),
        name: String = channel.name().to_owned(),
        /// Whether another node may have it, and this one has not: what follows is what this node knows.
        elsewhere: bool = !engine.runs_here(channel),
        /// Whether the channel has proved recently that it receives events.
        live: bool = health.is_live(now),
        /// When it last proved that.
        #[schema(format = DateTime)] inbound_at: Option<String> = health.inbound_at.map(rfc3339),
        /// After how many milliseconds without proof it counts as dead; null if it never does.
        #[schema(minimum = 0)]
        stale_after_ms: Option<u64> = health.stale_after.and_then(|after| u64::try_from(after.as_millis()).ok()),
        /// Whether it can send, as far as its latest sends tell.
        sends: bool = outbound.failing_since.is_none(),
        /// Since when it cannot send.
        #[schema(format = DateTime)] failing_since: Option<String> = outbound.failing_since.map(rfc3339),
        /// When the platform last acknowledged something, since the start of the gateway.
        #[schema(format = DateTime)] sent_at: Option<String> = outbound.sent_at.map(rfc3339),
        /// Who paused it, and why; null if nobody did.
        paused: Option<PauseItem> = engine.paused(channel).map(PauseItem::of),
        /// Until when the platform's rate limit holds for the whole account.
        #[schema(format = DateTime)] limited_until: Option<String> = engine.limited_until(channel).map(rfc3339),
        /// What is wrong, if anything. A live channel has a problem with single chats only.
        problem: Option<String> = problem(engine, channel, health, now),
    }
}

item! {
    /// Since when nothing is sent, because an operator wants it so.
    pub(super) PauseItem of (pause: Pause) {
        #[schema(format = DateTime)] since: String = rfc3339(pause.since),
        /// The name of the operator's token.
        by: String = pause.by,
        reason: Option<String> = pause.reason,
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
    visible.map(|(channel, health)| ChannelItem::of(&app.engine, &channel, &health, now)).collect()
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
