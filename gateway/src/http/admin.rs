//! The admin API, `/admin/api`.
//!
//! Every route wants a token. A viewer's reads; an operator's also changes what happens to turns, and lets people in; an
//! admin's also manages tokens. To add a resource: write a file here, and add its routes below and its operations to
//! `openapi.rs`.

pub(super) mod agents;
pub(super) mod alerts;
pub(super) mod approvals;
pub(super) mod audit;
pub(super) mod caller;
pub(super) mod channels;
pub(super) mod configuration;
pub(super) mod conversations;
pub(super) mod dead_letters;
pub(super) mod deliveries;
pub(super) mod errors;
pub(super) mod events;
pub(super) mod logs;
pub(super) mod loops;
pub(super) mod messages;
pub(super) mod operation;
pub(super) mod overview;
pub(super) mod page;
pub(super) mod pairings;
pub(super) mod people;
pub(super) mod responses;
pub(super) mod route;
pub(super) mod schedules;
pub(super) mod search;
pub(super) mod session;
pub(super) mod tokens;
pub(super) mod turns;

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{MethodRouter, any, delete, get, post},
};
use rejoinder_core::store::Role;

use super::{App, not_found, wrong_method};

/// The routes, to be nested at `/admin/api`; `description` serves the OpenAPI description.
pub(super) fn routes(app: &Arc<App>, description: MethodRouter<Arc<App>>) -> Router<Arc<App>> {
    let viewer = Router::new()
        .route("/overview", get(overview::show))
        .route("/turns", get(turns::list))
        .route("/turns/{id}", get(turns::show))
        .route("/turns/{id}/explain", get(turns::explain))
        .route("/conversations", get(conversations::list))
        .route("/conversations/{id}", get(conversations::show))
        .route("/deliveries", get(deliveries::list))
        .route("/dead-letters", get(dead_letters::list))
        .route("/loops", get(loops::list))
        .route("/search", get(search::list))
        .route("/channels", get(channels::list))
        .route("/agents", get(agents::list))
        .route("/pairings", get(pairings::list))
        .route("/approvals", get(approvals::list))
        .route("/people", get(people::list))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{name}", get(schedules::show))
        .route("/logs", get(logs::list))
        .route("/errors", get(errors::list))
        .route("/events", get(events::follow))
        .route("/openapi.json", description)
        .route("/session", get(session::show).delete(session::close))
        .route("/route/explain", post(route::explain))
        .route("/links", post(session::link));
    let operator = Router::new()
        .route("/turns/{id}/cancel", post(turns::cancel))
        .route("/turns/{id}/retry", post(turns::retry))
        .route("/turns/{id}/hold", post(turns::hold))
        .route("/turns/{id}/resume", post(turns::resume))
        .route("/messages", post(messages::send))
        .route("/schedules", post(schedules::add))
        .route("/schedules/{name}", delete(schedules::remove))
        .route("/schedules/{name}/run", post(schedules::run))
        .route("/schedules/{name}/pause", post(schedules::pause))
        .route("/schedules/{name}/resume", post(schedules::resume))
        .route("/channels/{channel}/pause", post(channels::pause))
        .route("/channels/{channel}/resume", post(channels::resume))
        .route("/channels/{channel}/try", post(channels::try_now))
        .route("/deliveries/{id}/try", post(deliveries::try_now))
        .route("/pairings/{code}/approve", post(pairings::approve))
        .route("/pairings/{code}/decline", post(pairings::decline))
        .route("/approvals/{id}/approve", post(approvals::approve))
        .route("/approvals/{id}/decline", post(approvals::decline))
        .route("/errors/{id}/acknowledge", post(errors::acknowledge))
        .route("/errors/{id}/mute", post(errors::mute))
        .route("/errors/{id}/unmute", post(errors::unmute))
        .route("/people/revoke", post(people::revoke))
        .route("/dead-letters/{id}/retry", post(dead_letters::retry))
        .route("/dead-letters/{id}/redirect", post(dead_letters::redirect))
        .route("/dead-letters/{id}/discard", post(dead_letters::discard))
        .route("/dead-letters/retry", post(dead_letters::retry_all))
        .route("/dead-letters/discard", post(dead_letters::discard_all));
    let admin = Router::new()
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{id}", delete(tokens::revoke))
        .route("/sessions", get(session::list))
        .route("/sessions/{id}", delete(session::end))
        .route("/people/forget", post(people::forget))
        .route("/configuration/reload", post(configuration::reload))
        .route("/alerts", get(alerts::list))
        .route("/alerts/test", post(alerts::test))
        .route("/audit", get(audit::list));
    let with_role =
        |routes: Router<Arc<App>>, role: Role| routes.route_layer(from_fn_with_state(role, caller::require));
    with_role(viewer, Role::Viewer)
        .merge(with_role(operator, Role::Operator))
        .merge(with_role(admin, Role::Admin))
        // Before the page, which takes all other paths below `/admin`.
        .route("/", any(not_found))
        .route("/{*path}", any(not_found))
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(app), caller::identify))
        // Who opens a session has none yet.
        .merge(Router::new().route("/session", post(session::open)))
}
