//! Requests that change something: who asks, why, and whether the same request was done before.

use std::{fmt::Display, sync::Arc};

use axum::{
    Extension, Json, RequestExt,
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rejoinder_core::{Actor, Answer, OperationError, Timestamp, TurnId, store::IdempotentAnswer};
use rejoinder_kit::{BodyRoom, read_body};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};

use crate::{
    callers::Caller,
    http::{app::App, error::ApiError, keys_in_use::KeyInUse},
    shapes::body,
};

/// The largest body of most requests, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The same of requests that may have files, but for these. Each character of a text may be an escape sequence.
const MAX_BESIDE_FILES: usize = 512 * 1024;

/// The longest reason, in characters.
const MAX_REASON: usize = 1000;

/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// The longest idempotency key, in bytes.
const MAX_KEY: usize = 255;

body! {
    /// The body of an operation that takes nothing but a reason.
    #[derive(Default)]
    Reason {
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// A name that an operator gives, without blanks around it.
///
/// # Errors
/// When it is empty, too long, or has control characters.
pub(super) fn checked_name(text: &str) -> Result<&str, ApiError> {
    let name = text.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ApiError::BadRequest(format!("`name` must have 1 to {MAX_NAME} printable characters")));
    }
    Ok(name)
}

/// The header of a request that may be repeated.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct IdempotencyKey {
    /// A request with the same key and body is done once: a later one gets the first answer, with
    /// `Idempotency-Replayed: true`. Kept for a day.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 255)]
    key: Option<String>,
}

/// The answer to an operation that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    /// The id of what it is done to.
    pub(super) id: String,
}

/// An answer with a status of its own.
pub(super) type Answered<T> = Result<(StatusCode, Json<T>), ApiError>;

/// The answer to an operation that was accepted.
pub(super) type Done = Answered<Accepted>;

/// An answer without a body.
pub(super) type Empty = Result<StatusCode, ApiError>;

/// Does to what `id` names the one thing that a route is for.
pub(super) async fn act<I: Display, F: Future<Output = Result<(), OperationError>>>(
    id: Result<I, ApiError>,
    operation: Operation<Reason>,
    call: impl FnOnce(I, Actor) -> F,
) -> Done {
    let (id, actor, accepted) = operation.begin(id?, operation.body.reason.as_deref())?;
    call(id, actor).await?;
    Ok(accepted)
}

/// A request that changes something. Its body, JSON, may be missing.
pub(in crate::http) struct Operation<T, const HAS_FILES: bool = false> {
    pub(super) body: T,
    caller: Caller,
    /// The idempotency key, and a digest of the request.
    key: Option<(String, Vec<u8>)>,
    _in_use: Option<KeyInUse>,
    _room: BodyRoom,
}

/// The target of an operation, its actor, and the answer.
pub(super) type BegunOperation<I> = (I, Actor, (StatusCode, Json<Accepted>));

impl<T, const HAS_FILES: bool> Operation<T, HAS_FILES> {
    /// Begins an operation on what has this id, to be answered with [`Accepted`].
    pub(super) fn begin<I: Display>(&self, id: I, reason: Option<&str>) -> Result<BegunOperation<I>, ApiError> {
        let accepted = Accepted { id: id.to_string() };
        let actor = self.actor(reason, StatusCode::ACCEPTED, &accepted)?;
        Ok((id, actor, (StatusCode::ACCEPTED, Json(accepted))))
    }

    /// Who does it, and why. A request with the same idempotency key will be answered with `answer`.
    pub(super) fn actor(
        &self,
        reason: Option<&str>,
        status: StatusCode,
        answer: &impl Serialize,
    ) -> Result<Actor, ApiError> {
        let body = serde_json::to_string(answer).ok();
        self.actor_answering(reason, status, move |_| body.clone())
    }

