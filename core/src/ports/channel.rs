//! The port to a platform: the channel adapter, its health and its errors.

use std::time::Duration;

use async_trait::async_trait;
use rejoinder_guard::{Attachment, Timestamp};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    model::{Capabilities, ChannelId, ConversationRef, Delivery, DeliveryError, Receipt, Surface, Texts, TurnId},
    ports::intake::Intake,
};

/// The health of a channel, as its adapter reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelHealth {
    /// When inbound last worked: a completed poll, an acknowledged heartbeat, a sync, an open
    /// listener. `None`: not yet.
    pub inbound_at: Option<Timestamp>,
    /// How long after `inbound_at` the channel counts as dead. `None`: never, as for an open listener.
    pub stale_after: Option<Duration>,
    /// The current problem, for the operator.
    pub problem: Option<String>,
    /// A problem of single chats, for the operator; all others work.
    pub notice: Option<String>,
}

impl ChannelHealth {
    /// Whether inbound works at `now`: no problem is reported and `inbound_at` is not stale.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.problem.is_none()
            && self.inbound_at.is_some_and(|at| self.stale_after.is_none_or(|stale| now.since(at) <= stale))
    }
}

impl Texts for ChannelHealth {
    fn strip_nul(&mut self) {
        self.problem.strip_nul();
        self.notice.strip_nul();
    }
}

/// Why a channel stopped. The core restarts it with growing pauses.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The platform does not accept our credentials.
    #[error("the platform refused the credentials: {0}")]
    Unauthorized(String),
    /// Any other error.
    #[error("the channel failed: {0}")]
    Failed(String),
}

/// Why a file could not be fetched. The turn continues without its bytes.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The file is larger than the caller's limit.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The file is not stored on the platform; the gateway fetches no foreign addresses.
    #[error("`{0}` is not stored on the platform")]
    NotOurs(String),
    /// The platform did not return the file.
    #[error("the file could not be fetched: {0}")]
    Failed(String),
}

/// The adapter of one channel.
///
/// The core calls [`run`](Self::run) once at start, and again with growing pauses whenever it returns before shutdown. If several nodes
/// work on one store, it shuts down and runs again as the channel is another node's or this one's.
/// It calls [`deliver`](Self::deliver) from any task, for one delivery per conversation at a time.
#[async_trait]
pub trait ChannelAdapter: Send + Sync + 'static {
    /// The id of the channel that this adapter serves.
    fn channel(&self) -> &ChannelId;

    /// What the platform can do in `conversation`. Pure data, no I/O.
    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities;

    /// Whether others than one person read `conversation` now, as far as the adapter knows. Pure data, no I/O; asked before
    /// something is sent to a chat that was direct when its person wrote there. The default is for platforms on which a
    /// direct chat stays one.
    fn is_group(&self, conversation: &ConversationRef) -> bool {
        let _ = conversation;
        false
    }

    /// Where people get the agent's answers. The default is a chat named after the platform.
    fn surface(&self) -> Surface {
        Surface::of(self.channel())
    }

    /// The current health of inbound. Pure data, no I/O.
    fn health(&self) -> ChannelHealth;

    /// Splits a text into parts that each fit one platform message, in order. Pure; called when the
    /// signal is claimed, so that every part is a delivery of its own and sending resumes at the next part
    /// after a crash. The default is one part.
    fn parts(&self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    /// The album that a file of an answer goes into: files of one album are one message, as many as
    /// [`files_per_message`](Capabilities::files_per_message) and [`bytes_per_message`](Capabilities::bytes_per_message)
    /// allow. Pure; called when the signal is claimed. `None`, the default: it is a message by itself.
    fn album_of(&self, file: &Attachment) -> Option<&'static str> {
        let _ = file;
        None
    }

    /// Whether a text of one [part](Self::parts) may be the text of a message with files, if there is a
    /// [limit](Capabilities::caption_limit) at all. Pure; called when the signal is claimed. The default takes each.
    fn fits_caption(&self, text: &str) -> bool {
        let _ = text;
        true
    }

    /// Whether the platform shows anything of a text. Pure; an agent's answer without visible text or files is silence.
    /// The default expects plain text; a platform that renders Markdown calls
    /// [`shows_anything`](crate::shows_anything).
    fn shows_anything(&self, text: &str) -> bool {
        !rejoinder_guard::is_blank(text)
    }

    /// Whether each node of several runs it, because its clients come to any of them, over HTTP. The default is for a platform with
    /// which one node at a time is connected.
    fn runs_at_each_node(&self) -> bool {
        false
    }

    /// Whether a client is connected here that sees what is shown in a conversation while a turn runs. Asked only where
    /// [each node](Self::runs_at_each_node) runs the channel. Pure.
    fn is_watched(&self, conversation: &ConversationRef, turn: TurnId) -> bool {
        let _ = (conversation, turn);
        true
    }

    /// Receives events until `shutdown`: normalises each, passes it to [`Intake::accept`], and
    /// acknowledges it to the platform only after that returned.
    ///
    /// # Errors
    /// When inbound cannot continue.
    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError>;

    /// Fetches the bytes of a file that was received on this channel, at most `limit` bytes. The default is for a
    /// channel whose attachments are addresses given by callers, which are never fetched.
    ///
    /// # Errors
    /// When the file is larger, is not stored on the platform, or cannot be fetched.
    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        let _ = limit;
        Err(FetchError::NotOurs(attachment.name.clone()))
    }

    /// Performs one delivery and returns the platform's acknowledgement.
    ///
    /// # Errors
    /// Each variant says what the core does next; see [`DeliveryError`].
    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError>;
}
