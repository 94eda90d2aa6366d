//! Matrix as a channel: an account that people talk to in direct chats, rooms and threads, encrypted or not.
//!
//! Each configured account is a channel (`matrix.main`): a [`Matrix`], built on matrix-sdk. Inbound events are stored
//! before they count as read: our own cursors record how far each room is stored, and missing events are read back
//! (see `receive.rs`). Each send uses its delivery's id as the transaction id, so that a resend shows nothing twice.
//!
//! The adapter never answers messages from long before its first start, creates a new device silently when the keys of the
//! old one are gone, uses the SDK's send queue or its retries, mentions anybody but the asker, opens an address that an
//! agent names, or reveals a password or token.
//!
//! # Design decisions
//!
//! * **Conversation**: the room, and the thread if the message is in one. A room of two is a direct chat.
//! * **Ids**: the event's id. An edit is a revision of the event that it replaces, numbered by its time.
//! * **Directed**: in groups a mention (`m.mentions`; our name if the client does not support mentions), a reply to us,
//!   or a thread below a message of ours. Commands may begin with `!`, since many clients interpret `/` themselves.
//! * **Replies** name the message that they answer in groups; in a direct chat only if another message came after it.
//! * **Missing keys**: an event that cannot be decrypted is kept, and read when its key arrives. If the key does not
//!   arrive in time, the sender is informed, in direct chats and for replies to us. Other encrypted events in a group
//!   do not show whom they are for: they are only stored.
//! * **New rooms** begin with our invitation: people write to an account that they have just invited.
//! * **Choices** are a numbered list, with a reaction of ours for each number to press. People can also type the number: the core reads it.
//! * **429** limits the whole account, as in Synapse. Drafts leave a part of its default burst to answers.
//! * **Notices** (`m.notice`) and messages of other Rejoinders are owed nothing.
//!
//! # To add …
//!
//! * a kind of content: its fields in `payload.rs`, its text in `inbound/text.rs`;
//! * a kind of event: its arm in `inbound::normalise`, and in `inbound::refers_to` if it refers to another event;
//! * a failure that needs its own handling: its arm in `errors.rs`.

mod capabilities;
mod check;
mod closing;
#[cfg(test)]
mod conformance;
mod content;
mod decryption;
mod drafts;
mod errors;
mod format;
mod inbound;
mod invites;
mod memory;
mod outbound;
mod payload;
mod receive;
mod room;
mod run;
mod section;
mod session;
mod shared_keys;
mod trust;
mod undecrypted;
mod verification;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use matrix_sdk::{Client, ruma::RoomId};
use quick_cache::sync::Cache;
use rejoinder_core::{
    Attachment, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ChatKind, ConversationRef,
    Delivery, DeliveryError, FetchError, Intake, Keyring, Receipt, SharedClock, Surface, TurnId,
};
use rejoinder_kit::{Health, Receiver, RunEnd};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    check::{AccountProfile, AccountState, CheckError, account_state, check, discover},
    section::{AutoJoin, ID_FORMAT, Login, MatrixSection, Pace, ReadReceipts, Streaming},
};
use self::{
    decryption::Decryption,
    drafts::Budget,
    invites::RoomJoins,
    memory::Memory,
    receive::LaggingRooms,
    session::{Device, REQUEST_TIMEOUT, SessionError},
    undecrypted::UndecryptedEvents,
};

/// The cursor that stores our device id.
const DEVICE: &str = "device";

/// How long a file waits for the session to open at start-up: without the file, its turn would be answered nevertheless.
const FILE_PATIENCE: Duration = Duration::from_secs(10);

/// How many questions and how many last messages are remembered.
const REMEMBERED: usize = 4096;

pub struct Matrix {
    channel: ChannelId,
    options: MatrixSection,
    /// Holds our device's session and keys, if no other node can have the channel.
    folder: PathBuf,
    clock: SharedClock,
    http: reqwest::Client,
    health: Health,
    decryption: Decryption,
    session: watch::Sender<Option<Arc<Session>>>,
    memory: Arc<Memory>,
    /// The last message of a person in each conversation.
    last_messages: Cache<ConversationRef, String>,
    undecrypted: UndecryptedEvents,
    lagging: LaggingRooms,
    joins: Arc<RoomJoins>,
    budget: Arc<Budget>,
    /// The event ids of our latest questions, by the turn that each answers.
    questions_by_turn: Cache<TurnId, Arc<str>>,
    /// Background work: verifications, joins, read receipts, buttons of questions.
    tasks: TaskTracker,
}

struct Session {
    client: Client,
    device: Device,
    user: String,
    name: Option<String>,
}

impl Session {
    fn me(&self) -> &str {
        &self.user
    }
}

