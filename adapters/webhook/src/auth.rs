//! Authenticates callers, by a token or by a signature over the raw body.
//!
//! * `Authorization: Bearer …`: digests are compared in constant time.
//! * [Standard Webhooks](https://www.standardwebhooks.com): `webhook-id`, `webhook-timestamp`,
//!   `webhook-signature`, with a tolerance of five minutes.
//! * `X-Hub-Signature-256`, as GitHub and Meta sign. It carries no timestamp, and the delivery's id is not signed: equal bodies have
//!   equal signatures, and are told apart by that id alone.
//!
//! A caller is accepted if any configured method succeeds.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use hmac::{Hmac, Mac};
use rejoinder_config::Secret;
use rejoinder_core::{Timestamp, TurnId};
use rejoinder_kit::{Problem, Tokens, bearer};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::{ResultKeys, SettingsError, WebhookSettings, inbound::Key, result_key::keyed};

/// How far a signature's timestamp may be off, in either direction, as in the specification's own libraries.
const TOLERANCE: Duration = Duration::from_mins(5);

/// The longest accepted `webhook-id` and `X-GitHub-Delivery`, in bytes.
const MAX_ID: usize = 255;

const WEBHOOK_ID: HeaderName = HeaderName::from_static(standardwebhooks::HEADER_WEBHOOK_ID);
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static(standardwebhooks::HEADER_WEBHOOK_TIMESTAMP);
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static(standardwebhooks::HEADER_WEBHOOK_SIGNATURE);
const HUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");
const HUB_DELIVERY: HeaderName = HeaderName::from_static("x-github-delivery");

type Code = Hmac<Sha256>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller<'a> {
    /// By the token, which it will send again when it fetches the result.
    Token,
    /// By signing the body with a key that stays the same when the request is repeated, and that nobody can change.
    Signature(Key<'a>),
    /// By signing the body alone, as a hub does.
    Hub,
    /// By the key of a result.
    ResultKey,
}

pub(crate) enum Proof<'a> {
    Token,
    /// To be checked with the body.
    Signatures(Box<Signatures<'a>>),
}

/// The id that a hub gives a delivery, if the request has a usable one.
pub(crate) fn delivery_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(HUB_DELIVERY)?.to_str().ok()?;
    (1..=MAX_ID).contains(&id.len()).then_some(id)
}

