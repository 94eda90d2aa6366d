//! What workers with a memory of their own send: they fetch changes of sessions, and say that they have done what these ask for.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use rejoinder_kit::{Peer, Problem};
use tokio::time::Instant;

use super::{agent::Pull, caller::wait_of, notices::OfferedNotice, schema::WorkerProblem};

/// Fetch a change of a session.
///
/// For an agent with `sessions = true`: waits until a session was deleted or left, or a turn was removed from it. The change is
/// told to one worker after the other, each after the length of a lease, until the one that has it says that it has done what it asks for.
/// Workers that take turns of some channels only are not told.
#[utoipa::path(
    get,
    path = "/agents/{name}/sessions/next",
    tag = "workers",
    operation_id = "next_session_change",
    params(
        ("name" = String, Path, description = "The agent"),
        ("wait" = Option<u32>, Query, description = "How many seconds to wait: 30 if left out, and at most 60"),
    ),
    responses(
        (status = 200, description = "A change", body = OfferedNotice),
        (status = 204, description = "There was none in this time: ask again"),
        (status = 400, description = "`wait` is no number", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 409, description = "The agent does not have `sessions = true`, or the worker has `takes`", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("worker_token" = [])),
)]
pub(super) async fn next(State(agent): State<Arc<Pull>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let caller = agent.identify(&parts.headers, Peer::of(&parts.extensions)).await?;
    let title = "Conflict: the agent keeps no sessions";
    let refused = |detail| Err(Problem::new(StatusCode::CONFLICT, "no-sessions", title, detail));
    if !agent.section.sessions {
        return refused("the agent is not told of sessions: set `sessions = true` in its section");
    }
    if caller.section.is_some_and(|section| !section.takes.is_empty()) {
        return refused(
            "this worker takes turns of some channels only, and a session may be of any: a worker without `takes` is told",
        );
    }
    let deadline = Instant::now() + wait_of(&parts)?;
    let offered = agent.notices.next(&caller.worker, agent.section.lease, deadline, &agent.stop_waiting).await;
    Ok(offered.map_or_else(|| StatusCode::NO_CONTENT.into_response(), |offered| Json(offered).into_response()))
}

/// Say that what a change asks for is done.
///
/// Also for a session or a turn that the worker does not know.
#[utoipa::path(
    post,
    path = "/agents/{name}/sessions/{id}",
    tag = "workers",
    operation_id = "session_change_done",
    params(("name" = String, Path, description = "The agent"), ("id" = String, Path, description = "The `id` of the change")),
    responses(
        (status = 204, description = "It is not told again"),
        (status = 401, description = "The token is missing or wrong", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 404, description = "The worker does not have this change: it was done long ago, another worker has it, or it is told again later", body = WorkerProblem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = WorkerProblem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("worker_token" = [])),
)]
pub(super) async fn done(
    State(agent): State<Arc<Pull>>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<StatusCode, Problem> {
    let caller = agent.identify(request.headers(), Peer::of(request.extensions())).await?;
    if id.is_ok_and(|Path(id)| agent.notices.done(&id, &caller.worker)) {
        return Ok(StatusCode::NO_CONTENT);
    }
    let (title, detail) = ("Not found: no such change", "this worker does not have such a change: fetch the next one");
    Err(Problem::new(StatusCode::NOT_FOUND, "unknown-change", title, detail))
}
