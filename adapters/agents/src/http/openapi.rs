//! The OpenAPI description of the request that a service gets.

use utoipa::OpenApi;

use crate::wire::{WireObject, WireSession, WireTurn};

/// Describes the request, for merging into the gateway's description: a webhook, as the path is that of the service.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut openapi = Description::openapi();
    openapi.webhooks = Some(std::mem::take(&mut openapi.paths));
    openapi
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Services", description = "What the gateway asks an agent of the kind `http`."),
    paths(turn, session),
    tags((name = "services", description = "What the gateway asks an agent of the kind `http`")),
)]
struct Description;

/// Answer a turn.
///
/// The gateway sends this to the `url` of an agent of the kind `http`, once for each run. It is signed as described by Standard
/// Webhooks if the agent has a `secret`, and it is not sent again: the service may have acted on the first request.
#[utoipa::path(
    post,
    path = "agent-turn",
    tag = "services",
    operation_id = "run_turn",
    params(
        ("webhook-id" = String, Header, description = "The turn's id, `-` and the number of the run"),
        ("webhook-timestamp" = i64, Header, description = "When the request was made, in seconds since the Unix epoch"),
        ("webhook-signature" = Option<String>, Header, description = "`v1,` and the signature, if the agent has a `secret`"),
    ),
    request_body(content = WireTurn),
    responses(
        (status = 200, description = "The answer: one object as JSON, objects as JSON lines or as server-sent events, or a text", content(
            (WireObject = "application/json"),
            (WireObject = "application/x-ndjson"),
            (WireObject = "text/event-stream"),
            (String = "text/plain"),
        )),
        (status = 204, description = "Nothing to say: the ladder decides what the person sees"),
        (status = "default", description = "The run failed"),
    ),
)]
#[expect(dead_code, reason = "a description: the service has the function")]
fn turn() {}

/// Hear what happened to a session.
///
/// Sent to the same `url`, signed in the same way, to an agent with `sessions = true`: each change once at least, with the same
/// `webhook-id`, and again for a week until the response is a 2xx.
#[utoipa::path(
    post,
    path = "agent-session",
    tag = "services",
    operation_id = "change_session",
    params(
        ("webhook-id" = String, Header, description = "The session's id, the change and the id of the turn: the same whenever this change is told"),
        ("webhook-timestamp" = i64, Header, description = "When the request was made, in seconds since the Unix epoch"),
        ("webhook-signature" = Option<String>, Header, description = "`v1,` and the signature, if the agent has a `secret`"),
    ),
    request_body(content = WireSession),
    responses(
        (status = "2XX", description = "The service has forgotten it, or does not know it"),
        (status = "default", description = "It is told again"),
    ),
)]
#[expect(dead_code, reason = "a description: the service has the function")]
fn session() {}
