//! One run of a channel: it waits, reads cursors and stores events, and retries until the store answers.

use std::{fmt::Display, time::Duration};

use rejoinder_core::{
    Accepted, Backoff, ChannelError, ChannelId, InboundEvent, Intake, IntakeError, StoreError, store::SentText,
};
use tokio_util::sync::CancellationToken;

use crate::Health;

/// The gateway is shutting down, or another node has the channel. Events that were not stored were not acknowledged, so they come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway is shutting down")]
pub struct ShuttingDown;

/// Why a run of a channel ends.
#[derive(Debug)]
pub enum RunEnd {
    /// The gateway is shutting down.
    Shutdown,
    /// The channel cannot continue.
    Failed(ChannelError),
}

impl RunEnd {
    /// The result that [`run`](rejoinder_core::ChannelAdapter::run) returns: a shutdown is no error.
    ///
    /// # Errors
    /// When the channel cannot continue.
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

/// One run of a channel, with the arguments of [`run`](rejoinder_core::ChannelAdapter::run).
#[derive(Clone, Copy)]
pub struct Receiver<'a> {
    /// The id of the channel, for log lines.
    pub channel: &'a ChannelId,
    /// Accepts the events and keeps the cursors.
    pub intake: &'a Intake,
    /// Is updated when the store or the platform fails, and when the store works again.
    pub health: &'a Health,
    /// Ends every wait of the run.
    pub shutdown: &'a CancellationToken,
}

impl Receiver<'_> {
    /// Waits for `pause`.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn pause(&self, pause: Duration) -> Result<(), ShuttingDown> {
        self.until_shutdown(self.intake.clock().sleep(pause)).await
    }

    /// Awaits a future.
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

    /// Sends the platform a request that a run begins with, such as who we are, until there is an answer. `classify` returns
    /// the shortest pause after an error, or the error that ends the run.
    ///
    /// # Errors
    /// The error of `classify`, and when the gateway shuts down before there is an answer.
    pub async fn ask<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        platform: &str,
        ask: impl Fn() -> F,
        classify: impl Fn(&E) -> Result<Duration, ChannelError>,
    ) -> Result<T, RunEnd> {
        let mut backoff = Backoff::default();
        loop {
            let error = match self.until_shutdown(ask()).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let min_pause = classify(&error)?;
            tracing::warn!(channel = %self.channel, %error, "{platform} cannot be reached, retrying");
            self.health.inbound_fails(format!("{platform} cannot be reached: {error}"));
            self.pause(backoff.pause().max(min_pause)).await?;
        }
    }

    /// The position of the channel's cursor `name`; `None` before it was first stored. Retries until it can be read.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn cursor(&self, name: &str) -> Result<Option<String>, ShuttingDown> {
        self.read("the cursor", || self.intake.cursor(name)).await
    }

    /// A message that the channel has sent to a chat, also before the start; see [`Intake::sent_text`]. Retries until the store can
    /// be read.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn sent_text(&self, chat: &str, message: &str) -> Result<Option<SentText>, ShuttingDown> {
        self.read("what was sent", || self.intake.sent_text(chat, message)).await
    }

    async fn read<T, F>(&self, what: &str, read: impl Fn() -> F) -> Result<T, ShuttingDown>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut backoff = Backoff::default();
        loop {
            match read().await {
                Ok(found) => {
                    self.health.storing_works();
                    return Ok(found);
                }
                Err(error) => self.health.storing_fails(format!("{what} cannot be read: {error}")),
            }
            self.pause(backoff.pause()).await?;
        }
    }

    /// Moves the channel's cursor `name` without events. Retries until it is stored.
    ///
    /// # Errors
    /// When the gateway shuts down before that.
    pub async fn move_cursor(&self, name: &str, position: &str) -> Result<(), ShuttingDown> {
        self.accept(&[], Some((name, position))).await.map(|_| ())
    }

    /// Stores events in order, together with the cursor's position after them. Retries until they are stored: only then
    /// may the adapter acknowledge them. An event whose content the store rejects is [`Refused`](Accepted::Refused) and
    /// does not delay the others.
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
                // To this run of the channel it is the same if another node has the channel now.
                Err(IntakeError::ShuttingDown | IntakeError::Store(StoreError::NotOwner)) => return Err(ShuttingDown),
                Err(IntakeError::Store(error)) => {
                    tracing::warn!(channel = %self.channel, %error, "events cannot be stored, retrying");
                    self.health.storing_fails(format!("events cannot be stored: {error}"));
                }
            }
            self.pause(backoff.pause()).await?;
        }
    }
}
