//! The admin API, `/admin/api`.
//!
//! Every route wants a token. A viewer's reads; an operator's also changes what happens to turns, and lets people in; an
//! admin's also manages tokens. To add a resource: write a file here, and list its handlers below.

mod agents;
mod alerts;
mod approvals;
mod audit;
mod caller;
mod channels;
mod configuration;
mod conversations;
mod dead_letters;
mod deliveries;
mod errors;
mod events;
pub(super) mod logs;
mod loops;
mod messages;
mod operation;
mod overview;
pub(super) mod page;
mod pairings;
pub(super) mod people;
mod prelude;
mod responses;
mod route;
mod schedules;
mod search;
mod session;
pub(super) mod tokens;
pub(super) mod turns;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::FromRef,
    middleware::from_fn_with_state,
    routing::{MethodRouter, any},
};
use rejoinder_core::store::Role;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    app::App,
    layers::{not_found, wrong_method},
    records::Records,
};
use crate::callers::Caller;

type Routes = OpenApiRouter<Arc<App>>;

macro_rules! handlers {
    ($($resource:ident::$handler:ident)*) => {
        OpenApiRouter::default()$(.routes(routes!($resource::$handler)))*
    };
}

/// What is served, and described, by the role that it needs.
fn by_role() -> [(Role, Routes); 3] {
    let viewer: Routes = handlers! {
        overview::show conversations::list conversations::show deliveries::list
        loops::list search::list channels::list agents::list pairings::list approvals::list people::list
        schedules::list schedules::show errors::list events::follow session::show session::close
        session::link route::explain
    };
    let operator = handlers! {
        turns::cancel turns::retry turns::hold turns::resume messages::send deliveries::try_now
        schedules::add schedules::remove schedules::run schedules::pause schedules::resume
        channels::pause channels::resume channels::try_now
        pairings::approve pairings::decline approvals::approve approvals::decline people::revoke
        errors::acknowledge errors::mute errors::unmute
        dead_letters::retry dead_letters::redirect dead_letters::discard dead_letters::retry_all dead_letters::discard_all
    };
    let admin = handlers! {
        tokens::list tokens::create tokens::revoke session::list session::end people::forget configuration::reload
        alerts::list alerts::test audit::list
    };
    [(Role::Viewer, viewer.merge(records())), (Role::Operator, operator), (Role::Admin, admin)]
}

/// What a viewer reads and the store alone answers.
fn records<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S>
where
    Records: FromRef<S>,
{
    handlers! { turns::list turns::show turns::explain dead_letters::list logs::list }
}

/// The routes that the store alone answers, below `/admin/api`, for a caller that may read everything: a command reads them from the
/// database while no gateway runs.
pub(crate) fn records_router(records: Records) -> Router {
    let routes = Router::from(self::records::<Records>()).layer(Extension(Caller::configured()));
    Router::new().nest("/admin/api", routes).with_state(records)
}

/// What needs no role: it opens a session.
fn for_all() -> Routes {
    handlers! { session::open }
}

/// Describes what is served here, with paths that begin below `/admin/api`.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    let all = by_role().into_iter().fold(for_all(), |all, (_, routes)| all.merge(routes));
    let mut description = all.into_openapi();
    description.paths.paths.iter_mut().for_each(|(path, item)| responses::complete(path, item));
    description
}

/// The routes, to be nested at `/admin/api`; `described` serves their description.
pub(super) fn routes(app: &Arc<App>, described: MethodRouter<Arc<App>>) -> Router<Arc<App>> {
    let viewer = Router::new().route("/openapi.json", described);
    let viewer = viewer.route_layer(from_fn_with_state(Role::Viewer, caller::require));
    by_role()
        .into_iter()
        .map(|(role, routes)| Router::from(routes).route_layer(from_fn_with_state(role, caller::require)))
        .fold(viewer, Router::merge)
        // Before the page, which takes all other paths below `/admin`.
        .route("/", any(not_found))
        .route("/{*path}", any(not_found))
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(app), caller::identify))
        // A caller that opens a session has none yet.
        .merge(Router::from(for_all()))
}
