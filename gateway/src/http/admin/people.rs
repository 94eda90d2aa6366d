//! Who is known, and what is stored about people.

use std::time::Duration;

use clap::ValueEnum;
use rejoinder_core::{
    Actor, Forgotten, Identity, PersonRole,
    store::{KnownIdentity, PersonRecord},
};

use super::prelude::*;

/// For how long one request goes on: a request must have its answer before the time limit of requests.
const PATIENCE: Duration = Duration::from_secs(10);

whole! {
    /// The people who are known, oldest first.
    PersonList of PersonItem
}

item! {
    /// Somebody who is known.
    pub(crate) PersonItem of (caller: &Caller, person: &PersonRecord, home: Option<&Identity>) {
        let visible = person.identities.iter().filter(|known| caller.may_see(&known.identity.channel));
    } with {
        #[schema(format = "uuid")] id: String = person.id.to_string(),
        /// What operators call them.
        name: String = person.name.clone(),
        role: PersonRoleName = person.role.into(),
        /// Since when they are known.
        #[schema(format = DateTime)] created_at: String = rfc3339(person.created_at),
        /// Who they are on the channels that the token may see.
        identities: Vec<IdentityItem> = visible.map(|known| IdentityItem::of(known, home)).collect(),
    }
}

item! {
    /// Somebody as a channel knows them.
    pub(crate) IdentityItem of (known: &KnownIdentity, home: Option<&Identity>) {
        /// The channel, for example `telegram.main`.
        channel: String = known.identity.channel.to_string(),
        /// The platform's id of the person.
        id: String = known.identity.id.clone(),
        /// Whether they are reached here first: they chose it with `/home`, or the configuration says so.
        is_home: bool = Some(&known.identity) == home,
        /// Since when it is known.
        #[schema(format = DateTime)] added_at: String = rfc3339(known.added_at),
        /// Who let them in: the name of a token, `configuration`, or the name of an owner.
        added_by: String = known.added_by.clone(),
    }
}

names! {
    /// What a person may do besides talking to the agent: a `guest` and a `member` nothing, an `owner` lets others in with `/approve`.
    #[derive(Default, ValueEnum)]
    PersonRoleName of PersonRole {
        Guest,
        #[default]
        Member,
        Owner,
    }
}

/// Lists the people who are known, oldest first. They may write in direct chats where the policy is `pairing` or `allowlist`,
/// and in groups where `group_allow_from` is empty.
#[utoipa::path(get, path = "/people", operation_id = "list_people", params(Filter),
    responses((status = 200, description = "The people", body = PersonList)))]
pub(super) async fn list(State(app): Shared, caller: Caller, Query(filter): Query<Filter>) -> Answer<PersonList> {
    let people = match filter.person {
        Some(person) => app.engine.people().called(&person),
        None => app.engine.people().all().await?,
    };
    let seen = people.iter().map(|person| PersonItem::of(&caller, person, app.engine.people().home(person).as_ref()));
    Ok(Json(seen.filter(|person| !person.identities.is_empty()).collect()))
}

query! {
    /// The filter of the list.
    Filter {
        /// Only the person of this name: by their name in any case, by `CHANNEL/ID`, or by the id.
        #[param(max_length = 256)] person: Option<String>,
    }
}

body! {
    /// Who is not to be known any more.
    Revocation {
        /// The person: `CHANNEL/ID`, the id on this channel, or the name of somebody who is known on one channel.
        #[schema(min_length = 1, max_length = 1000)] person: String,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// What a revocation leaves.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Revoked {
    /// The entry of `[people]` that names them: they are known again after the next start, and when that entry changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    configured_as: Option<String>,
}

/// Makes somebody unknown on a channel, from now on. Who is on the channel's `allow_from` may still write, and who is in
/// `[people]` is known again after the next start. Needs the role `operator`.
#[utoipa::path(post, path = "/people/revoke", operation_id = "revoke_person", params(IdempotencyKey),
    request_body(content = Revocation),
    responses((status = 200, description = "They are not known any more", body = Revoked)))]
pub(super) async fn revoke(State(app): Shared, operation: Operation<Revocation>) -> Answer<Revoked> {
    let Revocation { person, reason } = &operation.body;
    let identity = identity(&app, operation.caller(), person)?;
    let revoked = Revoked { configured_as: app.engine.configured_as(&identity) };
    let actor = operation.actor(reason.as_deref(), StatusCode::OK, &revoked)?;
    app.engine.operations().revoke(&identity, actor).await?;
    Ok(Json(revoked))
}

body! {
    /// Whom to forget.
    Forget {
        /// The person: `CHANNEL/ID`, the id on this channel, or the name of somebody who is known on one channel.
        #[schema(min_length = 1, max_length = 1000)] person: String,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// How far a person is forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForgottenItem {
    /// Whether nothing is left. If not, ask again: it goes on from there.
    done: bool,
    /// The number of turns that this request removed.
    turns: usize,
    /// The number of turns that cannot be removed yet, because a run or a delivery still goes on.
    unended: usize,
    /// The entry of `[people]` that names them: they are known again after the next start, and when that entry changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    configured_as: Option<String>,
}

/// Erases what is stored about a person: their turns with all that belongs to them, and that they are known. What is still
/// owed to them is given up. Goes on for ten seconds at most; ask again until it is done. In conversations with others, what
/// models were shown and what messages quote goes as well. At the end the database is written anew, so that no deleted byte is
/// left in its files: writes wait for that, about a second for each 100 MB. Needs the role `admin`.
#[utoipa::path(post, path = "/people/forget", operation_id = "forget_person", request_body(content = Forget),
    responses((status = 200, description = "How far it is", body = ForgottenItem)))]
pub(super) async fn forget(State(app): Shared, operation: Operation<Forget>) -> Answer<ForgottenItem> {
    let person = identity(&app, operation.caller(), &operation.body.person)?;
    // It may be repeated, so its answer is not kept.
    let actor = Actor { answer: None, ..operation.actor(operation.body.reason.as_deref(), StatusCode::OK, &())? };
    let Forgotten { turns, unended, is_done } = app.engine.erasure().forget(&person, PATIENCE, actor).await?;
    let configured_as = app.engine.configured_as(&person);
    Ok(Json(ForgottenItem { done: is_done, turns, unended, configured_as }))
}

/// The identity for `CHANNEL/ID`, or for the name of a person who is known on one channel.
fn identity(app: &App, caller: &Caller, person: &str) -> Result<Identity, ApiError> {
    if let Some(identity) = Identity::parse(person) {
        return Ok(identity);
    }
    let known = app.engine.people().called(person).into_iter().flat_map(|person| person.identities);
    let mut known: Vec<_> = known.map(|known| known.identity).filter(|it| caller.may_see(&it.channel)).collect();
    let is_seen = |one: &PersonRecord| one.identities.iter().any(|known| caller.may_see(&known.identity.channel));
    let why = match (known.len(), app.engine.people().nearest(person, is_seen)) {
        (1, _) => return Ok(known.remove(0)),
        (0, Some(name)) => format!("nobody who is known is {person}: did you mean {name}?"),
        (0, None) => {
            format!("nobody who is known is {person}: `person` is CHANNEL/ID, as in telegram.main/7, or a name")
        }
        _ => {
            let known: Vec<_> = known.iter().map(Identity::to_string).collect();
            format!("{person} is {}: name one of them", known.join(" and "))
        }
    };
    Err(ApiError::BadRequest(why))
}
