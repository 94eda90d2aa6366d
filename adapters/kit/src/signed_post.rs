//! One signed POST per delivery, as [Standard Webhooks](https://www.standardwebhooks.com) signs. The `webhook-id` is the delivery's
//! id, by which a receiver recognises a repeated post.

use std::{ops::RangeInclusive, time::Duration};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::fmt::rfc2822;
use rejoinder_core::{Delivery, DeliveryError, Receipt, Scope, SharedClock, Timestamp};
use reqwest::{
    Client, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use url::Url;

use crate::calls::with_causes;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a 429 without `Retry-After`.
const DEFAULT_PAUSE: Duration = Duration::from_secs(30);

/// The longest pause that a receiver may ask for.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// How many bytes the key of Standard Webhooks has.
const KEY_LENGTH: RangeInclusive<usize> = 24..=64;

/// The key of a secret: `whsec_` and 24 to 64 bytes in base64. `None` if it is none.
#[must_use]
pub fn signing_key(secret: &str) -> Option<Vec<u8>> {
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok();
    key.filter(|key| KEY_LENGTH.contains(&key.len()))
}

/// Posts deliveries to a URL that the operator configured.
pub struct SignedPost {
    url: Url,
    signer: Webhook,
    clock: SharedClock,
    http: Client,
}

impl SignedPost {
    /// `None` if the secret has no [key](signing_key). `http` must not follow redirects.
    #[must_use]
    pub fn new(url: Url, secret: &str, clock: SharedClock, http: Client) -> Option<Self> {
        let signer = Webhook::from_bytes(signing_key(secret)?).ok()?;
        Some(Self { url, signer, clock, http })
    }

    /// Posts JSON for a delivery.
    ///
    /// # Errors
    /// When the receiver does not take it.
    pub async fn send(&self, delivery: &Delivery, body: Vec<u8>) -> Result<Receipt, DeliveryError> {
        let id = delivery.id().to_string();
        let now = self.clock.now();
        let seconds = now.as_millis().div_euclid(1000);
        let signature = self
            .signer
            .sign(&id, seconds, &body)
            .map_err(|error| DeliveryError::Unsupported(format!("the answer cannot be signed: {error}")))?;
        let response = self
            .http
            .post(self.url.clone())
            .timeout(TIMEOUT)
            .header(CONTENT_TYPE, "application/json")
            .header(HEADER_WEBHOOK_ID, &id)
            .header(HEADER_WEBHOOK_TIMESTAMP, seconds)
            .header(HEADER_WEBHOOK_SIGNATURE, signature)
            .body(body)
            .send()
            .await
            .map_err(|error| failure(&error))?;
        classify(response.status(), response.headers(), now).map(|()| Receipt::of(id))
    }
}

fn classify(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Result<(), DeliveryError> {
    if status.is_success() {
        return Ok(());
    }
    let pause = retry_after(headers, now);
    let detail = format!("the receiver answered {status}");
    Err(match (status, pause) {
        (StatusCode::TOO_MANY_REQUESTS, pause) => {
            DeliveryError::Limited { retry_after: pause.unwrap_or(DEFAULT_PAUSE), scope: Scope::Account, detail }
        }
        (StatusCode::SERVICE_UNAVAILABLE, Some(retry_after)) => {
            DeliveryError::Limited { retry_after, scope: Scope::Account, detail }
        }
        (StatusCode::GONE, _) => DeliveryError::Refused(detail),
        // Every other status may come from a deploy of the receiver, or be mended by its operator.
        (_, retry_after) => DeliveryError::NotSent { retry_after, detail },
    })
}

/// `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3); at most an hour.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = if let Ok(seconds) = value.parse() {
        Duration::from_secs(seconds)
    } else {
        let at = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
        Timestamp::from_millis(at.as_millisecond()).since(now)
    };
    Some(pause.min(MAX_PAUSE))
}

fn failure(error: &reqwest::Error) -> DeliveryError {
    // The URL is left out, because it may contain a secret.
    let what = if error.is_timeout() { "no response in time" } else { "the post failed" };
    let detail = with_causes(what.to_owned(), error);
    if error.is_connect() {
        DeliveryError::NotSent { retry_after: None, detail }
    } else if error.is_builder() || error.is_redirect() {
        DeliveryError::Refused(detail)
    } else {
        DeliveryError::Unknown(detail)
    }
}

#[cfg(test)]
mod tests;
