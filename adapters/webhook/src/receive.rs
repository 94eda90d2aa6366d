//! The HTTP routes of hooks.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse, Response},
    routing,
};
use rejoinder_core::{
    Accepted, ChannelAdapter, ChannelId, EventId, InboundEvent, Intake, IntakeError, NewsError, SharedClock,
    StoreError, Timestamp, TurnId, TurnStatus, TurnView, Watch, in_words,
};
use rejoinder_kit::{
    BodyRoom, Format, Guesses, Peer, Problem, TooManyGuesses,
    asking::{
        BadKey, Fingerprint, GRACE, IDEMPOTENCY_REPLAYED, asked_language, caller_trace, idempotency_key, wait_for,
    },
    bearer, read_body, with_links,
};
use url::{Url, form_urlencoded};

use crate::{
    HookContext, ResultKeys, WebhookAdapter,
    answer::{Answer, HookTexts, MARKDOWN},
    auth::{AuthError, Caller, Proof, delivery_id},
    body,
    calls::{Call, CallEnd},
    counters::REQUESTS,
    events,
    inbound::{self, Context, Key, unprocessable},
    prefer::Wait,
    schema, speaking,
};

/// The `Retry-After` of a 503.
const UNAVAILABLE_PAUSE: Duration = Duration::from_secs(5);

/// How many bytes the files of an answer have at most that are read out. An export has one mebibyte.
const MAX_TEXTS: usize = 2 << 20;

/// What a key of a result opens whose hook is not configured, in the log and the metrics.
const FORMER: &str = "webhook.former";

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The configured hooks, and what is needed to serve the results of former ones.
pub(crate) struct Hooks {
    by_name: HashMap<String, Arc<WebhookAdapter>>,
    former: FormerHooks,
}

/// Serves the results of hooks that are no longer configured.
pub struct FormerHooks {
    /// Open the results.
    pub keys: ResultKeys,
    /// Slows down who guesses a key.
    pub guesses: Arc<Guesses>,
    /// The gateway's public URL, for the URLs of results.
    pub public_url: Option<Url>,
    pub texts: HookTexts,
    pub clock: SharedClock,
    /// Gives a channel's intake, through which its turns are read.
    pub intake: Box<dyn Fn(&ChannelId) -> Intake + Send + Sync>,
}

impl FormerHooks {
    /// The former hook `name`, if the request has the key of `turn`. Such a hook need not have existed:
    /// `Responder::result` checks that the turn belongs to it.
    async fn hook(
        &self,
        name: &str,
        turn: &str,
        uri: &Uri,
        peer: Peer,
    ) -> Result<Option<WebhookAdapter>, TooManyGuesses> {
        let Some((key, turn)) = key_of(uri).zip(turn.parse().ok()) else { return Ok(None) };
        let opens = self.keys.opens(turn, &key);
        proof_turn(&self.guesses, peer, FORMER, opens).await?;
        if opens {
            return Ok(Some(WebhookAdapter::former(name, self)));
        }
        self.guesses.wrong(peer, FORMER);
        Ok(None)
    }
}

/// Waits until it may be told whether a signature or a key of a result is right. A right one does not wait if `peer` has sent one
/// before: somebody else at its address may guess.
async fn proof_turn(guesses: &Guesses, peer: Peer, surface: &str, is_right: bool) -> Result<(), TooManyGuesses> {
    // Each proves another text, so this stands for all of them. No token is that short.
    const PROOF: &[u8] = b"proof";
    if is_right {
        guesses.turn_of(peer, surface, PROOF).await?;
        guesses.right(peer, surface, PROOF);
        return Ok(());
    }
    guesses.turn(peer, surface).await
}

