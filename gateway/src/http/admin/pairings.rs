//! The requests to be let in: their list, and the operator's yes or no.

use rejoinder_core::{
    Actor, NewPerson,
    store::{Pairing, Role},
};

use super::{
    operation::checked_name,
    people::{PersonItem, PersonRoleName},
    prelude::*,
    responses::TooManyCodes,
};

whole! {
    /// Those who ask to be let in, and wait for it; oldest first.
    PairingList of PairingItem
}

item! {
    /// Somebody's request to be let in.
    pub(crate) PairingItem of (pairing: &Pairing) {
        /// The code that they were given, and that lets them in.
        #[schema(example = "ABCD-EFGH")] code: String = pairing.shown_code(),
        /// The channel, for example `telegram.main`.
        channel: String = pairing.identity.channel.to_string(),
        /// The platform's id of who asks.
        id: String = pairing.identity.id.clone(),
        /// Their display name on the platform, which they chose themselves.
        name: Option<String> = pairing.name.clone(),
        /// Their unique name on the platform, without `@`.
        username: Option<String> = pairing.username.clone(),
        /// Where they asked: `CHANNEL/CHAT`, and `CHANNEL/CHAT/THREAD` in a thread.
        conversation: String = pairing.conversation.to_string(),
        #[schema(format = DateTime)] asked_at: String = rfc3339(pairing.asked_at),
        /// When the code expires.
        #[schema(format = DateTime)] expires_at: String = rfc3339(pairing.expires_at),
    }
}

/// Lists those who ask to be let in, oldest first.
#[utoipa::path(get, path = "/pairings", operation_id = "list_pairings",
    responses((status = 200, description = "The requests that wait", body = PairingList)))]
pub(super) async fn list(State(app): Shared, caller: Caller) -> Json<PairingList> {
    let pairings = app.engine.people().waiting();
    let visible = pairings.iter().filter(|pairing| caller.may_see(&pairing.identity.channel));
    Json(visible.map(PairingItem::of).collect())
}

body! {
    /// The name and role with which somebody is let in.
    Approval {
        /// What operators call them; the name that the platform gave if it is missing.
        #[schema(min_length = 1, max_length = 100)] name: Option<String>,
        /// What they may do; `member` if it is missing. Only a token with the role `admin` makes somebody an `owner`.
        role: Option<PersonRoleName>,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// Lets somebody in who was given this code, from now on, and tells them. Needs the role `operator`. A repeated request finds
/// that no request has the code any more. After ten codes that do not exist, this token is refused all codes for the rest of an hour.
#[utoipa::path(post, path = "/pairings/{code}/approve", operation_id = "approve_pairing",
    params(("code" = String, Path, description = "The code, in any case, with or without its dash")),
    request_body(content = Option<Approval>),
    responses((status = 200, description = "Who is let in", body = PersonItem), TooManyCodes))]
pub(super) async fn approve(State(app): Shared, code: Segment, operation: Operation<Approval>) -> Answer<PersonItem> {
    let Approval { name, role, reason } = &operation.body;
    let (code, caller) = (typed(code)?, operation.caller());
    let name = name.as_deref().map(checked_name).transpose()?.map(str::to_owned);
    let role = role.unwrap_or_default();
    if matches!(role, PersonRoleName::Owner) && caller.role < Role::Admin {
        let why = "to make somebody an owner, this needs a token with the role `admin`";
        return Err(ApiError::Forbidden(why.to_owned()));
    }
    // The answer is not known before it is done, so it is not kept.
    let actor = Actor { answer: None, ..operation.actor(reason.as_deref(), StatusCode::OK, &())? };
    let person = app.engine.operations().approve(&code, NewPerson { name, role: role.into() }, actor).await?;
    Ok(Json(PersonItem::of(caller, &person, app.engine.people().home(&person).as_ref())))
}

/// Does not let somebody in who was given this code. They are told nothing, and cannot ask again for seven days. Needs the role
/// `operator`. After ten codes that do not exist, this token is refused all codes for the rest of an hour.
#[utoipa::path(post, path = "/pairings/{code}/decline", operation_id = "decline_pairing",
    params(("code" = String, Path, description = "The code, in any case, with or without its dash"), IdempotencyKey),
    request_body(content = Option<Reason>),
    responses((status = 204, description = "They are not let in"), TooManyCodes))]
pub(super) async fn decline(State(app): Shared, code: Segment, operation: Operation<Reason>) -> Empty {
    let code = typed(code)?;
    let actor = operation.actor(operation.body.reason.as_deref(), StatusCode::NO_CONTENT, &())?;
    app.engine.operations().decline(&code, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The code as somebody typed it.
fn typed(code: Segment) -> Result<String, ApiError> {
    parsed(code, "no request that waits has this code")
}
