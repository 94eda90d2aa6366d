//! The dead letters: their list, and what an operator does with them, one by one or all that match a filter.

use rejoinder_core::{
    Actor, ChannelId, ConversationRef, OperationError,
    store::{DeadLetter, DeadLetterFilter},
};
use uuid::Uuid;

use super::prelude::*;
use crate::view::{DeadLetterItem, DeadLetterList};

/// How many dead letters one request may change.
const AT_ONCE: u32 = 1000;

query! {
    /// The filter of the list.
    Filter {
        /// Only dead letters of this channel, for example `telegram.main`.
        #[param(max_length = 256)] channel: Option<String>,
        /// Only dead letters after the one with this id: the `next` of the previous page.
        #[param(format = "uuid")] before: Option<String>,
        /// The largest number; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

impl Filter {
    fn read(self, caller: &Caller) -> Result<DeadLetterFilter, ApiError> {
        let limit = paging::limit(self.limit)?;
        Ok(DeadLetterFilter {
            channels: caller.channels(self.channel.as_deref()),
            before: paging::id("before", "the id of a dead letter", self.before)?,
            limit,
        })
    }
}

/// Lists the dead letters, newest first: turns that could not be answered, and callbacks of hooks that were given up.
#[utoipa::path(get, path = "/dead-letters", operation_id = "list_dead_letters", params(Filter),
    responses((status = 200, description = "A page of dead letters", body = DeadLetterList)))]
pub(super) async fn list(
    State(records): State<Records>,
    caller: Caller,
    Query(filter): Query<Filter>,
) -> Answer<DeadLetterList> {
    let filter = filter.read(&caller)?;
    let limit = filter.limit;
    let mut found = records.lists.dead_letters(&DeadLetterFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut found, limit, |letter| letter.id.to_string());
    Ok(Json(DeadLetterList { items: found.iter().map(DeadLetterItem::of).collect(), next }))
}

/// Has a dead letter sent again, as the same delivery, so that the person sees it once. If there was nothing to send, the
/// agent is run again.
#[utoipa::path(post, path = "/dead-letters/{id}/retry", operation_id = "retry_dead_letter",
    params(("id" = String, Path, description = "The id of the dead letter", format = "uuid"), IdempotencyKey),
    request_body(content = Option<Reason>),
    responses((status = 202, description = "It is sent again now", body = Accepted)))]
pub(super) async fn retry(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    act(dead_letter_id(id), operation, |id, actor| app.engine.operations().retry(id, actor)).await
}

body! {
    /// Where a dead letter goes instead.
    Redirect {
        /// The conversation: `telegram.main/42`, and `telegram.main/42/7` for a thread. Somebody must have written there.
        #[schema(example = "telegram.main/42", max_length = 1000)] to: String,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// Sends a dead letter to another conversation. When it is acknowledged there, the turn is settled.
#[utoipa::path(post, path = "/dead-letters/{id}/redirect", operation_id = "redirect_dead_letter",
    params(("id" = String, Path, description = "The id of the dead letter", format = "uuid"), IdempotencyKey),
    request_body(content = Redirect), responses((status = 202, description = "It is sent there now", body = Accepted)))]
pub(super) async fn redirect(State(app): Shared, id: Segment, operation: Operation<Redirect>) -> Done {
    let to: ConversationRef = ConversationRef::parse(&operation.body.to).ok_or_else(|| {
        ApiError::BadRequest("`to` must be a conversation: CHANNEL/CHAT or CHANNEL/CHAT/THREAD".to_owned())
    })?;
    let (id, actor, accepted) = operation.begin(dead_letter_id(id)?, operation.body.reason.as_deref())?;
    app.engine.operations().redirect(id, to, actor).await?;
    Ok(accepted)
}

/// Gives a dead letter up: its turn is settled without an answer. Needs a reason.
#[utoipa::path(post, path = "/dead-letters/{id}/discard", operation_id = "discard_dead_letter",
    params(("id" = String, Path, description = "The id of the dead letter", format = "uuid"), IdempotencyKey),
    request_body(content = Reason), responses((status = 202, description = "It is given up", body = Accepted)))]
