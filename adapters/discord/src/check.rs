//! Finds out which bot a token belongs to, for the setup command and at every start.

use std::sync::Arc;

use rejoinder_core::SystemClock;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serenity::model::Permissions;
use url::Url;

use crate::{api::Api, errors::ApiError, payload::User, section, snowflake::Snowflake};

/// The flags of an application with the MESSAGE CONTENT INTENT: for a verified one, and for one in few servers
/// (<https://discord.com/developers/docs/resources/application#application-object-application-flags>).
const READS_CONTENT: u64 = 1 << 18 | 1 << 19;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) user: Snowflake,
    pub(crate) application: Snowflake,
}

/// A description of an application and its bot user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BotProfile {
    pub id: String,
    pub username: String,
    /// The display name.
    pub name: String,
    pub application_id: String,
    /// Whether the intent `MESSAGE_CONTENT` is switched on, so that the bot may read messages in servers that do not mention
    /// it. `None`: Discord did not say.
    pub reads_message_content: Option<bool>,
    /// Whether anybody may add it to a server, not only its owner.
    pub is_public: bool,
    /// The link that adds it to a server, with the permissions that it needs.
    pub invite_url: String,
}

/// Why a token could not be checked. Never contains the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error(
        "this does not look like a bot's token: the developer portal has it under \"Bot\", three parts separated by dots"
    )]
    Malformed,
    #[error("Discord does not know this token")]
    Unknown,
    /// Discord was not reached, so the token may be valid.
    #[error("Discord cannot be reached: {0}")]
    Unreachable(String),
}

/// `GET /applications/@me`.
#[derive(Deserialize)]
struct Application {
    id: Snowflake,
    flags: Option<u64>,
    #[serde(default)]
    bot_public: bool,
}

/// Asks Discord which bot `token` belongs to.
///
/// # Errors
/// If the token is malformed or unknown, or Discord cannot be reached.
pub async fn check(http: &Client, api_url: &Url, token: &SecretString) -> Result<BotProfile, CheckError> {
    if !section::is_token(token.expose_secret()) {
        return Err(CheckError::Malformed);
    }
    if !matches!(api_url.scheme(), "http" | "https") {
        return Err(CheckError::Unreachable(format!("the scheme must be http or https, not {}", api_url.scheme())));
    }
    let api = Api::new(http.clone(), api_url.clone(), token.clone(), Arc::new(SystemClock));
    profile(&api).await.map_err(|error| match error.refusal() {
        Some(refusal) if refusal.is_about_token() => CheckError::Unknown,
        _ => CheckError::Unreachable(error.to_string()),
    })
}

async fn profile(api: &Api) -> Result<BotProfile, ApiError> {
    let user: User = api.get("users/@me").await?;
    let application: Application = api.get("applications/@me").await?;
    Ok(BotProfile {
        id: user.id.to_string(),
        name: user.global_name.clone().unwrap_or_else(|| user.username.clone()),
        username: user.username,
        application_id: application.id.to_string(),
        reads_message_content: application.flags.map(|flags| flags & READS_CONTENT != 0),
        is_public: application.bot_public,
        invite_url: invite_url(application.id),
    })
}

pub(crate) async fn who_am_i(api: &Api) -> Result<Identity, ApiError> {
    let user: User = api.get("users/@me").await?;
    let application: Application = api.get("applications/@me").await?;
    Ok(Identity { user: user.id, application: application.id })
}

/// The permissions to read, to answer, to answer in threads, and to react.
const fn permissions() -> Permissions {
    Permissions::VIEW_CHANNEL
        .union(Permissions::SEND_MESSAGES)
        .union(Permissions::SEND_MESSAGES_IN_THREADS)
        .union(Permissions::CREATE_PUBLIC_THREADS)
        .union(Permissions::READ_MESSAGE_HISTORY)
        .union(Permissions::ADD_REACTIONS)
        .union(Permissions::ATTACH_FILES)
        .union(Permissions::EMBED_LINKS)
}

fn invite_url(application: Snowflake) -> String {
    let permissions = permissions().bits();
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={permissions}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invite_asks_for_what_is_needed_and_no_more() {
        let url = invite_url(Snowflake::parse("42").expect("an id"));

        assert!(url.contains("client_id=42"), "{url}");
        assert!(!permissions().contains(Permissions::ADMINISTRATOR));
        assert!(!permissions().contains(Permissions::MENTION_EVERYONE));
    }

    #[tokio::test]
    async fn what_is_no_token_is_not_asked_about() {
        let url = Url::parse("http://127.0.0.1:9").expect("an address");
        let http = Client::builder().build().expect("a client");

        assert_eq!(check(&http, &url, &"nonsense".into()).await, Err(CheckError::Malformed));
        assert!(matches!(check(&http, &url, &"a.b.c".into()).await, Err(CheckError::Unreachable(_))));
    }
}
