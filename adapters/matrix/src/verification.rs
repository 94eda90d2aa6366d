//! Being verified by people: their client compares seven emoji with those that we write into the log.
//!
//! A person who may write to us asks their client to verify us. We take it up, write the emoji down for the operator,
//! and say that they match: it is the person who compares them, and whom their client then shows that we are who we
//! are. Nothing here hangs on whom *we* have verified.

use std::time::Duration;

use futures_util::StreamExt;
use matrix_sdk::{
    Client,
    encryption::verification::{SasState, SasVerification, Verification, VerificationRequestState},
    ruma::{OwnedUserId, UserId, events::key::verification::VerificationMethod},
    sync::SyncResponse,
};
use rejoinder_core::ChannelId;
use serde::Deserialize;

use crate::{Matrix, Session, room::read};

/// How long a verification may take (<https://spec.matrix.org/latest/client-server-api/#key-verification-framework>).
const PATIENCE: Duration = Duration::from_mins(10);

/// What is sent to a device about a verification.
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
    /// Takes up the verifications that a sync brought.
    pub(crate) fn take_up_verifications(&self, session: &Session, response: &SyncResponse) {
        for event in &response.to_device {
            let Ok(event) = serde_json::from_str::<ToDevice>(event.as_raw().json().get()) else { continue };
            let is_start = event.kind == "m.key.verification.start";
            if is_start || event.kind == "m.key.verification.request" {
                self.take_up(session, &event.sender, event.content.transaction_id, is_start);
            }
        }
        let rooms = response.rooms.joined.values();
        for event in rooms.flat_map(|update| &update.timeline.events).filter_map(read) {
            let is_request = event.message().is_some_and(|said| said.msgtype == "m.key.verification.request");
            if let (true, Ok(sender)) = (is_request, UserId::parse(&event.sender)) {
                self.take_up(session, &sender, event.id, false);
            }
        }
    }

    /// `is_start`: it begins without a request, as older clients do.
    fn take_up(&self, session: &Session, person: &UserId, flow: String, is_start: bool) {
        if person.as_str() == session.me() {
            // Whoever has the password could ask, and a device that we confirm is given our account's keys.
            tracing::warn!(channel = %self.channel, "another device of our account wants to verify us, which is not taken up");
            return;
        }
        if !self.options.may_invite(person.as_str()) {
            return;
        }
        let (client, channel, person) = (session.client.clone(), self.channel.clone(), person.to_owned());
        self.tasks.spawn(async move {
            match tokio::time::timeout(PATIENCE, verify(&client, &channel, &person, &flow, is_start)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%channel, %person, %error, "a verification failed"),
                Err(_) => tracing::info!(%channel, %person, "a verification came to no end"),
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
        // Whoever took up the request goes on with it.
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
                tracing::info!(%channel, %person, shown, "somebody verifies us: their client must show the same");
                sas.confirm().await?;
            }
            SasState::Done { .. } => {
                tracing::info!(%channel, %person, "somebody has verified us");
                return Ok(());
            }
            SasState::Cancelled(why) => {
                let why = why.reason().to_owned();
                tracing::info!(%channel, %person, why, "a verification was called off");
                return Ok(());
            }
            _ => {}
        }
    }
    Ok(())
}
