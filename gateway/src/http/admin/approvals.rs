//! What agents ask approval for: the list, and the operator's yes or no.

use rejoinder_core::{
    ApprovalDecision, ApprovalId, ApprovalOption, ApprovalRequest, is_shortened,
    store::{Approval, ApprovalFilter},
};

use super::prelude::*;

const UNKNOWN: &str = "there is no approval with this id";

/// Approvals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    items: Vec<ApprovalItem>,
    /// Always null: there is only one page, of at most 500.
    #[schema(value_type = Option<String>)]
    next: Option<&'static str>,
}

item! {
    /// Something that an agent asks approval for.
    pub(crate) ApprovalItem of (approval: Approval) {
        let is_shortened = is_shortened(&approval.request);
    } with {
        id: String = approval.id.to_string(),
        /// The turn that waits for it.
        turn_id: String = approval.turn.to_string(),
        /// The channel of the turn, for example `telegram.main`.
        channel: String = approval.channel.to_string(),
        /// The agent that asks.
        agent: String = approval.agent.to_string(),
        /// For whom: the name of who wrote, which they chose themselves, or their id.
        person: String = approval.person,
        /// What it wants to do: one line, of 300 characters at most.
        action: String = approval.request.action,
        /// What it says about that. Of more than 2,000 characters the middle is missing.
        details: Option<String> = approval.request.details,
        /// The kind of action, as the agent names it.
        #[schema(example = "email.send")] kind: Option<String> = approval.request.kind,
        /// What may be chosen beside a plain yes and a plain no, in the agent's words. A decision names one by its number, from 1 on.
        options: Vec<OptionItem> = approval.request.options.into_iter().map(OptionItem::of).collect(),
        /// Whether the agent asked with more than that.
        is_shortened: bool = is_shortened,
        /// Whether the whole of it is kept: see `GET /admin/api/approvals/{id}`.
        has_whole: bool = approval.has_whole,
        #[schema(format = DateTime)] asked_at: String = rfc3339(approval.asked_at),
        /// Until when it can be decided; null if a rule has decided it.
        #[schema(format = DateTime)] expires_at: Option<String> = approval.expires_at.map(rfc3339),
        /// `waiting`, `approved`, `declined`, `expired` (nobody decided it in time) or `dropped` (the turn was cancelled, or ended in
        /// another way).
        state: &'static str = approval.state.as_str(),
        #[schema(format = DateTime)] decided_at: Option<String> = approval.decided_at.map(rfc3339),
        /// Who decided: the name of a person or of a token, or a rule.
        decided_by: Option<String> = approval.decided_by,
        /// What they told the agent about it.
        note: Option<String> = approval.note,
        /// The name of the option that they chose; null: a plain yes or no.
        chosen: Option<String> = approval.chosen,
    }
}

item! {
    /// A way to decide, in the agent's words.
    pub(crate) OptionItem of (option: ApprovalOption) {
        name: String = option.name,
        /// Whether it approves. One that does not declines.
        allows: bool = option.allows,
    }
}

item! {
    /// An approval, with the whole of what the agent asks.
    pub(crate) ApprovalDetail of (approval: Approval, whole: Option<ApprovalRequest>) {} with {
        #[serde(flatten)] item: ApprovalItem = ApprovalItem::of(approval),
        /// What the agent asks as it asked it, up to 64 KiB; null if the rest says it all, if it was longer, or if the turn is sealed.
        whole: Option<WholeRequest> = whole.map(WholeRequest::of),
    }
}

item! {
    /// A request for an approval, as the agent made it.
    pub(crate) WholeRequest of (request: ApprovalRequest) {
        action: String = request.action,
        details: Option<String> = request.details,
        kind: Option<String> = request.kind,
    }
}

query! {
    /// Which approvals are listed.
    ApprovalsQuery {
        /// `waiting` if it is missing.
        #[param(inline)] state: Option<ListedState>,
    }
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ListedState {
    /// Those that can be decided, oldest first.
    Waiting,
    /// The latest ones, newest first.
    All,
}

/// Lists what agents ask approval for.
#[utoipa::path(get, path = "/approvals", operation_id = "list_approvals", params(ApprovalsQuery),
    responses((status = 200, description = "The approvals", body = ApprovalList)))]
pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    Query(query): Query<ApprovalsQuery>,
) -> Answer<ApprovalList> {
    let filter = match query.state {
        None | Some(ListedState::Waiting) => ApprovalFilter::Waiting,
        Some(ListedState::All) => ApprovalFilter::Latest,
    };
    let mut approvals = app.engine.operations().approvals(filter).await?;
    approvals.retain(|approval| caller.may_see(&approval.channel));
    Ok(Json(ApprovalList { items: approvals.into_iter().map(ApprovalItem::of).collect(), next: None }))
}

/// Shows something that an agent asks approval for, with the whole of it. Needs the role `operator`, as a decision does.
#[utoipa::path(get, path = "/approvals/{id}", operation_id = "get_approval",
    params(("id" = String, Path, description = "The approval's id")),
    responses((status = 200, description = "The approval", body = ApprovalDetail)))]
pub(super) async fn show(State(app): Shared, caller: Caller, id: Segment) -> Answer<ApprovalDetail> {
    let id: ApprovalId = parsed(id, UNKNOWN)?;
    let found = app.engine.operations().approval(id, |channel| caller.may_see(channel)).await?;
    let (approval, whole) = found.ok_or(ApiError::NotFound(UNKNOWN))?;
    Ok(Json(ApprovalDetail::of(approval, whole)))
}

body! {
    /// The body of a decision.
    #[derive(Default)]
    Decision {
        /// What the agent is told about it; it is in the audit as well.
        #[schema(max_length = 1000)] note: Option<String>,
        /// The number of one of the `options`, from 1 on, that is chosen: it approves or declines as the path does. Without it the
        /// least is allowed, or declined.
        #[schema(minimum = 1)] option: Option<u16>,
    }
}

/// Approves what an agent wants to do: it runs again, and is told so. Needs the role `operator`.
#[utoipa::path(post, path = "/approvals/{id}/approve", operation_id = "approve_approval",
    params(("id" = String, Path, description = "The approval's id"), IdempotencyKey),
    request_body(content = Option<Decision>), responses((status = 204, description = "The agent runs again")))]
pub(super) async fn approve(app: Shared, id: Segment, operation: Operation<Decision>) -> Empty {
    decide(app, id, operation, true).await
}

/// Declines what an agent wants to do: it runs again, and is told so. Needs the role `operator`.
#[utoipa::path(post, path = "/approvals/{id}/decline", operation_id = "decline_approval",
    params(("id" = String, Path, description = "The approval's id"), IdempotencyKey),
    request_body(content = Option<Decision>), responses((status = 204, description = "The agent runs again")))]
pub(super) async fn decline(app: Shared, id: Segment, operation: Operation<Decision>) -> Empty {
    decide(app, id, operation, false).await
}

async fn decide(State(app): Shared, id: Segment, operation: Operation<Decision>, approves: bool) -> Empty {
    let id: ApprovalId = parsed(id, UNKNOWN)?;
    let actor = operation.actor(operation.body.note.as_deref(), StatusCode::NO_CONTENT, &())?;
    let decision = ApprovalDecision { approves, option: operation.body.option.map(usize::from) };
    app.engine.operations().decide(id, decision, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}
