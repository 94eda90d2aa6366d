//! Sessions of the page: a one-time link or a token opens one, and a cookie carries its secret.
//!
//! A link is a row with a digest of its code, and a session one with a keyed digest of the secret. So both survive a restart. A
//! session ends when somebody signs out or ends it, when its token is revoked, or when the configured token, which is the key, is
//! changed. The cookie cannot be read by scripts, and no other site can send it. A page of another server on this machine is the
//! same site for browsers, so what changes something must also come from our own origin.

use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderMap, header, request::Parts, uri::Authority};
use rejoinder_core::{
    SharedClock, StoreError, Timestamp,
    store::{LinkRecord, SignInChange, SignInRecord, TokenStore},
};
use rejoinder_kit::{Tokens, token_digest};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::{
    callers::{Caller, SessionEnd, StoredTokens},
    secrets,
};

pub(super) const COOKIE: &str = "rejoinder_session";

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_hours(12);

/// How long a link can be opened.
const LINK_LIFETIME: Duration = Duration::from_mins(10);

/// How many links of one token can be open at once; a new one replaces its oldest.
const MAX_LINKS: usize = 8;

/// How many sessions of one token can be open at once; a new one ends its oldest.
const MAX_SESSIONS: usize = 32;

/// How much is kept of what a browser calls itself, in characters.
const MAX_BROWSER: usize = 200;

/// Opens sessions, and finds out who has one.
pub(crate) struct AdminSessions {
    /// Digests the secrets; `None`: `/admin` is switched off.
    key: Option<Tokens>,
    clock: SharedClock,
    /// The links that nobody has opened yet: a copy of the rows.
    links: Mutex<Vec<LinkRecord>>,
    /// A copy of the rows, oldest first.
    open: RwLock<Vec<SignInRecord>>,
    /// How often sessions were changed here.
    changes: AtomicU64,
}

impl AdminSessions {
    pub(crate) async fn read(
        key: Option<Tokens>,
        store: &dyn TokenStore,
        clock: SharedClock,
    ) -> Result<Self, StoreError> {
        let (links, open) = (store.links().await?, store.sign_ins().await?);
        Ok(Self { key, clock, links: Mutex::new(links), open: RwLock::new(open), changes: AtomicU64::default() })
    }

    fn links(&self) -> MutexGuard<'_, Vec<LinkRecord>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The digest of a link's code. It is keyed as that of a session: both end with the configured token.
    pub(super) fn digest(&self, code: &str) -> Option<[u8; 32]> {
        Some(self.key.as_ref()?.sign(&token_digest(code.as_bytes())))
    }

    /// The path of a link that opens a session for `caller`, once, and what changes with it.
    ///
    /// # Errors
    /// When the system gives no random numbers, or `/admin` is switched off.
    pub(crate) fn link(&self, caller: &Caller) -> io::Result<(String, Timestamp, Vec<SignInChange>)> {
        let code = secrets::new_token()?;
        let now = self.clock.now();
        let digest = self.digest(code.expose_secret()).ok_or_else(|| io::Error::other("/admin is switched off"))?;
        let expires_at = now + LINK_LIFETIME;
        let session = caller.session.map(|session| session.id);
        let link = LinkRecord { code: digest, token: caller.token, session, expires_at };
        let mut links = self.links();
        let mut ended: Vec<_> = links.extract_if(.., |link| link.expires_at <= now).collect();
        let is_own = |link: &LinkRecord| link.token == caller.token;
        if links.iter().filter(|link| is_own(link)).count() >= MAX_LINKS
            && let Some(oldest) = links.iter().position(is_own)
        {
            ended.push(links.remove(oldest));
        }
        links.push(link.clone());
        let mut changes: Vec<_> = ended.into_iter().map(|link| SignInChange::EndLink(link.code)).collect();
        changes.push(SignInChange::MakeLink(link));
        // What follows the `#` is sent to no server, and is in no log.
        Ok((format!("/admin#code={}", code.expose_secret()), expires_at, changes))
    }

