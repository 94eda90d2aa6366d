//! Checks an account, for `init` and `doctor`.

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

const DISCOVERY: Duration = Duration::from_secs(5);

/// An account that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProfile {
    pub user: String,
    pub display_name: Option<String>,
    /// The device of an access token. No other program may use the same device.
    pub device: Option<String>,
}

/// The state of a configured account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// The account, and the gateway's device if it exists.
    pub account: AccountProfile,
    /// Whether the account has signed that device; `None`: the homeserver knows no keys of the device yet.
    pub is_signed: Option<bool>,
}

/// Why an account does not work.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Data of the gateway's device is missing.
    #[error("{0}")]
    Lost(String),
    /// The homeserver rejects the password or the token.
    #[error("the homeserver refused: {0}")]
    Refused(String),
    /// The homeserver cannot be reached, or the URL is not that of a homeserver.
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

/// Asks a homeserver whether it accepts an account. With a password this logs in and out again, so that no device stays.
///
/// # Errors
/// If the homeserver rejects the account, or cannot be reached.
#[must_use]
pub fn check<'a>(
    http: &'a reqwest::Client,
    homeserver: &'a Url,
    user: &'a str,
    login: &'a Login,
) -> BoxFuture<'a, Result<AccountProfile, CheckError>> {
    // Boxed, so that the SDK's futures are compiled in this crate only and not again in the gateway.
    Box::pin(async move {
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
    })
}

/// Asks for the state of a configured account, while a gateway uses it or before the first start. Changes nothing: if
/// the gateway has a session, its token is used.
///
/// # Errors
/// If the account cannot be used as configured, or the homeserver cannot be reached.
#[must_use]
pub fn account_state<'a>(
    http: &'a reqwest::Client,
    options: &'a MatrixSection,
    folder: &'a Path,
) -> BoxFuture<'a, Result<AccountState, CheckError>> {
    Box::pin(async move {
        let stored = session::stored_device(folder)?;
        let login = options.login();
        let token = match (&login, &stored) {
            (Login::AccessToken(token), _)
            | (Login::Password(_), Some(session::StoredDevice { token: Some(token), .. })) => token.clone(),
            (login @ Login::Password(_), _) => {
                let account = check(http, &options.homeserver, &options.user, login).await?;
                return Ok(AccountState { account, is_signed: None });
            }
        };
        let client = builder(&options.homeserver, http).build().await;
        let client = client.map_err(|error| CheckError::Unreachable(error.to_string()))?;
        let me = who_am_i(&client, &token).await?;
        if me.user_id.as_str() != options.user {
            return Err(CheckError::Refused(format!("the access token belongs to {}", me.user_id)));
        }
        let device = me.device_id.map(|device| device.to_string());
        if let (Some(stored), Some(device)) = (&stored, &device)
            && stored.device != *device
        {
            return Err(session::other_device(folder, device, &stored.device).into());
        }
        let is_signed = match &device {
            Some(device) => session::signing(&client, &token, &me.user_id, device).await?.is_signed,
            None => None,
        };
        let display_name = display_name(&client, me.user_id.clone()).await;
        Ok(AccountState { account: AccountProfile { user: me.user_id.to_string(), display_name, device }, is_signed })
    })
}

/// Discovers the homeserver's URL for `server`, the part of a user id after the colon
/// (<https://spec.matrix.org/latest/client-server-api/#well-known-uris>). `None` if the server does not name it.
pub async fn discover(http: &reqwest::Client, server: &str) -> Option<Url> {
    let url = format!("https://{server}/.well-known/matrix/client");
    let response = http.get(url).timeout(DISCOVERY).send().await.ok()?.error_for_status().ok()?;
    let body: serde_json::Value = response.json().await.ok()?;
    let url = Url::parse(body["m.homeserver"]["base_url"].as_str()?).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

async fn with_password(client: &Client, user: &str, password: &SecretString) -> Result<AccountProfile, CheckError> {
    let login = client
        .matrix_auth()
        .login_username(user, password.expose_secret())
        .initial_device_display_name("Rejoinder (account check)")
        .send()
        .await
        .map_err(|error| CheckError::from(SessionError::from(errors::sdk(&error))))?;
    let display_name = display_name(client, login.user_id.clone()).await;
    if let Err(error) = client.send(logout::v3::Request::new()).await {
        tracing::warn!(%error, "could not log out after the check, its device stays");
    }
    Ok(AccountProfile { user: login.user_id.to_string(), display_name, device: None })
}

async fn display_name(client: &Client, user: OwnedUserId) -> Option<String> {
    let profile =
        client.send(matrix_sdk::ruma::api::client::profile::get_profile::v3::Request::new(user)).await.ok()?;
    profile.get("displayname").and_then(|name| name.as_str().map(str::to_owned))
}
