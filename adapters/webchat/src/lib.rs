//! The web chat page and its socket.
//!
//! A page under `/chat` that shows a conversation with the agent, and the WebSocket that it speaks
//! (`docs/webchat-protocol.md`). An answer is delivered when its row is stored, and the page reads the
//! rows: at first, at every change, and again after it was away. Drafts and typing are passed on to
//! whoever has the conversation open, and to nobody when nobody has.
//!
//! It never lets a page of another origin in, never fetches anything from elsewhere, never shows
//! markup that an agent wrote, and never says "accepted" before the store said so.
//!
//! To show something new: a field of `protocol::Turn` or a frame in `protocol.rs` (fields and frames
//! may be added, pages ignore what they do not know), its words in `docs/webchat-protocol.md`, and its
//! looks in `assets/turns.js`. To allow more of Markdown: `format.rs`, and its list of known tags in
//! the tests.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_core::{
    Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery, DeliveryError,
    Intake, Receipt, SharedClock, Timestamp, TurnView,
};
use rejoinder_kit::Opening;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast::error::RecvError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

mod access;
mod capabilities;
mod format;
mod inbound;
mod outbound;
mod protocol;
mod rooms;
mod routes;
mod section;
mod socket;

pub use access::Access;
pub use routes::{openapi, router};
pub use section::{AccessKind, WebchatSection};

use access::Door;
use protocol::{ServerFrame, Turn};
use rooms::{Progress, Rooms};

/// How many sockets a chat may have open, those that have not said hello included.
const MAX_SOCKETS: usize = 512;

/// What one web chat is made of.
#[derive(Clone, Debug)]
pub struct WebchatSettings {
    /// Its name: `main` of `webchat.main`. Not one of its section's reserved names.
    pub name: String,
    /// What the operator configured.
    pub section: WebchatSection,
    /// Who may use it, with the section's token, made where it is to be generated.
    pub access: Access,
    /// Origins (`https://chat.example.org`) whose pages may open the socket besides the one that is asked
    /// for: needed only behind a proxy that changes `Host`.
    pub origins: Vec<String>,
    /// The gateway's clock.
    pub clock: SharedClock,
}

/// One web chat: a channel, and what its routes need.
#[derive(Debug)]
pub struct WebchatAdapter {
    channel: ChannelId,
    title: String,
    greeting: String,
    origins: Vec<String>,
    clock: SharedClock,
    door: Door,
    rooms: Arc<Rooms>,
    places: Arc<Semaphore>,
    opening: Opening<Open>,
}

/// What a socket needs of the running channel.
struct Open {
    intake: Intake,
    closing: CancellationToken,
    sockets: TaskTracker,
    since: Timestamp,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Open").field("since", &self.since).finish_non_exhaustive()
    }
}

impl WebchatAdapter {
    /// The web chat that `settings` describe; closed until it [runs](ChannelAdapter::run).
    #[must_use]
    pub fn new(settings: WebchatSettings) -> Self {
        let WebchatSettings { name, section, access, origins, clock } = settings;
        Self {
            channel: ChannelId::new("webchat", &name),
            title: section.title,
            greeting: section.greeting,
            origins,
            door: Door::new(access, Arc::clone(&clock)),
            clock,
            rooms: Arc::default(),
            places: Arc::new(Semaphore::new(MAX_SOCKETS)),
            opening: Opening::default(),
        }
    }

    fn id(&self) -> &ChannelId {
        &self.channel
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn greeting(&self) -> &str {
        &self.greeting
    }

    fn origins(&self) -> &[String] {
        &self.origins
    }

    fn door(&self) -> &Door {
        &self.door
    }

    fn rooms(&self) -> &Arc<Rooms> {
        &self.rooms
    }

    /// A place for one more socket, if there is one.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    fn show(&self, view: &TurnView) {
        let frame = || ServerFrame::Turn { turn: Turn::from(view) }.to_text();
        self.rooms.pass(&view.conversation.chat, frame, |mailbox, text| {
            mailbox.put_turn(view.turn_id, Progress::of(view), text);
        });
    }
}

#[async_trait]
impl ChannelAdapter for WebchatAdapter {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, _conversation: &ConversationRef) -> Capabilities {
        capabilities::table()
    }

    fn health(&self) -> ChannelHealth {
        // An open listener does not go stale: there is nothing behind it that could be asked.
        let inbound_at = self.opening.get().map(|open| open.since);
        ChannelHealth { inbound_at, stale_after: None, problem: None }
    }

    fn shows_anything(&self, text: &str) -> bool {
        rejoinder_core::shows_anything(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let mut changes = intake.follow();
        let closing = shutdown.child_token();
        let sockets = TaskTracker::new();
        let open = Open { intake, closing: closing.clone(), sockets: sockets.clone(), since: self.clock.now() };
        // However the run ends, no socket is opened any more, and then those that are open close.
        let closing = closing.drop_guard();
        let opened = self.opening.open(open);
        loop {
            let change = tokio::select! {
                () = shutdown.cancelled() => break,
                change = changes.recv() => change,
            };
            match change {
                Ok(view) => self.show(&view),
                Err(RecvError::Lagged(missed)) => {
                    tracing::debug!(channel = %self.channel, missed, "fell behind: every socket reads the store again");
                    self.rooms.resync();
                }
                Err(RecvError::Closed) => return Err(ChannelError::Failed("the core went away".to_owned())),
            }
        }
        drop(opened);
        drop(closing);
        // Each socket says goodbye within its own bounds; what it was taking in ends first.
        sockets.close();
        sockets.wait().await;
        Ok(())
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        outbound::show(&self.rooms, &delivery.conversation().chat, delivery.turn(), delivery.action())?;
        Ok(Receipt::of(delivery.id().to_string()))
    }
}
