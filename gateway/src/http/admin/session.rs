//! Sessions of the page: a one-time link or a token opens one, and a cookie carries it.
//!
//! A cookie names the token that opened it and when it ends, signed with the configured token. So it survives a restart,
//! and ends when its token is revoked or the configured one is changed. It cannot be read by scripts, and no other site
//! can send it. A page of another server on this machine is the same site for browsers, so what changes something must
//! also come from our own origin.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header, uri::Authority},
    response::{IntoResponse, Response},
};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use rejoinder_core::{SharedClock, Timestamp, store::Role};
use rejoinder_kit::{Peer, Tokens, bearer, token_digest};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    caller::{Caller, StoredTokens},
    responses::{Changing, Reading},
    tokens::RoleName,
};
use crate::{
    http::{Shared, error::ApiError},
    secrets,
    time::rfc3339,
};

const COOKIE: &str = "rejoinder_session";

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_hours(12);

/// How long a link can be opened.
const LINK_LIFETIME: Duration = Duration::from_mins(10);

/// How many links can be open at once; a new one replaces the oldest.
const MAX_LINKS: usize = 32;

/// The largest body of a request, in bytes.
const MAX_BODY: usize = 4 * 1024;

/// A link that nobody has opened yet.
struct Link {
    /// The digest of its code.
    code: [u8; 32],
    caller: Caller,
    until: Timestamp,
}

/// Opens sessions, and finds out who has one.
pub(crate) struct Sessions {
    /// Signs the cookies; `None`: `/admin` is switched off.
    key: Option<Tokens>,
    clock: SharedClock,
    links: Mutex<Vec<Link>>,
}

impl Sessions {
    pub(crate) fn new(key: Option<Tokens>, clock: SharedClock) -> Self {
        Self { key, clock, links: Mutex::default() }
    }

    /// The path of a link that opens a session for `caller`, once.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(crate) fn link(&self, caller: Caller) -> std::io::Result<(String, Timestamp)> {
        let code = secrets::new_token()?;
        let until = self.clock.now() + LINK_LIFETIME;
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.len() == MAX_LINKS {
            links.remove(0);
        }
        links.push(Link { code: token_digest(code.expose_secret().as_bytes()), caller, until });
        // What follows the `#` is sent to no server, and is in no log.
        Ok((format!("/admin#code={}", code.expose_secret()), until))
    }

    /// Who made the link with this code. It cannot be opened again.
    fn open(&self, code: &str) -> Option<Caller> {
        let (sent, now) = (token_digest(code.as_bytes()), self.clock.now());
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.until > now);
        let found = links.iter().position(|link| link.code.ct_eq(&sent).into())?;
        Some(links.remove(found).caller)
    }

    /// The value of a cookie for `caller`; `None` if `/admin` is switched off.
    fn cookie(&self, caller: &Caller, until: Timestamp) -> Option<String> {
        let token = caller.token.map_or_else(String::new, |token| token.simple().to_string());
        let session = format!("{token}.{}", until.as_millis());
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.key.as_ref()?.sign(session.as_bytes()));
        Some(format!("{session}.{signature}"))
    }

    /// Who has the session of a request.
    pub(super) fn caller(&self, request: &Request, stored: &StoredTokens) -> Option<Caller> {
        if !request.method().is_safe() && !is_of_our_origin(request.headers()) {
            return None;
        }
        let mut cookies = request.headers().get_all(header::COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
        cookies.find_map(|cookies| {
            cookies.split(';').find_map(|cookie| {
                let value = cookie.trim().strip_prefix(COOKIE)?.strip_prefix('=')?;
                self.read(value, stored)
            })
        })
    }

    fn read(&self, cookie: &str, stored: &StoredTokens) -> Option<Caller> {
        let (session, signature) = cookie.rsplit_once('.')?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        if !bool::from(self.key.as_ref()?.sign(session.as_bytes()).ct_eq(&signature[..])) {
            return None;
        }
        let (token, until) = session.split_once('.')?;
        let until = Timestamp::from_millis(until.parse().ok()?);
        let caller = match token {
            "" => Caller::configured(),
            token => stored.caller_with(Uuid::parse_str(token).ok()?)?,
        };
        (until > self.clock.now()).then_some(Caller { until: Some(until), ..caller })
    }
}

