//! The HTTP routes of the APIs.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue},
    middleware,
    response::{IntoResponse, Response},
    routing,
};
use rejoinder_core::{Accepted, ChannelAdapter, TurnId, TurnStatus, TurnView, Watch};
use rejoinder_kit::{
    BodyRoom, Peer,
    asking::{Fingerprint, IDEMPOTENCY_REPLAYED, asked_language, caller_trace, idempotency_key, wait_for},
    read_body, uncached, with_links,
};

use crate::{
    CompletionsAdapter, OperatorTokens,
    access::TokenHolder,
    answer::{Chunk, Completion, turn_of},
    caller::Caller,
    error::ApiError,
    inbound::{self, Context, Limits},
    models::{Model, ModelList},
    schema,
    stream::Stream,
};

/// OpenAI's libraries show it in their errors.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// One API and who may use it.
pub(crate) struct Api {
    pub(crate) adapter: Arc<CompletionsAdapter>,
    operators: OperatorTokens,
}

type Shared = State<Arc<Api>>;

/// Serves an API. `operators` are the tokens that open it, beside its own.
///
/// A request is held for the channel's wait plus two seconds, so a time limit around this router must be longer. Bodies are
/// limited here. No other origin may use it from a browser: there are no CORS headers.
pub fn router(adapter: Arc<CompletionsAdapter>, operators: OperatorTokens) -> Router {
    let path = adapter.path.clone();
    let routes = Router::new()
        .route("/chat/completions", routing::post(create).fallback(wrong_method))
        .route("/chat/completions/{id}", routing::get(retrieve).fallback(wrong_method))
        .route("/models", routing::get(list_models).fallback(wrong_method))
        .route("/models/{*id}", routing::get(show_model).fallback(wrong_method))
        .route("/", routing::any(nothing_here))
        .route("/{*rest}", routing::any(nothing_here))
        .layer(middleware::from_fn(uncached))
        .with_state(Arc::new(Api { adapter, operators }));
    Router::new().nest(&path, routes)
}

async fn wrong_method() -> ApiError {
    ApiError::wrong_method()
}

async fn nothing_here() -> ApiError {
    ApiError::nothing_here()
}

