//! What operators did.

use rejoinder_core::{
    Addressees,
    store::{AuditFilter, AuditRecord},
};

use super::{messages::NotReachedItem, prelude::*};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    /// Only entries before this one: the `next` of the previous page.
    #[param(minimum = 1)]
    before: Option<i64>,
    /// The largest number; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

page! {
    /// A page of the audit, newest first.
    AuditList of AuditItem
}

/// Something that an operator did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditItem {
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
#[utoipa::path(get, path = "/audit", operation_id = "list_audit", params(Filter),
    responses((status = 200, description = "A page of the audit", body = AuditList)))]
pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    Query(Filter { before, limit }): Query<Filter>,
) -> Answer<AuditList> {
    let limit = paging::limit(limit)?;
    let mut found = app.records.log.audit(&AuditFilter { before, limit: limit + 1 }).await?;
    let next = paging::cut(&mut found, limit, |record| record.id.to_string());
    let names = app.names(caller.channels.as_deref());
    Ok(Json(AuditList { items: found.into_iter().map(|record| AuditItem::of(record, names)).collect(), next }))
}