/// Serves `hooks` at `/hooks/{name}` and `/hooks/{name}/turns/{turn_id}`, where it also serves the results of `former` ones.
///
/// A request is held for its hook's wait plus two seconds, so a time limit around this router must be longer. Bodies are
/// limited here. Do not log the query of a result's URL: it may contain the key that opens the result.
pub fn router(hooks: impl IntoIterator<Item = Arc<WebhookAdapter>>, former: FormerHooks) -> Router {
    let by_name = hooks.into_iter().map(|hook| (hook.channel().name().to_owned(), hook)).collect();
    Router::new()
        .route("/hooks/{name}", routing::post(ask).fallback(no_such_method))
        .route("/hooks/{name}/turns/{turn_id}", routing::get(fetch).fallback(no_such_method))
        .with_state(Arc::new(Hooks { by_name, former }))
}

/// Ask the agent.
///
/// Starts a turn and returns its answer. If the wait ends first, the response is 202 with the URL of the result. An
/// accepted turn is answered even if this request is aborted.
///
/// The body may also be a recording, whose words are then the message, or a picture.
///
/// A hook with `deliver_to` takes events: any JSON, text or form. The response to one is 202 with the ids of the turns, which
/// are not fetched here.
#[utoipa::path(
    post,
    path = "/hooks/{name}",
    tag = "hooks",
    operation_id = "ask",
    params(
        ("name" = String, Path, description = "The hook", max_length = 64),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: how many seconds to wait for the answer, at most the hook's own wait; 0 does not wait", example = "wait=20", max_length = 256),
        ("Idempotency-Key" = Option<String>, Header, description = "Identifies the request: repeating it gives the original answer", min_length = 1, max_length = 255),
        ("Accept" = Option<String>, Header, description = "`text/plain` returns only the text, `audio/mpeg`, `audio/ogg` or `audio/wav` the text spoken", max_length = 256),
        ("Accept-Language" = Option<String>, Header, description = "The first language in it is that of the person, unless the body names one"),
        ("traceparent" = Option<String>, Header, description = "The trace that the turn belongs to (W3C Trace Context)", max_length = 256),
        ("tracestate" = Option<String>, Header, description = "Is passed on to the agent", max_length = 512),
    ),
    request_body(content(
        (schema::Question = "application/json"),
        (String = "text/plain"),
        (schema::Form = "application/x-www-form-urlencoded"),
        (schema::Form = "multipart/form-data"),
        (String = "audio/*"),
        (String = "image/*"),
    )),
    responses(
        (status = 200, description = "The answer", content((Answer = "application/json"), (String = "text/plain"), (String = "audio/*")),
            headers(("Preference-Applied" = String), ("Idempotency-Replayed" = String))),
        (status = 202, description = "The answer is not there yet", content((Answer = "application/json"), (String = "text/plain"), (String = "audio/*")),
            headers(("Location" = String, description = "The result"), ("Retry-After" = u32, description = "Seconds"), ("Preference-Applied" = String), ("Idempotency-Replayed" = String))),
        (status = 400, description = "The body is not JSON, not UTF-8 or broken, or the key is malformed", body = schema::Problem, content_type = "application/problem+json"),
        (status = 401, description = "Unauthorized: the caller is not known", body = schema::Problem, content_type = "application/problem+json"),
        (status = 404, description = "Not found: there is no such hook", body = schema::Problem, content_type = "application/problem+json"),
        (status = 405, description = "The method is not POST", body = schema::Problem, content_type = "application/problem+json"),
        (status = 408, description = "The body is too slow", body = schema::Problem, content_type = "application/problem+json"),
        (status = 204, description = "The event of a hook with `deliver_to` tells nothing"),
        (status = 409, description = "The key was already used with another body, or the event reaches nobody", body = schema::Problem, content_type = "application/problem+json"),
        (status = 410, description = "The key was used before, and the answer was removed", body = schema::Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = schema::Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body's type or encoding is not supported", body = schema::Problem, content_type = "application/problem+json"),
        (status = 422, description = "The message is empty or cannot be stored, a field cannot be used, or a form has too many fields", body = schema::Problem, content_type = "application/problem+json"),
        (status = 429, description = "The sender has sent more messages than the limits allow, or too many wrong secrets came from this address", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The gateway cannot accept messages now", body = schema::Problem, content_type = "application/problem+json",
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
    let mut call = Some(Call::arrived(request.headers(), hook.clock.now()));
    let answer = hook.ask(request, &mut call).await;
    // One that opened a turn is noted by now.
    if let Some(call) = call {
        hook.calls.note(call.ended(CallEnd::of(&answer)));
    }
    let response = answer.unwrap_or_else(Problem::into_response);
    hook.counters.count(response.status());
    response
}

/// Fetch a turn's result.
///
/// Returns the same object as the request itself, in its current state, until the turn is removed (`retention`). Once the hook is
/// no longer configured, only a URL with a key still opens it.
#[utoipa::path(
    get,
    path = "/hooks/{name}/turns/{turn_id}",
    tag = "hooks",
    operation_id = "fetch",
    params(
        ("name" = String, Path, description = "The hook", max_length = 64),
        ("turn_id" = String, Path, description = "The turn", format = "uuid"),
        ("key" = Option<String>, Query, description = "Opens this one result without the token; part of the URL that a caller who signs receives", max_length = 64),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: how many seconds to wait for the final answer, at most the hook's own wait", example = "wait=20", max_length = 256),
        ("Accept" = Option<String>, Header, description = "`text/plain` returns only the text, `audio/mpeg`, `audio/ogg` or `audio/wav` the text spoken", max_length = 256),
    ),
    responses(
        (status = 200, description = "The final result", content((Answer = "application/json"), (String = "text/plain"), (String = "audio/*")),
            headers(("Preference-Applied" = String))),
        (status = 202, description = "The answer is not there yet", content((Answer = "application/json"), (String = "text/plain"), (String = "audio/*")),
            headers(("Location" = String, description = "The result"), ("Retry-After" = u32, description = "Seconds"), ("Preference-Applied" = String))),
        (status = 401, description = "Unauthorized: the caller is not known", body = schema::Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such hook or turn", body = schema::Problem, content_type = "application/problem+json"),
        (status = 405, description = "The method is not GET", body = schema::Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong secrets came from this address", body = schema::Problem, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The gateway cannot read results now", body = schema::Problem, content_type = "application/problem+json",
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
        None => match hooks.former.hook(&name, &turn, request.uri(), Peer::of(request.extensions())).await {
            Ok(hook) => hook.map(Arc::new),
            Err(refusal) => return Problem::from(refusal).into_response(),
        },
    };
    let Some(hook) = hook else { return unknown_hook() };
    let response = hook.fetch(&turn, request).await.unwrap_or_else(Problem::into_response);
    hook.counters.count(response.status());
    response
}

async fn no_such_method(uri: Uri) -> Response {
    let allowed =
        if uri.path().contains("/turns/") { "fetch a result with GET" } else { "send messages to a hook with POST" };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Method not allowed", allowed).into_response()
}

impl WebhookAdapter {
    /// Responds to a call. One that opens a turn is taken and noted before its answer is waited for.
    async fn ask(&self, request: Request, call: &mut Option<Call>) -> Result<Response, Problem> {
        let context = self.hook_context.get().ok_or_else(not_running)?;
        let (parts, body) = request.into_parts();
        let peer = Peer::of(&parts.extensions);
        let proof = self.proof(&parts.headers, peer).await?;
        let idempotency_key = idempotency_key(&parts.headers).map_err(bad_key)?;
        let content_type = parts.headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
        let mut room = BodyRoom::new(context.intake.file_share(), self.body_limit);
        let (body, caller) = self.read(&parts, body, self.limit_of(content_type), proof, &mut room).await?;
        let key = match caller {
            Caller::Signature(key) => Some(key),
            // A hub signs equal bodies equally, and they may be about two things.
            Caller::Hub => {
                let delivery = delivery_id(&parts.headers).map(Key::Delivery);
                delivery.or(idempotency_key.map(Key::Idempotency))
            }
            Caller::Token | Caller::ResultKey => idempotency_key.map(Key::Idempotency),
        };
        if let Some(events) = &self.events {
            let key = key.map(|key| key.external_id(&self.channel));
            let key = key.unwrap_or_else(|| EventId::new(self.clock.now()).to_string());
            let Some(news) = events.read(content_type, &parts.headers, &body, &key)? else {
                return Ok(StatusCode::NO_CONTENT.into_response());
            };
            drop(body);
            let reached = context.intake.report(news).await.map_err(news_problem)?;
            return Ok(events::taken(reached));
        }
        let message = inbound::read(content_type, &body, self.files)?;
        message.check_command(|| context.intake.commands())?;
        drop(body);
        let (format, wait) = (self.format(&parts.headers), Wait::read(&parts.headers, self.wait, self.wait));
        let deadline = self.deadline(wait);
        let patience = speaking::patience(format, wait.duration);
        let (message, patience) = self.heard(message, patience, &context.intake).await;
        let reader = Responder {
            hook: self,
            context: &context,
            parts: &parts,
            format,
            wait,
            patience,
            deadline,
            wants_key: caller != Caller::Token,
        };
        let event = message.into_event(&Context {
            channel: &self.channel,
            conversation: self.conversation.as_deref(),
            key,
            wait: patience,
            trace: caller_trace(&parts.headers),
            language: asked_language(&parts.headers),
            now: self.clock.now(),
        });
        let request = key.map(|_| Fingerprint::of(&event));
        let (accepted, watch) = accept(&context.intake, event).await.map_err(|error| intake_problem(&error))?;
        drop(room);
        if let Some((turn, call)) = accepted.opened().and_then(|turn| Some((turn, call.take()?))) {
            self.calls.note(call.ended(CallEnd::Turn(turn)));
        }
        match accepted {
            Accepted::Turn(turn) | Accepted::Answers { turn, .. } | Accepted::Amended(turn) => Ok(match watch {
                Some(watch) => reader.first_signal(turn, watch).await?,
                None => reader.accepted(turn).await,
            }),
            Accepted::Duplicate { turn: Some(turn), message: Some(earlier) } => {
                if !request.as_ref().is_none_or(|request| request.says(&earlier)) {
                    return Err(key_reused(turn));
                }
                reader.replay(turn, request.as_ref(), watch).await
            }
            Accepted::Limited { retry_after } => Err(over_limit(retry_after)),
            Accepted::Duplicate { turn: Some(turn), message: None } => Err(removed(turn)),
            // Of a message that the store refused before, only the key is stored.
            Accepted::Refused | Accepted::Duplicate { turn: None, .. } => Err(cannot_be_stored()),
            // No answer is owed, and none will come.
            Accepted::Kept | Accepted::Picked { .. } | Accepted::Expired { .. } => {
                Ok(StatusCode::NO_CONTENT.into_response())
            }
        }
    }

    /// What the caller wants: no sound if nothing speaks.
    fn format(&self, headers: &HeaderMap) -> Format {
        match Format::read(headers) {
            Format::Sound(_) if self.speech.synthesizer.is_none() => Format::Text,
            format => format,
        }
    }

    /// Until when a caller waits for a response; of one who does not wait for the answer, as if they did.
    fn deadline(&self, wait: Wait) -> Timestamp {
        let wait = if wait.duration.is_zero() { self.wait } else { wait.duration };
        self.clock.now() + wait + GRACE
    }

    /// The largest body of this type.
    fn limit_of(&self, content_type: Option<&str>) -> usize {
        let has_files = self.events.is_none() && inbound::has_files(content_type);
        self.body_limit + if has_files { self.files.max } else { 0 }
    }

    /// Reads the body, and authenticates by it if the headers are not enough.
    async fn read<'a>(
        &self,
        parts: &'a Parts,
        body: Body,
        limit: usize,
        proof: Proof<'a>,
        room: &mut BodyRoom,
    ) -> Result<(Bytes, Caller<'a>), Problem> {
        let (peer, patience) = (Peer::of(&parts.extensions), self.body_timeout);
        match proof {
            Proof::Token => {
                let body = read_body(&parts.headers, body, limit, patience, |part| room.add(part.len())).await?;
                // Beside a signature that could hold, a wrong token is counted after its body. So of many requests whose
                // bodies come late, this one may not tell at once that its token was right.
                self.token_turn(&parts.headers, peer).await?;
                if let Some(token) = bearer(&parts.headers) {
                    self.guesses.right(peer, self.channel.as_str(), token);
                }
                Ok((body, Caller::Token))
            }
            Proof::Signatures(mut signatures) => {
                let mut unproved = self.bodies.of(peer);
                let see = |part: &[u8]| unproved.add(part.len()).map(|()| signatures.update(part));
                let body = read_body(&parts.headers, body, limit.min(body::MAX_SIGNED), patience, see).await;
                if body.is_err() && signatures.has_wrong_token {
                    self.guesses.wrong(peer, self.channel.as_str());
                }
                let body = body?;
                let caller = signatures.caller();
                proof_turn(&self.guesses, peer, self.channel.as_str(), caller.is_ok()).await?;
                let caller = caller.map_err(|error| self.refused(peer, error))?;
                room.add(body.len())?;
                Ok((body, caller))
            }
        }
    }

    async fn fetch(&self, turn: &str, request: Request) -> Result<Response, Problem> {
        let context = self.hook_context.get().ok_or_else(not_running)?;
        // A body is ignored.
        let (parts, _) = request.into_parts();
        let turn: TurnId = turn.parse().map_err(|_| unknown_turn())?;
        let (peer, key) = (Peer::of(&parts.extensions), key_of(&parts.uri));
        let caller = self.auth.may_fetch(&parts.headers, key.as_deref(), turn);
        if key.is_some() && bearer(&parts.headers).is_none() {
            proof_turn(&self.guesses, peer, self.channel.as_str(), caller.is_ok()).await?;
        }
        self.token_turn(&parts.headers, peer).await?;
        let caller = caller.map_err(|error| self.refused(peer, error))?;
        let (format, wait) = (self.format(&parts.headers), Wait::read(&parts.headers, self.wait, Duration::ZERO));
        let reader = Responder {
            hook: self,
            context: &context,
            parts: &parts,
            format,
            wait,
            patience: speaking::patience(format, wait.duration),
            deadline: self.deadline(wait),
            wants_key: caller != Caller::Token,
        };
        reader.result(turn).await
    }

    /// Waits until the token of a request may be checked, if it has one.
    async fn token_turn(&self, headers: &HeaderMap, peer: Peer) -> Result<(), TooManyGuesses> {
        let token = bearer(headers).filter(|_| self.auth.has_token(headers));
        let Some(token) = token else { return Ok(()) };
        self.guesses.turn_of(peer, self.channel.as_str(), token).await
    }

    /// Authenticates by the headers, as far as they prove anything.
    async fn proof<'a>(&self, headers: &'a HeaderMap, peer: Peer) -> Result<Proof<'a>, Problem> {
        self.token_turn(headers, peer).await?;
        self.auth.proof(headers, self.clock.now()).map_err(|error| self.refused(peer, error))
    }

    fn refused(&self, peer: Peer, error: AuthError) -> Problem {
        match error {
            AuthError::Wrong(_) => self.guesses.wrong(peer, self.channel.as_str()),
            AuthError::Missing(_) => self.guesses.missing(peer, self.channel.as_str()),
        }
        error.into()
    }
}

