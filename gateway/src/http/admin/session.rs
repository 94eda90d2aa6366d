//! What the page does with its sessions: opens one, says who is signed in, lists and ends them.

use axum::{
    extract::Request,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use rejoinder_core::store::{Role, SignInChange, SignInRecord};
use rejoinder_kit::{Peer, bearer};
use secrecy::ExposeSecret;

use super::{prelude::*, tokens::RoleName};
use crate::{callers::SessionEnd, http::sessions::COOKIE};

/// The largest body of a request, in bytes.
const MAX_BODY: usize = 4 * 1024;

body! {
    /// What opens a session: a code, or nothing beside a token in `Authorization`.
    #[derive(Default)]
    Opening {
        /// The code of a link.
        #[schema(max_length = 256)] code: Option<String>,
    }
}

item! {
    /// Who is signed in.
    pub(crate) SessionItem of (caller: &Caller) {
        let names = |channels: &Vec<_>| channels.iter().map(ToString::to_string).collect();
    } with {
        /// The name of the token, which the audit shows.
        name: String = caller.name.clone(),
        role: RoleName = caller.role.into(),
        /// The channels that it is limited to; null for all.
        channels: Option<Vec<String>> = caller.channels.as_ref().map(names),
        /// When the session ends; null for a request with a token.
        #[schema(format = DateTime)] expires_at: Option<String> = caller.session.map(|session| rfc3339(session.at)),
    }
}

/// Opens a session of the page with the code of a link, or with a token. The answer sets a cookie.
#[utoipa::path(post, path = "/session", operation_id = "open_session", request_body(content = Option<Opening>),
    responses((status = 200, description = "Who is signed in", body = SessionItem)),
    security((), ("admin_token" = [])))]
pub(super) async fn open(State(app): Shared, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let has_token = bearer(&parts.headers).is_some();
    let mut used = None;
    let caller = if has_token {
        app.access.identify(&parts.headers, &parts.extensions, &app.tokens, &app.renewal).await?
    } else {
        let peer = Peer::of(&parts.extensions);
        let unreadable = || ApiError::BadRequest("the body must be JSON with the `code` of a link".to_owned());
        let body = axum::body::to_bytes(body, MAX_BODY).await.map_err(|_| unreadable())?;
        let Opening { code } = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        let code = code.unwrap_or_default();
        used = app.sessions.digest(&code).map(SignInChange::UseLink);
        app.access.open_link(peer, || app.sessions.open(&code, &app.tokens), &app.renewal).await?
    };
    if caller.role < Role::Viewer {
        return Err(ApiError::Forbidden("this token only talks to agents, at /v1".to_owned()));
    }
    let browser = parts.headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default();
    let begun = app.sessions.begin(&caller, browser).map_err(|_| ApiError::Internal)?;
    let (secret, session, mut changes) = begun.ok_or(ApiError::Unauthorized)?;
    changes.extend(used);
    if !app.engine.administration().change_sign_ins(changes.clone(), None).await? {
        // Another request has opened the link, here or at another node.
        return Err(ApiError::Unauthorized);
    }
    app.sessions.note(changes);
    let end = SessionEnd { id: session.id, at: session.expires_at };
    let caller = Caller { session: Some(end), ..caller };
    let secure = if is_over_tls(&parts.headers) { "; Secure" } else { "" };
    let seconds = session.expires_at.as_millis().saturating_sub(session.opened_at.as_millis()) / 1000;
    let cookie = format!(
        "{COOKIE}={}; Path=/admin; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}",
        secret.expose_secret()
    );
    Ok(([(header::SET_COOKIE, cookie)], Json(SessionItem::of(&caller))).into_response())
}

/// Whether the page was loaded over TLS, which a proxy in front ends.
fn is_over_tls(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Says who is signed in.
#[utoipa::path(get, path = "/session", operation_id = "show_session",
    responses((status = 200, description = "Who is signed in", body = SessionItem)))]
