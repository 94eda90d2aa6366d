//! What stands around the handlers: who may ask, how long an answer may take, the headers that all answers have, and the answers
//! for paths and methods that nothing serves.

use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{app::Shared, error::ApiError};

/// Rejects requests from elsewhere without a token.
pub(super) async fn reader(State(app): Shared, request: Request, next: Next) -> Response {
    match app.access.check_reader(request.headers(), request.extensions()).await {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// Rejects requests for another host.
pub(super) async fn host(State(app): Shared, request: Request, next: Next) -> Response {
    if app.access.allows_host(&request) { next.run(request).await } else { ApiError::ForeignHost.into_response() }
}

/// As [`host`], for the routes of channels. The chat page has a check of its own: it may be open under any name.
pub(super) async fn channel_host(State(app): Shared, request: Request, next: Next) -> Response {
    if request.uri().path().starts_with("/chat") || app.access.allows_host(&request) {
        return next.run(request).await;
    }
    ApiError::ForeignHost.into_response()
}

pub(super) async fn not_found() -> ApiError {
    ApiError::NotFound("there is nothing at this path")
}

pub(super) async fn wrong_method() -> Response {
    add_common_headers(ApiError::WrongMethod.into_response())
}

/// Answers a request that takes too long with an error. Its handler continues in the background.
pub(super) async fn limit_time(State(app): Shared, request: Request, next: Next) -> Response {
    let answered = tokio::spawn(next.run(request));
    match tokio::time::timeout(app.request_timeout, answered).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => ApiError::Internal.into_response(),
        Err(_) => ApiError::TooSlow.into_response(),
    }
}

pub(super) async fn with_common_headers(request: Request, next: Next) -> Response {
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
