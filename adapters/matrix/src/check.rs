//! Trying an account out, before it is written into a configuration.

use std::{path::Path, time::Duration};

use futures_util::future::BoxFuture;
use matrix_sdk::{
    Client,
    ruma::{OwnedUserId, api::client::session::logout},
};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::{
    errors,
    section::{Login, MatrixSection},
    session::{self, SessionError, builder, who_am_i},
};

/// How long asking a server for its homeserver may take.
const DISCOVERY: Duration = Duration::from_secs(5);

/// An account that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProfile {
    /// The user id.
    pub user: String,
    /// What it is called.
    pub display_name: Option<String>,
    /// The device of an access token: one that another program uses must not be used here as well.
    pub device: Option<String>,
}

/// How an account stands that a gateway is to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStanding {
    /// Who it is, and the gateway's device where there is one already.
    pub account: AccountProfile,
    /// Whether the account has signed that device; `None`: the homeserver knows no keys of it yet.
    pub is_signed: Option<bool>,
}

/// Why an account does not work.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// What belongs to the gateway's device is not where it was.
    #[error("{0}")]
    Lost(String),
    /// The homeserver does not accept the password or the token.
    #[error("the homeserver refused: {0}")]
    Refused(String),
    /// The homeserver cannot be reached, or is none.
    #[error("the homeserver cannot be reached: {0}")]
    Unreachable(String),
}

impl From<SessionError> for CheckError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Unauthorized(detail) => Self::Refused(detail),
            SessionError::Lost(detail) => Self::Lost(detail),
            SessionError::Unreachable { detail, .. } | SessionError::Failed(detail) => Self::Unreachable(detail),
        }
    }
}

/// Asks a homeserver whether it accepts an account. Leaves nothing behind: with a password it logs in, and out
/// again.
///
/// # Errors
/// When it does not, or cannot be asked.
pub fn check<'a>(
    http: &'a reqwest::Client,
    homeserver: &'a Url,
    user: &'a str,
    login: &'a Login,
) -> BoxFuture<'a, Result<AccountProfile, CheckError>> {
    // Boxed: the SDK's futures are compiled in this crate, and not again in the gateway.
    Box::pin(log_in(http, homeserver, user, login))
}

async fn log_in(
    http: &reqwest::Client,
    homeserver: &Url,
    user: &str,
    login: &Login,
) -> Result<AccountProfile, CheckError> {
    let client = builder(homeserver, http).build().await;
    let client = client.map_err(|error| CheckError::Unreachable(error.to_string()))?;
    match login {
        Login::Password(password) => with_password(&client, user, password).await,
        Login::AccessToken(token) => {
            let me = who_am_i(&client, token).await?;
            let device = me.device_id.map(|device| device.to_string());
            let display_name = display_name(&client, me.user_id.clone()).await;
            Ok(AccountProfile { user: me.user_id.to_string(), display_name, device })
        }
    }
}

/// Asks how the account of a configuration stands, beside a gateway that uses it or before the first one does.
/// Nothing is changed: where the gateway has a session, it is asked with that.
///
/// # Errors
/// When the account cannot be used as it is, or the homeserver cannot be asked.
pub fn standing<'a>(
    http: &'a reqwest::Client,
    options: &'a MatrixSection,
    folder: &'a Path,
) -> BoxFuture<'a, Result<AccountStanding, CheckError>> {
    Box::pin(look(http, options, folder))
}

async fn look(http: &reqwest::Client, options: &MatrixSection, folder: &Path) -> Result<AccountStanding, CheckError> {
    let kept = session::kept(folder)?;
    let login = options.login();
    let token = match (&login, &kept) {
        (Login::AccessToken(token), _) | (Login::Password(_), Some(session::Kept { token: Some(token), .. })) => {
            token.clone()
        }
        (login @ Login::Password(_), _) => {
            let account = check(http, &options.homeserver, &options.user, login).await?;
            return Ok(AccountStanding { account, is_signed: None });
        }
    };
    let client = builder(&options.homeserver, http).build().await;
    let client = client.map_err(|error| CheckError::Unreachable(error.to_string()))?;
    let me = who_am_i(&client, &token).await?;
    if me.user_id.as_str() != options.user {
        return Err(CheckError::Refused(format!("the access token is that of {}", me.user_id)));
    }
    let device = me.device_id.map(|device| device.to_string());
    if let (Some(kept), Some(device)) = (&kept, &device)
        && kept.device != *device
    {
        return Err(session::other_device(folder, device, &kept.device).into());
    }
    let is_signed = match &device {
        Some(device) => session::signing(&client, &token, &me.user_id, device).await?.is_signed,
        None => None,
    };
    let display_name = display_name(&client, me.user_id.clone()).await;
    Ok(AccountStanding { account: AccountProfile { user: me.user_id.to_string(), display_name, device }, is_signed })
}

/// Where the homeserver of `server` is, the part of a user id after the colon: what the server itself says
/// (<https://spec.matrix.org/latest/client-server-api/#well-known-uris>), or nothing.
pub async fn discover(http: &reqwest::Client, server: &str) -> Option<Url> {
    let url = format!("https://{server}/.well-known/matrix/client");
    let asked = http.get(url).timeout(DISCOVERY).send().await.ok()?.error_for_status().ok()?;
    let said: serde_json::Value = asked.json().await.ok()?;
    let url = Url::parse(said["m.homeserver"]["base_url"].as_str()?).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

async fn with_password(client: &Client, user: &str, password: &SecretString) -> Result<AccountProfile, CheckError> {
    let login = client
        .matrix_auth()
        .login_username(user, password.expose_secret())
        .initial_device_display_name("Rejoinder (trying out)")
        .send()
        .await
        .map_err(|error| CheckError::from(SessionError::from(errors::sdk(&error))))?;
    let display_name = display_name(client, login.user_id.clone()).await;
    if let Err(error) = client.send(logout::v3::Request::new()).await {
        tracing::warn!(%error, "a device is left behind");
    }
    Ok(AccountProfile { user: login.user_id.to_string(), display_name, device: None })
}

async fn display_name(client: &Client, user: OwnedUserId) -> Option<String> {
    let profile =
        client.send(matrix_sdk::ruma::api::client::profile::get_profile::v3::Request::new(user)).await.ok()?;
    profile.get("displayname").and_then(|name| name.as_str().map(str::to_owned))
}
