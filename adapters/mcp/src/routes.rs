//! `/mcp`: who may call, and how much they may send.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    middleware,
    response::{IntoResponse, Response},
    routing::any,
};
use rejoinder_core::json_error;
use rejoinder_kit::{Guesses, Peer, Problem, bearer, read_body, uncached};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::{
    runs::{Opened, Runs},
    server::ToolServer,
};

/// Where the server is.
pub const PATH: &str = "/mcp";

/// Where wrong tokens are counted.
const SURFACE: &str = "mcp";

/// The largest body, in bytes: room for a long message to send.
const MAX_BODY: usize = 1 << 20;

/// The same of a call with a file. A run has one of them at a time.
const MAX_LARGE_BODY: usize = 24 << 20;

/// What [`routes`] needs.
pub struct RouteSettings {
    /// The runs whose tokens open it.
    pub runs: Arc<Runs>,
    /// Counts wrong tokens.
    pub guesses: Arc<Guesses>,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// The origins from which pages may call, beside those of this machine: that of the public URL.
    pub origins: Vec<String>,
    /// Cancelled when the gateway stops: callers that still wait are let go.
    pub stop_waiting: CancellationToken,
}

struct Door {
    runs: Arc<Runs>,
    guesses: Arc<Guesses>,
    body_timeout: Duration,
    service: StreamableHttpService<ToolServer, NeverSessionManager>,
    stop_waiting: CancellationToken,
}

/// The route [`PATH`], with whole paths. It checks the token and the `Origin`, and limits bodies. The `Host` is to be checked around it.
pub fn routes(settings: RouteSettings) -> Router {
    let RouteSettings { runs, guesses, body_timeout, origins, stop_waiting } = settings;
    let local = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(ToOwned::to_owned);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_allowed_origins(local.into_iter().chain(origins))
        .with_max_request_body_bytes(MAX_LARGE_BODY);
    let service = StreamableHttpService::new(|| Ok(ToolServer), Arc::default(), config);
    let door = Arc::new(Door { runs, guesses, body_timeout, service, stop_waiting });
    Router::new().route(PATH, any(handle)).layer(middleware::from_fn(uncached)).with_state(door)
}

async fn handle(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    match door.admit(&mut parts, body).await {
        Ok((body, _large)) => tokio::select! {
            biased;
            response = door.service.handle(Request::from_parts(parts, body)) => response.map(Body::new),
            () = door.stop_waiting.cancelled() => stopping().into_response(),
        },
        Err(problem) => problem.into_response(),
    }
}

impl Door {
    /// Finds the run of a request, and reads its body, with the permit of a large one. The methods that need a run are refused one by one
    /// if there is none.
    async fn admit(&self, parts: &mut Parts, body: Body) -> Result<(Body, Option<OwnedSemaphorePermit>), Problem> {
        let run = match self.opened(parts)? {
            Opened::Run(run) => Some(run),
            Opened::NoRun => None,
        };
        if let Some(run) = &run {
            parts.extensions.insert(run.clone());
        }
        if parts.method != Method::POST {
            return Ok((Body::empty(), None));
        }
        let is_large = body.size_hint().upper().is_none_or(|size| size > MAX_BODY as u64);
        let large = match run.filter(|_| is_large) {
            Some(run) => run.permit_for_large().await,
            None => None,
        };
        let limit = if large.is_some() { MAX_LARGE_BODY } else { MAX_BODY };
        let body = read_body(&parts.headers, body, limit, self.body_timeout, |_| Ok(())).await?;
        // The server would answer that its type is not supported.
        serde_json::from_slice::<&RawValue>(&body).map_err(|error| not_json(&error))?;
        Ok((body.into(), large))
    }

    /// Nobody waits after wrong tokens: they are too long to be guessed, and an agent that calls after the end of its run must not hold
    /// up others at its address.
    fn opened(&self, parts: &Parts) -> Result<Opened, Problem> {
        let peer = Peer::of(&parts.extensions);
        let Some(sent) = bearer(&parts.headers) else {
            self.guesses.missing(peer, SURFACE);
            return Err(unauthorized("send `mcp.token` of the turn as `Authorization: Bearer TOKEN`"));
        };
        self.runs.of(sent).ok_or_else(|| {
            self.guesses.wrong(peer, SURFACE);
            unauthorized("this token is of no turn that runs: each run has its own, which ends with it")
        })
    }
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "not-json", "Bad request: the body is not JSON", json_error(error))
        .at(error.line(), error.column())
}

fn stopping() -> Problem {
    let detail = "the gateway stops. The turn runs again when it has started";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "Service Unavailable: the gateway is stopping", detail)
        .with_header(header::RETRY_AFTER, HeaderValue::from_static("5"))
}

fn unauthorized(detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized: the run is not known", detail)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}
