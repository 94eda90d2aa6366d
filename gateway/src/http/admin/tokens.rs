//! The operators' tokens.

use clap::ValueEnum;
use rejoinder_core::{
    Actor, ChannelId, OperationError, StoreError,
    store::{Role, TokenChange, TokenRecord},
};
use rejoinder_kit::token_digest;
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{operation::checked_name, prelude::*};
use crate::{callers::CONFIGURED, secrets, time::parse};

whole! {
    /// The tokens that open the admin API beside the configured one, oldest first.
    TokenList of TokenItem
}

item! {
    /// A token: never the secret itself.
    pub(crate) TokenItem of (token: &TokenRecord) {
        let names = |channels: &Vec<ChannelId>| channels.iter().map(ToString::to_string).collect();
    } with {
        #[schema(format = "uuid")] id: String = token.id.to_string(),
        /// The name that the audit shows.
        name: String = token.name.clone(),
        role: RoleName = token.role.into(),
        /// The channels that it is limited to; null for all.
        channels: Option<Vec<String>> = token.channels.as_ref().map(names),
        #[schema(format = DateTime)] created_at: String = rfc3339(token.created_at),
        /// The name of the token with which it was made.
        created_by: String = token.created_by.clone(),
        /// From when on it opens nothing.
        #[schema(format = DateTime)] expires_at: Option<String> = token.expires_at.map(rfc3339),
    }
}

names! {
    /// What a token allows: `viewer` reads, `operator` also mends, `admin` also manages tokens. `chat` opens no admin API: it talks
    /// to agents at `/v1`.
    #[derive(ValueEnum)]
    RoleName of Role { Chat, Viewer, Operator, Admin }
}

/// Lists the tokens. Needs the role `admin`.
#[utoipa::path(get, path = "/tokens", operation_id = "list_tokens",
    responses((status = 200, description = "The tokens", body = TokenList)))]
pub(super) async fn list(State(app): Shared) -> Json<TokenList> {
    app.renewal.renew().await;
    Json(app.tokens.list().iter().map(TokenItem::of).collect())
}

body! {
    /// A token to make.
    NewToken {
        /// The name that the audit shows; no other token has it, or had it before it was revoked. If it is missing: the role and a
        /// number.
        #[schema(min_length = 1, max_length = 100)] name: Option<String>,
        role: RoleName,
        /// The channels that it is limited to; all if it is missing.
        channels: Option<Vec<String>>,
        /// From when on it opens nothing; never if it is missing.
        #[schema(format = DateTime, max_length = 64)] expires_at: Option<String>,
        /// Why, for the audit.
        #[schema(max_length = 1000)] reason: Option<String>,
    }
}

/// A token that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeToken {
    /// The secret. It is shown here only: the gateway keeps a hash of it.
    token: String,
    #[serde(flatten)]
    item: TokenItem,
}

/// Makes a token. Needs the role `admin`.
#[utoipa::path(post, path = "/tokens", operation_id = "create_token", request_body(content = NewToken),
    responses((status = 201, description = "The token, which is shown only now", body = MadeToken)))]
pub(super) async fn create(State(app): Shared, operation: Operation<NewToken>) -> Answered<MadeToken> {
    let NewToken { name, role, channels, expires_at, reason } = &operation.body;
    app.renewal.renew().await;
    let name = match name {
        Some(name) => checked_name(name)?.to_owned(),
        None => app.tokens.free_name((*role).into()),
    };
    if name == CONFIGURED {
        return Err(ApiError::Conflict(format!("the token of the configuration has the name {name}")));
    }
    let wrong = || ApiError::BadRequest("`expires_at` must be a time in RFC 3339".to_owned());
    let expires_at = expires_at.as_deref().map(|text| parse(text).ok_or_else(wrong)).transpose()?;
    if expires_at.is_some_and(|at| at <= app.clock.now()) {
        return Err(ApiError::BadRequest("`expires_at` is in the past: the token would open nothing".to_owned()));
    }
    let known: Vec<ChannelId> = app.engine.channels().into_iter().map(|(channel, _)| channel).collect();
    let channels = channels.as_ref().map(|names| names.iter().map(|name| ChannelId::from_stored(name)).collect());
    let channels: Option<Vec<ChannelId>> = channels;
    if channels.is_some() && matches!(role, RoleName::Admin) {
        return Err(ApiError::BadRequest("`channels`: a token with the role admin cannot be limited".to_owned()));
    }
    if let Some(unknown) = channels.iter().flatten().find(|channel| !known.contains(channel)) {
        return Err(ApiError::BadRequest(format!("`channels`: there is no channel {unknown}")));
    }
    // The secret must not be kept, so the answer is not either: the name makes a repeated request fail.
    let actor = Actor { answer: None, ..operation.actor(reason.as_deref(), StatusCode::CREATED, &())? };
    let secret = secrets::new_token().map_err(|_| ApiError::Internal)?;
    let record = TokenRecord {
        id: Uuid::now_v7(),
        name,
        hash: token_digest(secret.expose_secret().as_bytes()),
        role: (*role).into(),
        channels,
        created_at: app.clock.now(),
        created_by: actor.name.clone(),
        expires_at,
        revoked_at: None,
    };
    let item = TokenItem::of(&record);
    app.engine.administration().change_token(TokenChange::Create(record.clone()), actor).await?;
    app.tokens.add(record);
    Ok((StatusCode::CREATED, Json(MadeToken { token: secret.expose_secret().to_owned(), item })))
}

/// Revokes a token: it and its sessions open nothing any more, from now on. Needs the role `admin`.
#[utoipa::path(delete, path = "/tokens/{id}", operation_id = "revoke_token",
    params(("id" = String, Path, description = "The id or the name of the token"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 204, description = "It is revoked")))]
pub(super) async fn revoke(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Empty {
    const UNKNOWN: &str = "there is no token with this id or name";
    let wanted: String = parsed(id, UNKNOWN)?;
    app.renewal.renew().await;
    let tokens = app.tokens.list();
    let token = tokens
        .iter()
        .find(|token| token.id.to_string() == wanted || token.name == wanted)
        .ok_or(ApiError::NotFound(UNKNOWN))?;
    let actor = operation.actor(operation.body.reason.as_deref(), StatusCode::NO_CONTENT, &())?;
    let at = app.clock.now();
    let revoked = app.engine.administration().change_token(TokenChange::Revoke { id: token.id, at }, actor).await;
    // What may be stored holds already.
    if matches!(revoked, Ok(()) | Err(OperationError::Store(StoreError::Unknown(_)))) {
        app.tokens.revoke(token.id, at);
        app.sessions.forget(token.id);
    }
    revoked?;
    Ok(StatusCode::NO_CONTENT)
}
