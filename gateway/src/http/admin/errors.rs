//! The errors and warnings of the gateway's own log, equal ones together.

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
};
use rejoinder_core::store::{ErrorFilter, ErrorRecord};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{caller::Caller, logs::LevelName, responses::Reading};
use crate::{
    http::{Shared, error::ApiError, paging},
    time::rfc3339,
};

/// The filter of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Filter {
    /// Only errors about this channel, for example `telegram.main`.
    #[param(max_length = 256)]
    channel: Option<String>,
    /// Only errors that come later in the list: the `next` of the previous page.
    #[param(minimum = 1)]
    before: Option<i64>,
    /// The largest number of errors; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A page of errors; first those that happened last.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorList {
    items: Vec<ErrorItem>,
    /// The value of `before` for the next page; null on the last page.
    next: Option<String>,
}

/// Errors or warnings that are equal: of the same level, module, message and channel.
#[derive(Debug, Serialize, ToSchema)]
struct ErrorItem {
    id: i64,
    /// `error` or `warn`.
    #[schema(inline)]
    level: LevelName,
    /// The module that wrote them.
    target: String,
    message: String,
    channel: Option<String>,
    /// How many there were.
    #[schema(minimum = 1)]
    count: u64,
    #[schema(format = DateTime)]
    first_seen_at: String,
    #[schema(format = DateTime)]
    last_seen_at: String,
    /// The other fields of the latest, by name.
    #[schema(value_type = Object)]
    fields: Map<String, Value>,
}

impl From<ErrorRecord> for ErrorItem {
    fn from(error: ErrorRecord) -> Self {
        Self {
            id: error.id,
            level: error.level.into(),
            target: error.target,
            message: error.message,
            channel: error.channel.map(|channel| channel.to_string()),
            count: error.count,
            first_seen_at: rfc3339(error.first_at),
            last_seen_at: rfc3339(error.last_at),
            fields: error.fields,
        }
    }
}

/// Lists the errors and warnings of the gateway's own log, equal ones together; first those that happened last. `[log]` says
/// how long they are kept.
#[utoipa::path(get, path = "/admin/api/errors", tag = "admin", operation_id = "list_errors",
    params(Filter),
    responses((status = 200, description = "A page of errors", body = ErrorList), Reading),
    security(("admin_token" = [])))]
pub(in crate::http) async fn list(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<ErrorList>, ApiError> {
    let Query(filter) = filter?;
    let limit = paging::limit(filter.limit)?;
    let channels = caller.channels(filter.channel.as_deref());
    let mut found = app.store.errors(&ErrorFilter { channels, before: filter.before, limit: limit + 1 }).await?;
    let next = paging::cut(&mut found, limit, |error| error.last_line.to_string());
    Ok(Json(ErrorList { items: found.into_iter().map(ErrorItem::from).collect(), next }))
}
