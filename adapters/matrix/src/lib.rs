//! Matrix as a channel: an account that people talk to in direct chats, rooms and threads, encrypted or not.
//!
//! Each account of the configuration is a channel of its own (`matrix.main`): a [`Matrix`], on matrix-sdk. What
//! comes in is durable before it counts as read: our own cursors say how far each room is stored, and what is
//! missing is read back (see `receive.rs`). What goes out carries its delivery's id as the transaction id, so that
//! nothing is shown twice.
//!
//! What it never does: answer what was said before its first start, make a new device in silence when the keys
//! of the old one are gone, send through the SDK's queue or let it retry, ping anybody but whoever asked, open an
//! address that an agent names, or say a password or token anywhere.
//!
//! # What was decided
//!
//! * **Conversation**: the room, and the thread where the message is in one. A room of two is a direct chat.
//! * **Ids**: the event's; an edit is a revision of what it replaces, numbered by its time.
//! * **Directed**: in groups a mention (`m.mentions`; our name where a client knows no mentions), a reply to us, a
//!   thread below our words. Commands may begin with `!`, since many clients keep `/` to themselves.
//! * **Replies** refer to what they answer in groups; in a direct chat only when something else was said since.
//! * **Keys that are missing**: the event is kept, and read when its key comes. When it does not in time, whoever
//!   wrote it is told, in a direct chat and where it answers us; of anything else in a group nobody knows whom it was
//!   meant for.
//! * **New rooms** begin with our invitation: people write to whom they have just invited.
//! * **Choices** are a numbered list, with a reaction of ours for each number to press. A number says the same.
//! * **429**: blocks the account, as Synapse means it. Drafts have a budget of their own, half of its default.
//! * **Notices** (`m.notice`) and what other Rejoinders say are owed nothing.
//!
//! # To add …
//!
//! * a kind of content: its fields in `payload.rs`, its words in `inbound/text.rs`;
//! * a kind of event: its arm in `inbound::normalise`, and in `inbound::refers_to` if it is about another one;
//! * a failure that wants something done: its arm in `errors.rs`.

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
mod known;
mod latest;
mod locked;
mod outbound;
mod payload;
mod receive;
mod room;
mod section;
mod session;
mod trust;
mod verification;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use matrix_sdk::Client;
use quick_cache::sync::Cache;
use rejoinder_core::{
    Attachment, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef, Delivery,
    DeliveryError, FetchError, Intake, Receipt, SharedClock, TurnId,
};
use rejoinder_kit::{Health, Receiver, RunEnd};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    check::{AccountProfile, AccountStanding, CheckError, check, discover, standing},
    section::{AutoJoin, LOOKS, Login, MatrixSection, Pace, ReadReceipts, Streaming},
};
use self::{
    decryption::Decryption,
    drafts::Budget,
    invites::Doors,
    known::Memory,
    latest::{LastMessages, Questions},
    locked::Waiting,
    receive::Late,
    session::{REQUEST_TIMEOUT, SessionError},
};

/// The cursor that remembers our device.
const DEVICE: &str = "device";

/// How long a delivery waits for the session.
const OPENED_WITHIN: Duration = Duration::from_secs(2);

/// How many questions are remembered.
const QUESTIONS: usize = 4096;

/// One account.
pub struct Matrix {
    channel: ChannelId,
    options: MatrixSection,
    /// What belongs to our device.
    folder: PathBuf,
    clock: SharedClock,
    http: reqwest::Client,
    health: Health,
    decryption: Decryption,
    session: watch::Sender<Option<Arc<Session>>>,
    memory: Arc<Memory>,
    last_messages: LastMessages,
    questions: Questions,
    locked: Waiting,
    late: Late,
    doors: Arc<Doors>,
    budget: Arc<Budget>,
    /// The questions that the latest turns were answered with.
    asked: Cache<TurnId, Arc<str>>,
    /// What goes on besides.
    tasks: TaskTracker,
}

/// Our device, while it is logged in.
struct Session {
    client: Client,
    user: String,
    /// What the account is called.
    name: Option<String>,
}

impl Session {
    /// Our user id.
    fn me(&self) -> &str {
        &self.user
    }
}

impl Matrix {
    /// The account that `options` describe, on `channel`. Nothing is called before [`run`](ChannelAdapter::run).
    ///
    /// `folder` is for what belongs to our device: its session and its keys, as precious as the database. It is made with
    /// mode 700; each channel needs one of its own.
    ///
    /// `http` must not follow redirects: what is sent goes where the operator said.
    #[must_use]
    pub fn new(
        channel: ChannelId,
        options: MatrixSection,
        folder: PathBuf,
        clock: SharedClock,
        http: reqwest::Client,
    ) -> Self {
        // One sync that stalls, the pause after it, and the next one.
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
            last_messages: LastMessages::default(),
            questions: Questions::default(),
            locked: Waiting::default(),
            late: Late::default(),
            doors: Arc::default(),
            budget: Arc::default(),
            asked: Cache::new(QUESTIONS),
            tasks: TaskTracker::new(),
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.borrow().clone()
    }

    /// The session; at a start it is waited for.
    async fn session_soon(&self) -> Option<Arc<Session>> {
        let mut opened = self.session.subscribe();
        let opening = opened.wait_for(Option::is_some);
        tokio::time::timeout(OPENED_WITHIN, opening).await.ok()?.ok()?.clone()
    }

    fn set_session(&self, session: Option<Arc<Session>>) {
        self.session.send_replace(session);
    }

    /// The session is over.
    fn close(&self) {
        self.set_session(None);
    }

    /// Opens the session, for as long as it takes.
    async fn open(&self, receiver: &Receiver<'_>) -> Result<Arc<Session>, RunEnd> {
        if let Some(session) = self.session() {
            return Ok(session);
        }
        let before = receiver.cursor(DEVICE).await?;
        let open = || Box::pin(session::open(&self.options, &self.folder, &self.http, before.as_deref()));
        let judge = |error: &SessionError| match error {
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
        let client = receiver.ask("the homeserver", open, judge).await?;
        let user = client.user_id().map(ToString::to_string).unwrap_or_default();
        let device = client.device_id().map(ToString::to_string).unwrap_or_default();
        tracing::info!(channel = %self.channel, user, device, "logged in");
        if before.as_deref() != Some(&device) {
            receiver.move_cursor(DEVICE, &device).await?;
        }
        let name = client.account().get_display_name().await.ok().flatten();
        let session = Arc::new(Session { client, user, name });
        self.set_session(Some(Arc::clone(&session)));
        Ok(session)
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matrix").field("channel", &self.channel).finish_non_exhaustive()
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
        let session = self.session().ok_or_else(|| FetchError::Failed("there is no session yet".to_owned()))?;
        self.download(&session, attachment, limit).await
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let result = self.perform(delivery).await;
        self.health.note_delivery(&result, "the homeserver does not accept the session");
        result
    }
}
