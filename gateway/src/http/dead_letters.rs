//! The dead letters: their list, and another try of one.

use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::StatusCode,
};
use rejoinder_core::{ChannelId, DeliveryId, Retry, Store, StoreError, store::DeadLetterFilter};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    Shared,
    error::{ApiError, ProblemDocument},
    paging,
};
use crate::view::{DeadLetterItem, DeadLetterList};

/// The filter of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    /// Only callbacks of this channel, for example `webhook.tickets`.
    #[param(max_length = 256)]
    channel: Option<String>,
    /// Only callbacks older than the one with this id: the `next` of the previous page.
    #[param(format = "uuid")]
    before: Option<String>,
    /// The largest number of callbacks; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

impl Filter {
    fn read(self) -> Result<DeadLetterFilter, ApiError> {
        let limit = paging::limit(self.limit)?;
        let wrong = |_| ApiError::BadRequest("`before` must be a delivery id".to_owned());
        Ok(DeadLetterFilter {
            channel: self.channel.as_deref().map(ChannelId::from_stored),
            before: self.before.map(|id| id.parse().map_err(wrong)).transpose()?,
            limit,
        })
    }
}

/// Lists the callbacks of hooks that were given up, newest first.
#[utoipa::path(get, path = "/admin/api/dead-letters", tag = "admin", operation_id = "list_dead_letters",
    params(Filter),
    responses(
        (status = 200, description = "A page of dead letters", body = DeadLetterList),
        (status = 400, description = "A filter is invalid", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 401, description = "The admin token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 503, description = "The store cannot be read now", body = ProblemDocument, content_type = "application/problem+json"),
    ),
    security(("admin_token" = [])))]
pub(super) async fn list(
    State(app): Shared,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<DeadLetterList>, ApiError> {
    let Query(filter) = filter.map_err(|rejection| ApiError::BadRequest(rejection.body_text()))?;
    Ok(Json(page(app.store.as_ref(), filter.read()?).await?))
}

/// One page of dead letters, and where the next one begins.
pub(crate) async fn page(store: &dyn Store, filter: DeadLetterFilter) -> Result<DeadLetterList, StoreError> {
    let limit = filter.limit;
    let mut found = store.dead_letters(&DeadLetterFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut found, limit, |delivery| delivery.id.to_string());
    Ok(DeadLetterList { items: found.iter().map(DeadLetterItem::from).collect(), next })
}

/// Sends a callback that was given up again.
#[utoipa::path(post, path = "/admin/api/dead-letters/{id}/retry", tag = "admin", operation_id = "retry_dead_letter",
    params(("id" = String, Path, description = "The delivery's id", format = "uuid")),
    responses(
        (status = 202, description = "It is sent again now"),
        (status = 401, description = "The admin token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 404, description = "There is no such delivery", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "It is not a callback that was given up, or its channel is not configured", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "The store cannot be read or written now", body = ProblemDocument, content_type = "application/problem+json"),
    ),
    security(("admin_token" = [])))]
pub(super) async fn retry(State(app): Shared, id: Result<Path<String>, PathRejection>) -> Result<StatusCode, ApiError> {
    let unknown = || ApiError::NotFound("there is no delivery with this id");
    let id: DeliveryId = id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(unknown)?;
    match app.engine.retry(id).await? {
        Retry::Started => Ok(StatusCode::ACCEPTED),
        Retry::NotDead => Err(ApiError::Conflict("this delivery is not a callback that was given up")),
        Retry::NoChannel => Err(ApiError::Conflict(
            "the channel of this callback is not configured: configure it again before you send the callback",
        )),
        Retry::Unknown => Err(unknown()),
    }
}
