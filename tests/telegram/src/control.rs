//! The double over HTTP, for programs that are not written in Rust: the functions of [`Person`](crate::Person),
//! [`Group`](crate::Group) and [`TelegramDouble`](crate::TelegramDouble) under `/__control`, which the README of this crate
//! lists.
//!
//! To add one, write a function that takes a body or a query, and add a line to [`routes`].

mod failures;
mod looks;
mod people;

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
type Controlled = Result<Json<Value>, Wrong>;

/// Why a control call is invalid.
struct Wrong(String);

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": self.0 }))).into_response()
    }
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong(what.into()))
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
        .route("/standings", post(people::stand))
        .route("/migrations", post(people::migrate))
        .route("/updates", post(people::update))
        .route("/settings", post(failures::set))
        .route("/faults", post(failures::add).delete(failures::heal))
        .route("/outages", post(failures::fail).delete(failures::lift))
        .route("/closings", post(failures::close))
        .route("/expirations", post(failures::expire))
        .route("/bot", get(looks::bot))
        .route("/state", get(looks::state))
        .route("/calls", get(looks::calls).delete(looks::forget))
        .route("/visible", get(looks::visible))
        .route("/drafts", get(looks::drafts))
        .route("/typing", get(looks::typing))
        .route("/files", get(looks::file))
        .route("/callbacks", get(looks::callback))
        .route("/heard", get(looks::heard))
        .with_state(shared)
}
