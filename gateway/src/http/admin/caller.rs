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
    http::{app::Shared, error::ApiError},
};

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get().cloned().ok_or(ApiError::Unauthorized)
    }
}

/// Finds out who calls; rejects requests without a token that opens anything.
pub(super) async fn identify(State(app): Shared, mut request: Request, next: Next) -> Response {
    let mut session = None;
    if bearer(request.headers()).is_none() {
        session = app.sessions.caller(&request, &app.tokens);
        // It may have begun at another node.
        if session.is_none() && request.headers().contains_key(header::COOKIE) {
            if app.renewal.renew().await {
                session = app.sessions.caller(&request, &app.tokens);
            }
            if session.is_none() && !app.tokens.do_count() {
                return ApiError::Store.into_response();
            }
        }
    }
    let identified = match session {
        Some(caller) => Ok(caller),
        None => app.access.identify(request.headers(), request.extensions(), &app.tokens, &app.renewal).await,
    };
    match identified {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
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
