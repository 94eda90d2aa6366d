//! What a hook answers.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse, Response},
    routing,
};
use rejoinder_core::{
    Accepted, Attachment, ChannelAdapter, ChannelId, InboundEvent, Intake, IntakeError, SharedClock, StoreError,
    TurnId, TurnStatus, TurnView, Watch,
};
use rejoinder_kit::Problem;
use url::{Url, form_urlencoded};

use crate::{
    Open, ResultKeys, WebhookAdapter,
    answer::{Answer, Format},
    auth::Caller,
    body,
    counters::REQUESTS,
    inbound::{self, Context, Key},
    openapi::schema,
    prefer::Wait,
};

/// How much longer than the caller's patience its request is held: the deferral that the guard sends by
/// then is on its way, and has something to say.
const GRACE: Duration = Duration::from_secs(2);

/// When to come back after a 503.
const UNAVAILABLE_PAUSE: Duration = Duration::from_secs(5);

/// The longest `Idempotency-Key`, in bytes.
const MAX_KEY: usize = 255;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The hooks that there are, and what is left of those that there were.
pub(crate) struct Hooks {
    by_name: HashMap<String, Arc<WebhookAdapter>>,
    former: FormerHooks,
}

/// What the results of hooks that are not configured any more are read with.
pub struct FormerHooks {
    /// What opens a result.
    pub keys: ResultKeys,
    /// Where the gateway is reached from outside, for the addresses of results.
    pub public_url: Option<Url>,
    /// The clock.
    pub clock: SharedClock,
    /// A channel's view of its turns.
    pub intake: Box<dyn Fn(&ChannelId) -> Intake + Send + Sync>,
}

impl FormerHooks {
    /// The hook that `name` was, for whoever shows the key of `turn`. It may be a name that somebody tries: the turn
    /// says whether it was that hook's.
    fn hook(&self, name: &str, turn: &str, uri: &Uri) -> Option<WebhookAdapter> {
        let key = key_of(uri)?;
        turn.parse().is_ok_and(|turn| self.keys.opens(turn, &key)).then(|| WebhookAdapter::former(name, self))
    }
}

/// Serves `hooks` at `/hooks/{name}` and `/hooks/{name}/turns/{turn_id}`, and there the results of `former` ones.
///
/// Requests are held for as long as their hook waits, and two seconds: no time limit around this router may
/// be shorter. Bodies are bounded here. The query of a result's address may open that result, and does not
/// belong in a log.
pub fn router(hooks: impl IntoIterator<Item = Arc<WebhookAdapter>>, former: FormerHooks) -> Router {
    metrics::describe_counter!(REQUESTS, "Requests to hooks, by hook and HTTP status");
    let by_name = hooks.into_iter().map(|hook| (hook.channel().name().to_owned(), hook)).collect();
    Router::new()
        .route("/hooks/{name}", routing::post(ask).fallback(no_such_method))
        .route("/hooks/{name}/turns/{turn_id}", routing::get(fetch).fallback(no_such_method))
        .with_state(Arc::new(Hooks { by_name, former }))
}