pub(super) async fn discard(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Done {
    let reason = required(operation.body.reason.as_deref())?;
    let (id, actor, accepted) = operation.begin(dead_letter_id(id)?, Some(reason))?;
    app.engine.operations().discard(id, actor).await?;
    Ok(accepted)
}

body! {
    /// Which dead letters a request changes.
    #[derive(Default)]
    Selection {
        /// Only those of this channel; all if it is missing.
        #[schema(max_length = 256)] channel: Option<String>,
        /// Only those whose reason or last error contains this text.
        #[schema(max_length = 1000)] error: Option<String>,
        /// Whether to change nothing, and only say how many there are.
        #[serde(default)] #[schema(required = false)] dry_run: bool,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// What a request changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Changed {
    /// The ids of the dead letters that were changed, or would be.
    ids: Vec<String>,
    /// Those that could not be changed.
    failed: Vec<Unchanged>,
    /// Whether nothing was changed because only the number was asked for.
    dry_run: bool,
    /// Whether there are more, which the same request changes next.
    more: bool,
}

/// A dead letter that could not be changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Unchanged {
    #[schema(format = "uuid")]
    id: String,
    /// Why not.
    detail: String,
}

/// Has all dead letters that match sent again, at most 1,000 at once.
#[utoipa::path(post, path = "/dead-letters/retry", operation_id = "retry_dead_letters",
    request_body(content = Option<Selection>),
    responses((status = 200, description = "What was changed", body = Changed)))]
pub(super) async fn retry_all(State(app): Shared, operation: Operation<Selection>) -> Answer<Changed> {
    change_all(&app, &operation, Change::Retry).await
}

/// Gives all dead letters up that match, at most 1,000 at once. Needs a reason.
#[utoipa::path(post, path = "/dead-letters/discard", operation_id = "discard_dead_letters",
    request_body(content = Selection), responses((status = 200, description = "What was changed", body = Changed)))]
pub(super) async fn discard_all(State(app): Shared, operation: Operation<Selection>) -> Answer<Changed> {
    required(operation.body.reason.as_deref())?;
    change_all(&app, &operation, Change::Discard).await
}

/// What is done to each.
#[derive(Clone, Copy)]
enum Change {
    Retry,
    Discard,
}

async fn change_all(app: &App, operation: &Operation<Selection>, change: Change) -> Answer<Changed> {
    let Selection { channel, error, dry_run, reason } = &operation.body;
    let channels = operation.caller().channels(channel.as_deref());
    let (found, more) = matching(app, channels, error.as_deref()).await?;
    let mut changed = Changed { ids: Vec::new(), failed: Vec::new(), dry_run: *dry_run, more };
    for letter in found {
        let actor = Actor { answer: None, ..operation.actor(reason.as_deref(), StatusCode::OK, &())? };
        let result = match change {
            _ if *dry_run => Ok(()),
            Change::Retry => app.engine.operations().retry(letter.id, actor).await,
            Change::Discard => app.engine.operations().discard(letter.id, actor).await,
        };
        match result {
            Ok(()) => changed.ids.push(letter.id.to_string()),
            Err(OperationError::Store(error)) if error.is_outage() => return Err(error.into()),
            Err(error) => changed.failed.push(Unchanged { id: letter.id.to_string(), detail: error.to_string() }),
        }
    }
    Ok(Json(changed))
}

/// The first dead letters whose reason or last error contains `error`, and whether there are more.
async fn matching(
    app: &App,
    channels: Option<Vec<ChannelId>>,
    error: Option<&str>,
) -> Result<(Vec<DeadLetter>, bool), ApiError> {
    let mut matching = Vec::new();
    let mut filter = DeadLetterFilter { channels, before: None, limit: AT_ONCE };
    loop {
        let page = app.records.lists.dead_letters(&filter).await?;
        let Some(last) = page.last().map(|letter| letter.id) else { return Ok((matching, false)) };
        filter.before = Some(last);
        matching.extend(page.into_iter().filter(|letter| {
            let last = letter.delivery.as_ref().and_then(|delivery| delivery.error.as_deref());
            error.is_none_or(|error| letter.reason.contains(error) || last.is_some_and(|last| last.contains(error)))
        }));
        if matching.len() > AT_ONCE as usize {
            matching.truncate(AT_ONCE as usize);
            return Ok((matching, true));
        }
    }
}

fn required(reason: Option<&str>) -> Result<&str, ApiError> {
    let wanted = || ApiError::BadRequest("`reason` is missing: say why it is given up".to_owned());
    reason.filter(|reason| !reason.trim().is_empty()).ok_or_else(wanted)
}

fn dead_letter_id(id: Segment) -> Result<Uuid, ApiError> {
    parsed(id, "there is no dead letter with this id")
}