pub(super) async fn show(caller: Caller) -> Json<SessionItem> {
    Json(SessionItem::of(&caller))
}

/// Signs out: the session is over, also for who has a copy of its cookie.
#[utoipa::path(delete, path = "/session", operation_id = "close_session",
    responses((status = 204, description = "The browser is signed out")))]
pub(super) async fn close(State(app): Shared, caller: Caller) -> Result<Response, ApiError> {
    if let Some(session) = caller.session {
        let changes = vec![SignInChange::End(session.id)];
        app.engine.administration().change_sign_ins(changes.clone(), None).await?;
        app.sessions.note(changes);
    }
    let cookie = format!("{COOKIE}=; Path=/admin; Max-Age=0; HttpOnly; SameSite=Strict");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

whole! {
    /// The sessions of the page that are open, oldest first.
    SessionList of OpenSession
}

/// A session of the page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenSession {
    #[schema(format = "uuid")]
    id: String,
    /// The name of the token with which it was opened.
    name: String,
    role: RoleName,
    /// What the browser calls itself.
    browser: String,
    #[schema(format = DateTime)]
    opened_at: String,
    /// When it ends by itself.
    #[schema(format = DateTime)]
    expires_at: String,
    /// Whether it is the one that asks.
    current: bool,
}

/// Lists the sessions of the page that are open. Needs the role `admin`.
#[utoipa::path(get, path = "/sessions", operation_id = "list_sessions",
    responses((status = 200, description = "The sessions", body = SessionList)))]
pub(super) async fn list(State(app): Shared, caller: Caller) -> Json<SessionList> {
    app.renewal.renew().await;
    let item = |session: SignInRecord| {
        let Caller { name, role, .. } = app.sessions.caller_of(&session, &app.tokens)?;
        Some(OpenSession {
            id: session.id.to_string(),
            name,
            role: role.into(),
            browser: session.browser,
            opened_at: rfc3339(session.opened_at),
            expires_at: rfc3339(session.expires_at),
            current: caller.session.is_some_and(|own| own.id == session.id),
        })
    };
    Json(app.sessions.records().into_iter().filter_map(item).collect())
}

/// Ends a session of the page. Needs the role `admin`.
#[utoipa::path(delete, path = "/sessions/{id}", operation_id = "end_session",
    params(("id" = String, Path, description = "The id of the session"), IdempotencyKey),
    request_body(content = Option<Reason>), responses((status = 204, description = "It is over")))]
pub(super) async fn end(State(app): Shared, id: Segment, operation: Operation<Reason>) -> Empty {
    const UNKNOWN: &str = "there is no session with this id";
    let wanted: String = parsed(id, UNKNOWN)?;
    app.renewal.renew().await;
    let open = app.sessions.records();
    let session = open.iter().find(|session| session.id.to_string() == wanted).ok_or(ApiError::NotFound(UNKNOWN))?;
    let actor = operation.actor(operation.body.reason.as_deref(), StatusCode::NO_CONTENT, &())?;
    let changes = vec![SignInChange::End(session.id)];
    app.engine.administration().change_sign_ins(changes.clone(), Some(actor)).await?;
    app.sessions.note(changes);
    Ok(StatusCode::NO_CONTENT)
}

/// A link that opens the page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkItem {
    /// To be put behind the gateway's address. It opens a session once, with the rights of the token that made it.
    path: String,
    /// Until when it can be opened.
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Makes a link that opens the page without a token, once, within ten minutes.
#[utoipa::path(post, path = "/links", operation_id = "create_link",
    responses((status = 201, description = "The link", body = LinkItem)))]
pub(super) async fn link(State(app): Shared, caller: Caller) -> Answered<LinkItem> {
    let (path, until, changes) = app.sessions.link(&caller).map_err(|_| ApiError::Internal)?;
    app.engine.administration().change_sign_ins(changes, None).await?;
    Ok((StatusCode::CREATED, Json(LinkItem { path, expires_at: rfc3339(until) })))
}