/// The `key` in the URL of a result.
fn key_of(uri: &Uri) -> Option<Cow<'_, str>> {
    let query = form_urlencoded::parse(uri.query()?.as_bytes());
    query.into_iter().find(|(name, _)| name == "key").map(|(_, value)| value)
}

fn cannot_be_stored() -> Problem {
    let detail = "the store rejects this message: it will not be answered, and sending it again does not help";
    unprocessable("cannot-be-stored", "Unprocessable entity: the message cannot be stored", detail)
}

fn over_limit(retry_after: Duration) -> Problem {
    let detail = "this sender has sent more messages than `limits` allows: this one is not put before the agent";
    // A header has whole seconds.
    let after = Duration::from_secs(retry_after.as_secs() + 1);
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "over-limit", "Too many requests", detail).retry_after(after)
}

fn key_reused(turn: TurnId) -> Problem {
    let detail = format!("the key was already used with another body, for turn {turn}");
    Problem::new(StatusCode::CONFLICT, "key-reused", "Conflict: the key was already used", detail)
}

fn removed(turn: TurnId) -> Problem {
    let detail = format!("the key was used for turn {turn}, which was removed since: use a new key to ask again");
    Problem::new(StatusCode::GONE, "removed", "Gone: the answer was removed", detail)
}

