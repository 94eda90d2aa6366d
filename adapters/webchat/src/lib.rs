//! The web chat page and its socket.
//!
//! A page under `/chat` shows a conversation with the agent over a WebSocket (`docs/webchat-protocol.md`). An answer is
//! delivered when its row is stored. The page reads the rows: at first, at every change, and after a reconnect. Drafts
//! and typing notices go to the pages that have the conversation open.
//!
//! Browsers that want it are told of answers while no page shows their conversation (`push.rs`).
//!
//! The chat never admits a page of another origin, never fetches anything from elsewhere, never shows HTML that an
//! agent wrote, and never reports a message as accepted before it is stored.
//!
//! To show something new: add a field of `protocol::Turn` or a frame in `protocol.rs` (pages ignore fields and frames
//! that they do not know), describe it in `docs/webchat-protocol.md`, and show it in `assets/turns.js`. To allow more
//! Markdown: `format.rs`, and the list of known tags in its tests.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_core::{
    Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery, DeliveryError,
    FileLimits, Intake, Receipt, SharedClock, Surface, Timestamp, TurnId, TurnView,
};
use rejoinder_kit::{Guesses, WhileRunning};
use tokio::sync::{Semaphore, broadcast::error::RecvError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

mod accept;
mod access;
mod capabilities;
mod chats;
mod cors;
mod format;
mod inbound;
mod outbound;
mod passkeys;
mod protocol;
mod push;
mod receive;
mod reply;
mod rooms;
mod search;
mod section;
mod sign_in;
mod socket;
mod socket_permits;
mod upload;
mod visitor;

pub use access::{Access, SignIn};
pub use push::PushSettings;
pub use receive::{openapi, router};
pub use section::{AccessKind, PersonHeader, PushKind, WebchatSection};

use protocol::{ServerFrame, Turn};
use push::Pushes;
use rooms::{Progress, Rooms};
use socket_permits::SocketPermits;

/// The largest frame that waits to be written, in bytes. A socket reads a larger turn from the store.
const MAX_WAITING_FRAME: usize = 256 * 1024;

#[derive(Clone)]
pub struct WebchatSettings {
    /// The channel's name: `main` of `webchat.main`. Not one of the section's reserved names.
    pub name: String,
    pub section: WebchatSection,
    /// Who may use the chat, with the section's token, already generated if the section says so.
    pub access: Access,
    /// Further origins (`https://chat.example.org`) at which the chat's own page is opened. Needed only behind a proxy that changes
    /// `Host`.
    pub origins: Vec<String>,
    /// Slows down who guesses the token.
    pub guesses: Arc<Guesses>,
    /// The limits on the files of a message.
    pub files: FileLimits,
    /// How browsers are told of answers while no page is open; `None`: they are not.
    pub push: Option<PushSettings>,
    pub clock: SharedClock,
}

/// One web chat: its channel and the state of its routes.
pub struct WebchatAdapter {
    channel: ChannelId,
    title: String,
    greeting: String,
    origins: Vec<String>,
    /// The origins of other pages that may use the chat.
    pages: Vec<String>,
    clock: SharedClock,
    access: Access,
    guesses: Arc<Guesses>,
    files: FileLimits,
    rooms: Arc<Rooms>,
    pushes: Option<Arc<Pushes>>,
    permits: Arc<SocketPermits>,
    searches: Semaphore,
    socket_context: WhileRunning<SocketContext>,
}

/// The running channel's state for its sockets.
struct SocketContext {
    intake: Intake,
    closing: CancellationToken,
    sockets: TaskTracker,
    since: Timestamp,
}

impl WebchatAdapter {
    /// The web chat that `settings` describe. It accepts no sockets until it [runs](ChannelAdapter::run).
    #[must_use]
    pub fn new(settings: WebchatSettings) -> Self {
        let WebchatSettings { name, section, access, origins, guesses, files, push, clock } = settings;
        let rooms = Arc::default();
        let pushes = push.and_then(|push| {
            Pushes::of(push, (section.push, &section.push_services), (&name, &section.title), (&rooms, &clock))
        });
        Self {
            channel: ChannelId::new("webchat", &name),
            title: section.title,
            greeting: section.greeting,
            origins,
            pages: section.origins,
            access,
            guesses,
            files,
            clock,
            rooms,
            pushes,
            permits: Arc::default(),
            searches: Semaphore::new(search::AT_ONCE),
            socket_context: WhileRunning::default(),
        }
    }

    fn show(&self, intake: &Intake, view: &TurnView) {
        let room = inbound::room(&view.conversation);
        if !self.rooms.is_open(&room) {
            return;
        }
        let frame = || ServerFrame::Turn { turn: Turn::linked(view, intake) }.to_text();
        self.rooms.broadcast(&room, frame, |mailbox, text| {
            if text.len() > MAX_WAITING_FRAME {
                mailbox.put_resync();
            } else {
                mailbox.put_turn(view.turn_id, Progress::of(view), text);
            }
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

    fn surface(&self) -> Surface {
        Surface::Chat("a web chat page".into())
    }

    fn health(&self) -> ChannelHealth {
        // An open listener does not go stale: there is no platform behind it to poll.
        let inbound_at = self.socket_context.get().map(|context| context.since);
        ChannelHealth { inbound_at, stale_after: None, problem: None, notice: None }
    }

    fn shows_anything(&self, text: &str) -> bool {
        rejoinder_core::shows_anything(text)
    }

    fn runs_at_each_node(&self) -> bool {
        true
    }

    fn is_watched(&self, conversation: &ConversationRef, _turn: TurnId) -> bool {
        self.rooms.is_open(&inbound::room(conversation))
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let mut changes = intake.follow();
        let closing = shutdown.child_token();
        let sockets = TaskTracker::new();
        let context = SocketContext {
            intake: intake.clone(),
            closing: closing.clone(),
            sockets: sockets.clone(),
            since: self.clock.now(),
        };
        // However the run ends: first no new sockets open, then the open ones close.
        let told = closing.clone();
        let closing = closing.drop_guard();
        let opened = self.socket_context.open(context);
        loop {
            let change = tokio::select! {
                () = shutdown.cancelled() => break,
                change = changes.recv() => change,
            };
            match change {
                Ok(Some(view)) => {
                    self.show(&intake, &view);
                    if let Some(pushes) = &self.pushes {
                        pushes.tell(&view, &intake, (&sockets, &told));
                    }
                }
                Ok(None) => self.rooms.resync(),
                Err(RecvError::Lagged(missed)) => {
                    tracing::debug!(channel = %self.channel, missed, "missed changes, every socket reads the store again");
                    self.rooms.resync();
                }
                Err(RecvError::Closed) => return Err(ChannelError::Failed("the core has stopped".to_owned())),
            }
        }
        drop(opened);
        drop(closing);
        // Each socket closes within its own timeouts, after it has handled the frame that it was reading.
        sockets.close();
        sockets.wait().await;
        Ok(())
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let room = inbound::room(delivery.conversation());
        outbound::show(&self.rooms, &room, delivery.turn(), delivery.action())?;
        Ok(Receipt::of(delivery.id().to_string()))
    }
}