    /// The same for an action whose answer depends on what it does: `body` is the answer, JSON.
    pub(super) fn actor_answering(
        &self,
        reason: Option<&str>,
        status: StatusCode,
        body: impl Fn(rejoinder_core::Done<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Actor, ApiError> {
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        if reason.is_some_and(|reason| reason.chars().count() > MAX_REASON) {
            return Err(ApiError::BadRequest(format!("`reason` may have {MAX_REASON} characters")));
        }
        let (name, reason, channels) =
            (self.caller.name.clone(), reason.map(str::to_owned), self.caller.channels.clone());
        let answer = self.key.clone().map(|(key, request)| {
            let (by, status) = (name.clone(), status.as_u16());
            Answer::new(move |done| {
                let (by, key, request, body) = (by.clone(), key.clone(), request.clone(), body(done)?);
                Some(IdempotentAnswer { by, key, request, status, body })
            })
        });
        Ok(Actor { name, reason, channels, answer })
    }

    pub(super) const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The name of this request and its repetitions: its idempotency key with a digest of its content, so that another
    /// request with the same key has another name. Without a key, each request is another one.
    pub(super) fn name(&self, now: Timestamp) -> String {
        let named = |(key, digest): &(String, Vec<u8>)| format!("{}:{key}", BASE64_URL_SAFE_NO_PAD.encode(digest));
        self.key.as_ref().map_or_else(|| TurnId::new(now).to_string(), named)
    }
}

impl<T: DeserializeOwned + Send, const HAS_FILES: bool> FromRequest<Arc<App>> for Operation<T, HAS_FILES> {
    /// Also the answer to a request that was done before.
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        read(request, app).await.map_err(|rejection| match rejection {
            Rejection::Replayed(response) => response,
            Rejection::Error(error) => error.into_response(),
        })
    }
}

enum Rejection {
    Replayed(Response),
    Error(ApiError),
}

impl From<ApiError> for Rejection {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

async fn read<T: DeserializeOwned, const HAS_FILES: bool>(
    mut request: Request,
    app: &Arc<App>,
) -> Result<Operation<T, HAS_FILES>, Rejection> {
    let Extension(caller) = request.extract_parts::<Extension<Caller>>().await.map_err(|_| ApiError::Unauthorized)?;
    let key = idempotency_key(request.headers())?;
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let most = if HAS_FILES { MAX_BESIDE_FILES + app.files.encoded_max() } else { MAX_BODY };
    let (bytes, room) = body(request, most, app).await?;
    let in_use = match &key {
        Some(key) => {
            let busy =
                || ApiError::Conflict("a request with this Idempotency-Key is being done: wait for it".to_owned());
            let taken = app.keys_in_use.take(&caller.name, key).await.map_err(ApiError::from)?;
            Some(taken.ok_or_else(busy)?)
        }
        None => None,
    };
    let key = key.map(|key| (key, digest(method.as_str(), &path, &bytes)));
    if let Some((key, request)) = &key
        && let Some(before) = app.records.tokens.answer(&caller.name, key).await.map_err(ApiError::from)?
    {
        if before.request != *request {
            let why = "this Idempotency-Key was used for another request";
            return Err(ApiError::Conflict(why.to_owned()).into());
        }
        return Err(Rejection::Replayed(replayed(before)));
    }
    let body = parse(&bytes)?;
    Ok(Operation { body, caller, key, _in_use: in_use, _room: room })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    if std::str::from_utf8(bytes).is_ok_and(has_nul) {
        return Err(ApiError::BadRequest("the body must not contain the character U+0000".to_owned()));
    }
    serde_json::from_slice(bytes).map_err(|error| ApiError::BadRequest(format!("the body is not valid: {error}")))
}

/// Whether a text in this JSON contains U+0000: only an escape can stand for it, whose backslash is not escaped itself.
fn has_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let before = json[..at].bytes().rev().take_while(|byte| *byte == b'\\');
        before.count().is_multiple_of(2)
    })
}

/// The body, and the memory that it has as one with files.
async fn body(request: Request, most: usize, app: &App) -> Result<(Bytes, BodyRoom), ApiError> {
    let mut room = BodyRoom::new(app.engine.file_share(), MAX_BESIDE_FILES);
    let (parts, body) = request.into_parts();
    let see = |part: &[u8]| room.add(part.len());
    let bytes = read_body(&parts.headers, body, most, app.request_timeout, see).await;
    let bytes = bytes.map_err(|problem| match problem.status() {
        StatusCode::SERVICE_UNAVAILABLE => ApiError::Busy,
        _ => ApiError::BadRequest(problem.detail().to_owned()),
    })?;
    Ok((bytes, room))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= MAX_KEY);
    let wrong = || ApiError::BadRequest(format!("`Idempotency-Key` must have 1 to {MAX_KEY} ASCII characters"));
    key.map(|key| Some(key.to_owned())).ok_or_else(wrong)
}

/// The fields are separated: no two requests have the same digest.
fn digest(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut digest = Sha256::new();
    for part in [method.as_bytes(), path.as_bytes(), body] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finalize().to_vec()
}

fn replayed(before: IdempotentAnswer) -> Response {
    let status = StatusCode::from_u16(before.status).unwrap_or(StatusCode::OK);
    let headers = [(header::CONTENT_TYPE, "application/json"), (REPLAYED, "true")];
    (status, headers, before.body).into_response()
}

const REPLAYED: header::HeaderName = header::HeaderName::from_static("idempotency-replayed");

#[cfg(test)]
mod tests {
    use rejoinder_core::FileBudget;

    use super::*;

    #[test]
    fn what_is_asked_for_with_a_used_key_is_another_request() {
        let operation = |body: &[u8], key: Option<&str>| Operation::<(), false> {
            body: (),
            caller: Caller::configured(),
            key: key.map(|key| (key.to_owned(), digest("POST", "/messages", body))),
            _in_use: None,
            _room: BodyRoom::new(FileBudget::new(0).share(), 0),
        };
        let name = |body, key| operation(body, key).name(Timestamp::from_millis(0));

        assert_eq!(name(b"one", Some("key")), name(b"one", Some("key")));
        assert_ne!(name(b"one", Some("key")), name(b"two", Some("key")));
        assert_ne!(name(b"one", Some("key")), name(b"one", Some("another")));
        assert_ne!(name(b"one", None), name(b"one", None));
    }

    #[test]
    fn a_body_has_no_nul() {
        let read = |body: &str| parse::<Reason>(body.as_bytes()).map(|body| body.reason.unwrap_or_default());

        assert_eq!(read(r#"{"reason":"\\u0000 and \\\\"}"#).unwrap(), r"\u0000 and \\");
        for body in [r#"{"reason":"a\u0000"}"#, r#"{"reason":"\\\u0000"}"#, r#"{"reason":"\\u0000\u0000"}"#] {
            assert!(matches!(read(body), Err(ApiError::BadRequest(why)) if why.contains("U+0000")), "{body}");
        }
    }

    #[test]
    fn a_name_is_printable_and_short() {
        let longest = "é".repeat(MAX_NAME);

        assert_eq!(checked_name(" Ada Lovelace\n").unwrap(), "Ada Lovelace");
        assert_eq!(checked_name(&longest).unwrap(), longest);
        for text in ["", " \t", "Ada\nLovelace", "Ada\u{1b}[2J", &format!("{longest}e")] {
            assert!(matches!(checked_name(text), Err(ApiError::BadRequest(_))), "{text:?}");
        }
    }
}
