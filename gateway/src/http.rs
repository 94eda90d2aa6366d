//! The HTTP surface.
//!
//! The routes of channels (`/hooks`, `/chat`) and of agents (`/agents/<name>`) limit their bodies and their time themselves. Of this module only the
//! panic handler in `serve.rs` applies to them. All other routes are limited here.

mod access;
mod admin;
mod error;
mod health;
mod openapi;
mod paging;
mod places;
mod proxies;
mod serve;

use std::{net::SocketAddr, ops::Deref, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::{MethodRouter, get},
};
use metrics_exporter_prometheus::PrometheusHandle;
use rejoinder_core::{Addressees, ChannelId, Engine, SharedClock, Store, Timestamp};
use tokio_util::sync::CancellationToken;

use self::{
    access::Access,
    error::ApiError,
    health::{BacklogReader, StoreProbe},
};
use crate::{
    alerts::LiveAlerts,
    callers::StoredTokens,
    feed::Feed,
    figures::Figures,
    problems::Problems,
    reload::Reload,
    wiring::{AgentInfo, Parts},
};

#[cfg(test)]
pub(crate) use self::openapi::description;
pub(crate) use self::{
    admin::{
        logs::{LevelName, LogLineItem},
        operation::KeysInUse,
        records::router as records_router,
        session::Sessions,
    },
    health::{ALIVE, Readiness, ReadinessDetails},
    paging::MAX as LONGEST_PAGE,
    places::{Bounds, Places},
    proxies::Proxies,
    serve::accept,
};

/// The state that the routes of this module share, at one address.
pub(crate) struct App {
    commons: Commons,
    agents: Vec<AgentInfo>,
    access: Access,
    probe: StoreProbe,
    backlog: BacklogReader,
    request_timeout: Duration,
    /// Cancelled when the gateway stops: readers of the log are let go.
    stopping: CancellationToken,
}

/// What the routes of all addresses share.
#[derive(Clone)]
pub(crate) struct Commons {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: SharedClock,
    pub(crate) recorder: PrometheusHandle,
    pub(crate) started_at: Timestamp,
    /// The file of the database.
    pub(crate) database: PathBuf,
    pub(crate) tokens: Arc<StoredTokens>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) keys_in_use: KeysInUse,
    pub(crate) problems: Problems,
    pub(crate) alerts: Arc<LiveAlerts>,
    /// `None`: the configuration is read once only.
    pub(crate) reload: Option<Reload>,
}

type Shared = State<Arc<App>>;

impl Deref for App {
    type Target = Commons;

    fn deref(&self) -> &Commons {
        &self.commons
    }
}

impl App {
    /// To be served at an address, which is public or the operator's own.
    pub(crate) fn new(parts: &Parts, commons: Commons, (address, is_public): (SocketAddr, bool)) -> Self {
        Self {
            agents: parts.agent_infos.clone(),
            access: Access::new(
                parts.admin_tokens.clone(),
                parts.metrics_tokens.clone(),
                Arc::clone(&parts.guesses),
                parts.public_url.as_ref(),
                address,
                is_public,
            ),
            probe: StoreProbe::new(Arc::clone(&commons.store)),
            backlog: BacklogReader::new(commons.store.clone()),
            request_timeout: parts.request_timeout,
            stopping: parts.stop_waiting.clone(),
            commons,
        }
    }

    /// Names people who were not reached, for a reader of these channels (`None`: of all).
    fn names(&self, channels: Option<&[ChannelId]>) -> impl Fn(Addressees) -> String + Copy {
        move |missed| self.engine.name_addressees(missed, channels)
    }
}

/// Everything, served at one address: the operator's routes, the channels' and those for everybody. `/` redirects to
/// `front_page`.
pub(crate) fn routes(app: App, front_page: Option<&'static str>, channel_routes: Vec<Router>) -> Router {
    let app = Arc::new(app);
    let public = public_routes(&app, get(health::ready), front_page, channel_routes);
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
    let of_operator = public_routes(&operator, get(health::ready), None, Vec::new()).merge(operator_routes(&operator));
    let public = public_routes(&app, get(health::status), front_page, channel_routes);
    (with_fallbacks(&app, public), with_fallbacks(&operator, of_operator))
}

fn public_routes(
    app: &Arc<App>,
    readiness: MethodRouter<Arc<App>>,
    front_page: Option<&'static str>,
    channel_routes: Vec<Router>,
) -> Router {
    let own = in_time(app, Router::new().route("/readyz", readiness)).route("/healthz", get(health::alive));
    let own = match front_page {
        Some(page) => own.route("/", get(async move || Redirect::to(page))),
        None => own,
    };
    let own = guarded(app, own).with_state(Arc::clone(app));
    let named = middleware::from_fn_with_state(Arc::clone(app), access::channel_host);
    channel_routes.into_iter().map(|routes| routes.layer(named.clone())).fold(own, Router::merge)
}

/// The routes for the operator only.
fn operator_routes(app: &Arc<App>) -> Router {
    let readers = Router::new()
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::document))
        .layer(middleware::from_fn_with_state(Arc::clone(app), access::reader));
    let own = if app.access.has_admin() {
        readers.nest("/admin/api", admin::routes(app, get(openapi::document))).merge(admin::page::routes())
    } else {
        readers
    };
    guarded(app, in_time(app, own)).with_state(Arc::clone(app))
}

/// Checks the host, and adds the common headers.
fn guarded(app: &Arc<App>, routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes
        .layer(middleware::from_fn_with_state(Arc::clone(app), access::host))
        .layer(middleware::from_fn(with_common_headers))
}

fn in_time(app: &Arc<App>, routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes.layer(middleware::from_fn_with_state(Arc::clone(app), limit_time))
}

/// Answers for paths and methods that nothing serves.
fn with_fallbacks(app: &Arc<App>, routes: Router) -> Router {
    let nothing = guarded(app, Router::new().fallback(not_found)).with_state(Arc::clone(app));
    routes.method_not_allowed_fallback(wrong_method).fallback_service(nothing)
}

async fn not_found() -> ApiError {
    ApiError::NotFound("there is nothing at this path")
}

async fn wrong_method() -> Response {
    add_common_headers(ApiError::WrongMethod.into_response())
}

/// Answers a request that takes too long with an error. Its handler continues in the background.
async fn limit_time(State(app): Shared, request: Request, next: Next) -> Response {
    let answered = tokio::spawn(next.run(request));
    match tokio::time::timeout(app.request_timeout, answered).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => ApiError::Internal.into_response(),
        Err(_) => ApiError::TooSlow.into_response(),
    }
}

async fn with_common_headers(request: Request, next: Next) -> Response {
    add_common_headers(next.run(request).await)
}

fn add_common_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    // The operator's page has its own.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    let nothing = HeaderValue::from_static("camera=(), geolocation=(), microphone=()");
    headers.insert("permissions-policy", nothing);
    response
}