/// Ask an agent.
///
/// Starts a turn with the last message, and returns its answer. Accepts what OpenAI's API accepts; options that only shape an
/// answer are ignored. An accepted turn is answered even if this request is aborted.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    tag = "completions",
    operation_id = "create_chat_completion",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Identifies the request: repeating it gives the original answer", min_length = 1, max_length = 255),
        ("Accept-Language" = Option<String>, Header, description = "The first language in it is that of the person"),
        ("traceparent" = Option<String>, Header, description = "The trace that the turn belongs to (W3C Trace Context)", max_length = 256),
        ("tracestate" = Option<String>, Header, description = "Is passed on to the agent", max_length = 512),
    ),
    request_body(content = schema::Request),
    responses(
        (status = 200, description = "The answer; with `stream` its chunks as server-sent events, the last of which is `[DONE]`",
            content((Completion = "application/json"), (Chunk = "text/event-stream")),
            headers(("x-request-id" = String, description = "The turn"), ("Idempotency-Replayed" = String))),
        (status = 400, description = "The body is broken, or asks for what there is not", body = schema::Error),
        (status = 401, description = "The token is missing or wrong", body = schema::Error),
        (status = 403, description = "The token may not run agents", body = schema::Error),
        (status = 404, description = "There is no such model", body = schema::Error),
        (status = 408, description = "The body is too slow", body = schema::Error),
        (status = 409, description = "The key was already used with another message, or no answer is owed", body = schema::Error),
        (status = 410, description = "The key was used before, and the answer was removed", body = schema::Error),
        (status = 413, description = "The body is too large", body = schema::Error),
        (status = 415, description = "The body is encoded", body = schema::Error),
        (status = 422, description = "The message cannot be stored", body = schema::Error),
        (status = 429, description = "More messages than the limits allow, or too many wrong tokens from this address", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The gateway cannot accept messages now", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("api_token" = [])),
)]
pub(crate) async fn create(State(api): Shared, request: Request) -> Result<Response, ApiError> {
    let adapter = &api.adapter;
    let context = adapter.context.get().ok_or_else(ApiError::not_running)?;
    let (parts, body) = request.into_parts();
    let peer = Peer::of(&parts.extensions);
    let holder = api.identify(&parts.headers, peer).await?;
    let key = idempotency_key(&parts.headers)?;
    let Limits { body: plain, files } = adapter.limits;
    let mut room = BodyRoom::new(context.intake.file_share().of_peer(peer.network()), plain);
    let see = |part: &[u8]| room.add(part.len());
    let body = read_body(&parts.headers, body, plain + files.encoded_max(), adapter.body_timeout, see).await?;
    let question = inbound::read(&body, &adapter.models, adapter.limits)?;
    drop(body);
    let caller = Caller {
        adapter: Arc::clone(adapter),
        context: Arc::clone(&context),
        model: question.model.clone(),
        wants_usage: question.wants_usage,
        ignored: question.ignored.clone(),
    };
    let streams = question.streams;
    let event = question.into_event(&Context {
        channel: adapter.channel(),
        holder: &holder,
        key,
        wait: adapter.wait,
        trace: caller_trace(&parts.headers),
        language: asked_language(&parts.headers),
        now: adapter.clock.now(),
    });
    let request = key.map(|_| Fingerprint::of(&event));
    let (accepted, watch) = context.intake.accept_and_watch(event).await?;
    drop(room);
    let (turn, watch, is_replayed) = match (accepted, watch) {
        (Accepted::Turn(turn) | Accepted::Answers { turn, .. } | Accepted::Amended(turn), Some(watch)) => {
            (turn, watch, false)
        }
        (Accepted::Duplicate { turn: Some(turn), message: Some(earlier) }, Some(watch)) => {
            if !request.as_ref().is_none_or(|request| request.says(&earlier)) {
                return Err(ApiError::key_reused(turn));
            }
            (turn, watch, true)
        }
        (Accepted::Limited { retry_after }, _) => return Err(ApiError::over_limit(retry_after)),
        (Accepted::Duplicate { turn: Some(turn), message: None }, _) => return Err(ApiError::removed(turn)),
        // Of a message that the store refused before, only the key is stored.
        (Accepted::Refused | Accepted::Duplicate { turn: None, .. }, _) => return Err(ApiError::cannot_be_stored()),
        _ => return Err(ApiError::not_owed()),
    };
    let view = if is_replayed { context.intake.view(turn).await? } else { None };
    if let (Some(request), Some(view)) = (&request, &view)
        && !request.is_of(view)
    {
        return Err(ApiError::key_reused(turn));
    }
    let mut response = caller.answer(turn, watch, view, streams).await?;
    if is_replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Fetch an answer.
///
/// Returns the same object as the request itself, in its current state, until the turn is removed (`retention`). Only who has
/// the token that asked may fetch it.
#[utoipa::path(
    get,
    path = "/v1/chat/completions/{id}",
    tag = "completions",
    operation_id = "get_chat_completion",
    params(("id" = String, Path, description = "The id of the completion: `chatcmpl-` and the turn")),
    responses(
        (status = 200, description = "The answer, or while it is not there the text that says so; see `rejoinder.status`", body = Completion),
        (status = 401, description = "The token is missing or wrong", body = schema::Error),
        (status = 403, description = "The token may not run agents", body = schema::Error),
        (status = 404, description = "There is no such completion, or another token asked for it", body = schema::Error),
        (status = 429, description = "Too many wrong tokens came from this address", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The gateway cannot read answers now", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("api_token" = [])),
)]
pub(crate) async fn retrieve(
    State(api): Shared,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let adapter = &api.adapter;
    let context = adapter.context.get().ok_or_else(ApiError::not_running)?;
    let holder = api.identify(request.headers(), Peer::of(request.extensions())).await?;
    let turn = id.ok().and_then(|Path(id)| turn_of(&id)).ok_or_else(ApiError::unknown_completion)?;
    let view = context.intake.view(turn).await?.filter(|view| holder.has(&view.conversation.chat));
    let view = view.ok_or_else(ApiError::unknown_completion)?;
    let answered_by = view.shown.as_ref().and_then(|shown| shown.agent.clone());
    let model = answered_by.unwrap_or_else(|| context.intake.agent()).to_string();
    let caller = Caller { adapter: Arc::clone(adapter), context, model, wants_usage: true, ignored: Vec::new() };
    caller.whole(turn, Some(Arc::new(view))).await
}

/// List the models.
///
/// Each agent that may be chosen is a model, and so is each of its models: `main` and `main/fast`.
#[utoipa::path(
    get,
    path = "/v1/models",
    tag = "completions",
    operation_id = "list_models",
    responses(
        (status = 200, description = "The models", body = ModelList),
        (status = 401, description = "The token is missing or wrong", body = schema::Error),
        (status = 403, description = "The token may not run agents", body = schema::Error),
        (status = 429, description = "Too many wrong tokens came from this address", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The gateway is starting or stopping, or cannot read tokens now", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("api_token" = [])),
)]
pub(crate) async fn list_models(State(api): Shared, request: Request) -> Result<Response, ApiError> {
    let created = api.since(request.headers(), Peer::of(request.extensions())).await?;
    Ok(Json(ModelList::of(&api.adapter.models, created)).into_response())
}

/// Show a model.
#[utoipa::path(
    get,
    path = "/v1/models/{id}",
    tag = "completions",
    operation_id = "get_model",
    params(("id" = String, Path, description = "The model")),
    responses(
        (status = 200, description = "The model", body = Model),
        (status = 401, description = "The token is missing or wrong", body = schema::Error),
        (status = 403, description = "The token may not run agents", body = schema::Error),
        (status = 404, description = "There is no such model", body = schema::Error),
        (status = 429, description = "Too many wrong tokens came from this address", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The gateway is starting or stopping, or cannot read tokens now", body = schema::Error,
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("api_token" = [])),
)]
pub(crate) async fn show_model(
    State(api): Shared,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let created = api.since(request.headers(), Peer::of(request.extensions())).await?;
    let Path(id) = id.map_err(|_| ApiError::nothing_here())?;
    api.adapter.models.find(&id).ok_or_else(|| ApiError::unknown_model(&id))?;
    Ok(Json(Model::new(id, created)).into_response())
}