/// Why the headers of a request prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthError {
    /// A secret was checked, and is wrong.
    Wrong(&'static str),
    /// There is nothing to check.
    Missing(&'static str),
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let (AuthError::Wrong(detail) | AuthError::Missing(detail)) = error;
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized: the caller is not known", detail)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }
}

/// Checks the credentials of one hook's callers.
pub(crate) struct Auth {
    token: Option<Tokens>,
    standard: Option<Code>,
    hub: Option<Code>,
    results: ResultKeys,
}

impl Auth {
    pub(crate) fn new(settings: &WebhookSettings) -> Result<Self, SettingsError> {
        let signing_secret = filled(settings.section.signing_secret.as_ref().map(Secret::get), "signing_secret")?;
        let hub_secret = filled(settings.section.hub_secret.as_ref().map(Secret::get), "hub_secret")?;
        if settings.token.is_none() && signing_secret.is_none() && hub_secret.is_none() {
            return Err(SettingsError::NoSecret);
        }
        let standard = signing_secret.map(|secret| signing_key(secret, "signing_secret")).transpose()?;
        Ok(Self {
            token: settings.token.clone(),
            standard: standard.map(|key| keyed(&key)),
            hub: hub_secret.map(|secret| keyed(secret.as_bytes())),
            results: settings.result_keys.clone(),
        })
    }

    /// For a hook that is no longer configured: accepts only the key of a result.
    pub(crate) const fn by_result_key(results: ResultKeys) -> Self {
        Self { token: None, standard: None, hub: None, results }
    }

    /// Whether the request has a token that [`proof`](Self::proof) checks.
    pub(crate) fn has_token(&self, headers: &HeaderMap) -> bool {
        self.token.is_some() && bearer(headers).is_some()
    }

    /// Authenticates by the headers: the token, or signatures that can hold, whose id, time and format are right.
    /// Fails when the token is missing or wrong, and there is no signature that could hold.
    pub(crate) fn proof<'a>(&self, headers: &'a HeaderMap, now: Timestamp) -> Result<Proof<'a>, AuthError> {
        let has_token = self.token_opens(headers);
        if has_token == Some(true) {
            return Ok(Proof::Token);
        }
        let standard = self.standard.as_ref().filter(|_| headers.contains_key(WEBHOOK_SIGNATURE));
        let standard = standard.map(|key| Standard::read(key, headers, now));
        let hub = self.hub.as_ref().zip(headers.get(HUB_SIGNATURE));
        let hub = hub.map(|(key, signature)| Hub::read(key, signature));
        let (standard, hub, why) = match (standard, hub) {
            (None, None) if has_token.is_some() => return Err(AuthError::Wrong("the bearer token is wrong")),
            (None, None) => return Err(AuthError::Missing(NOTHING)),
            (Some(Err(why)), None | Some(Err(_))) | (None, Some(Err(why))) => {
                return Err(if has_token.is_some() { AuthError::Wrong(why) } else { AuthError::Missing(why) });
            }
            (Some(Err(why)), Some(Ok(hub))) => (None, Some(hub), why),
            (Some(Ok(standard)), hub) => (Some(standard), hub.and_then(Result::ok), NOT_OF_THIS_BODY),
            (None, Some(Ok(hub))) => (None, Some(hub), "the signature does not match"),
        };
        Ok(Proof::Signatures(Box::new(Signatures { standard, hub, has_wrong_token: has_token.is_some(), why })))
    }

    /// The key that opens the result of `turn` without the token; it is part of the result's URL.
    pub(crate) fn result_key(&self, turn: TurnId) -> String {
        self.results.of(turn)
    }

    /// Authenticates a caller who fetches the result of `turn`, by the token or by the `key` in its URL.
    pub(crate) fn may_fetch(
        &self,
        headers: &HeaderMap,
        key: Option<&str>,
        turn: TurnId,
    ) -> Result<Caller<'static>, AuthError> {
        let has_token = self.token_opens(headers);
        if has_token == Some(true) {
            return Ok(Caller::Token);
        }
        if key.is_some_and(|key| self.results.opens(turn, key)) {
            return Ok(Caller::ResultKey);
        }
        let why = "fetch a result with the hook's bearer token, or at its complete URL, including the `key` parameter";
        Err(if key.is_some() || has_token.is_some() { AuthError::Wrong(why) } else { AuthError::Missing(why) })
    }

    /// Whether the bearer token is right; `None` if the request has none or none is configured.
    fn token_opens(&self, headers: &HeaderMap) -> Option<bool> {
        Some(self.token.as_ref()?.open_for(bearer(headers)?))
    }
}

const NOTHING: &str = "send the hook's bearer token, or a signature of a kind that this hook is configured for";
const NOT_OF_THIS_BODY: &str = "webhook-signature does not match the body";

/// The signatures of a request, which are checked while its body is read.
pub(crate) struct Signatures<'a> {
    standard: Option<Standard<'a>>,
    hub: Option<Hub>,
    /// Whether the request has a wrong token, too.
    pub(crate) has_wrong_token: bool,
    /// What is wrong if none of them holds.
    why: &'static str,
}

impl<'a> Signatures<'a> {
    /// Adds the next part of the body, as it was sent.
    pub(crate) fn update(&mut self, part: &[u8]) {
        let codes = [self.standard.as_mut().map(|it| &mut it.code), self.hub.as_mut().map(|it| &mut it.code)];
        for code in codes.into_iter().flatten() {
            code.update(part);
        }
    }

