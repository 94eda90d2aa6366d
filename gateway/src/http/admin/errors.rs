//! The errors and warnings of the gateway's own log, equal ones together.

use rejoinder_core::store::{ErrorFilter, ErrorMark, ErrorRecord};
use serde_json::{Map, Value};

use super::{logs::LevelName, prelude::*};

/// The filter of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
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

page! {
    /// A page of errors; first those that happened last.
    ErrorList of ErrorItem
}

/// Errors or warnings that are equal: of the same level, module, message, channel and cause.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorItem {
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
    /// When an operator said that they have seen it.
    #[schema(format = DateTime)]
    acknowledged_at: Option<String>,
    /// Whether no operator wants to hear of it. It is kept then.
    muted: bool,
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
            acknowledged_at: error.acknowledged_at.map(rfc3339),
            muted: error.is_muted,
        }
    }
}

/// Lists the errors and warnings of the gateway's own log, equal ones together; first those that happened last. `[log]` says
/// how long they are kept.
#[utoipa::path(get, path = "/errors", operation_id = "list_errors", params(Filter),
    responses((status = 200, description = "A page of errors", body = ErrorList)))]
pub(super) async fn list(State(app): Shared, caller: Caller, Query(filter): Query<Filter>) -> Answer<ErrorList> {
    let limit = paging::limit(filter.limit)?;
    let channels = caller.channels(filter.channel.as_deref());
    let mut found = app
        .records
        .lines
        .errors(&ErrorFilter { channels, before: filter.before, limit: limit + 1, ..ErrorFilter::default() })
        .await?;
    let next = paging::cut(&mut found, limit, |error| error.last_line.to_string());
    Ok(Json(ErrorList { items: found.into_iter().map(ErrorItem::from).collect(), next }))
}

/// Says that an operator has seen an error: it is told no more, unless it is a panic that happens again. Needs the role `operator`.
#[utoipa::path(post, path = "/errors/{id}/acknowledge", operation_id = "acknowledge_error",
    params(("id" = i64, Path, description = "The error's id"), IdempotencyKey), request_body(content = Option<Reason>),
    responses((status = 202, description = "It is stored", body = Accepted)))]
pub(super) async fn acknowledge(app: Shared, id: Segment, operation: Operation<Reason>) -> Done {
    mark(app, id, operation, ErrorMark::Acknowledged).await
}

/// Mutes an error: it is never told, also when it happens again, until it is unmuted. Needs the role `operator`.
#[utoipa::path(post, path = "/errors/{id}/mute", operation_id = "mute_error",
    params(("id" = i64, Path, description = "The error's id"), IdempotencyKey), request_body(content = Option<Reason>),
    responses((status = 202, description = "It is stored", body = Accepted)))]
pub(super) async fn mute(app: Shared, id: Segment, operation: Operation<Reason>) -> Done {
    mark(app, id, operation, ErrorMark::Muted).await
}

/// Unmutes an error. Needs the role `operator`.
#[utoipa::path(post, path = "/errors/{id}/unmute", operation_id = "unmute_error",
    params(("id" = i64, Path, description = "The error's id"), IdempotencyKey), request_body(content = Option<Reason>),
    responses((status = 202, description = "It is stored", body = Accepted)))]
pub(super) async fn unmute(app: Shared, id: Segment, operation: Operation<Reason>) -> Done {
    mark(app, id, operation, ErrorMark::Unmuted).await
}

async fn mark(State(app): Shared, id: Segment, operation: Operation<Reason>, mark: ErrorMark) -> Done {
    let id = parsed(id, "there is no error with this id");
    let administration = app.engine.administration();
    act(id, operation, |id, actor| async move { administration.mark_error(id, mark, &actor).await }).await
}
