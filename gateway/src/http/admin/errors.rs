//! The errors and warnings of the gateway's own log, equal ones together.

use rejoinder_core::store::{ErrorFilter, ErrorMark, ErrorRecord};
use serde_json::{Map, Value};

use super::{logs::LevelName, prelude::*};

query! {
    /// The filter of the list.
    Filter {
        /// Only errors about this channel, for example `telegram.main`.
        #[param(max_length = 256)] channel: Option<String>,
        /// Only errors that come later in the list: the `next` of the previous page.
        #[param(minimum = 1)] before: Option<i64>,
        /// The largest number of errors; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

page! {
    /// A page of errors; first those that happened last.
    ErrorList of ErrorItem
}

item! {
    /// Errors or warnings that are equal: of the same level, module, message, channel and cause.
    pub(crate) ErrorItem of (error: ErrorRecord) {
        id: i64 = error.id,
        /// `error` or `warn`.
        #[schema(inline)] level: LevelName = error.level.into(),
        /// The module that wrote them.
        target: String = error.target,
        message: String = error.message,
        channel: Option<String> = error.channel.map(|channel| channel.to_string()),
        /// How many there were.
        #[schema(minimum = 1)] count: u64 = error.count,
        #[schema(format = DateTime)] first_seen_at: String = rfc3339(error.first_at),
        #[schema(format = DateTime)] last_seen_at: String = rfc3339(error.last_at),
        /// The other fields of the latest, by name.
        #[schema(value_type = Object)] fields: Map<String, Value> = error.fields,
        /// When an operator said that they have seen it.
        #[schema(format = DateTime)] acknowledged_at: Option<String> = error.acknowledged_at.map(rfc3339),
        /// Whether no operator wants to hear of it. It is kept then.
        muted: bool = error.is_muted,
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
    Ok(Json(ErrorList { items: found.into_iter().map(ErrorItem::of).collect(), next }))
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
