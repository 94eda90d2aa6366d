//! Signing our device, and opening the backup of keys.

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

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// How often it is tried after a start.
const TRIES: u32 = 8;

/// Why our device is not signed.
enum Untrusted {
    /// Something has to be done about it.
    Final(String),
    /// It may go well another time.
    Failed(String),
}

impl Untrusted {
    fn of(error: &Error) -> Self {
        match errors::sdk(error) {
            Failure::Refused(detail) | Failure::Unauthorized { detail, .. } => Self::Final(detail),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Matrix {
    /// Makes others trust our device, as far as we can. Without it everything works, with a warning beside it.
    pub(crate) async fn be_trusted(&self, client: &Client) {
        let channel = &self.channel;
        let mut backoff = Backoff::default();
        for _ in 0..TRIES {
            match tokio::time::timeout(PATIENCE, trust(client, &self.options)).await {
                Ok(Ok(())) => return tracing::debug!(%channel, "our device is signed"),
                Ok(Err(Untrusted::Final(why))) => {
                    return tracing::warn!(%channel, why, "our device is not signed: clients show a warning beside it");
                }
                Ok(Err(Untrusted::Failed(why))) => tracing::info!(%channel, why, "our device is not signed yet"),
                Err(_) => tracing::info!(%channel, "our device is not signed yet: it takes too long"),
            }
            self.clock.sleep(backoff.pause()).await;
        }
        tracing::warn!(%channel, "our device is not signed: clients show a warning beside it. The next start tries again");
    }
}

async fn trust(client: &Client, options: &MatrixSection) -> Result<(), Untrusted> {
    let encryption = client.encryption();
    encryption.wait_for_e2ee_initialization_tasks().await;
    let made = encryption.bootstrap_cross_signing_if_needed(None).await;
    if let Some(key) = &options.recovery_key {
        recover(client, key.expose()).await?;
    }
    if !encryption.cross_signing_status().await.is_some_and(|status| status.is_complete()) {
        made.map_err(|error| Untrusted::of(&error))?;
        let why = "the account has keys to sign with, and they are elsewhere: set recovery_key";
        return Err(Untrusted::Final(why.to_owned()));
    }
    // The SDK makes keys before it brings them to the homeserver: that we have them does not mean that it has.
    let signing = signing(client).await?;
    match signing.is_signed {
        Some(true) => Ok(()),
        _ if !signing.has_keys => publish(client, options).await,
        _ => {
            let device = encryption.get_own_device().await.map_err(|error| Untrusted::Failed(error.to_string()))?;
            let device = device.ok_or_else(|| Untrusted::Failed("our device is not known yet".to_owned()))?;
            device.verify().await.map_err(|error| Untrusted::Failed(error.to_string()))
        }
    }
}

/// What the homeserver has to show for our device.
async fn signing(client: &Client) -> Result<Signing, Untrusted> {
    let (Some(user), Some(device), Some(token)) = (client.user_id(), client.device_id(), client.access_token()) else {
        return Err(Untrusted::Final("there is no session".to_owned()));
    };
    let asked = session::signing(client, &token.into(), user, device.as_str()).await;
    asked.map_err(|error| Untrusted::Failed(error.to_string()))
}

/// Brings the account's keys to the homeserver, which may ask for the password.
async fn publish(client: &Client, options: &MatrixSection) -> Result<(), Untrusted> {
    let encryption = client.encryption();
    let Err(error) = encryption.bootstrap_cross_signing(None).await else { return Ok(()) };
    let Some(asked) = error.as_uiaa_response() else { return Err(Untrusted::of(&error)) };
    let Login::Password(password) = &options.login() else {
        return Err(Untrusted::Final("the homeserver wants the account's password for it".to_owned()));
    };
    let user =
        UserIdentifier::Matrix(matrix_sdk::ruma::api::client::uiaa::MatrixUserIdentifier::new(options.user.clone()));
    let mut password = Password::new(user, password.expose_secret().to_owned());
    password.session.clone_from(&asked.session);
    let made = encryption.bootstrap_cross_signing(Some(AuthData::Password(password))).await;
    made.map_err(|error| Untrusted::of(&error))
}

/// Opens the account's recovery, or makes it where there is none and the key is a passphrase.
async fn recover(client: &Client, key: &str) -> Result<(), Untrusted> {
    let recovery = client.encryption().recovery();
    match recovery.state() {
        RecoveryState::Enabled => Ok(()),
        RecoveryState::Disabled if looks_like_a_key(key) => {
            Err(Untrusted::Final("the account has no recovery that recovery_key could open".to_owned()))
        }
        RecoveryState::Disabled => {
            recovery.enable().with_passphrase(key).await.map(|_| ()).map_err(|error| recovery_failed(&error))
        }
        RecoveryState::Incomplete | RecoveryState::Unknown => {
            recovery.recover(key).await.map_err(|error| recovery_failed(&error))
        }
    }
}

fn recovery_failed(error: &RecoveryError) -> Untrusted {
    match error {
        RecoveryError::Sdk(error) => Untrusted::of(error),
        other => Untrusted::Final(other.to_string()),
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
