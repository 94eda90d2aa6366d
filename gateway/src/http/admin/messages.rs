//! Messages that operators have the gateway send.

use axum::{Json, extract::State, http::StatusCode};
use rejoinder_core::{ConversationRef, TurnId};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    operation::{Accepted, IdempotencyKey, Operation},
    responses::Changing,
};
use crate::{
    http::{App, Shared, error::ApiError},
    view::parse_address,
};

/// The longest message, in characters.
const MAX_TEXT: usize = 20_000;

/// A message to send.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    /// The conversation, as `CHANNEL/CHAT` or `CHANNEL/CHAT/THREAD`.
    #[schema(max_length = 1000)]
    to: Option<String>,
    /// The conversation's id, instead of `to`.
    #[schema(format = "uuid")]
    conversation_id: Option<String>,
    /// The text, as Markdown.
    #[schema(min_length = 1, max_length = 20_000)]
    text: String,
    /// Why, for the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Has the gateway send a message to a conversation in which somebody has written. Its deliveries belong to a turn of its own,
/// whose id is in the answer: they are retried, and become dead letters, like answers.
#[utoipa::path(post, path = "/admin/api/messages", tag = "admin", operation_id = "send_message",
    params(IdempotencyKey),
    request_body(content = Message),
    responses((status = 202, description = "It is stored and will be sent; `id` is its turn", body = Accepted), Changing),
    security(("admin_token" = [])))]
pub(in crate::http) async fn send(
    State(app): Shared,
    operation: Operation<Message>,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let text = operation.body.text.trim();
    if text.is_empty() || text.chars().count() > MAX_TEXT {
        return Err(ApiError::BadRequest(format!("`text` must have 1 to {MAX_TEXT} characters")));
    }
    let to = target(&app, &operation.body).await?;
    let (id, actor, (status, _)) = operation.begin(TurnId::new(app.clock.now()), operation.body.reason.as_deref())?;
    let turn = app.engine.send_message(id, to, text.to_owned(), actor).await?;
    Ok((status, Json(Accepted { id: turn.to_string() })))
}

async fn target(app: &App, message: &Message) -> Result<ConversationRef, ApiError> {
    match (&message.to, &message.conversation_id) {
        (Some(to), None) => parse_address(to).ok_or_else(|| {
            ApiError::BadRequest("`to` must be a conversation: CHANNEL/CHAT or CHANNEL/CHAT/THREAD".to_owned())
        }),
        (None, Some(id)) => {
            let unknown = || ApiError::NotFound("there is no conversation with this id");
            let id = id.parse().map_err(|_| unknown())?;
            app.store.address(id).await?.ok_or_else(unknown)
        }
        _ => Err(ApiError::BadRequest("give either `to` or `conversation_id`".to_owned())),
    }
}
