//! People sign in: with a passkey, or because a proxy says who they are.
//!
//! A passkey opens a visit, a session whose secret is in a cookie that no script reads and no other site sends. The challenge that is
//! signed for it carries its own proof, so that nobody fills the store with challenges; that it is used once is decided by the store
//! when the visit is opened. A passkey is registered with an invitation, of an operator or of the person who adds another device.
//!
//! Nothing here says whether somebody has an account: a passkey names its account itself.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::rand;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Request, State},
    http::{StatusCode, header, request::Parts, uri::Authority},
    middleware,
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rejoinder_core::{
    Identity, StoreError, Timestamp, Visitors,
    store::{Invitation, Passkey, Visit, VisitorChange},
};
use rejoinder_kit::{Peer, Problem, read_body, token_digest, uncached};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::{
    SocketContext, WebchatAdapter,
    access::{self, Access, SignIn},
    chats::Chats,
    passkeys::{ALGORITHMS, Assertion, ClientData, Party, PasskeyError, Registration},
    protocol::rfc3339,
    visitor::{cookie_name, secrets, visitor},
};

/// How long a visit lasts.
const LIFETIME: Duration = Duration::from_hours(30 * 24);

/// How long a challenge can be answered. The store remembers the used ones for longer.
const CHALLENGE_LIFETIME: Duration = Duration::from_mins(5);

/// How long a person can open a link that they made for another device.
const OWN_INVITATION: Duration = Duration::from_mins(10);

/// How many passkeys somebody may have.
const MAX_PASSKEYS: usize = 32;

/// How much is kept of what a browser calls itself, in characters.
const MAX_BROWSER: usize = 200;

/// The largest body, in bytes.
const MAX_BODY: usize = 16 * 1024;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a challenge has before its proof: random bytes, and when it is over.
const UNSIGNED: usize = 24;

/// The routes with which pages sign people in and out.
pub(crate) fn routes() -> Router<Arc<Chats>> {
    let routes = ["/chat", "/chat/{name}"].into_iter().fold(Router::new(), |router, base| {
        router
            .route(&format!("{base}/session"), post(open).delete(close))
            .route(&format!("{base}/session/challenge"), post(challenge))
            .route(&format!("{base}/session/passkey"), post(register))
            .route(&format!("{base}/session/invitation"), post(invite))
    });
    routes.layer(middleware::from_fn(uncached))
}

type Name = Option<Path<String>>;

/// A request of a page about signing in.
struct Asked {
    chat: Arc<WebchatAdapter>,
    context: Arc<SocketContext>,
    sign_in: SignIn,
    host: Authority,
    parts: Parts,
    body: Bytes,
    now: Timestamp,
}

