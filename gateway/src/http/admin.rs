//! The admin API, `/admin/api`.
//!
//! Every route wants a token. A viewer's reads; an operator's also changes what happens to turns, and lets people in; an
//! admin's also manages tokens. To add a resource: write a file here, and list its handlers below.

mod agents;
mod alerts;
mod approvals;
mod audit;
pub(super) mod caller;
mod channels;
mod configuration;
mod conversations;
mod dead_letters;
mod deliveries;
mod errors;
mod events;
mod hooks;
pub(super) mod logs;
mod loops;
mod messages;
mod nodes;
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
    handler::Handler,
    middleware::from_fn_with_state,
    routing::{MethodRouter, any},
};
use rejoinder_core::store::Role;
use utoipa::openapi::HttpMethod;
use utoipa_axum::{PathItemExt, paste, router::OpenApiRouter, routes};

use super::{
    app::App,
    layers::{not_found, wrong_method},
    records::Records,
};
use crate::callers::Caller;

/// Serves handlers, without their descriptions, which would cost memory at every start.
macro_rules! serve {
    ($($resource:ident::$handler:ident)*) => {{
        let router = Router::new();
        $(let router = paste! { at::<$resource::[<__path_ $handler>], _, _, _>(router, &$resource::$handler) };)*
        router
    }};
}

/// Describes handlers.
macro_rules! describe {
    ($($resource:ident::$handler:ident)*) => {
        OpenApiRouter::<Arc<App>>::default()$(.routes(routes!($resource::$handler)))*
    };
}

/// What a viewer may do.
macro_rules! for_viewers {
    ($does:ident) => {
        $does! {
            overview::show conversations::list conversations::show deliveries::list
            loops::list search::list channels::list hooks::show nodes::list agents::list agents::sessions pairings::list approvals::list people::list
            schedules::list schedules::show errors::list events::follow session::show session::close
            session::link route::explain
        }
    };
}

/// What an operator may do as well.
macro_rules! for_operators {
    ($does:ident) => {
        $does! {
            turns::cancel turns::retry turns::hold turns::resume messages::send deliveries::try_now
            schedules::add schedules::remove schedules::run schedules::pause schedules::resume
            channels::pause channels::resume channels::try_now nodes::drain nodes::resume
            pairings::approve pairings::decline approvals::show approvals::approve approvals::decline people::revoke
            errors::acknowledge errors::mute errors::unmute
            dead_letters::retry dead_letters::redirect dead_letters::discard dead_letters::retry_all dead_letters::discard_all
        }
    };
}

/// What only an admin may do.
macro_rules! for_admins {
    ($does:ident) => {
        $does! {
            tokens::list tokens::create tokens::revoke session::list session::end people::forget people::invite people::sign_out configuration::reload
            alerts::list alerts::test audit::list hooks::token
        }
    };
}

/// What a viewer reads and the store alone answers.
macro_rules! records {
    ($does:ident) => {
        $does! {
            turns::list turns::show turns::explain dead_letters::list logs::list
        }
    };
}

/// What needs no role: it opens a session.
macro_rules! for_all {
    ($does:ident) => {
        $does! {
            session::open
        }
    };
}

/// Adds a handler with its path and methods, which stand in its description.
fn at<P: utoipa::Path, S, H, T>(router: Router<S>, handler: &H) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    H: Handler<T, S>,
    T: 'static,
{
    let on = |routes: MethodRouter<S>, method: &HttpMethod| routes.on(method.to_method_filter(), handler.clone());
    router.route(&P::path(), P::methods().iter().fold(MethodRouter::new(), on))
}

/// The routes that the store alone answers, below `/admin/api`, for a caller that may read everything: a command reads them from the
/// database while no gateway runs.
pub(crate) fn records_router(records: Records) -> Router {
    let routes = records!(serve).layer(Extension(Caller::configured()));
    Router::new().nest("/admin/api", routes).with_state(records)
}

/// Describes what is served here, with paths that begin below `/admin/api`.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    let all = [for_viewers!(describe), records!(describe), for_operators!(describe), for_admins!(describe)];
    let mut description = all.into_iter().fold(for_all!(describe), OpenApiRouter::merge).into_openapi();
    description.paths.paths.iter_mut().for_each(|(path, item)| responses::complete(path, item));
    description
}

/// The routes, to be nested at `/admin/api`; `described` serves their description.
pub(super) fn routes(app: &Arc<App>, described: MethodRouter<Arc<App>>) -> Router<Arc<App>> {
    let viewer = Router::new().route("/openapi.json", described);
    let viewer = viewer.route_layer(from_fn_with_state(Role::Viewer, caller::require));
    let by_role = [
        (Role::Viewer, for_viewers!(serve).merge(records!(serve))),
        (Role::Operator, for_operators!(serve)),
        (Role::Admin, for_admins!(serve)),
    ];
    by_role
        .into_iter()
        .map(|(role, routes)| routes.route_layer(from_fn_with_state(role, caller::require)))
        .fold(viewer, Router::merge)
        // Before the page, which takes all other paths below `/admin`.
        .route("/", any(not_found))
        .route("/{*path}", any(not_found))
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(app), caller::identify))
        // A caller that opens a session has none yet.
        .merge(for_all!(serve))
}
