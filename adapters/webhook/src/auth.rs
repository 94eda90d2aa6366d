//! Authenticates callers, by a token or by a signature over the raw body.
//!
//! * `Authorization: Bearer …`: digests are compared in constant time.
//! * [Standard Webhooks](https://www.standardwebhooks.com): `webhook-id`, `webhook-timestamp`,
//!   `webhook-signature`, with a tolerance of five minutes.
//! * `X-Hub-Signature-256`, as GitHub and Meta sign. It carries no timestamp, so a recorded request can be replayed.
//!
//! A caller is accepted if any configured method succeeds.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hmac::{Hmac, Mac};
use rejoinder_config::Secret;
use rejoinder_core::{Timestamp, TurnId};
use rejoinder_kit::Problem;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use standardwebhooks::Webhook;
use subtle::ConstantTimeEq;

use crate::{ResultKeys, SettingsError, WebhookSettings, keyed::keyed};

/// How far a signature's timestamp may be off, in either direction, as in the specification's own libraries.
const TOLERANCE: Duration = Duration::from_mins(5);

/// The longest accepted `webhook-id`, in bytes.
const MAX_ID: usize = 255;

const WEBHOOK_ID: HeaderName = HeaderName::from_static(standardwebhooks::HEADER_WEBHOOK_ID);
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static(standardwebhooks::HEADER_WEBHOOK_TIMESTAMP);
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static(standardwebhooks::HEADER_WEBHOOK_SIGNATURE);
const HUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");

/// How a caller authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller<'a> {
    /// By the token, which it will send again when it fetches the result.
    Token,
    /// By signing the body, or by the key of a result.
    Signature {
        /// The signed `webhook-id`, which stays the same when the request is repeated. Standard Webhooks only.
        id: Option<&'a str>,
    },
}

/// Checks the credentials of one hook's callers.
pub(crate) struct Auth {
    token: Option<[u8; 32]>,
    standard: Option<Webhook>,
    hub: Option<Hmac<Sha256>>,
    results: ResultKeys,
}

impl Auth {
    /// # Errors
    /// When no secret is configured, or one is unusable.
    pub(crate) fn new(settings: &WebhookSettings) -> Result<Self, SettingsError> {
        let token = filled(settings.token.as_ref(), "token")?;
        let signing_secret = filled(settings.section.signing_secret.as_ref().map(Secret::get), "signing_secret")?;
        let hub_secret = filled(settings.section.hub_secret.as_ref().map(Secret::get), "hub_secret")?;
        signing_secret.or(hub_secret).or(token).ok_or(SettingsError::NoSecret)?;
        Ok(Self {
            token: token.map(|token| digest(token.trim())),
            standard: signing_secret.map(|secret| signer(secret, "signing_secret")).transpose()?,
            hub: hub_secret.map(keyed),
            results: settings.result_keys.clone(),
        })
    }

    /// For a hook that is no longer configured: accepts only the key of a result.
    pub(crate) const fn by_result_key(results: ResultKeys) -> Self {
        Self { token: None, standard: None, hub: None, results }
    }

