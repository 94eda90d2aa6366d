//! Posts a copy of each answer to a hook's callback: one signed POST per delivery.
//!
//! The signature follows [Standard Webhooks](https://www.standardwebhooks.com). The `webhook-id` is the delivery's id,
//! by which a receiver recognises a repeated post.

use std::{error::Error as _, sync::Arc, time::Duration};

use jiff::fmt::rfc2822;
use rejoinder_core::{Action, Delivery, DeliveryError, Receipt, Scope, SharedClock, SignalKind, Timestamp};
use reqwest::{
    Client, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use url::Url;

use crate::{
    SettingsError, WebhookSettings,
    answer::{Answer, CallbackContent},
    auth,
};

/// How long one post may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a 429 without `Retry-After`.
const DEFAULT_PAUSE: Duration = Duration::from_secs(30);

/// The longest pause that a receiver may ask for.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// Posts the copies of a hook's answers.
pub(crate) struct Callback {
    url: Url,
    signer: Webhook,
    clock: SharedClock,
    http: Client,
}

impl Callback {
    /// `None` if the hook has no callback.
    pub(crate) fn of(settings: &WebhookSettings) -> Result<Option<Self>, SettingsError> {
        let WebhookSettings { section, clock, http, .. } = settings;
        let Some((url, secret)) = section.callback_url.as_ref().zip(section.callback_secret.as_ref()) else {
            return Ok(None);
        };
        let signer = auth::signer(secret.expose(), "callback_secret")?;
        Ok(Some(Self { url: url.clone(), signer, clock: Arc::clone(clock), http: http.clone() }))
    }

    pub(crate) async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let body = body(delivery)?;
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

/// The JSON to post: the same kind of object as at the result's URL.
fn body(delivery: &Delivery) -> Result<Vec<u8>, DeliveryError> {
    let unsupported = |what: &str| Err(DeliveryError::Unsupported(format!("a callback carries answers, not {what}")));
    let content = match delivery.action() {
        Action::Send { content, .. } => {
            CallbackContent { text: &content.text, attachments: &content.attachments, choices: &content.choices }
        }
        Action::React { emoji, .. } => CallbackContent { text: emoji, attachments: &[], choices: &[] },
        Action::Edit { .. } => return unsupported("edits"),
        Action::Draft { .. } => return unsupported("drafts"),
        Action::Typing { .. } => return unsupported("typing notices"),
        Action::Mark { .. } => return unsupported("marks"),
        Action::Delete { .. } => return unsupported("deletions"),
    };
    let signal = delivery.signal().unwrap_or(SignalKind::Reply);
    Ok(Answer::for_callback(delivery.turn(), signal, content, delivery.via()).to_json())
}

/// Turns the receiver's status into the result of the delivery.
fn classify(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Result<(), DeliveryError> {
    if status.is_success() {
        return Ok(());
    }
    let pause = retry_after(headers, now);
    let detail = format!("the callback answered {status}");
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

/// `Retry-After`, in seconds or as a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = if let Ok(seconds) = value.parse() {
        Duration::from_secs(seconds)
    } else {
        let at = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
        Timestamp::from_millis(at.as_millisecond()).since(now)
    };
    Some(pause.min(MAX_PAUSE))
}

/// Turns a failed post into a delivery error.
fn failure(error: &reqwest::Error) -> DeliveryError {
    // The callback's URL is left out, because it may contain a secret.
    let mut detail = if error.is_timeout() { "no response in time".to_owned() } else { "the post failed".to_owned() };
    let mut source = error.source();
    while let Some(cause) = source {
        detail.push_str(": ");
        detail.push_str(&cause.to_string());
        source = cause.source();
    }
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