/// Ask the agent.
///
/// Takes a turn in, and answers it when it is answered, or when the wait is over: then with 202 and the
/// address of the result. A turn that was taken in is answered, whatever becomes of this request.
#[utoipa::path(
    post,
    path = "/hooks/{name}",
    tag = "hooks",
    operation_id = "ask",
    params(
        ("name" = String, Path, description = "The hook", max_length = 64),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: how many seconds to wait for the answer, at most the hook's own wait; 0 does not wait", example = "wait=20", max_length = 256),
        ("Idempotency-Key" = Option<String>, Header, description = "Identifies the request: sent again, it gives the original answer", min_length = 1, max_length = 255),
        ("Accept" = Option<String>, Header, description = "`text/plain` gives the text alone", max_length = 256),
    ),
    request_body(content(
        (schema::Question = "application/json"),
        (String = "text/plain"),
        (schema::Form = "application/x-www-form-urlencoded"),
        (schema::Form = "multipart/form-data"),
    )),
    responses(
        (status = 200, description = "The answer", content((schema::Answer = "application/json"), (String = "text/plain")),
            headers(("Preference-Applied" = String), ("Idempotency-Replayed" = String))),
        (status = 202, description = "The answer comes later", content((schema::Answer = "application/json"), (String = "text/plain")),
            headers(("Location" = String, description = "The result"), ("Retry-After" = u32, description = "Seconds"), ("Preference-Applied" = String), ("Idempotency-Replayed" = String))),
        (status = 400, description = "The body is not JSON, not UTF-8 or broken, or the key is malformed", body = schema::Problem, content_type = "application/problem+json"),
        (status = 401, description = "The caller is not known", body = schema::Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such hook", body = schema::Problem, content_type = "application/problem+json"),
        (status = 405, description = "The method is not POST", body = schema::Problem, content_type = "application/problem+json"),
        (status = 408, description = "The body is too slow", body = schema::Problem, content_type = "application/problem+json"),
        (status = 409, description = "The key was used with another body", body = schema::Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = schema::Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body's type is not taken", body = schema::Problem, content_type = "application/problem+json"),
        (status = 422, description = "The message is empty or cannot be stored, a field cannot be used, or a form has too many", body = schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "Nothing can be taken in now", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("hook_token" = []), ("standard_webhooks" = []), ("hub_signature" = [])),
)]
pub(crate) async fn ask(
    State(hooks): State<Arc<Hooks>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let Some(hook) = path.ok().and_then(|Path(name)| hooks.by_name.get(&name)) else { return unknown_hook() };
    let response = hook.ask(request).await.unwrap_or_else(Problem::into_response);
    hook.counters.count(response.status());
    response
}

/// Fetch a turn's result.
///
/// The same object as the request itself was answered with, as it stands now. It stays for good; when the hook is not
/// configured any more, for whoever has the address with its key.
#[utoipa::path(
    get,
    path = "/hooks/{name}/turns/{turn_id}",
    tag = "hooks",
    operation_id = "fetch",
    params(
        ("name" = String, Path, description = "The hook", max_length = 64),
        ("turn_id" = String, Path, description = "The turn", format = "uuid"),
        ("key" = Option<String>, Query, description = "Opens this one result without the token; part of the address that a caller who signs is given", max_length = 64),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: how many seconds to wait for the final answer, at most the hook's own wait", example = "wait=20", max_length = 256),
        ("Accept" = Option<String>, Header, description = "`text/plain` gives the text alone", max_length = 256),
    ),
    responses(
        (status = 200, description = "The result, which does not change any more", content((schema::Answer = "application/json"), (String = "text/plain")),
            headers(("Preference-Applied" = String))),
        (status = 202, description = "The answer comes later", content((schema::Answer = "application/json"), (String = "text/plain")),
            headers(("Location" = String, description = "The result"), ("Retry-After" = u32, description = "Seconds"), ("Preference-Applied" = String))),
        (status = 401, description = "The caller is not known", body = schema::Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such hook or turn", body = schema::Problem, content_type = "application/problem+json"),
        (status = 405, description = "The method is not GET", body = schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "Nothing can be read now", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
    ),
    security(("hook_token" = []), ("result_key" = [])),
)]
pub(crate) async fn fetch(
    State(hooks): State<Arc<Hooks>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Response {
    let Ok(Path((name, turn))) = path else { return unknown_hook() };
    let hook = match hooks.by_name.get(&name) {
        Some(hook) => Some(Arc::clone(hook)),
        None => hooks.former.hook(&name, &turn, request.uri()).map(Arc::new),
    };
    let Some(hook) = hook else { return unknown_hook() };
    let response = hook.fetch(&turn, request).await.unwrap_or_else(Problem::into_response);
    hook.counters.count(response.status());
    response
}

async fn no_such_method(uri: Uri) -> Response {
    let allowed =
        if uri.path().contains("/turns/") { "a result is fetched with GET" } else { "a hook is asked with POST" };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "The method is another one", allowed).into_response()
}

impl WebhookAdapter {
    async fn ask(&self, request: Request) -> Result<Response, Problem> {
        let open = self.opening.get().ok_or_else(closed)?;
        let (parts, body) = request.into_parts();
        let by_token = self.auth.before_body(&parts.headers)?;
        let idempotency_key = idempotency_key(&parts.headers)?;
        let body = body::read(&parts.headers, body, self.body_limit).await?;
        let now = self.clock.now();
        let caller = match by_token {
            Some(caller) => caller,
            None => self.auth.signed(&parts.headers, &body, now)?,
        };
        let key = match caller {
            Caller::Signature { id: Some(id) } => Some(Key::WebhookId(id)),
            Caller::Signature { id: None } | Caller::Token => idempotency_key.map(Key::Idempotency),
        };
        let content_type = parts.headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
        let asked = inbound::read(content_type, &body)?;
        drop(body);
        let reader = Reader {
            hook: self,
            open: &open,
            parts: &parts,
            format: Format::read(&parts.headers),
            wait: Wait::read(&parts.headers, self.wait, self.wait),
            wants_key: caller != Caller::Token,
        };
        let event = asked.into_event(&Context {
            channel: &self.channel,
            conversation: self.conversation.as_deref(),
            key,
            wait: reader.wait.duration,
            now,
        });
        let request = key.map(|_| Requested::of(&event));
        let (accepted, watch) = take_in(&open.intake, event).await.map_err(|error| not_taken_in(&error))?;
        match accepted {
            Accepted::Turn(turn) | Accepted::Amended(turn) => Ok(match watch {
                Some(watch) => reader.first_signal(turn, watch).await,
                None => reader.accepted(turn),
            }),
            Accepted::Duplicate { turn: Some(turn), text, sender } => {
                let is_same = request.as_ref().is_none_or(|request| request.text == text && request.sender == sender);
                if !is_same {
                    return Err(key_reused(turn));
                }
                reader.replay(turn, request.as_ref(), watch).await
            }
            Accepted::Refused => Err(cannot_be_stored()),
            // Only that it came could be kept.
            Accepted::Duplicate { turn: None, text, .. }
                if request.as_ref().is_some_and(|request| request.text != text) =>
            {
                Err(cannot_be_stored())
            }
            // Kept for an operator, and owed nothing: there is nothing to say and nothing to come.
            Accepted::Kept | Accepted::Picked { .. } | Accepted::Duplicate { turn: None, .. } => {
                Ok(StatusCode::NO_CONTENT.into_response())
            }
        }
    }

    async fn fetch(&self, turn: &str, request: Request) -> Result<Response, Problem> {
        let open = self.opening.get().ok_or_else(closed)?;
        // The body, if there is one, is not looked at.
        let (parts, _) = request.into_parts();
        let turn: TurnId = turn.parse().map_err(|_| unknown_turn())?;
        let caller = self.auth.may_fetch(&parts.headers, key_of(&parts.uri).as_deref(), turn)?;
        let reader = Reader {
            hook: self,
            open: &open,
            parts: &parts,
            format: Format::read(&parts.headers),
            wait: Wait::read(&parts.headers, self.wait, Duration::ZERO),
            wants_key: caller != Caller::Token,
        };
        reader.result(turn).await
    }
}

/// The key that stands in the address of a result.
fn key_of(uri: &Uri) -> Option<Cow<'_, str>> {
    let query = form_urlencoded::parse(uri.query()?.as_bytes());
    query.into_iter().find(|(name, _)| name == "key").map(|(_, value)| value)
}

