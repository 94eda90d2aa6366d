//! One run of a channel: it waits, reads cursors and stores events, for as long as that takes.

use std::{fmt::Display, time::Duration};

use rejoinder_core::{Accepted, Backoff, ChannelError, ChannelId, InboundEvent, Intake, IntakeError};
use tokio_util::sync::CancellationToken;

use crate::Health;

/// The gateway is shutting down. What was not stored comes again after the next start: it was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway is shutting down")]
pub struct ShuttingDown;

/// Why a run of a channel ends.
#[derive(Debug)]
pub enum RunEnd {
    /// The gateway is shutting down.
    Shutdown,
    /// The channel cannot go on.
    Failed(ChannelError),
}

impl RunEnd {
    /// As [`run`](rejoinder_core::ChannelAdapter::run) gives it.
    ///
    /// # Errors
    /// When the channel cannot go on.
    pub fn into_result(self) -> Result<(), ChannelError> {
        match self {
            Self::Shutdown => Ok(()),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<ShuttingDown> for RunEnd {
    fn from(_: ShuttingDown) -> Self {
        Self::Shutdown
    }
}

impl From<ChannelError> for RunEnd {
    fn from(error: ChannelError) -> Self {
        Self::Failed(error)
    }
}

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
            biased;
            () = self.shutdown.cancelled() => Err(ShuttingDown),
            done = future => Ok(done),
        }
    }

    /// Asks the platform something that a run begins with, such as who we are, for as long as it takes. `judge` gives
    /// the least pause after an error, or ends the run.
    ///
    /// # Errors
    /// What `judge` says, and when the gateway shuts down before there is an answer.
    pub async fn ask<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        platform: &str,
        ask: impl Fn() -> F,
        judge: impl Fn(&E) -> Result<Duration, ChannelError>,
    ) -> Result<T, RunEnd> {
        let mut backoff = Backoff::default();
        loop {
            let error = match self.until_shutdown(ask()).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let least = judge(&error)?;
            tracing::warn!(channel = %self.channel, %error, "{platform} cannot be reached, trying again");
            self.health.inbound_fails(format!("{platform} cannot be reached: {error}"));
            self.pause(backoff.pause().max(least)).await?;
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
