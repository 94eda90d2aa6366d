//! The bare echo: the cost of the HTTP server alone.

use axum::{Json, Router, routing::post};

use super::hook::{HookAnswer, HookRequest};

/// `POST /hooks/{name}`.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/hooks/{name}", post(async |Json(turn): Json<HookRequest>| Json(HookAnswer::with(turn.message))))
}
