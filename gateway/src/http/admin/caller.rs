//! Which callers the admin API lets in.

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rejoinder_core::store::Role;
use rejoinder_kit::bearer;

use crate::{
    callers::Caller,
    http::{
        app::{App, Shared},
        error::ApiError,
    },
};

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get().cloned().ok_or(ApiError::Unauthorized)
    }
}

/// Finds out who calls; rejects requests without a token that opens anything.
pub(super) async fn identify(State(app): Shared, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match caller_of(&parts, &app).await {
        Ok(caller) => {
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(error) => error.into_response(),
    }
}

/// Who has the session or the token of a request.
pub(in crate::http) async fn caller_of(request: &Parts, app: &App) -> Result<Caller, ApiError> {
    let headers = &request.headers;
    if bearer(headers).is_none() && headers.contains_key(header::COOKIE) {
        // The session may have begun at another node.
        let session = app.renewal.find(|| app.sessions.caller(request, &app.tokens)).await;
        if let Some(caller) = session.map_err(|_| ApiError::Store)? {
            return Ok(caller);
        }
    }
    app.access.identify(headers, &request.extensions, &app.tokens, &app.renewal).await
}

/// Rejects callers whose token allows less than `role`.
pub(super) async fn require(State(role): State<Role>, request: Request, next: Next) -> Response {
    match request.extensions().get::<Caller>() {
        // Who may make tokens may do everything.
        Some(caller) if role == Role::Admin && caller.channels.is_some() => {
            ApiError::Forbidden("this needs a token that is not limited to channels".to_owned()).into_response()
        }
        Some(caller) if caller.role >= role => next.run(request).await,
        Some(caller) => ApiError::Forbidden(format!(
            "this needs a token with the role `{}`; yours has the role `{}`",
            role.as_str(),
            caller.role.as_str()
        ))
        .into_response(),
        None => ApiError::Unauthorized.into_response(),
    }
}