/// Whether a page of ours sent the request. Browsers always say where a request comes from that changes something.
fn is_of_our_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return site == "same-origin";
    }
    let host: Option<Authority> = text(header::HOST).and_then(|host| host.parse().ok());
    let origin: Option<Authority> =
        text(header::ORIGIN).and_then(|origin| origin.split_once("://")).and_then(|(_, origin)| origin.parse().ok());
    origin.is_some() && origin == host
}

/// What opens a session: a code, or nothing beside a token in `Authorization`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opening {
    /// The code of a link.
    #[schema(max_length = 256)]
    code: Option<String>,
}

/// Who is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionItem {
    /// The name of the token, which the audit shows.
    name: String,
    role: RoleName,
    /// The channels that it is limited to; null for all.
    channels: Option<Vec<String>>,
    /// When the session ends; null for a request with a token.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

impl From<&Caller> for SessionItem {
    fn from(caller: &Caller) -> Self {
        let names = |channels: &Vec<_>| channels.iter().map(ToString::to_string).collect();
        Self {
            name: caller.name.clone(),
            role: caller.role.into(),
            channels: caller.channels.as_ref().map(names),
            expires_at: caller.until.map(rfc3339),
        }
    }
}

/// Opens a session of the page with the code of a link, or with a token. The answer sets a cookie.
#[utoipa::path(post, path = "/admin/api/session", tag = "admin", operation_id = "open_session",
    request_body(content = Option<Opening>),
    responses((status = 200, description = "Who is signed in", body = SessionItem), Changing),
    security((), ("admin_token" = [])))]
pub(in crate::http) async fn open(State(app): Shared, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let has_token = bearer(&parts.headers).is_some();
    let caller = if has_token {
        app.access.identify(&parts.headers, &parts.extensions, &app.tokens).await?
    } else {
        let peer = Peer::of(&parts.extensions);
        let unreadable = || ApiError::BadRequest("the body must be JSON with the `code` of a link".to_owned());
        let body = axum::body::to_bytes(body, MAX_BODY).await.map_err(|_| unreadable())?;
        let Opening { code } = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        app.access.open_link(peer, || app.sessions.open(&code.unwrap_or_default())).await?
    };
    if caller.role < Role::Viewer {
        return Err(ApiError::Forbidden("this token only talks to agents, at /v1".to_owned()));
    }
    let until = app.clock.now() + LIFETIME;
    let caller = Caller { until: Some(until), ..caller };
    let cookie = app.sessions.cookie(&caller, until).ok_or(ApiError::Unauthorized)?;
    let secure = if is_over_tls(&parts.headers) { "; Secure" } else { "" };
    let seconds = LIFETIME.as_secs();
    let cookie = format!("{COOKIE}={cookie}; Path=/admin; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    Ok(([(header::SET_COOKIE, cookie)], Json(SessionItem::from(&caller))).into_response())
}

/// Whether the page was loaded over TLS, which a proxy in front ends.
fn is_over_tls(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Says who is signed in.
#[utoipa::path(get, path = "/admin/api/session", tag = "admin", operation_id = "show_session",
    responses((status = 200, description = "Who is signed in", body = SessionItem), Reading),
    security(("admin_token" = [])))]
pub(in crate::http) async fn show(Extension(caller): Extension<Caller>) -> Json<SessionItem> {
    Json(SessionItem::from(&caller))
}

/// Removes the cookie of the session.
#[utoipa::path(delete, path = "/admin/api/session", tag = "admin", operation_id = "close_session",
    responses((status = 204, description = "The browser is signed out"), Reading),
    security(("admin_token" = [])))]
pub(in crate::http) async fn close() -> Response {
    let cookie = format!("{COOKIE}=; Path=/admin; Max-Age=0; HttpOnly; SameSite=Strict");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
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
#[utoipa::path(post, path = "/admin/api/links", tag = "admin", operation_id = "create_link",
    responses((status = 201, description = "The link", body = LinkItem), Changing),
    security(("admin_token" = [])))]