impl Asked {
    async fn read(chats: &Chats, name: Name, request: Request) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let (chat, host) = chats.find(name.as_ref().map(|Path(name)| name.as_str()), &parts)?;
        let Access::People(sign_in) = chat.access.clone() else { return Err(nobody_signs_in()) };
        access::check_origin(&parts.headers, &host, &chat.origins)?;
        let context = chat.socket_context.get().ok_or_else(unavailable)?;
        let body = read_body(&parts.headers, body, MAX_BODY, PATIENCE, |_| Ok(())).await?;
        let now = context.intake.clock().now();
        Ok(Self { chat, context, sign_in, host, parts, body, now })
    }

    fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| bad_request(error.to_string()))
    }

    fn visitors(&self) -> Visitors {
        self.context.intake.visitors()
    }

    fn peer(&self) -> Peer {
        Peer::of(&self.parts.extensions)
    }

    /// Waits until the peer may try again.
    async fn turn(&self) -> Result<(), Problem> {
        Ok(self.chat.guesses.turn(self.peer(), self.chat.channel.as_str()).await?)
    }

    /// Notes that something was tried that opens nothing.
    fn wrong(&self, why: impl Into<Wrong>) -> Problem {
        self.chat.guesses.wrong(self.peer(), self.chat.channel.as_str());
        let Wrong(detail) = why.into();
        Problem::new(StatusCode::UNAUTHORIZED, "not-signed-in", "Unauthorized", detail)
    }

    /// The page for which passkeys are made and sign.
    fn party(&self) -> Result<Party, Problem> {
        if let Some(url) = &self.sign_in.public_url {
            let id = url.host_str().unwrap_or_default().to_owned();
            return Ok(Party { id, origin: url.origin().ascii_serialization() });
        }
        let host = self.host.host();
        if host == "localhost" || host.ends_with(".localhost") {
            return Ok(Party { id: host.to_owned(), origin: format!("http://{}", self.host) });
        }
        let detail = "passkeys work under http://localhost, or where server.public_url says that this page is";
        Err(Problem::new(StatusCode::CONFLICT, "no-public-url", "Conflict: the address of the page", detail))
    }

    /// The invitation with this code.
    async fn invitation(&self, code: &str) -> Result<Invitation, Problem> {
        let found = self.visitors().invitation(&token_digest(code.as_bytes())).await.map_err(|error| failed(&error))?;
        found.ok_or_else(|| self.wrong("this link was used, or is over: ask for another one"))
    }

    fn new_challenge(&self) -> Result<Vec<u8>, Problem> {
        let mut challenge = random::<{ UNSIGNED - 8 }>()?.to_vec();
        challenge.extend((self.now + CHALLENGE_LIFETIME).as_millis().to_be_bytes());
        let proof = self.proof(&challenge);
        challenge.extend(proof);
        Ok(challenge)
    }

    /// What proves that a challenge is one of this chat.
    fn proof(&self, unsigned: &[u8]) -> [u8; 32] {
        let channel = self.chat.channel.as_str().as_bytes();
        self.sign_in.key.sign(&[&b"challenge of "[..], channel, &b"\0"[..], unsigned].concat())
    }

    /// The digest of a challenge, if it is ours and not over.
    fn checked_challenge(&self, client_data: &ClientData) -> Result<[u8; 32], Problem> {
        let challenge = client_data.challenge().map_err(|why| self.wrong(why))?;
        let over = || self.wrong("that took too long: try again");
        let (unsigned, proof) = challenge.split_at_checked(UNSIGNED).ok_or_else(over)?;
        let ends = unsigned.last_chunk::<8>().map_or(0, |ends| i64::from_be_bytes(*ends));
        if !bool::from(proof.ct_eq(&self.proof(unsigned)[..])) || Timestamp::from_millis(ends) <= self.now {
            return Err(over());
        }
        Ok(Sha256::digest(&challenge).into())
    }

    /// A new visit of an account, and the cookie with its secret.
    fn new_visit(&self, account: &str, challenge: [u8; 32]) -> Result<(Visit, String), Problem> {
        let secret = BASE64_URL_SAFE_NO_PAD.encode(random::<32>()?);
        let visit = Visit {
            id: Uuid::now_v7(),
            hash: token_digest(secret.as_bytes()),
            channel: self.chat.channel.clone(),
            account: account.to_owned(),
            challenge,
            browser: self.browser(),
            opened_at: self.now,
            expires_at: self.now + LIFETIME,
        };
        Ok((visit, self.cookie(&secret, LIFETIME)))
    }

    fn browser(&self) -> String {
        let name = self.parts.headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok());
        name.unwrap_or_default().chars().take(MAX_BROWSER).collect()
    }

    fn cookie(&self, secret: &str, lasts: Duration) -> String {
        let is_https = |origin: &[u8]| origin.starts_with(b"https://");
        let is_over_tls = self.parts.headers.get(header::ORIGIN).is_some_and(|origin| is_https(origin.as_bytes()));
        let secure = if is_over_tls { "; Secure" } else { "" };
        let (name, seconds) = (cookie_name(self.chat.channel.name()), lasts.as_secs());
        format!("{name}={secret}; Path=/chat; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }

    /// What operators call somebody who has a passkey or an invitation.
    fn name_of(&self, account: &str) -> Result<String, Problem> {
        self.context.intake.known_as(account).ok_or_else(|| self.wrong("nobody is known by this any more"))
    }

    /// Stores a visit with what opened it.
    async fn signed_in(&self, name: String, cookie: String, changes: Vec<VisitorChange>) -> Result<Response, Problem> {
        if !self.visitors().change(changes).await.map_err(|error| failed(&error))? {
            return Err(self.wrong("that was done already: try again"));
        }
        Ok(([(header::SET_COOKIE, cookie)], Json(SignedIn { name })).into_response())
    }
}

/// Why something opens nothing.
struct Wrong(String);

impl From<&str> for Wrong {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl From<PasskeyError> for Wrong {
    fn from(why: PasskeyError) -> Self {
        Self(format!("this passkey does not open this chat: {why}"))
    }
}

/// Bytes in the base64 of URLs.
#[derive(Debug)]
struct Encoded(Vec<u8>);

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_URL_SAFE_NO_PAD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[derive(Serialize)]
struct SignedIn {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChallengeWanted {
    /// The code of an invitation, for a new passkey.
    invitation: Option<String>,
}

/// What a page needs to have something signed.
#[derive(Serialize)]
struct SigningRequest {
    challenge: String,
    /// The host and the origin of the page at which this works.
    party: String,
    origin: String,
    /// For a new passkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<NewCredential>,
}

#[derive(Serialize)]
struct NewCredential {
    /// The id and the name of the account.
    user: String,
    name: String,
    algorithms: [i64; 3],
    /// The passkeys that the person has.
    known: Vec<String>,
}

/// The id of an account at authenticators, which says nothing of it to others.
fn user(identity: &Identity) -> [u8; 32] {
    Sha256::digest(format!("{}\0{}", identity.channel, identity.id)).into()
}

async fn challenge(State(chats): State<Arc<Chats>>, name: Name, request: Request) -> Result<Response, Problem> {
    let asked = Asked::read(&chats, name, request).await?;
    let Party { id: party, origin } = asked.party()?;
    let ChallengeWanted { invitation } = asked.body()?;
    let new = match invitation {
        None => None,
        Some(code) => {
            asked.turn().await?;
            let Invitation { channel, account, .. } = asked.invitation(&code).await?;
            let passkeys = asked.visitors().passkeys(&account).await.map_err(|error| failed(&error))?;
            let name = asked.name_of(&account)?;
            let user = encoded(&user(&Identity { channel, id: account }));
            let known = passkeys.iter().map(|passkey| encoded(&passkey.id)).collect();
            Some(NewCredential { user, name, algorithms: ALGORITHMS, known })
        }
    };
    let challenge = encoded(&asked.new_challenge()?);
    Ok(Json(SigningRequest { challenge, party, origin, new }).into_response())
}

#[derive(Deserialize)]
struct Opening {
    id: Encoded,
    client_data: Encoded,
    authenticator_data: Encoded,
    signature: Encoded,
    /// What the authenticator knows the account by.
    user: Option<Encoded>,
}

async fn open(State(chats): State<Arc<Chats>>, name: Name, request: Request) -> Result<Response, Problem> {
    let asked = Asked::read(&chats, name, request).await?;
    let party = asked.party()?;
    let Opening { id, client_data: client_json, authenticator_data, signature, user: sent_user } = asked.body()?;
    asked.turn().await?;
    let client_data = ClientData::read(&client_json.0).map_err(|why| asked.wrong(why))?;
    let challenge = asked.checked_challenge(&client_data)?;
    let passkey = asked.visitors().passkey(&id.0).await.map_err(|error| failed(&error))?;
    let unknown = || asked.wrong("this passkey is not known here any more");
    let passkey = passkey.filter(|passkey| passkey.party == party.id).ok_or_else(unknown)?;
    let identity = Identity { channel: passkey.channel.clone(), id: passkey.account.clone() };
    if sent_user.is_some_and(|sent| sent.0 != user(&identity)) {
        return Err(unknown());
    }
    let assertion = Assertion {
        client_data: &client_data,
        client_json: &client_json.0,
        authenticator_data: &authenticator_data.0,
        signature: &signature.0,
    };
    let verified = assertion.verify(&party, (&passkey.key[..], passkey.algorithm, passkey.counter));
    let to = verified.map_err(|why| asked.wrong(why))?;
    let name = asked.name_of(&passkey.account)?;
    let (visit, cookie) = asked.new_visit(&passkey.account, challenge)?;
    let sign = VisitorChange::Sign { passkey: passkey.id, from: passkey.counter, to, at: asked.now };
    asked.signed_in(name, cookie, vec![sign, VisitorChange::Open(visit)]).await
}

#[derive(Deserialize)]
struct NewKey {
    invitation: String,
    client_data: Encoded,
    authenticator_data: Encoded,
    public_key: Encoded,
    algorithm: i64,
}

async fn register(State(chats): State<Arc<Chats>>, name: Name, request: Request) -> Result<Response, Problem> {
    let asked = Asked::read(&chats, name, request).await?;
    let party = asked.party()?;
    let NewKey { invitation: code, client_data, authenticator_data, public_key, algorithm } = asked.body()?;
    asked.turn().await?;
    let invitation = asked.invitation(&code).await?;
    let client_data = &ClientData::read(&client_data.0).map_err(|why| asked.wrong(why))?;
    let challenge = asked.checked_challenge(client_data)?;
    let registration =
        Registration { client_data, authenticator_data: &authenticator_data.0, key: &public_key.0, algorithm };
    let new = registration.verify(&party).map_err(|why| asked.wrong(why))?;
    let name = asked.name_of(&invitation.account)?;
    if asked.visitors().passkeys(&invitation.account).await.map_err(|error| failed(&error))?.len() >= MAX_PASSKEYS {
        return Err(bad_request("there are too many passkeys of this person".to_owned()));
    }
    let (visit, cookie) = asked.new_visit(&invitation.account, challenge)?;
    let passkey = Passkey {
        id: new.id,
        channel: invitation.channel,
        account: invitation.account,
        party: party.id,
        algorithm,
        key: public_key.0,
        counter: new.counter,
        browser: asked.browser(),
        added_at: asked.now,
        used_at: None,
    };
    let register = VisitorChange::Register { passkey, invitation: invitation.code };
    asked.signed_in(name, cookie, vec![register, VisitorChange::Open(visit)]).await
}

/// Signs out: the visit is over, also for who has a copy of its cookie.
async fn close(State(chats): State<Arc<Chats>>, name: Name, request: Request) -> Result<Response, Problem> {
    let asked = Asked::read(&chats, name, request).await?;
    let mut ended = Vec::new();
    for secret in secrets(&asked.parts.headers, asked.chat.channel.name()) {
        let visit = asked.visitors().visit(&token_digest(secret.as_bytes())).await.map_err(|error| failed(&error))?;
        ended.extend(visit.map(|visit| VisitorChange::End { id: visit.id, at: asked.now }));
    }
    if !ended.is_empty() {
        asked.visitors().change(ended).await.map_err(|error| failed(&error))?;
    }
    let cookie = asked.cookie("", Duration::ZERO);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// A link for another device.
#[derive(Serialize)]
struct OwnInvitation {
    code: String,
    expires_at: String,
}

async fn invite(State(chats): State<Arc<Chats>>, name: Name, request: Request) -> Result<Response, Problem> {
    let asked = Asked::read(&chats, name, request).await?;
    let visitor = visitor(&asked.chat, &asked.context, &asked.parts).await.map_err(|error| failed(&error))?;
    let visitor = visitor.ok_or_else(nobody_is_signed_in)?;
    let code = encoded(&random::<32>()?);
    let expires_at = asked.now + OWN_INVITATION;
    let invitation = Invitation {
        code: token_digest(code.as_bytes()),
        channel: asked.chat.channel.clone(),
        account: visitor.account.clone(),
        expires_at,
    };
    asked.visitors().change(vec![VisitorChange::Invite(invitation)]).await.map_err(|error| failed(&error))?;
    // What ended the visit meanwhile did not find this invitation, whose code nobody is told then.
    if !visitor.is_there(&asked.context).await.map_err(|error| failed(&error))? {
        return Err(nobody_is_signed_in());
    }
    Ok(Json(OwnInvitation { code, expires_at: rfc3339(expires_at) }).into_response())
}

fn random<const N: usize>() -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| unavailable())?;
    Ok(bytes)
}

fn failed(error: &StoreError) -> Problem {
    tracing::warn!(%error, "cannot read or store who is signed in to a chat page");
    unavailable()
}

fn unavailable() -> Problem {
    let detail = "this cannot be done right now: try again in a moment";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Service unavailable", detail)
}

fn bad_request(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad-request", "Bad request", detail)
}

fn nobody_is_signed_in() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "not-signed-in", "Unauthorized", "nobody is signed in here")
}

fn nobody_signs_in() -> Problem {
    let detail = "nobody signs in to this chat: see `access` in its section of the configuration";
    Problem::new(StatusCode::NOT_FOUND, "no-sign-in", "Not found: nobody signs in here", detail)
}

#[cfg(test)]
mod tests;