impl Api {
    async fn identify(&self, headers: &HeaderMap, peer: Peer) -> Result<TokenHolder, ApiError> {
        self.adapter.access.identify(headers, peer, &self.operators).await
    }

    /// Since when the channel runs, in seconds since 1970, for a caller who may ask.
    async fn since(&self, headers: &HeaderMap, peer: Peer) -> Result<i64, ApiError> {
        let context = self.adapter.context.get().ok_or_else(ApiError::not_running)?;
        self.identify(headers, peer).await?;
        Ok(context.since.as_millis() / 1000)
    }
}

impl Caller {
    /// The response to a question: the whole answer, or a stream of it. `view` is the turn's state, if it was asked before.
    async fn answer(
        mut self,
        turn: TurnId,
        watch: Watch,
        view: Option<TurnView>,
        streams: bool,
    ) -> Result<Response, ApiError> {
        let is_repeated = view.is_some();
        if streams {
            self.name_agent_of(view.as_ref());
            return Ok(with_turn(Stream::begin(self, turn, watch, view.map(Arc::new)).into_response(), turn));
        }
        let view = match view {
            Some(view) if view.status.is_final() => Some(Arc::new(view)),
            view => {
                let (clock, stop) = (&self.adapter.clock, &self.adapter.stop_waiting);
                let ended = wait_for(watch, TurnStatus::is_final, self.patience(), clock, stop).await;
                ended.or(view.map(Arc::new))
            }
        };
        if is_repeated {
            self.name_agent_of(view.as_deref());
        }
        self.whole(turn, view).await
    }

    async fn whole(&self, turn: TurnId, view: Option<Arc<TurnView>>) -> Result<Response, ApiError> {
        let view = view.map(|view| with_links(&self.context.intake, view, &self.adapter.base));
        let view = view.as_deref();
        let answer = self.read(turn, view);
        // Clients expect it in every answer that is not streamed.
        let usage = self.usage(turn).await.unwrap_or_default();
        self.note_read(turn, view.map(|view| view.status));
        let created = view.map_or_else(|| self.adapter.clock.now(), |view| view.at).as_millis() / 1000;
        Ok(with_turn(Json(Completion::new(created, &self.model, &answer, usage)).into_response(), turn))
    }
}

fn with_turn(mut response: Response, turn: TurnId) -> Response {
    let id = HeaderValue::try_from(turn.to_string()).expect("an id is valid in a header");
    response.headers_mut().insert(REQUEST_ID, id);
    response
}