    /// The maker of the link with this code, if their token is still valid. Whether it was opened before is decided by the store.
    pub(super) fn open(&self, code: &str, stored: &StoredTokens) -> Option<Caller> {
        let (sent, now) = (self.digest(code)?, self.clock.now());
        let is_sent = |link: &&LinkRecord| link.expires_at > now && link.code.ct_eq(&sent).into();
        let link = self.links().iter().find(is_sent).cloned()?;
        let Some(session) = link.session else { return caller_with(link.token, stored) };
        let open = self.records();
        open.iter().find(|open| open.id == session).and_then(|open| self.caller_of(open, stored))
    }

    /// A new session of `caller`, with its secret and with what ends for it; `None` if `/admin` is switched off. It lasts no longer
    /// than the session that it was opened from.
    pub(super) fn begin(
        &self,
        caller: &Caller,
        browser: &str,
    ) -> io::Result<Option<(SecretString, SignInRecord, Vec<SignInChange>)>> {
        let Some(key) = &self.key else { return Ok(None) };
        let (secret, now) = (secrets::new_token()?, self.clock.now());
        let record = SignInRecord {
            id: Uuid::now_v7(),
            hash: key.sign(secret.expose_secret().as_bytes()),
            token: caller.token,
            browser: browser.chars().filter(|char| !char.is_control()).take(MAX_BROWSER).collect(),
            opened_at: now,
            expires_at: caller.session.map_or(now + LIFETIME, |session| session.at),
        };
        let open = self.records();
        let (expired, rest): (Vec<_>, Vec<_>) = open.iter().partition(|other| other.expires_at <= now);
        let own: Vec<_> = rest.into_iter().filter(|other| other.token == caller.token).collect();
        let surplus = (own.len() + 1).saturating_sub(MAX_SESSIONS);
        let ended = expired.into_iter().chain(own.into_iter().take(surplus));
        let mut changes: Vec<_> = ended.map(|session| SignInChange::End(session.id)).collect();
        changes.push(SignInChange::Open(record.clone()));
        Ok(Some((secret, record, changes)))
    }

    /// Notes changes that were stored.
    pub(super) fn note(&self, changes: Vec<SignInChange>) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        for change in changes {
            match change {
                // They may have been read again meanwhile.
                SignInChange::Open(session) if open.iter().any(|other| other.id == session.id) => {}
                SignInChange::Open(session) => open.push(session),
                SignInChange::End(id) => open.retain(|session| session.id != id),
                SignInChange::UseLink(code) => self.links().retain(|link| link.code != code),
                // They are changed before they are stored.
                SignInChange::MakeLink(_) | SignInChange::EndLink(_) => {}
            }
        }
    }

    /// How often sessions were changed here: not by [`replace`](Self::replace).
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Has these in place of those that are known: they were read again. `false` if sessions were changed here meanwhile, after so many
    /// `changes`. A link is used up by the store, whatever is known here.
    pub(super) fn replace(&self, links: Vec<LinkRecord>, open: Vec<SignInRecord>, changes: u64) -> bool {
        let mut known = self.open.write().unwrap_or_else(PoisonError::into_inner);
        let is_unchanged = self.changes() == changes;
        if is_unchanged {
            *self.links() = links;
            *known = open;
        }
        is_unchanged
    }

    /// Notes that a token was revoked, with which its sessions ended.
    pub(super) fn forget(&self, token: Uuid) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        self.changes.fetch_add(1, Ordering::Relaxed);
        open.retain(|session| session.token != Some(token));
    }

    pub(super) fn records(&self) -> Vec<SignInRecord> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Who has the session of a request.
    pub(super) fn caller(&self, request: &Parts, stored: &StoredTokens) -> Option<Caller> {
        if !request.method.is_safe() && !is_of_our_origin(&request.headers) {
            return None;
        }
        let mut cookies = request.headers.get_all(header::COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
        cookies.find_map(|cookies| {
            cookies.split(';').find_map(|cookie| {
                let secret = cookie.trim().strip_prefix(COOKIE)?.strip_prefix('=')?;
                self.caller_with(secret, stored)
            })
        })
    }

    fn caller_with(&self, secret: &str, stored: &StoredTokens) -> Option<Caller> {
        let sent = self.key.as_ref()?.sign(secret.as_bytes());
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let session = open.iter().find(|session| bool::from(session.hash.ct_eq(&sent)))?;
        self.caller_of(session, stored)
    }

    /// Who opened a session, if it is not over.
    pub(super) fn caller_of(&self, session: &SignInRecord, stored: &StoredTokens) -> Option<Caller> {
        let caller = caller_with(session.token, stored)?;
        let end = SessionEnd { id: session.id, at: session.expires_at };
        (stored.do_count() && end.at > self.clock.now()).then_some(Caller { session: Some(end), ..caller })
    }

    /// Whether that with which somebody was identified still opens anything.
    pub(super) fn is_valid(&self, caller: &Caller, stored: &StoredTokens) -> bool {
        let Some(SessionEnd { id, .. }) = caller.session else {
            return caller.token.is_none_or(|token| stored.caller_with(token).is_some());
        };
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|session| session.id == id).is_some_and(|session| self.caller_of(session, stored).is_some())
    }
}

