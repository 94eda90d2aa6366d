//! What is stored about people.

use std::time::Duration;

use axum::{Json, extract::State, http::StatusCode};
use rejoinder_core::{Actor, Forgotten};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{operation::Operation, responses::Changing};
use crate::{
    http::{Shared, error::ApiError},
    view::parse_person,
};

/// For how long one request goes on: a request must have its answer before the time limit of requests.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whom to forget.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forget {
    /// The person, as `CHANNEL/ID`: whoever has this id on this channel.
    #[schema(min_length = 3, max_length = 1000)]
    person: String,
    /// Why, for the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// How far a person is forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForgottenItem {
    /// Whether nothing is left. If not, ask again: it goes on from there.
    done: bool,
    /// The number of turns that this request removed.
    turns: usize,
    /// The number of turns that cannot be removed yet, because a run or a delivery still goes on.
    unended: usize,
}

/// Erases what is stored about a person: their turns with all that belongs to them. What is still owed to them is given up.
/// Goes on for ten seconds at most; ask again until it is done. In conversations with others, what models were shown and what
/// messages quote goes as well. At the end the database is written anew, so that no deleted byte is left in its files: writes
/// wait for that, about a second for each 100 MB. Needs the role `admin`.
#[utoipa::path(post, path = "/admin/api/people/forget", tag = "admin", operation_id = "forget_person",
    request_body(content = Forget),
    responses((status = 200, description = "How far it is", body = ForgottenItem), Changing),
    security(("admin_token" = [])))]
pub(in crate::http) async fn forget(
    State(app): Shared,
    operation: Operation<Forget>,
) -> Result<Json<ForgottenItem>, ApiError> {
    let person = parse_person(&operation.body.person).ok_or_else(|| {
        ApiError::BadRequest("`person` must be a person: CHANNEL/ID, as in telegram.main/7".to_owned())
    })?;
    // It may be repeated, so its answer is not kept.
    let actor = Actor { answer: None, ..operation.actor(operation.body.reason.as_deref(), StatusCode::OK, &())? };
    let Forgotten { turns, unended, is_done } = app.engine.forget(&person, PATIENCE, actor).await?;
    Ok(Json(ForgottenItem { done: is_done, turns, unended }))
}
