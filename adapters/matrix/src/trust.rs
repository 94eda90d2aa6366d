//! Signs our device (cross-signing) and opens the key backup.

use std::time::Duration;

use matrix_sdk::{
    Client, Error,
    encryption::recovery::{RecoveryError, RecoveryState},
    ruma::api::client::uiaa::{AuthData, Password, UserIdentifier},
};
use rejoinder_core::Backoff;
use secrecy::ExposeSecret;

use crate::{
    Matrix,
    errors::{self, Failure},
    section::{Login, MatrixSection},
    session::{self, Signing},
};

/// Timeout of one attempt.
const PATIENCE: Duration = Duration::from_mins(2);

const TRIES: u32 = 8;

enum SigningError {
    /// Permanent: the operator has to do something.
    Final(String),
    /// Transient.
    Failed(String),
}

impl SigningError {
    fn of(error: &Error) -> Self {
        match errors::sdk(error) {
            Failure::Refused(detail) | Failure::Unauthorized { detail, .. } => Self::Final(detail),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Matrix {
    /// Signs our device, so that others trust it. Without a signature everything works, but clients show a warning.
    pub(crate) async fn sign_device(&self, client: &Client) {
        let channel = &self.channel;
        let mut backoff = Backoff::default();
        for _ in 0..TRIES {
            match tokio::time::timeout(PATIENCE, ensure_signed(client, &self.options)).await {
                Ok(Ok(())) => return tracing::debug!(%channel, "the device is signed"),
                Ok(Err(SigningError::Final(why))) => {
                    return tracing::warn!(%channel, why, "the device is not signed, so clients show a warning");
                }
                Ok(Err(SigningError::Failed(why))) => tracing::info!(%channel, why, "device not signed yet, retrying"),
                Err(_) => tracing::info!(%channel, "device not signed yet, retrying: timed out"),
            }
            self.clock.sleep(backoff.pause()).await;
        }
        tracing::warn!(%channel, "the device is not signed, so clients show a warning; the next start tries again");
    }
}

async fn ensure_signed(client: &Client, options: &MatrixSection) -> Result<(), SigningError> {
    let encryption = client.encryption();
    encryption.wait_for_e2ee_initialization_tasks().await;
    let made = encryption.bootstrap_cross_signing_if_needed(None).await;
    if let Some(key) = &options.recovery_key {
        recover(client, key.expose()).await?;
    }
    if !encryption.cross_signing_status().await.is_some_and(|status| status.is_complete()) {
        made.map_err(|error| SigningError::of(&error))?;
        let why = "the account's signing keys are in its recovery: set recovery_key";
        return Err(SigningError::Final(why.to_owned()));
    }
    // The SDK creates keys before it uploads them, so ask the homeserver whether it has them.
    let signing = signing(client).await?;
    match signing.is_signed {
        Some(true) => Ok(()),
        _ if !signing.has_keys => publish(client, options).await,
        _ => {
            let device = encryption.get_own_device().await.map_err(|error| SigningError::Failed(error.to_string()))?;
            let device =
                device.ok_or_else(|| SigningError::Failed("the SDK does not know the device yet".to_owned()))?;
            device.verify().await.map_err(|error| SigningError::Failed(error.to_string()))
        }
    }
}

async fn signing(client: &Client) -> Result<Signing, SigningError> {
    let (Some(user), Some(device), Some(token)) = (client.user_id(), client.device_id(), client.access_token()) else {
        return Err(SigningError::Final("not logged in".to_owned()));
    };
    let asked = session::signing(client, &token.into(), user, device.as_str()).await;
    asked.map_err(|error| SigningError::Failed(error.to_string()))
}

/// Uploads the account's signing keys. The homeserver may ask for the password.
async fn publish(client: &Client, options: &MatrixSection) -> Result<(), SigningError> {
    let encryption = client.encryption();
    let Err(error) = encryption.bootstrap_cross_signing(None).await else { return Ok(()) };
    let Some(asked) = error.as_uiaa_response() else { return Err(SigningError::of(&error)) };
    let Login::Password(password) = &options.login() else {
        return Err(SigningError::Final("uploading the signing keys needs the password".to_owned()));
    };
    let user =
        UserIdentifier::Matrix(matrix_sdk::ruma::api::client::uiaa::MatrixUserIdentifier::new(options.user.clone()));
    let mut password = Password::new(user, password.expose_secret().to_owned());
    password.session.clone_from(&asked.session);
    let made = encryption.bootstrap_cross_signing(Some(AuthData::Password(password))).await;
    made.map_err(|error| SigningError::of(&error))
}

/// Opens the account's recovery. Creates it if there is none and `key` is a passphrase.
async fn recover(client: &Client, key: &str) -> Result<(), SigningError> {
    let recovery = client.encryption().recovery();
    match recovery.state() {
        RecoveryState::Enabled => Ok(()),
        RecoveryState::Disabled if looks_like_a_key(key) => {
            Err(SigningError::Final("the account has no recovery that recovery_key could open".to_owned()))
        }
        RecoveryState::Disabled => {
            recovery.enable().with_passphrase(key).await.map(|_| ()).map_err(|error| recovery_failed(&error))
        }
        RecoveryState::Incomplete | RecoveryState::Unknown => {
            recovery.recover(key).await.map_err(|error| recovery_failed(&error))
        }
    }
}

fn recovery_failed(error: &RecoveryError) -> SigningError {
    match error {
        RecoveryError::Sdk(error) => SigningError::of(error),
        other => SigningError::Final(other.to_string()),
    }
}

/// Whether a text is a recovery key: 48 characters of base 58
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