/// Makes the responses to one request.
struct Responder<'a> {
    hook: &'a WebhookAdapter,
    context: &'a HookContext,
    parts: &'a Parts,
    format: Format,
    wait: Wait,
    /// What is left of the wait, for the answer.
    patience: Duration,
    /// Until when the caller waits for the response.
    deadline: Timestamp,
    wants_key: bool,
}

impl Responder<'_> {
    /// Waits for a turn's first signal: the answer, or a deferral.
    async fn first_signal(&self, turn: TurnId, watch: Watch) -> Result<Response, Problem> {
        let is_signal = |status| status != TurnStatus::Accepted;
        match self.wait_for(watch, is_signal, self.patience + GRACE).await {
            Some(view) => self.view(view).await,
            None => Ok(self.accepted(turn).await),
        }
    }

    /// Responds to a repeated request as to the first one, with the turn's current state.
    async fn replay(
        &self,
        turn: TurnId,
        request: Option<&Fingerprint>,
        watch: Option<Watch>,
    ) -> Result<Response, Problem> {
        // Without a view the turn has been removed, and nothing is left to compare.
        let view = self.context.intake.view(turn).await.map_err(|error| store_problem(&error))?;
        if !request.zip(view.as_ref()).is_none_or(|(request, view)| request.is_of(view)) {
            return Err(key_reused(turn));
        }
        let mut response = match (view, watch) {
            (Some(view), _) if view.status != TurnStatus::Accepted => self.view(Arc::new(view)).await?,
            (_, Some(watch)) => self.first_signal(turn, watch).await?,
            (_, None) => self.accepted(turn).await,
        };
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
        Ok(response)
    }

    /// The result of a turn: as soon as it is final, or when the wait is over.
    async fn result(&self, turn: TurnId) -> Result<Response, Problem> {
        // Subscribe before reading the store, so that no change is missed.
        let watch = (!self.patience.is_zero()).then(|| self.context.intake.watch(turn));
        let view = self.context.intake.view(turn).await.map_err(|error| store_problem(&error))?;
        let view = view.filter(|view| view.conversation.channel == self.hook.channel).ok_or_else(unknown_turn)?;
        let later = match watch {
            Some(watch) if !view.status.is_final() => self.wait_for(watch, TurnStatus::is_final, self.patience).await,
            _ => None,
        };
        self.view(later.unwrap_or_else(|| Arc::new(view))).await
    }

    async fn wait_for(
        &self,
        watch: Watch,
        is_enough: impl Fn(TurnStatus) -> bool,
        patience: Duration,
    ) -> Option<Arc<TurnView>> {
        wait_for(watch, is_enough, patience, &self.hook.clock, &self.hook.stop_waiting).await
    }

    async fn accepted(&self, turn: TurnId) -> Response {
        let url = self.result_url(turn);
        self.write(&Answer::accepted(turn, Some(&url))).await
    }

    async fn view(&self, view: Arc<TurnView>) -> Result<Response, Problem> {
        let view = self.with_files(view).await.map_err(|error| store_problem(&error))?;
        let url = (!view.status.is_final()).then(|| self.result_url(view.turn_id));
        let answer = Answer::of(&view, url.as_deref(), self.hook.clock.now(), &self.hook.texts);
        if answer.is_final() {
            self.context.intake.fetched(view.turn_id);
        }
        Ok(self.write(&answer).await)
    }

    /// The turn with the files of its answer as the caller reads them: as links, and in words the text of those that have one.
    async fn with_files(&self, mut view: Arc<TurnView>) -> Result<Arc<TurnView>, StoreError> {
        let (intake, parts) = (&self.context.intake, self.parts);
        if self.format != Format::Json
            && let Some(shown) = &mut Arc::make_mut(&mut view).shown
        {
            intake.load_files(&mut shown.attachments, MAX_TEXTS, |file| file.media_type == MARKDOWN).await?;
        }
        Ok(with_links(intake, view, &self.hook.urls.base(&parts.uri, &parts.headers)))
    }

    async fn write(&self, answer: &Answer<'_>) -> Response {
        let Self { hook, format, deadline, .. } = self;
        let mut response = match (format, answer.to_speech(&hook.texts)) {
            (Format::Sound(format), Some(text)) => {
                let left = deadline.since(hook.clock.now()).max(speaking::SPEAKING);
                let language = asked_language(&self.parts.headers).unwrap_or(hook.texts.language);
                let words = in_words(&text, Some(language));
                answer.respond_spoken(hook.spoken(&words, *format, left).await, &hook.texts)
            }
            _ => answer.respond(*format, &hook.texts),
        };
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

/// Accepts an event, and watches its turn if the caller waits.
async fn accept(intake: &Intake, event: InboundEvent) -> Result<(Accepted, Option<Watch>), IntakeError> {
    match event.patience {
        Some(_) => intake.accept_and_watch(event).await,
        None => intake.accept(event).await.map(|accepted| (accepted, None)),
    }
}

fn bad_key(error: BadKey) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad-key", "Bad request: the key cannot be used", error.to_string())
}

