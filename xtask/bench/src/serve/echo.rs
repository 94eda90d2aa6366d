//! The bare echo: the cost of the HTTP server alone.

use axum::{Json, Router, routing::post};

use super::{Answered, Turn};

/// `POST /hooks/{name}`.
pub(crate) fn router() -> Router {
    Router::new().route("/hooks/{name}", post(async |Json(turn): Json<Turn>| Json(Answered::with(turn.message))))
}
