//! Lets people verify us: they compare seven emoji in their client with those that we log.
//!
//! A person who may write to us asks their client to verify us. We accept, log the emoji for the operator, and confirm
//! that they match: the person compares them, and their client then shows us as verified. Nothing here depends on whom
//! *we* have verified.

use std::time::Duration;

use futures_util::StreamExt;
use matrix_sdk::{
    Client,
    encryption::verification::{SasState, SasVerification, Verification, VerificationRequestState},
    ruma::{OwnedUserId, UserId, events::key::verification::VerificationMethod},
    sync::SyncResponse,
};
use rejoinder_core::{ChannelId, Intake};
use serde::Deserialize;

use crate::{Matrix, Session, room::read};

/// How long a verification may take (<https://spec.matrix.org/latest/client-server-api/#key-verification-framework>).
const PATIENCE: Duration = Duration::from_mins(10);

/// A to-device event about a verification.
#[derive(Deserialize)]
struct ToDevice {
    #[serde(rename = "type")]
    kind: String,
    sender: OwnedUserId,
    #[serde(default)]
    content: Flow,
}

#[derive(Default, Deserialize)]
struct Flow {
    #[serde(default)]
    transaction_id: String,
}

impl Matrix {
    pub(crate) fn accept_verifications(&self, session: &Session, response: &SyncResponse, intake: &Intake) {
        for event in &response.to_device {
            let Ok(event) = serde_json::from_str::<ToDevice>(event.as_raw().json().get()) else { continue };
            let is_start = event.kind == "m.key.verification.start";
            if is_start || event.kind == "m.key.verification.request" {
                self.accept_verification(session, intake, &event.sender, event.content.transaction_id, is_start);
            }
        }
        let rooms = response.rooms.joined.values();
        for event in rooms.flat_map(|update| &update.timeline.events).filter_map(read) {
            let is_request = event.message().is_some_and(|message| message.msgtype == "m.key.verification.request");
            if let (true, Ok(sender)) = (is_request, UserId::parse(&event.sender)) {
                self.accept_verification(session, intake, &sender, event.id, false);
            }
        }
    }

    /// Accepts the verification if the person may ask for it. `is_start`: it begins without a request, as in older clients.
    fn accept_verification(&self, session: &Session, intake: &Intake, person: &UserId, flow: String, is_start: bool) {
        if person.as_str() == session.me() {
            // Anybody with the password could ask, and a device that we confirm receives our account's keys.
            tracing::warn!(channel = %self.channel, "ignored a verification request from another device of the same account");
            return;
        }
        if !intake.may_invite(person.as_str()) {
            return;
        }
        let (client, channel, person) = (session.client.clone(), self.channel.clone(), person.to_owned());
        self.tasks.spawn(async move {
            match tokio::time::timeout(PATIENCE, verify(&client, &channel, &person, &flow, is_start)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%channel, %person, %error, "verification failed"),
                Err(_) => tracing::info!(%channel, %person, "verification timed out"),
            }
        });
    }
}

async fn verify(
    client: &Client,
    channel: &ChannelId,
    person: &UserId,
    flow: &str,
    is_start: bool,
) -> matrix_sdk::Result<()> {
    let encryption = client.encryption();
    let request = encryption.get_verification_request(person, flow).await;
    let sas = match request {
        // The task that accepted the request continues it.
        Some(_) if is_start => return Ok(()),
        Some(request) => {
            let mut changes = request.changes();
            request.accept_with_methods(vec![VerificationMethod::SasV1]).await?;
            loop {
                match changes.next().await {
                    Some(VerificationRequestState::Transitioned { verification: Verification::SasV1(sas), .. }) => {
                        break sas;
                    }
                    Some(VerificationRequestState::Done | VerificationRequestState::Cancelled(_)) | None => {
                        return Ok(());
                    }
                    Some(_) => {}
                }
            }
        }
        None => match encryption.get_verification(person, flow).await.and_then(Verification::sas) {
            Some(sas) => sas,
            None => return Ok(()),
        },
    };
    compare(&sas, channel, person).await
}

async fn compare(sas: &SasVerification, channel: &ChannelId, person: &UserId) -> matrix_sdk::Result<()> {
    let mut changes = sas.changes();
    if !sas.we_started() {
        sas.accept().await?;
    }
    while let Some(state) = changes.next().await {
        match state {
            SasState::KeysExchanged { emojis, decimals } => {
                let shown = emojis.map(|shown| {
                    let emojis = shown.emojis.iter();
                    emojis.map(|emoji| format!("{} {}", emoji.symbol, emoji.description)).collect::<Vec<_>>().join(", ")
                });
                let shown = shown.unwrap_or_else(|| format!("{decimals:?}"));
                tracing::info!(%channel, %person, shown, "verification in progress: the person's client must show the same");
                sas.confirm().await?;
            }
            SasState::Done { .. } => {
                tracing::info!(%channel, %person, "verification completed");
                return Ok(());
            }
            SasState::Cancelled(why) => {
                let why = why.reason().to_owned();
                tracing::info!(%channel, %person, why, "verification cancelled");
                return Ok(());
            }
            _ => {}
        }
    }
    Ok(())
}