/// What a request asked, to compare with what its key was used for before.
struct Requested {
    text: String,
    sender: String,
    chat: Arc<str>,
    attachments: Vec<Attachment>,
}

impl Requested {
    fn of(event: &InboundEvent) -> Self {
        Self {
            text: event.text.clone(),
            sender: event.sender.id.clone(),
            chat: Arc::clone(&event.conversation.chat),
            attachments: event.attachments.clone(),
        }
    }
}

fn cannot_be_stored() -> Problem {
    let detail = "the message cannot be stored as it is: it is not answered, and sending it again does not help";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "cannot-be-stored", "The message cannot be stored", detail)
}

fn key_reused(turn: TurnId) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "key-reused",
        "The key was used before",
        format!("the key was used with another body, for the turn {turn}"),
    )
}

/// Whoever reads the response, and how.
struct Reader<'a> {
    hook: &'a WebhookAdapter,
    open: &'a Open,
    parts: &'a Parts,
    format: Format,
    wait: Wait,
    wants_key: bool,
}

impl Reader<'_> {
    /// Waits for a new turn's first signal: the answer, or a deferral.
    async fn first_signal(&self, turn: TurnId, watch: Watch) -> Response {
        match self.watch(watch, self.wait.duration + GRACE, |status| status != TurnStatus::Accepted).await {
            Some(view) => self.view(&view),
            None => self.accepted(turn),
        }
    }

    /// Answers a request that was sent again as the first one was, or would be by now.
    async fn replay(
        &self,
        turn: TurnId,
        request: Option<&Requested>,
        watch: Option<Watch>,
    ) -> Result<Response, Problem> {
        // Without a view there is nothing more to compare: the turn was removed since.
        let view = self.open.intake.view(turn).await.map_err(|error| unreadable(&error))?;
        let is_same = request.zip(view.as_ref()).is_none_or(|(request, view)| {
            view.conversation.chat == request.chat && view.attachments == request.attachments
        });
        if !is_same {
            return Err(key_reused(turn));
        }
        let mut response = match (view, watch) {
            (Some(view), _) if view.status != TurnStatus::Accepted => self.view(&view),
            (_, Some(watch)) => self.first_signal(turn, watch).await,
            (_, None) => self.accepted(turn),
        };
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
        Ok(response)
    }

    /// The result of a turn: at once, or when it is final, or when the wait is over.
    async fn result(&self, turn: TurnId) -> Result<Response, Problem> {
        // Made before the store is read, so that nothing falls in between.
        let watch = (!self.wait.duration.is_zero()).then(|| self.open.intake.watch(turn));
        let view = self.open.intake.view(turn).await.map_err(|error| unreadable(&error))?;
        let view = view.filter(|view| view.conversation.channel == self.hook.channel).ok_or_else(unknown_turn)?;
        let later = match watch {
            Some(watch) if !view.status.is_final() => self.watch(watch, self.wait.duration, TurnStatus::is_final).await,
            _ => None,
        };
        Ok(self.view(later.as_deref().unwrap_or(&view)))
    }

    /// Waits until `is_enough` holds, for at most `patience`; then gives the latest view, if there was any.
    async fn watch(
        &self,
        mut watch: Watch,
        patience: Duration,
        is_enough: impl Fn(TurnStatus) -> bool,
    ) -> Option<Arc<TurnView>> {
        let mut alarm = self.hook.clock.sleep(patience);
        let mut latest = None;
        loop {
            tokio::select! {
                biased;
                view = watch.changed() => {
                    let is_enough = is_enough(view.status);
                    latest = Some(view);
                    if is_enough {
                        return latest;
                    }
                }
                () = &mut alarm => return latest,
                () = self.hook.hang_up.cancelled() => return latest,
            }
        }
    }

    fn accepted(&self, turn: TurnId) -> Response {
        let url = self.result_url(turn);
        self.write(&Answer::accepted(turn, Some(&url)))
    }

    fn view(&self, view: &TurnView) -> Response {
        let url = (!view.status.is_final()).then(|| self.result_url(view.turn_id));
        let answer = Answer::of(view, url.as_deref(), self.hook.clock.now());
        if answer.is_final() {
            self.open.intake.fetched(view.turn_id);
        }
        self.write(&answer)
    }

    fn write(&self, answer: &Answer<'_>) -> Response {
        let mut response = answer.respond(self.format);
        if let Some(applied) = self.wait.applied() {
            response.headers_mut().insert(PREFERENCE_APPLIED, applied);
        }
        response
    }

    fn result_url(&self, turn: TurnId) -> String {
        let key = self.wants_key.then(|| self.hook.auth.result_key(turn));
        self.hook.urls.of(turn, key.as_deref(), &self.parts.uri, &self.parts.headers)
    }
}

