//! The HTTP surface.
//!
//! The routes of channels (`/hooks`, `/chat`) and of agents (`/agents/<name>`) limit their bodies and their time themselves. Of this module only the
//! panic handler in `serve.rs` applies to them. All other routes are limited here.

mod access;
mod admin;
mod app;
mod connection_permits;
mod error;
mod files;
mod health;
mod keys_in_use;
mod layers;
mod openapi;
mod paging;
mod probe;
mod proxies;
mod records;
mod renewal;
mod serve;
mod sessions;

use std::sync::Arc;

use axum::{Router, middleware, response::Redirect, routing::get};

#[cfg(test)]
pub(crate) use self::openapi::description;
pub(crate) use self::{
    admin::{
        logs::{LevelName, LogLineItem},
        people::PersonRoleName,
        records_router,
        tokens::RoleName,
        turns::StateFilter,
    },
    app::{App, Commons},
    connection_permits::{Bounds, ConnectionPermits},
    health::{ALIVE, AgentReadiness, ChannelReadiness, NodeReadiness, Readiness, ReadinessDetails},
    keys_in_use::KeysInUse,
    paging::MAX as LONGEST_PAGE,
    proxies::Proxies,
    records::Records,
    renewal::Renewal,
    serve::accept,
    sessions::AdminSessions,
};

/// Everything, served at one address: the operator's routes, the channels' and those for everybody. `/` redirects to
/// `front_page`.
pub(crate) fn routes(app: App, front_page: Option<&'static str>, channel_routes: Vec<Router>) -> Router {
    let app = Arc::new(app);
    let public = public_routes(&app, true, front_page, channel_routes);
    with_fallbacks(&app, public.merge(operator_routes(&app)))
}

/// As [`routes`], with the operator's routes at an address of their own, that of `operator`.
pub(crate) fn separate_routes(
    app: App,
    operator: App,
    front_page: Option<&'static str>,
    channel_routes: Vec<Router>,
) -> (Router, Router) {
    let (app, operator) = (Arc::new(app), Arc::new(operator));
    let of_operator = public_routes(&operator, true, None, Vec::new()).merge(operator_routes(&operator));
    let public = public_routes(&app, false, front_page, channel_routes);
    (with_fallbacks(&app, public), with_fallbacks(&operator, of_operator))
}

/// What is served to everybody. `is_operators`: operators are served at this address, too.
fn public_routes(
    app: &Arc<App>,
    is_operators: bool,
    front_page: Option<&'static str>,
    channel_routes: Vec<Router>,
) -> Router {
    let readiness = if is_operators { get(health::ready) } else { get(health::status) };
    let files = if is_operators && app.access.has_admin() { get(files::show) } else { get(files::show_by_link) };
    let own = Router::new().route("/readyz", readiness).route("/files/{digest}", files);
    let own = in_time(app, own).route("/healthz", get(health::alive));
    let own = match front_page {
        Some(page) => own.route("/", get(async move || Redirect::to(page))),
        None => own,
    };
    let own = guarded(app, own).with_state(Arc::clone(app));
    let named = middleware::from_fn_with_state(Arc::clone(app), layers::channel_host);
    channel_routes.into_iter().map(|routes| routes.layer(named.clone())).fold(own, Router::merge)
}

fn operator_routes(app: &Arc<App>) -> Router {
    let readers = Router::new()
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::document))
        .layer(middleware::from_fn_with_state(Arc::clone(app), layers::reader));
    let own = if app.access.has_admin() {
        readers
            .nest("/admin/api", admin::routes(app, get(openapi::document)))
            .merge(admin::page::routes())
            // For the page: its cookie is sent below `/admin` only.
            .route("/admin/files/{digest}", get(files::show))
    } else {
        readers
    };
    guarded(app, in_time(app, own)).with_state(Arc::clone(app))
}

/// Checks the host, and adds the common headers.
fn guarded(app: &Arc<App>, routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes
        .layer(middleware::from_fn_with_state(Arc::clone(app), layers::host))
        .layer(middleware::from_fn(layers::with_common_headers))
}

fn in_time(app: &Arc<App>, routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes.layer(middleware::from_fn_with_state(Arc::clone(app), layers::limit_time))
}

/// Answers for paths and methods that nothing serves.
fn with_fallbacks(app: &Arc<App>, routes: Router) -> Router {
    let nothing = guarded(app, Router::new().fallback(layers::not_found)).with_state(Arc::clone(app));
    routes.method_not_allowed_fallback(layers::wrong_method).fallback_service(nothing)
}
