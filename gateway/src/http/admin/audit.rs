//! What operators did.

use rejoinder_core::{
    Addressees,
    store::{AuditFilter, AuditRecord},
};

use super::{messages::NotReachedItem, prelude::*};

query! {
    Filter {
        /// Only entries before this one: the `next` of the previous page.
        #[param(minimum = 1)] before: Option<i64>,
        /// The largest number; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

page! {
    /// A page of the audit, newest first.
    AuditList of AuditItem
}

item! {
    /// Something that an operator did.
    pub(crate) AuditItem of (record: AuditRecord, name: impl Fn(Addressees) -> String) {
        id: i64 = record.id,
        #[schema(format = DateTime)] at: String = rfc3339(record.at),
        /// The name of the token.
        by: String = record.entry.by,
        /// `retry`, `redirect`, `discard`, `cancel`, `hold`, `resume`, `create_token`, `revoke_token`, …
        action: String = record.entry.action,
        /// The id of what it was done to.
        target: String = record.entry.target,
        /// Why.
        reason: Option<String> = record.entry.reason,
        /// Who was meant and not reached.
        not_reached: Vec<NotReachedItem> = NotReachedItem::list(&record.entry.not_reached, name),
        #[schema(format = "uuid")] turn_id: Option<String> = record.subject.turn_id.map(|id| id.to_string()),
        channel: Option<String> = record.subject.channel.map(|channel| channel.to_string()),
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
