//! Signing our device, and opening the backup of keys.

use std::time::Duration;

use matrix_sdk::{
    Client,
    encryption::recovery::RecoveryState,
    ruma::api::client::uiaa::{AuthData, Password, UserIdentifier},
};
use secrecy::ExposeSecret;

use crate::{
    Matrix,
    options::{Login, MatrixOptions},
};

/// How long it may take at start.
const PATIENCE: Duration = Duration::from_mins(2);

impl Matrix {
    /// Makes others trust our device, as far as we can. Without it everything works, with a warning beside it.
    pub(crate) async fn be_trusted(&self, client: &Client) {
        let channel = &self.channel;
        match tokio::time::timeout(PATIENCE, trust(client, &self.options)).await {
            Ok(Ok(())) => tracing::debug!(%channel, "our device is signed"),
            Ok(Err(why)) => tracing::warn!(%channel, why, "our device is not signed: clients show a warning beside it"),
            Err(_) => tracing::warn!(%channel, "our device could not be signed in time"),
        }
    }
}

async fn trust(client: &Client, options: &MatrixOptions) -> Result<(), String> {
    let encryption = client.encryption();
    encryption.wait_for_e2ee_initialization_tasks().await;
    bootstrap(client, options).await?;
    if let Some(key) = &options.recovery_key {
        recover(client, key.expose_secret()).await?;
    }
    let signed = encryption.cross_signing_status().await.is_some_and(|status| status.is_complete());
    if signed {
        Ok(())
    } else {
        Err("the account has keys to sign with, and they are elsewhere: set recovery_key".to_owned())
    }
}

/// Makes the account's keys to sign with, where it has none.
async fn bootstrap(client: &Client, options: &MatrixOptions) -> Result<(), String> {
    let encryption = client.encryption();
    let Err(error) = encryption.bootstrap_cross_signing_if_needed(None).await else { return Ok(()) };
    let Some(asked) = error.as_uiaa_response() else { return Err(error.to_string()) };
    let Login::Password(password) = &options.login else {
        return Err("the homeserver wants the account's password for it".to_owned());
    };
    let user =
        UserIdentifier::Matrix(matrix_sdk::ruma::api::client::uiaa::MatrixUserIdentifier::new(options.user.clone()));
    let mut password = Password::new(user, password.expose_secret().to_owned());
    password.session.clone_from(&asked.session);
    let made = encryption.bootstrap_cross_signing_if_needed(Some(AuthData::Password(password))).await;
    made.map_err(|error| error.to_string())
}

/// Opens the account's recovery, or makes it where there is none and the key is a passphrase.
async fn recover(client: &Client, key: &str) -> Result<(), String> {
    let recovery = client.encryption().recovery();
    match recovery.state() {
        RecoveryState::Enabled => Ok(()),
        RecoveryState::Disabled if looks_like_a_key(key) => {
            Err("the account has no recovery that recovery_key could open".to_owned())
        }
        RecoveryState::Disabled => {
            recovery.enable().with_passphrase(key).await.map(|_| ()).map_err(|error| error.to_string())
        }
        RecoveryState::Incomplete | RecoveryState::Unknown => {
            recovery.recover(key).await.map_err(|error| error.to_string())
        }
    }
}

/// Recovery keys are 48 letters and digits of base 58
/// (<https://spec.matrix.org/latest/appendices/#cryptographic-key-representation>).
fn looks_like_a_key(text: &str) -> bool {
    let key: String = text.split_whitespace().collect();
    key.len() == 48 && key.starts_with('E') && key.chars().all(|character| character.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_key_is_no_passphrase() {
        assert!(looks_like_a_key("EsTj 3yST y93F SLpB jJsz eAXc 2XzA ygD3 w69H fGaN TKBj jXEd"));
        assert!(!looks_like_a_key("correct horse battery staple"));
    }
}
