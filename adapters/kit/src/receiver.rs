//! One run of a channel: it waits, reads cursors and stores events, for as long as that takes.

use std::time::Duration;

use rejoinder_core::{Accepted, Backoff, ChannelId, InboundEvent, Intake, IntakeError};
use tokio_util::sync::CancellationToken;

use crate::Health;

/// The gateway is shutting down. What was not stored comes again after the next start: it was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway is shutting down")]
pub struct ShuttingDown;

/// One run of a channel, with what [`run`](rejoinder_core::ChannelAdapter::run) was given.
#[derive(Clone, Copy)]
pub struct Receiver<'a> {
    /// The channel, for log lines.
    pub channel: &'a ChannelId,
    /// Where events go.
    pub intake: &'a Intake,
    /// Learns that the store takes nothing, and that it does again.
    pub health: &'a Health,
    /// Ends everything that waits.
    pub shutdown: &'a CancellationToken,
}

impl Receiver<'_> {
    /// Waits.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn pause(&self, pause: Duration) -> Result<(), ShuttingDown> {
        self.until_shutdown(self.intake.clock().sleep(pause)).await
    }

    /// What a future gives.
    ///
    /// # Errors
    /// When the gateway shuts down before that; the future is dropped then.
    pub async fn until_shutdown<T>(&self, future: impl Future<Output = T>) -> Result<T, ShuttingDown> {
        tokio::select! {
            done = future => Ok(done),
            () = self.shutdown.cancelled() => Err(ShuttingDown),
        }
    }

    /// Where the channel's cursor `name` stands, for as long as it takes to read it.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn cursor(&self, name: &str) -> Result<Option<String>, ShuttingDown> {
        let mut backoff = Backoff::default();
        loop {
            match self.intake.cursor(name).await {
                Ok(position) => {
                    self.health.storing_works();
                    return Ok(position);
                }
                Err(error) => self.health.storing_fails(format!("the cursor cannot be read: {error}")),
            }
            self.pause(backoff.pause()).await?;
        }
    }

    /// Moves the channel's cursor `name` alone, for as long as it takes.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn move_cursor(&self, name: &str, position: &str) -> Result<(), ShuttingDown> {
        self.accept(&[], Some((name, position))).await.map(|_| ())
    }

    /// Stores events in their order, together with where a cursor stands after them, for as long as it takes: only then
    /// may the platform be told that they arrived. An event that the store will never take is
    /// [`Refused`](Accepted::Refused), and holds up none of the others.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn accept(
        &self,
        events: &[InboundEvent],
        cursor: Option<(&str, &str)>,
    ) -> Result<Vec<Accepted>, ShuttingDown> {
        let mut backoff = Backoff::default();
        loop {
            let cursor = cursor.map(|(name, position)| (name, position.to_owned()));
            match self.intake.accept_all(events.to_vec(), cursor).await {
                Ok(accepted) => {
                    self.health.storing_works();
                    return Ok(accepted);
                }
                Err(IntakeError::ShuttingDown) => return Err(ShuttingDown),
                Err(IntakeError::Store(error)) => {
                    tracing::warn!(channel = %self.channel, %error, "events cannot be stored, trying again");
                    self.health.storing_fails(format!("events cannot be stored: {error}"));
                }
            }
            self.pause(backoff.pause()).await?;
        }
    }
}
