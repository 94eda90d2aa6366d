//! Receives updates that Telegram posts (<https://core.telegram.org/bots/api#setwebhook>).
//!
//! The endpoint answers 200 once the update is stored, and 503 with `Retry-After` if it cannot be stored now. Telegram
//! then posts it again after that time, in order, so nothing is kept in memory.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing,
};
use rejoinder_core::{Backoff, ChannelAdapter, ChannelError, Timestamp};
use rejoinder_kit::{Receiver, RunEnd};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use teloxide::payloads::{GetWebhookInfo, SetWebhook};

use super::polling::ALLOWED;
use crate::{
    Telegram, WebhookContext,
    check::BotProfile,
    errors::{ApiError, Refusal},
    payload::WebhookInfo,
    section::TelegramWebhook,
};

const BODY_LIMIT: usize = 1 << 20;

const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// How long storing may take before Telegram is asked to post the update again.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// After how many seconds Telegram posts again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

const WATCH_EVERY: Duration = Duration::from_mins(1);

const SECRET: &str = "x-telegram-bot-api-secret-token";

/// The secret that Telegram must send with each post.
pub(crate) struct WebhookSecret {
    secret: SecretString,
    digest: [u8; 32],
}

impl WebhookSecret {
    pub(crate) fn new(name: &str, token: &SecretString, options: &TelegramWebhook) -> Self {
        let secret = options.secret.clone().map_or_else(
            || {
                // The same after every start, so that posts in flight are still accepted.
                let made = Sha256::new()
                    .chain_update(b"rejoinder telegram webhook\0")
                    .chain_update(name)
                    .chain_update(b"\0")
                    .chain_update(token.expose_secret());
                hex::encode(made.finalize()).into()
            },
            SecretString::from,
        );
        let digest = Sha256::digest(secret.expose_secret()).into();
        Self { secret, digest }
    }

    /// Checks the secret in constant time.
    fn matches(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(SECRET).map_or(&[][..], HeaderValue::as_bytes);
        Sha256::digest(shown).ct_eq(&self.digest).into()
    }
}

type Bots = HashMap<String, Arc<Telegram>>;

/// Serves `/telegram/{name}` for those of `bots` that are in webhook mode.
///
/// Limits the size of bodies and the time they take.
pub fn webhook_routes(bots: impl IntoIterator<Item = Arc<Telegram>>) -> Router {
    let bots: Bots = bots.into_iter().map(|bot| (bot.channel().name().to_owned(), bot)).collect();
    Router::new().route("/telegram/{name}", routing::post(receive)).with_state(Arc::new(bots))
}

async fn receive(State(bots): State<Arc<Bots>>, Path(name): Path<String>, headers: HeaderMap, body: Body) -> Response {
    let Some((bot, secret)) = bots.get(&name).and_then(|bot| Some((bot, bot.webhook_secret.as_ref()?))) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !secret.matches(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let Some(context) = bot.webhook_context.get() else { return unavailable() };
    let body = match tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, BODY_LIMIT)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let Ok(raw) = std::str::from_utf8(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    if serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err() {
        return StatusCode::BAD_REQUEST.into_response();
    }
    bot.receive_post(&context, raw).await
}

fn unavailable() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, RETRY_AFTER)]).into_response()
}

impl Telegram {
    async fn receive_post(&self, context: &WebhookContext, raw: &str) -> Response {
        let WebhookContext { intake, shutdown, me } = context;
        let receiver = Receiver { channel: &self.channel, intake, health: &self.health, shutdown };
        let storing = async {
            let read = self.read_updates(me, &receiver, &[raw]).await?;
            self.store(&receiver, &read, None).await
        };
        let stored = tokio::select! {
            stored = storing => stored.is_ok(),
            () = self.clock.sleep(STORE_TIMEOUT) => false,
        };
        if !stored {
            return unavailable();
        }
        self.health.inbound_works(self.clock.now());
        StatusCode::OK.into_response()
    }

