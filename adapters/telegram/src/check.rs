//! Who a token belongs to: for whoever sets a bot up, and for ourselves at every start.

use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use teloxide::payloads::GetMe;
use url::Url;

use crate::{
    api::{Api, ApiError},
    options,
};

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

/// Asks Telegram who `token` belongs to.
///
/// # Errors
/// When it is nobody's, or nobody answers.
pub async fn check(http: &Client, api_url: &Url, token: &SecretString) -> Result<BotProfile, CheckError> {
    if !options::is_token(token.expose_secret()) {
        return Err(CheckError::Malformed);
    }
    if !matches!(api_url.scheme(), "http" | "https") {
        return Err(CheckError::Unreachable(format!("`{}` is no web address", api_url.scheme())));
    }
    let api = Api::new(http.clone(), api_url.clone(), token.clone());
    who_am_i(&api).await.map_err(|error| match error.refusal() {
        Some(refusal) if refusal.is_about_token(true) => CheckError::Unknown,
        _ => CheckError::Unreachable(error.to_string()),
    })
}

pub(crate) async fn who_am_i(api: &Api) -> Result<BotProfile, ApiError> {
    api.call(&GetMe::new()).await
}
