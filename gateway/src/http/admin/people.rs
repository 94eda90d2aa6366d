//! Who is known, and what is stored about people.

use std::time::Duration;

use clap::ValueEnum;
use rejoinder_core::{
    Actor, ChannelId, Forgotten, Identity, NewInvitation, PersonRole,
    store::{KnownIdentity, PersonRecord},
};
use rejoinder_kit::token_digest;
use secrecy::ExposeSecret;

use super::prelude::*;
use crate::secrets;

/// For how long one request goes on: a request must have its answer before the time limit of requests.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an invitation can be opened.
const INVITATION: Duration = Duration::from_hours(24);

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

body! {
    /// Whom to invite to a chat page.
    WantedInvitation {
        /// The person: the name of somebody who is known, or `CHANNEL/ID`.
        #[schema(min_length = 1, max_length = 1000)] person: String,
        /// The chat page, for example `webchat.main`; may be left out if people sign in to one only.
        #[schema(max_length = 256)] channel: Option<String>,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// A link with which a person makes a passkey.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeInvitation {
    /// The path of the link, which is shown only now. It opens the page once.
    path: String,
    /// Who the person is on the page: `CHANNEL/ID`.
    identity: String,
    /// From when on it opens nothing.
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Invites somebody who is known to a chat page where people sign in: makes a link with which they make a passkey, in place of an earlier
/// link of theirs. It opens once, within a day. Who has no identity on the page gets one. Needs the role `admin`.
#[utoipa::path(post, path = "/people/invite", operation_id = "invite_person", request_body(content = WantedInvitation),
    responses((status = 201, description = "The link, which is shown only now", body = MadeInvitation)))]
pub(super) async fn invite(State(app): Shared, operation: Operation<WantedInvitation>) -> Answered<MadeInvitation> {
    let WantedInvitation { person, channel, reason } = &operation.body;
    let (person, channel) = (any_identity(&app, operation.caller(), person)?, page(&app, channel.as_deref())?);
    // The secret must not be kept, so the answer is not either.
    let actor = Actor { answer: None, ..operation.actor(reason.as_deref(), StatusCode::CREATED, &())? };
    let code = secrets::new_token().map_err(|_| ApiError::Internal)?;
    let expires_at = app.clock.now() + INVITATION;
    // What follows the `#` is sent to no server, and is in no log.
    let path = match channel.name() {
        "main" => format!("/chat#invitation={}", code.expose_secret()),
        name => format!("/chat/{name}#invitation={}", code.expose_secret()),
    };
    let code = token_digest(code.expose_secret().as_bytes());
    let invitation = NewInvitation { channel, code, expires_at };
    let identity = app.engine.operations().invite(&person, invitation, actor).await?.to_string();
    Ok((StatusCode::CREATED, Json(MadeInvitation { path, identity, expires_at: rfc3339(expires_at) })))
}

/// The chat page with this name, or the only one, where people sign in.
fn page(app: &App, wanted: Option<&str>) -> Result<ChannelId, ApiError> {
    let channels = app.engine.channels().into_iter().map(|(channel, _)| channel);
    let is_page = |channel: &ChannelId| channel.platform() == "webchat" && app.engine.has_people(channel);
    let mut pages: Vec<_> = channels.filter(is_page).collect();
    if let Some(wanted) = wanted {
        pages.retain(|page| page.as_str() == wanted);
    }
    match (pages.len(), wanted) {
        (1, _) => Ok(pages.remove(0)),
        (_, Some(wanted)) => Err(ApiError::BadRequest(format!(
            "{wanted} is no chat page with access = \"people\": nobody signs in there"
        ))),
        (0, None) => {
            let why = "people sign in to no chat page: set access = \"people\" in the section of one";
            Err(ApiError::BadRequest(why.to_owned()))
        }
        (_, None) => Err(ApiError::BadRequest("people sign in to several chat pages: name the `channel`".to_owned())),
    }
}

/// An identity of the person with this name, or `CHANNEL/ID`.
fn any_identity(app: &App, caller: &Caller, person: &str) -> Result<Identity, ApiError> {
    if let Some(identity) = Identity::parse(person) {
        return Ok(identity);
    }
    let mut people = app.engine.people().called(person);
    if people.len() == 1 {
        let mut known = people.remove(0).identities.into_iter().map(|known| known.identity);
        if let Some(identity) = known.find(|identity| caller.may_see(&identity.channel)) {
            return Ok(identity);
        }
    }
    identity(app, caller, person)
}

body! {
    /// Whom to sign out.
    SignOut {
        /// The person: `CHANNEL/ID` of a chat page, or the name of somebody who is known.
        #[schema(min_length = 1, max_length = 1000)] person: String,
        /// Whether their passkeys are removed as well: they need another invitation then.
        #[serde(default)] passkeys: bool,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// Ends the sessions of somebody on chat pages, and the links that they could still open, from now on. Open pages notice it within half a
/// minute. Needs the role `admin`.
#[utoipa::path(post, path = "/people/sign-out", operation_id = "sign_out_person", request_body(content = SignOut),
    responses((status = 204, description = "They are signed out")))]
pub(super) async fn sign_out(State(app): Shared, operation: Operation<SignOut>) -> Empty {
    let SignOut { person, passkeys, reason } = &operation.body;
    let pages: Vec<Identity> = if let Some(identity) = Identity::parse(person) {
        vec![identity]
    } else {
        let known = app.engine.people().called(person).into_iter().flat_map(|person| person.identities);
        known.map(|known| known.identity).filter(|identity| identity.channel.platform() == "webchat").collect()
    };
    if pages.is_empty() {
        return Err(ApiError::BadRequest(format!("nobody who is known on a chat page is {person}")));
    }
    for page in &pages {
        let actor = Actor { answer: None, ..operation.actor(reason.as_deref(), StatusCode::NO_CONTENT, &())? };
        app.engine.operations().sign_out(page, *passkeys, actor).await?;
    }
    Ok(StatusCode::NO_CONTENT)
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