    /// Authenticates the caller, after the whole body.
    pub(crate) fn caller(self) -> Result<Caller<'a>, AuthError> {
        if let Some(Standard { id, code, signatures }) = self.standard {
            let expected = code.finalize().into_bytes();
            // During a key rotation the sender signs with both keys.
            let holds = |holds, signature: &[u8; 32]| holds | signature.as_slice().ct_eq(expected.as_slice());
            if signatures.iter().fold(Choice::from(0), holds).into() {
                return Ok(Caller::Signature(Key::WebhookId(id)));
            }
        }
        if let Some(Hub { code, signature }) = self.hub
            && code.verify_slice(&signature).is_ok()
        {
            return Ok(Caller::Hub);
        }
        Err(AuthError::Wrong(self.why))
    }
}

struct Standard<'a> {
    id: &'a str,
    code: Code,
    signatures: Vec<[u8; 32]>,
}

impl<'a> Standard<'a> {
    fn read(key: &Code, headers: &'a HeaderMap, now: Timestamp) -> Result<Self, &'static str> {
        let value = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let id = value(WEBHOOK_ID).ok_or("webhook-id is missing")?;
        // What is signed is `id.timestamp.body`: with a full stop in the id it could be split in two ways.
        if id.is_empty() || id.len() > MAX_ID || id.contains('.') {
            return Err("webhook-id must have 1 to 255 characters and no full stop");
        }
        let timestamp = value(WEBHOOK_TIMESTAMP).ok_or("webhook-timestamp is missing")?;
        let timestamp: i64 = timestamp.parse().map_err(|_| "webhook-timestamp must be whole seconds since 1970")?;
        let signed_at = Timestamp::from_millis(timestamp.saturating_mul(1000));
        if now.since(signed_at) > TOLERANCE {
            return Err("webhook-timestamp is more than five minutes old");
        }
        if signed_at.since(now) > TOLERANCE {
            return Err("webhook-timestamp is more than five minutes ahead");
        }
        let sent = value(WEBHOOK_SIGNATURE).ok_or("webhook-signature is not text")?;
        let decoded =
            sent.split(' ').filter_map(|signature| BASE64_STANDARD.decode(signature.strip_prefix("v1,")?).ok());
        let signatures: Vec<_> = decoded.filter_map(|signature| signature.try_into().ok()).collect();
        if signatures.is_empty() {
            return Err("webhook-signature has no signature of version 1");
        }
        Ok(Self { id, code: key.clone().chain_update(format!("{id}.{timestamp}.")), signatures })
    }
}

/// A signature as GitHub and Meta send it.
struct Hub {
    code: Code,
    signature: [u8; 32],
}

impl Hub {
    fn read(key: &Code, sent: &HeaderValue) -> Result<Self, &'static str> {
        let mut signature = [0; 32];
        let code = sent.as_bytes().strip_prefix(b"sha256=").ok_or(NOT_A_HUB_SIGNATURE)?;
        hex::decode_to_slice(code, &mut signature).map_err(|_| NOT_A_HUB_SIGNATURE)?;
        Ok(Self { code: key.clone(), signature })
    }
}

const NOT_A_HUB_SIGNATURE: &str = "X-Hub-Signature-256 must be \"sha256=\" and 64 hexadecimal digits";

fn signing_key(secret: &str, setting: &'static str) -> Result<Vec<u8>, SettingsError> {
    rejoinder_kit::signing_key(secret).ok_or(SettingsError::NotASigningKey(setting))
}

fn filled<'a>(secret: Option<&'a SecretString>, setting: &'static str) -> Result<Option<&'a str>, SettingsError> {
    match secret.map(ExposeSecret::expose_secret) {
        Some(secret) if secret.trim().is_empty() => Err(SettingsError::Empty(setting)),
        secret => Ok(secret),
    }
}

#[cfg(test)]
mod tests;
