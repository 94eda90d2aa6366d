//! The loop that receives messages from the server and passes them to the intake.

use std::{convert::Infallible, time::Duration};

use rejoinder_core::{Backoff, ChannelError};
use rejoinder_kit::{Receiver, RunEnd, ShuttingDown};
use tokio::time::timeout;

use crate::{
    Example,
    api::{ApiError, Connection},
    inbound,
    payload::Line,
};

/// After this time without a line from the server we send a `ping`.
const PING_AFTER: Duration = Duration::from_secs(20);

/// After this time without a line from the server the channel counts as dead.
pub(crate) const STALE_AFTER: Duration = Duration::from_mins(1);

enum ListenEnd {
    /// The connection was lost: connect again.
    Lost(ApiError),
    /// The run ends as well.
    Run(RunEnd),
}

impl From<ApiError> for ListenEnd {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Denied(why) => Self::Run(ChannelError::Unauthorized(why).into()),
            error => Self::Lost(error),
        }
    }
}

impl From<ShuttingDown> for ListenEnd {
    fn from(ended: ShuttingDown) -> Self {
        Self::Run(ended.into())
    }
}

impl Example {
    /// Listens until the run ends, and reconnects after errors.
    pub(crate) async fn receive(&self, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let mut backoff = Backoff::default();
        loop {
            let Err(end) = self.listen(receiver, &mut backoff).await;
            let error = match end {
                ListenEnd::Lost(error) => error,
                ListenEnd::Run(end) => {
                    if let RunEnd::Failed(error) = &end {
                        self.health.inbound_fails(error.to_string());
                    }
                    return Err(end);
                }
            };
            tracing::warn!(channel = %self.channel, %error, "connection lost, reconnecting");
            self.health.inbound_fails(error.to_string());
            receiver.pause(backoff.pause_unreachable()).await?;
        }
    }

    async fn listen(&self, receiver: &Receiver<'_>, backoff: &mut Backoff) -> Result<Infallible, ListenEnd> {
        let mut connection = receiver.until_shutdown(self.api.connect()).await??;
        self.health.outbound_works();
        connection.write("listen").await?;
        // An open connection proves nothing; the first line does.
        connection.write("ping").await?;
        let (mut is_first, mut was_pinged) = (true, true);
        loop {
            match receiver.until_shutdown(timeout(PING_AFTER, connection.read())).await? {
                Ok(line) => {
                    let line = line?;
                    was_pinged = false;
                    self.health.inbound_works(self.clock.now());
                    if std::mem::take(&mut is_first) {
                        tracing::info!(channel = %self.channel, name = connection.name, "connected");
                        backoff.reset();
                        // Deliveries that wait for the server are retried now.
                        receiver.intake.report_recovered();
                    }
                    self.handle_line(&line, &mut connection, receiver).await?;
                }
                Err(_) if was_pinged => return Err(ApiError::Lost("the server is silent".to_owned()).into()),
                Err(_) => {
                    was_pinged = true;
                    connection.write("ping").await?;
                }
            }
        }
    }

    async fn handle_line(
        &self,
        line: &str,
        connection: &mut Connection,
        receiver: &Receiver<'_>,
    ) -> Result<(), ListenEnd> {
        match Line::parse(line) {
            Line::Message(message) => {
                let ack = format!("ack {}", message.id);
                let event = inbound::normalise(message, line, &self.channel, &connection.name, self.clock.now());
                // Acknowledge only what is stored: the server then forgets it.
                receiver.accept(&[event], None).await?;
                connection.write(&ack).await?;
                // Storing may have taken a while, so the connection has proved itself again.
                self.health.inbound_works(self.clock.now());
            }
            Line::Pong => {}
            _ => tracing::warn!(channel = %self.channel, "a line without an id was ignored"),
        }
        Ok(())
    }
}