    /// Authenticates by the headers alone. `None`: [`Self::check_signature`] must check the body's signature.
    ///
    /// # Errors
    /// When the token is missing or wrong, and there is no signature to check.
    pub(crate) fn check_headers(&self, headers: &HeaderMap) -> Result<Option<Caller<'static>>, Problem> {
        let has_token = self.bearer(headers);
        if has_token == Some(true) {
            return Ok(Some(Caller::Token));
        }
        let is_signed = (self.standard.is_some() && headers.contains_key(WEBHOOK_SIGNATURE))
            || (self.hub.is_some() && headers.contains_key(HUB_SIGNATURE));
        if is_signed {
            return Ok(None);
        }
        Err(match has_token {
            Some(_) => unauthorized("the bearer token is wrong"),
            None => {
                unauthorized("send the hook's bearer token, or a signature of a kind that this hook is configured for")
            }
        })
    }

    /// Checks the signature of `body`, which must be the raw bytes.
    ///
    /// # Errors
    /// When no signature is valid.
    pub(crate) fn check_signature<'a>(
        &self,
        headers: &'a HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Caller<'a>, Problem> {
        let by_standard = match &self.standard {
            Some(signer) if headers.contains_key(WEBHOOK_SIGNATURE) => Some(standard(signer, headers, body, now)),
            _ => None,
        };
        if let Some(Ok(id)) = by_standard {
            return Ok(Caller::Signature { id: Some(id) });
        }
        match (&self.hub, headers.get(HUB_SIGNATURE)) {
            (Some(key), Some(signature)) if hub(key, signature, body) => Ok(Caller::Signature { id: None }),
            _ => Err(unauthorized(by_standard.and_then(Result::err).unwrap_or("the signature does not match"))),
        }
    }

    /// The key that opens the result of `turn` without the token; it is part of the result's URL.
    pub(crate) fn result_key(&self, turn: TurnId) -> String {
        self.results.of(turn)
    }

    /// Authenticates a caller who fetches the result of `turn`, by the token or by the `key` in its URL.
    ///
    /// # Errors
    /// When both are missing or wrong.
    pub(crate) fn may_fetch(
        &self,
        headers: &HeaderMap,
        key: Option<&str>,
        turn: TurnId,
    ) -> Result<Caller<'static>, Problem> {
        if self.bearer(headers) == Some(true) {
            return Ok(Caller::Token);
        }
        if key.is_some_and(|key| self.results.opens(turn, key)) {
            Ok(Caller::Signature { id: None })
        } else {
            Err(unauthorized(
                "fetch a result with the hook's bearer token, or at its complete URL, including the `key` parameter",
            ))
        }
    }

    /// Whether the bearer token is right; `None` if the request has none or none is configured.
    fn bearer(&self, headers: &HeaderMap) -> Option<bool> {
        let expected = self.token.as_ref()?;
        let value = headers.get(header::AUTHORIZATION)?.as_bytes();
        let (scheme, token) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"bearer") || !token.starts_with(b" ") {
            return None;
        }
        Some(digest(token.trim_ascii()).ct_eq(expected).into())
    }
}

/// The signer for a `whsec_…` secret: verifies callers and signs callbacks.
///
/// # Errors
/// When the key is empty or not base64.
pub(crate) fn signer(secret: &str, setting: &'static str) -> Result<Webhook, SettingsError> {
    let is_empty = secret.strip_prefix("whsec_").unwrap_or(secret).is_empty();
    Webhook::new(secret).ok().filter(|_| !is_empty).ok_or(SettingsError::NotASigningKey(setting))
}

/// Verifies a Standard Webhooks signature and returns the `webhook-id`.
fn standard<'a>(
    signer: &Webhook,
    headers: &'a HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<&'a str, &'static str> {
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
    let signatures = value(WEBHOOK_SIGNATURE).ok_or("webhook-signature is not text")?;
    let expected = signer.sign(id, timestamp, body).map_err(|_| "the body is not UTF-8")?;
    // During a key rotation the sender signs with both keys.
    let holds = signatures.split(' ').any(|signature| signature.as_bytes().ct_eq(expected.as_bytes()).into());
    if holds { Ok(id) } else { Err("webhook-signature does not match the body") }
}

fn hub(key: &Hmac<Sha256>, signature: &HeaderValue, body: &[u8]) -> bool {
    let mut shown = [0; 32];
    signature.as_bytes().strip_prefix(b"sha256=").is_some_and(|code| hex::decode_to_slice(code, &mut shown).is_ok())
        && key.clone().chain_update(body).verify_slice(&shown).is_ok()
}

fn unauthorized(detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "The caller is not known", detail)
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn filled<'a>(secret: Option<&'a SecretString>, setting: &'static str) -> Result<Option<&'a str>, SettingsError> {
    match secret.map(ExposeSecret::expose_secret) {
        Some(secret) if secret.trim().is_empty() => Err(SettingsError::Empty(setting)),
        secret => Ok(secret),
    }
}

fn digest(text: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests;