fn unknown_hook() -> Response {
    // One label for all: names that a caller guesses must not create metrics.
    metrics::counter!(REQUESTS, "hook" => "unknown", "status" => "404").increment(1);
    Problem::new(StatusCode::NOT_FOUND, "unknown-hook", "Not found: there is no such hook", "no hook has this name")
        .into_response()
}

fn unknown_turn() -> Problem {
    let detail = "this hook has no turn with this id";
    Problem::new(StatusCode::NOT_FOUND, "unknown-turn", "Not found: there is no such turn", detail)
}

fn not_running() -> Problem {
    unavailable("the gateway is starting or stopping")
}

fn intake_problem(error: &IntakeError) -> Problem {
    match error {
        IntakeError::ShuttingDown => not_running(),
        IntakeError::Store(error) => store_problem(error),
    }
}

fn news_problem(error: NewsError) -> Problem {
    match error {
        NewsError::Intake(error) => intake_problem(&error),
        NewsError::Limited { retry_after } => over_limit(retry_after),
        NewsError::Unreachable(why) => events::unreachable(&why),
    }
}

fn store_problem(error: &StoreError) -> Problem {
    match error {
        // The store logs this itself, once.
        StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::NotOwner => {
            tracing::debug!(%error, "hook request refused");
        }
        StoreError::TooSlow | StoreError::Corrupt(_) | StoreError::CorruptTurn { .. } | StoreError::Failed(_) => {
            tracing::error!(%error, "hook request refused");
        }
    }
    unavailable("the store cannot be used at the moment; accepted turns are kept")
}

fn unavailable(detail: &'static str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Service unavailable", detail)
        .retry_after(UNAVAILABLE_PAUSE)
}
