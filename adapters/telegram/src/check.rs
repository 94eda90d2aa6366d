//! Who a token belongs to: for whoever sets a bot up, and for ourselves at every start.

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
    /// Its number.
    pub id: i64,
    /// Its name, as people see it.
    #[serde(default)]
    pub first_name: String,
    /// Its unique name, without the sign before it: `https://t.me/<username>` opens a chat with it.
    #[serde(default)]
    pub username: String,
    /// Whether it can be added to groups.
    #[serde(default)]
    pub can_join_groups: bool,
    /// Whether privacy mode is off: in groups it gets every message, and not only commands, replies to it and
    /// mentions.
    #[serde(default)]
    pub can_read_all_group_messages: bool,
}

impl BotProfile {
    /// Whether this is its unique name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        !self.username.is_empty() && self.username.eq_ignore_ascii_case(name)
    }
}

/// Why a token could not be checked. Nothing in it says the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It does not look like a token.
    #[error("this does not look like a token: BotFather gives a number, a colon, and letters, digits, `_` and `-`")]
    Malformed,
    /// Telegram does not know it.
    #[error("Telegram does not know this token")]
    Unknown,
    /// Telegram was not reached, so nothing is known.
    #[error("Telegram cannot be reached: {0}")]
    Unreachable(String),
}

/// Where a bot's updates are posted to, and how that goes (<https://core.telegram.org/bots/api#webhookinfo>).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posting {
    /// The address; `None`: updates wait to be asked for.
    pub url: Option<String>,
    /// How many updates wait.
    pub pending: u64,
    /// Why the last post that failed did so, in Telegram's words, and when.
    pub last_error: Option<(String, Timestamp)>,
}

/// Asks Telegram who `token` belongs to.
///
/// # Errors
/// When it is nobody's, or nobody answers.
pub async fn check(http: &Client, api_url: &Url, token: &SecretString) -> Result<BotProfile, CheckError> {
    ask(http, api_url, token, &GetMe::new()).await
}

/// Asks Telegram where it posts the updates of the bot that `token` belongs to. No update is taken.
///
/// # Errors
/// As [`check`].
pub async fn check_posting(http: &Client, api_url: &Url, token: &SecretString) -> Result<Posting, CheckError> {
    let info: WebhookInfo = ask(http, api_url, token, &GetWebhookInfo::new()).await?;
    let failed_at = Timestamp::from_millis(info.last_error_date.unwrap_or_default().saturating_mul(1000));
    Ok(Posting {
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
        return Err(CheckError::Unreachable(format!("`{}` is no web address", api_url.scheme())));
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
