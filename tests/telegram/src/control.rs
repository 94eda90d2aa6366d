//! The double over HTTP, for programs that are not written in Rust: the functions of [`Person`](crate::Person),
//! [`Group`](crate::Group) and [`TelegramDouble`](crate::TelegramDouble) under `/__control`, which the README of this crate
//! lists.
//!
//! To add one, write a function that takes a body or a query, and add a line to [`routes`].

mod failures;
mod people;
mod queries;

use std::sync::Arc;

use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};

use crate::shared::Shared;

/// The result of a control call, or a 400 with the reason.
type ControlResult = Result<Json<Value>, ControlError>;

/// Why a control call is invalid.
struct ControlError(String);

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": self.0 }))).into_response()
    }
}

fn control_error<T>(what: impl Into<String>) -> Result<T, ControlError> {
    Err(ControlError(what.into()))
}

pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/people", post(people::add))
        .route("/chats", post(people::add_chat))
        .route("/topics", post(people::add_topic))
        .route("/messages", post(people::say))
        .route("/albums", post(people::send_album))
        .route("/posts", post(people::post))
        .route("/edits", post(people::edit))
        .route("/deletions", post(people::delete))
        .route("/presses", post(people::press))
        .route("/reactions", post(people::react))
        .route("/standings", post(people::set_membership))
        .route("/migrations", post(people::migrate))
        .route("/updates", post(people::update))
        .route("/settings", post(failures::set))
        .route("/faults", post(failures::add).delete(failures::clear_faults))
        .route("/outages", post(failures::start_outage).delete(failures::end_outage))
        .route("/closings", post(failures::close))
        .route("/expirations", post(failures::expire))
        .route("/bot", get(queries::bot))
        .route("/state", get(queries::state))
        .route("/calls", get(queries::calls).delete(queries::forget))
        .route("/visible", get(queries::visible))
        .route("/drafts", get(queries::drafts))
        .route("/typing", get(queries::typing))
        .route("/files", get(queries::file))
        .route("/callbacks", get(queries::callback))
        .route("/heard", get(queries::heard))
        .with_state(shared)
}
