//! What operators did.

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
};
use rejoinder_core::{
    Addressees,
    store::{AuditFilter, AuditRecord},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{messages::NotReachedItem, responses::Reading};
use crate::{
    callers::Caller,
    http::{Shared, error::ApiError, paging},
    time::rfc3339,
};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Filter {
    /// Only entries before this one: the `next` of the previous page.
    #[param(minimum = 1)]
    before: Option<i64>,
    /// The largest number; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A page of the audit, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    items: Vec<AuditItem>,
    /// The value of `before` for the next page; null on the last page.
    next: Option<String>,
}

/// Something that an operator did.
#[derive(Debug, Serialize, ToSchema)]
struct AuditItem {
    id: i64,
    #[schema(format = DateTime)]
    at: String,
    /// The name of the token.
    by: String,
    /// `retry`, `redirect`, `discard`, `cancel`, `hold`, `resume`, `create_token`, `revoke_token`, …
    action: String,
    /// The id of what it was done to.
    target: String,
    /// Why.
    reason: Option<String>,
    /// Who was meant and not reached.
    not_reached: Vec<NotReachedItem>,
    #[schema(format = "uuid")]
    turn_id: Option<String>,
    channel: Option<String>,
}

impl AuditItem {
    fn of(record: AuditRecord, name: impl Fn(Addressees) -> String) -> Self {
        Self {
            id: record.id,
            at: rfc3339(record.at),
            by: record.entry.by,
            action: record.entry.action,
            target: record.entry.target,
            reason: record.entry.reason,
            not_reached: NotReachedItem::of(&record.entry.not_reached, name),
            turn_id: record.subject.turn_id.map(|id| id.to_string()),
            channel: record.subject.channel.map(|channel| channel.to_string()),
        }
    }
}

/// Lists what operators did, newest first. Needs the role `admin`.
#[utoipa::path(get, path = "/admin/api/audit", tag = "admin", operation_id = "list_audit",
    params(Filter),
    responses((status = 200, description = "A page of the audit", body = AuditList), Reading),
    security(("admin_token" = [])))]
pub(in crate::http) async fn list(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<AuditList>, ApiError> {
    let Query(Filter { before, limit }) = filter?;
    let limit = paging::limit(limit)?;
    let mut found = app.store.audit(&AuditFilter { before, limit: limit + 1 }).await?;
    let next = paging::cut(&mut found, limit, |record| record.id.to_string());
    let name = |missed| app.engine.name_addressees(missed, caller.channels.as_deref());
    Ok(Json(AuditList { items: found.into_iter().map(|record| AuditItem::of(record, name)).collect(), next }))
}
