//! The turns: their list, one in detail, and its explanation.

use axum::{
    Json,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
};
use rejoinder_core::{
    ChannelId, TurnId,
    explain::explain as explain_turn,
    store::{Dossier, TurnFilter, TurnListState},
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    App, Shared,
    error::{ApiError, ProblemDocument},
    paging,
};
use crate::{
    time,
    view::{TurnDetail, TurnExplanation, TurnItem, TurnList},
};

/// The filter of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    /// Only turns in this state: `open` (owed an answer and not settled), `settled`, `undeliverable`, `overdue`, or `absent`
    /// (its channel is not configured).
    #[param(inline)]
    state: Option<StateFilter>,
    /// Only turns of this channel, for example `webhook.siri`.
    #[param(max_length = 256)]
    channel: Option<String>,
    /// Only turns of the conversation with this id.
    #[param(format = "uuid")]
    conversation: Option<String>,
    /// Only turns accepted at this time or later.
    #[param(format = DateTime, max_length = 64)]
    since: Option<String>,
    /// Only turns accepted before this time.
    #[param(format = DateTime, max_length = 64)]
    until: Option<String>,
    /// Only turns older than the one with this id: the `next` of the previous page.
    #[param(format = "uuid")]
    before: Option<String>,
    /// The largest number of turns; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StateFilter {
    Open,
    Settled,
    Undeliverable,
    Overdue,
    Absent,
}

impl Filter {
    fn read(self) -> Result<TurnFilter, ApiError> {
        let limit = paging::limit(self.limit)?;
        let time = |name: &str, text: Option<String>| {
            let read = |text: String| time::parse(&text).ok_or_else(|| bad(name, "an RFC 3339 time"));
            text.map(read).transpose()
        };
        Ok(TurnFilter {
            state: self.state.map(Into::into),
            channel: self.channel.as_deref().map(ChannelId::from_stored),
            conversation: self
                .conversation
                .map(|id| id.parse().map_err(|_| bad("conversation", "a conversation id")))
                .transpose()?,
            since: time("since", self.since)?,
            until: time("until", self.until)?,
            before: self.before.map(|id| id.parse().map_err(|_| bad("before", "a turn id"))).transpose()?,
            limit,
            now: None,
        })
    }
}

impl From<StateFilter> for TurnListState {
    fn from(state: StateFilter) -> Self {
        match state {
            StateFilter::Open => Self::Open,
            StateFilter::Settled => Self::Settled,
            StateFilter::Undeliverable => Self::Undeliverable,
            StateFilter::Overdue => Self::Overdue,
            StateFilter::Absent => Self::Absent,
        }
    }
}

fn bad(name: &str, expected: &str) -> ApiError {
    ApiError::BadRequest(format!("`{name}` must be {expected}"))
}

/// Lists turns, newest first.
#[utoipa::path(get, path = "/admin/api/turns", tag = "admin", operation_id = "list_turns",
    params(Filter),
    responses(
        (status = 200, description = "A page of turns", body = TurnList),
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
) -> Result<Json<TurnList>, ApiError> {
    let Query(filter) = filter.map_err(|rejection| ApiError::BadRequest(rejection.body_text()))?;
    let filter = TurnFilter { now: Some(app.clock.now()), ..filter.read()? };
    Ok(Json(page(app.store.as_ref(), filter).await?))
}

/// One page of turns, and where the next one begins.
pub(crate) async fn page(
    store: &dyn rejoinder_core::Store,
    filter: TurnFilter,
) -> Result<TurnList, rejoinder_core::StoreError> {
    let limit = filter.limit;
    let mut turns = store.list_turns(&TurnFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut turns, limit, |turn| turn.turn_id.to_string());
    Ok(TurnList { items: turns.into_iter().map(TurnItem::from).collect(), next })
}

/// Shows everything about a turn.
#[utoipa::path(get, path = "/admin/api/turns/{id}", tag = "admin", operation_id = "show_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid")),
    responses(
        (status = 200, description = "The turn", body = TurnDetail),
        (status = 401, description = "The admin token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 404, description = "There is no such turn", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "The store cannot be read now", body = ProblemDocument, content_type = "application/problem+json"),
    ),
    security(("admin_token" = [])))]
pub(super) async fn show(
    State(app): Shared,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<TurnDetail>, ApiError> {
    let dossier = dossier(&app, id).await?;
    Ok(Json(TurnDetail::from(&dossier)))
}

/// Explains a turn in plain words: what was owed, what was tried, how the platform responded and what happens next.
#[utoipa::path(get, path = "/admin/api/turns/{id}/explain", tag = "admin", operation_id = "explain_turn",
    params(("id" = String, Path, description = "The turn's id", format = "uuid")),
    responses(
        (status = 200, description = "The explanation", body = TurnExplanation),
        (status = 401, description = "The admin token is missing or wrong", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong tokens came from this address", body = ProblemDocument, content_type = "application/problem+json",
            headers(("Retry-After" = u32, description = "Seconds"))),
        (status = 404, description = "There is no such turn", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "The store cannot be read now", body = ProblemDocument, content_type = "application/problem+json"),
    ),
    security(("admin_token" = [])))]
pub(super) async fn explain(
    State(app): Shared,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<TurnExplanation>, ApiError> {
    let dossier = dossier(&app, id).await?;
    Ok(Json(explain_turn(&dossier, app.clock.now()).into()))
}

async fn dossier(app: &App, id: Result<Path<String>, PathRejection>) -> Result<Dossier, ApiError> {
    let unknown = || ApiError::NotFound("there is no turn with this id");
    let id: TurnId = id.ok().and_then(|Path(id)| id.parse().ok()).ok_or_else(unknown)?;
    app.store.dossier(id).await?.ok_or_else(unknown)
}