    /// Sets the webhook, accepts posts until the run ends, and checks that Telegram can reach the webhook.
    pub(crate) async fn listen(
        &self,
        webhook: &TelegramWebhook,
        me: &BotProfile,
        receiver: &Receiver<'_>,
    ) -> Result<(), RunEnd> {
        let (intake, shutdown) = (receiver.intake.clone(), receiver.shutdown.clone());
        let _opened = self.webhook_context.open(WebhookContext { intake, shutdown, me: me.clone() });
        let mut backoff = Backoff::default();
        let mut is_set = false;
        let mut is_away = true;
        let mut checked_at = self.clock.now();
        loop {
            let call = async {
                if is_set { self.watch_webhook(webhook, checked_at).await } else { self.set_webhook(webhook).await }
            };
            let pause = match receiver.until_shutdown(call).await? {
                Ok(is_ours) => {
                    is_set = is_ours;
                    backoff.reset();
                    if std::mem::take(&mut is_away) {
                        receiver.intake.report_recovered();
                    }
                    checked_at = self.clock.now();
                    if is_ours { WATCH_EVERY } else { Duration::ZERO }
                }
                Err(error) => {
                    let problem = if is_set { "the webhook cannot be queried" } else { "the webhook cannot be set" };
                    tracing::warn!(channel = %self.channel, %error, "{problem}, retrying");
                    self.health.inbound_fails(format!("{problem}: {error}"));
                    if let Some(refusal) = error.refusal().filter(|refusal| refusal.is_about_token(true)) {
                        return Err(ChannelError::Unauthorized(refusal.to_string()).into());
                    }
                    is_away = true;
                    let limit = error.refusal().filter(|refusal| refusal.code == 429);
                    backoff.pause().max(limit.map(Refusal::limit).unwrap_or_default())
                }
            };
            receiver.pause(pause).await?;
        }
    }

    async fn set_webhook(&self, webhook: &TelegramWebhook) -> Result<bool, ApiError> {
        let mut payload = SetWebhook::new(webhook.url.clone());
        payload.secret_token = self.webhook_secret.as_ref().map(|it| it.secret.expose_secret().to_owned());
        payload.max_connections = u8::try_from(webhook.max_connections).ok();
        payload.allowed_updates = Some(ALLOWED.to_vec());
        self.api.call::<_, bool>(&payload).await?;
        self.health.inbound_works(self.clock.now());
        Ok(true)
    }

    /// Queries the webhook's status. `false` if the webhook no longer points to us.
    async fn watch_webhook(&self, webhook: &TelegramWebhook, since: Timestamp) -> Result<bool, ApiError> {
        let info: WebhookInfo = self.api.call(&GetWebhookInfo::new()).await?;
        self.health.outbound_works();
        if info.url != webhook.url.as_str() {
            tracing::warn!(channel = %self.channel, "another program changed the webhook, setting it again");
            return Ok(false);
        }
        let failed_at = info.last_error_date.map(|date| Timestamp::from_millis(date.saturating_mul(1000)));
        // Telegram's clock may differ from ours, so an error up to one interval older still counts as new.
        let is_new = failed_at.is_some_and(|at| at + WATCH_EVERY >= since);
        match info.last_error_message {
            Some(why) if is_new && info.pending_update_count > 0 => {
                tracing::warn!(channel = %self.channel, why, "Telegram cannot reach the webhook");
                self.health.inbound_fails(format!("Telegram cannot reach the webhook: {why}"));
            }
            _ => self.health.inbound_works(self.clock.now()),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::section::is_webhook_secret;

    fn webhook_secret(secret: Option<&str>) -> WebhookSecret {
        let options = TelegramWebhook::new(Url::parse("https://example.org/telegram/main").expect("an address"));
        WebhookSecret::new("main", &"1:a".into(), &TelegramWebhook { secret: secret.map(Into::into), ..options })
    }

    fn showing(secret: &str) -> HeaderMap {
        HeaderMap::from_iter([(SECRET.parse().expect("a name"), secret.parse().expect("a value"))])
    }

    #[test]
    fn only_who_shows_the_secret_is_let_in() {
        let secret = webhook_secret(Some("right"));

        assert!(secret.matches(&showing("right")));
        assert!(!secret.matches(&showing("wrong")));
        assert!(!secret.matches(&showing("")));
        assert!(!secret.matches(&HeaderMap::new()));
    }

    #[test]
    fn a_secret_of_our_own_making_stays_and_is_another_ones_for_another_bot() {
        let (one, again) = (webhook_secret(None), webhook_secret(None));
        let options = TelegramWebhook::new(Url::parse("https://example.org/telegram/main").expect("an address"));
        let other = WebhookSecret::new("main", &"2:a".into(), &options);

        assert_eq!(one.secret.expose_secret(), again.secret.expose_secret());
        assert_ne!(one.secret.expose_secret(), other.secret.expose_secret());
        assert!(is_webhook_secret(one.secret.expose_secret()));
    }
}
