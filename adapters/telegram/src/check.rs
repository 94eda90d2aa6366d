//! Finds out which bot a token belongs to, for the setup command and at every start.

use rejoinder_core::Timestamp;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use teloxide::{
    payloads::{GetMe, GetWebhookInfo},
    requests::Payload,
};
use url::Url;

use crate::{api::Api, errors::ApiError, payload::WebhookInfo, section};

/// A bot, as `getMe` describes it (<https://core.telegram.org/bots/api#getme>).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BotProfile {
    pub id: i64,
    /// The bot's display name.
    #[serde(default)]
    pub first_name: String,
    /// The unique name without `@`: `https://t.me/<username>` opens a chat with the bot.
    #[serde(default)]
    pub username: String,
    #[serde(default)]
    pub can_join_groups: bool,
    /// Whether privacy mode is off: in groups the bot gets every message, not only commands, mentions and replies to it.
    #[serde(default)]
    pub can_read_all_group_messages: bool,
}

impl BotProfile {
    /// Whether `name` is its username, in any case.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        !self.username.is_empty() && self.username.eq_ignore_ascii_case(name)
    }
}

/// Why a token could not be checked. Never contains the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error("this does not look like a token: BotFather gives a number, a colon, and letters, digits, `_` and `-`")]
    Malformed,
    #[error("Telegram does not know this token")]
    Unknown,
    /// Telegram was not reached, so the token may be valid.
    #[error("Telegram cannot be reached: {0}")]
    Unreachable(String),
}

/// The state of a bot's webhook (<https://core.telegram.org/bots/api#webhookinfo>).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookStatus {
    /// `None`: no webhook is set; updates wait for a poll.
    pub url: Option<String>,
    /// How many updates wait for delivery.
    pub pending: u64,
    /// Telegram's reason for the last failed post, and when it failed.
    pub last_error: Option<(String, Timestamp)>,
}

/// Asks Telegram which bot `token` belongs to.
///
/// # Errors
/// If the token is malformed or unknown, or Telegram cannot be reached.
pub async fn check(http: &Client, api_url: &Url, token: &SecretString) -> Result<BotProfile, CheckError> {
    ask(http, api_url, token, &GetMe::new()).await
}

/// Asks Telegram where it posts the bot's updates. Consumes no update.
///
/// # Errors
/// As [`check`].
pub async fn check_webhook(http: &Client, api_url: &Url, token: &SecretString) -> Result<WebhookStatus, CheckError> {
    let info: WebhookInfo = ask(http, api_url, token, &GetWebhookInfo::new()).await?;
    let failed_at = Timestamp::from_millis(info.last_error_date.unwrap_or_default().saturating_mul(1000));
    Ok(WebhookStatus {
        url: Some(info.url).filter(|url| !url.is_empty()),
        pending: info.pending_update_count,
        last_error: info.last_error_message.map(|why| (why, failed_at)),
    })
}

async fn ask<P: Payload + Serialize, T: DeserializeOwned>(
    http: &Client,
    api_url: &Url,
    token: &SecretString,
    payload: &P,
) -> Result<T, CheckError> {
    if !section::is_token(token.expose_secret()) {
        return Err(CheckError::Malformed);
    }
    if !matches!(api_url.scheme(), "http" | "https") {
        return Err(CheckError::Unreachable(format!("the scheme must be http or https, not {}", api_url.scheme())));
    }
    let api = Api::new(http.clone(), api_url.clone(), token.clone());
    api.call(payload).await.map_err(|error| match error.refusal() {
        Some(refusal) if refusal.is_about_token(true) => CheckError::Unknown,
        _ => CheckError::Unreachable(error.to_string()),
    })
}

pub(crate) async fn who_am_i(api: &Api) -> Result<BotProfile, ApiError> {
    api.call(&GetMe::new()).await
}