impl Matrix {
    /// The account that `options` describe, on `channel`. It sends no request before [`run`](ChannelAdapter::run).
    ///
    /// `folder` holds our device's session and keys, as precious as the database. It is created with mode 700; each
    /// channel needs its own. If several nodes may have the channel, they are in its keyring, and the folder can be made anew.
    ///
    /// `http` must not follow redirects: requests may go only to the configured homeserver.
    #[must_use]
    pub fn new(
        channel: ChannelId,
        options: MatrixSection,
        folder: PathBuf,
        clock: SharedClock,
        http: reqwest::Client,
    ) -> Self {
        // Covers a stalled sync, the pause after it, and the next sync.
        let stale_after = (options.sync_timeout + REQUEST_TIMEOUT) * 2 + Duration::from_secs(10);
        Self {
            channel,
            options,
            folder,
            clock,
            http,
            health: Health::stale_after(stale_after),
            decryption: Decryption::default(),
            session: watch::Sender::new(None),
            memory: Arc::default(),
            last_messages: Cache::new(REMEMBERED),
            undecrypted: UndecryptedEvents::default(),
            lagging: LaggingRooms::default(),
            joins: Arc::default(),
            budget: Arc::default(),
            questions_by_turn: Cache::new(REMEMBERED),
            tasks: TaskTracker::new(),
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.borrow().clone()
    }

    /// The session. At start-up, waits so long until it is open.
    async fn wait_for_session(&self, patience: Duration) -> Option<Arc<Session>> {
        let mut opened = self.session.subscribe();
        let opening = opened.wait_for(Option::is_some);
        tokio::time::timeout(patience, opening).await.ok()?.ok()?.clone()
    }

    fn set_session(&self, session: Option<Arc<Session>>) {
        self.session.send_replace(session);
    }

    /// Opens the session, or returns the open one. Retries until the homeserver can be reached.
    async fn open(&self, receiver: &Receiver<'_>) -> Result<Arc<Session>, RunEnd> {
        let keyring = receiver.intake.keyring();
        if keyring.is_some() {
            // What is stored counts: another node may have had the channel since.
            self.set_session(None);
        } else if let Some(session) = self.session() {
            return Ok(session);
        }
        let before = receiver.cursor(DEVICE).await?;
        let open = || Box::pin(self.open_device(keyring.as_ref(), before.as_deref()));
        let classify = |error: &SessionError| match error {
            SessionError::Unreachable { retry_after, .. } => Ok(retry_after.unwrap_or_default()),
            SessionError::Unauthorized(detail) => {
                self.health.inbound_fails(format!("the homeserver refused: {detail}"));
                Err(ChannelError::Unauthorized(detail.clone()))
            }
            SessionError::Lost(_) | SessionError::Failed(_) => {
                self.health.inbound_fails(error.to_string());
                Err(ChannelError::Failed(error.to_string()))
            }
        };
        let (client, device) = receiver.ask("the homeserver", open, classify).await?;
        let user = client.user_id().map(ToString::to_string).unwrap_or_default();
        let id = client.device_id().map(ToString::to_string).unwrap_or_default();
        tracing::info!(channel = %self.channel, user, device = id, "logged in");
        if before.as_deref() != Some(&id) {
            receiver.move_cursor(DEVICE, &id).await?;
        }
        let name = client.account().get_display_name().await.ok().flatten();
        let session = Arc::new(Session { client, device, user, name });
        self.set_session(Some(Arc::clone(&session)));
        Ok(session)
    }

    async fn open_device(
        &self,
        keyring: Option<&Keyring>,
        before: Option<&str>,
    ) -> Result<(Client, Device), SessionError> {
        let device = match keyring {
            Some(keyring) => Device::shared(keyring, &self.folder).await?,
            None => Device::Folder(self.folder.clone()),
        };
        let client = Box::pin(session::open(&self.options, &device, &self.http, before)).await?;
        Ok((client, device))
    }
}

#[async_trait]
impl ChannelAdapter for Matrix {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, _conversation: &ConversationRef) -> Capabilities {
        capabilities::capabilities(&self.options)
    }

    fn is_group(&self, conversation: &ConversationRef) -> bool {
        let room =
            self.session().and_then(|session| session.client.get_room(&RoomId::parse(&*conversation.chat).ok()?));
        room.is_some_and(|room| room::chat_kind(&room) == ChatKind::Group)
    }

    fn surface(&self) -> Surface {
        Surface::Chat("Matrix".into())
    }

    fn health(&self) -> ChannelHealth {
        let health = self.health.report();
        ChannelHealth { problem: health.problem.or_else(|| self.decryption.problem()), ..health }
    }

    fn parts(&self, text: &str) -> Vec<String> {
        format::parts(text)
    }

    fn shows_anything(&self, text: &str) -> bool {
        rejoinder_core::shows_anything(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        let (channel, intake, health, shutdown) = (&self.channel, &intake, &self.health, &shutdown);
        let receiver = Receiver { channel, intake, health, shutdown };
        let ended = Box::pin(self.receive(&receiver)).await;
        ended.or_else(RunEnd::into_result)
    }

    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        let session = self.wait_for_session(FILE_PATIENCE).await;
        let session = session.ok_or_else(|| FetchError::Failed("not logged in yet".to_owned()))?;
        self.download(&session, attachment, limit).await
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let result = self.perform(delivery).await;
        self.health.note_delivery(&result, "the homeserver does not accept the session");
        result
    }
}