/// Who has this token, or the one of the configuration; `None` if it opens nothing any more.
fn caller_with(token: Option<Uuid>, stored: &StoredTokens) -> Option<Caller> {
    token.map_or_else(|| Some(Caller::configured()), |token| stored.caller_with(token))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::{Method, Request};
    use rejoinder_core::conformance::clock::TestClock;
    use rstest::rstest;

    use super::*;

    fn request(method: Method, cookie: &str, headers: &[(&str, &str)]) -> Parts {
        let request = Request::builder().method(method).uri("/admin/api/turns").header("host", "127.0.0.1:7420");
        let request = request.header("cookie", format!("theme=dark; {COOKIE}={cookie}"));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    fn sessions(key: &str, clock: &Arc<TestClock>) -> AdminSessions {
        let clock = Arc::<TestClock>::clone(clock);
        let (links, open, changes) = (Mutex::default(), RwLock::default(), AtomicU64::default());
        AdminSessions { key: Some(key.into()), clock, links, open, changes }
    }

    fn world() -> (Arc<TestClock>, AdminSessions, StoredTokens) {
        let clock = TestClock::new();
        let sessions = sessions("secret", &clock);
        let tokens = StoredTokens::none(Arc::<TestClock>::clone(&clock));
        (clock, sessions, tokens)
    }

    /// The secret of a new session.
    fn open(sessions: &AdminSessions, caller: &Caller) -> String {
        let (secret, _, changes) = sessions.begin(caller, "Firefox").unwrap().unwrap();
        sessions.note(changes);
        secret.expose_secret().to_owned()
    }

    fn code(sessions: &AdminSessions, caller: &Caller) -> String {
        sessions.link(caller).unwrap().0.split_once('=').unwrap().1.to_owned()
    }

    #[test]
    fn a_session_lasts_until_its_time_is_over() {
        let (clock, sessions, tokens) = world();
        let cookie = open(&sessions, &Caller::configured());
        let caller = || sessions.caller(&request(Method::GET, &cookie, &[]), &tokens);

        assert!(caller().is_some());
        clock.advance(LIFETIME);
        assert!(caller().is_none());
    }

    #[test]
    fn a_cookie_of_nobody_of_another_key_or_of_a_revoked_token_opens_nothing() {
        let (clock, own, tokens) = world();
        let cookie = open(&own, &Caller::configured());
        let other = sessions("other", &clock);
        other.note(own.records().into_iter().map(SignInChange::Open).collect());
        let revoked = open(&own, &Caller { token: Some(Uuid::from_u128(7)), ..Caller::configured() });

        for cookie in [&revoked, &format!("{cookie}x"), "", ".."] {
            assert!(own.caller(&request(Method::GET, cookie, &[]), &tokens).is_none(), "{cookie}");
        }
        assert!(other.caller(&request(Method::GET, &cookie, &[]), &tokens).is_none());
    }

    #[test]
    fn a_link_opens_once_and_in_time() {
        let (clock, sessions, tokens) = world();
        let (used, late) = (code(&sessions, &Caller::configured()), code(&sessions, &Caller::configured()));
        let opens = |code: &str| sessions.open(code, &tokens).is_some();

        assert!(!opens("") && opens(&used) && opens(&used), "a sign-in that is not stored uses up no link");
        sessions.note(vec![SignInChange::UseLink(sessions.digest(&used).unwrap())]);
        assert!(!opens(&used));
        clock.advance(LINK_LIFETIME);
        assert!(!opens(&late));
    }

    #[test]
    fn a_link_ends_with_the_configured_token() {
        let (clock, sessions, tokens) = world();
        let code = code(&sessions, &Caller::configured());
        let changed = self::sessions("another", &clock);
        changed.links().extend(sessions.links().drain(..));

        assert!(changed.open(&code, &tokens).is_none());
    }

    #[test]
    fn the_links_of_one_token_take_no_place_of_another() {
        let (_, sessions, tokens) = world();
        let admins = code(&sessions, &Caller::configured());

        let viewer = Caller { token: Some(Uuid::from_u128(7)), ..Caller::configured() };
        for _ in 0..100 {
            code(&sessions, &viewer);
        }

        assert_eq!(sessions.links().len(), MAX_LINKS + 1);
        assert!(sessions.open(&admins, &tokens).is_some());
    }

    /// However often a session makes a link and opens the next with it.
    #[test]
    fn links_do_not_renew_the_end_of_a_session() {
        let (clock, sessions, tokens) = world();
        let mut cookie = open(&sessions, &Caller::configured());
        for _ in 0..3 {
            clock.advance(LIFETIME / 4);
            let caller = sessions.caller(&request(Method::GET, &cookie, &[]), &tokens).unwrap();
            let linked = sessions.open(&code(&sessions, &caller), &tokens).unwrap();
            cookie = open(&sessions, &linked);
        }
        let caller = || sessions.caller(&request(Method::GET, &cookie, &[]), &tokens);

        assert!(caller().is_some());
        clock.advance(LIFETIME / 4);
        assert!(caller().is_none());
    }

    #[test]
    fn a_session_that_is_over_opens_nothing_with_its_links_either() {
        let (_, sessions, tokens) = world();
        let cookie = open(&sessions, &Caller::configured());
        let caller = sessions.caller(&request(Method::GET, &cookie, &[]), &tokens).unwrap();
        let code = code(&sessions, &caller);

        sessions.note(vec![SignInChange::End(caller.session.unwrap().id)]);

        assert!(sessions.caller(&request(Method::GET, &cookie, &[]), &tokens).is_none());
        assert!(!sessions.is_valid(&caller, &tokens) && sessions.open(&code, &tokens).is_none());
    }

    /// Other nodes open sessions as well.
    #[test]
    fn what_was_read_again_counts() {
        let (clock, own, tokens) = world();
        let other = sessions("secret", &clock);
        let (cookie, code) = (open(&own, &Caller::configured()), code(&own, &Caller::configured()));
        let (records, links) = (own.records(), own.links().clone());

        assert!(other.replace(links, records.clone(), other.changes()));
        other.note(records.iter().cloned().map(SignInChange::Open).collect());

        assert_eq!(other.records(), records);
        assert!(other.caller(&request(Method::GET, &cookie, &[]), &tokens).is_some());
        assert!(other.open(&code, &tokens).is_some());
        assert!(other.replace(Vec::new(), Vec::new(), other.changes()));
        assert!(other.caller(&request(Method::GET, &cookie, &[]), &tokens).is_none());
    }

    #[test]
    fn the_sessions_of_one_token_are_bounded() {
        let (_, sessions, _) = world();
        let viewer = Caller { token: Some(Uuid::from_u128(7)), ..Caller::configured() };
        open(&sessions, &viewer);

        for _ in 0..100 {
            open(&sessions, &Caller::configured());
        }

        let open = sessions.records();
        assert_eq!((open.len(), open[0].token), (MAX_SESSIONS + 1, viewer.token));
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
        let (_, sessions, tokens) = world();
        let cookie = open(&sessions, &Caller::configured());

        assert_eq!(sessions.caller(&request(method, &cookie, headers), &tokens).is_some(), may);
    }
}