pub(in crate::http) async fn link(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
) -> Result<(StatusCode, Json<LinkItem>), ApiError> {
    let (path, until) = app.sessions.link(caller).map_err(|_| ApiError::Internal)?;
    Ok((StatusCode::CREATED, Json(LinkItem { path, expires_at: rfc3339(until) })))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::{body::Body, http::Method};
    use rejoinder_core::{Clock as _, conformance::clock::TestClock};
    use rstest::rstest;

    use super::*;

    fn request(method: Method, cookie: &str, headers: &[(&str, &str)]) -> Request {
        let request = Request::builder().method(method).uri("/admin/api/turns").header("host", "127.0.0.1:7420");
        let request = request.header("cookie", format!("theme=dark; {COOKIE}={cookie}"));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(Body::empty()).unwrap()
    }

    fn world() -> (Arc<TestClock>, Sessions, StoredTokens) {
        let clock = TestClock::new();
        let sessions = Sessions::new(Some("secret".into()), Arc::<TestClock>::clone(&clock));
        let tokens = StoredTokens::none(Arc::<TestClock>::clone(&clock));
        (clock, sessions, tokens)
    }

    #[test]
    fn a_session_lasts_until_its_time_is_over() {
        let (clock, sessions, tokens) = world();
        let cookie = sessions.cookie(&Caller::configured(), clock.now() + LIFETIME).unwrap();
        let caller = || sessions.caller(&request(Method::GET, &cookie, &[]), &tokens);

        assert!(caller().is_some());
        clock.advance(LIFETIME);
        assert!(caller().is_none());
    }

    #[test]
    fn a_cookie_that_is_changed_or_signed_with_another_token_opens_nothing() {
        let (clock, sessions, tokens) = world();
        let until = clock.now() + LIFETIME;
        let cookie = sessions.cookie(&Caller::configured(), until).unwrap();
        let later = cookie.replace(&until.as_millis().to_string(), &(until.as_millis() + 1).to_string());
        let other = Sessions::new(Some("other".into()), Arc::<TestClock>::clone(&clock));
        let unknown = Caller { token: Some(Uuid::from_u128(7)), ..Caller::configured() };
        let revoked = sessions.cookie(&unknown, until).unwrap();

        for cookie in [&later, &other.cookie(&Caller::configured(), until).unwrap(), &revoked, "", "..", "a.b.c"] {
            assert!(sessions.caller(&request(Method::GET, cookie, &[]), &tokens).is_none(), "{cookie}");
        }
    }

    #[test]
    fn a_link_opens_once_and_in_time() {
        let (clock, sessions, _) = world();
        let code = || sessions.link(Caller::configured()).unwrap().0.split_once('=').unwrap().1.to_owned();
        let (used, late) = (code(), code());

        assert!(sessions.open("").is_none() && sessions.open(&used).is_some() && sessions.open(&used).is_none());
        clock.advance(LINK_LIFETIME);
        assert!(sessions.open(&late).is_none());
    }

    #[rstest]
    #[case(Method::GET, &[], true)]
    #[case(Method::POST, &[], false)]
    #[case(Method::POST, &[("origin", "http://127.0.0.1:7420")], true)]
    #[case(Method::POST, &[("origin", "http://127.0.0.1:3000")], false)]
    #[case(Method::POST, &[("origin", "null")], false)]
    #[case(Method::POST, &[("sec-fetch-site", "same-origin")], true)]
    #[case(Method::POST, &[("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:7420")], false)]
    #[case(Method::DELETE, &[("sec-fetch-site", "cross-site")], false)]
    fn only_our_own_page_changes_something(
        #[case] method: Method,
        #[case] headers: &[(&str, &str)],
        #[case] may: bool,
    ) {
        let (clock, sessions, tokens) = world();
        let cookie = sessions.cookie(&Caller::configured(), clock.now() + LIFETIME).unwrap();

        assert_eq!(sessions.caller(&request(method, &cookie, headers), &tokens).is_some(), may);
    }
}
