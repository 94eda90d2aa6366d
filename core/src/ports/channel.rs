//! The port to a platform: what a channel adapter is, can do, and must keep to.

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_guard::{Attachment, Timestamp};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    model::{
        capabilities::Capabilities,
        conversation::{ChannelId, ConversationRef},
        delivery::{Delivery, DeliveryError, Receipt},
    },
    ports::intake::Intake,
};

/// What a channel reports about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelHealth {
    /// When inbound was last proved: a completed poll, a heartbeat's acknowledgement, a sync, an open
    /// listener. `None`: not yet.
    pub inbound_at: Option<Timestamp>,
    /// How long after `inbound_at` the channel counts as dead. `None`: an open listener cannot go stale.
    pub stale_after: Option<Duration>,
    /// What is wrong, for the operator.
    pub problem: Option<String>,
}

impl ChannelHealth {
    /// Whether inbound is proved, as of `now`.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.problem.is_none()
            && self.inbound_at.is_some_and(|at| self.stale_after.is_none_or(|stale| now.since(at) <= stale))
    }
}

/// Why a channel stopped.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The platform does not accept our credentials.
    #[error("the platform refused the credentials: {0}")]
    Unauthorized(String),
    /// Something else; the channel is started again with growing pauses.
    #[error("the channel failed: {0}")]
    Failed(String),
}

/// Why the bytes of a file are not there. The turn goes on without them.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It is more than what was asked for.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The address is not the platform's: it is never fetched from inside.
    #[error("`{0}` is not kept by the platform")]
    NotOurs(String),
    /// The platform did not give it.
    #[error("the file could not be fetched: {0}")]
    Failed(String),
}

/// Our code for one platform.
///
/// The core calls [`run`](Self::run) once, at start, and again after it failed. It calls
/// [`deliver`](Self::deliver) for one delivery per conversation at a time, from any task.
#[async_trait]
pub trait ChannelAdapter: Send + Sync + 'static {
    /// The channel this adapter serves.
    fn channel(&self) -> &ChannelId;

    /// What the platform can do in `conversation`. Pure data, no I/O.
    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities;

    /// How inbound is doing. Pure data, no I/O.
    fn health(&self) -> ChannelHealth;

    /// Splits a text into what one platform message holds each, in order. Pure; called when the
    /// signal is claimed, so that every part is a delivery of its own and a crash between two parts
    /// goes on at the next one. The default is one part.
    fn parts(&self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    /// Whether a person would see anything of a text. Pure; an agent's answer of which they would not is silence.
    /// The default shows a text as it is; a platform that reads Markdown says
    /// [`shows_anything`](crate::shows_anything).
    fn shows_anything(&self, text: &str) -> bool {
        !rejoinder_guard::is_blank(text)
    }

    /// Takes events in until `shutdown`: normalises each, hands it to [`Intake::accept`], and
    /// acknowledges it to the platform only after that returned.
    ///
    /// # Errors
    /// When inbound cannot go on.
    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError>;

    /// The bytes of a file that came in on this channel: at most `limit` of them. The default is a channel
    /// whose attachments are addresses that somebody else gave.
    ///
    /// # Errors
    /// When there are more, or the platform does not give them.
    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        let _ = limit;
        Err(FetchError::NotOurs(attachment.name.clone()))
    }

    /// Performs one delivery and returns the platform's acknowledgement.
    ///
    /// # Errors
    /// Named by what the caller does next; see [`DeliveryError`].
    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError>;
}