/// Takes an event in, and watches its turn if the caller waits.
async fn take_in(intake: &Intake, event: InboundEvent) -> Result<(Accepted, Option<Watch>), IntakeError> {
    match event.patience {
        Some(_) => intake.accept_and_watch(event).await,
        None => intake.accept(event).await.map(|accepted| (accepted, None)),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| (1..=MAX_KEY).contains(&key.len()));
    key.map(Some).ok_or_else(|| {
        let detail = format!("Idempotency-Key must have 1 to {MAX_KEY} visible ASCII characters");
        Problem::new(StatusCode::BAD_REQUEST, "bad-key", "The key cannot be used", detail)
    })
}

fn unknown_hook() -> Response {
    // One label for all of them: names that somebody tries are not ours to keep.
    metrics::counter!(REQUESTS, "hook" => "unknown", "status" => "404").increment(1);
    Problem::new(StatusCode::NOT_FOUND, "unknown-hook", "There is no such hook", "no hook has this name")
        .into_response()
}

fn unknown_turn() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown-turn", "There is no such turn", "this hook has no turn with this id")
}

fn closed() -> Problem {
    unavailable("the gateway is starting or stopping")
}

fn not_taken_in(error: &IntakeError) -> Problem {
    match error {
        IntakeError::ShuttingDown => closed(),
        IntakeError::Store(error) => unreadable(error),
    }
}

fn unreadable(error: &StoreError) -> Problem {
    match error {
        // The store says so itself, once.
        StoreError::Unavailable(_) => tracing::debug!(%error, "a hook's request was refused"),
        StoreError::Corrupt(_) | StoreError::Failed(_) => tracing::error!(%error, "a hook's request was refused"),
    }
    unavailable("nothing can be stored or read at the moment; what was taken in before is kept")
}

fn unavailable(detail: &'static str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Nothing can be taken in now", detail)
        .retry_after(UNAVAILABLE_PAUSE)
}
