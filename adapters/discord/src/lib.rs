//! Discord as a channel: direct chats, servers, threads, slash commands and buttons.
//!
//! Events arrive over the Gateway. One task reads them and another stores them, in order, before anything else happens
//! with them. Missed messages are read over REST, and everything is sent over REST. Requests are built from serenity's
//! types; payloads are parsed into our own types (`payload.rs`), which accept unknown fields and kinds. The Gateway
//! connection and the REST client are our own too: `gateway.rs` and `api.rs` say why.
//!
//! The adapter never decides who may talk to the agent, never reveals a token, never opens an address that somebody else
//! supplied, and never lets an answer ping anybody: every message has `allowed_mentions: {"parse": []}`.
//!
//! # Decisions
//!
//! * **Conversation**: the channel is the chat. A thread or a forum post is a thread in its channel. Private answers are
//!   a conversation of their own (`private:<user>`), so that they cannot go elsewhere. When the interaction can no longer
//!   be answered, they go to the person's direct chat.
//! * **Ids**: a message is `channel:message`, with the time of an edit as its revision. A command or a button is
//!   `interaction:<id>`, which takes the place of the message that an answer replies to.
//! * **Position**: one id for all channels, because ids grow with time, and a gap per server from the start of a session
//!   until the missed messages are read. It is stored with the events and the session, which a restart resumes.
//! * **Interactions** are acknowledged once they are stored. Their tokens are stored apart from the events, until they
//!   expire.
//! * **Threads of our own** (`auto_thread`): a thread has the id of the message that it starts from. So its id is known
//!   before it is opened, and opening it twice creates one thread.
//! * **Resending**: with the same nonce while Discord remembers it; later, the channel is read back first.
//!
//! # To add …
//!
//! * a kind of event: its type in `payload.rs`, its reader in `inbound/`, its name in `receive.rs`;
//! * something to send: its arm in `outbound.rs`;
//! * handling of an error from Discord: its code in `errors.rs`;
//! * a limit that Discord sets: its line in `capabilities.rs` or `section.rs`, with its source.

mod api;
mod capabilities;
mod check;
mod closing;
mod commands;
#[cfg(test)]
mod conformance;
mod directory;
mod errors;
mod format;
mod gateway;
mod inbound;
mod interactions;
mod known_chats;
mod outbound;
mod payload;
mod position;
mod receive;
mod section;
mod snowflake;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use rejoinder_core::{
    Attachment, Backoff, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef,
    Delivery, DeliveryError, FetchError, Intake, Receipt, SharedClock, Surface, Timestamp,
};
use rejoinder_kit::{Health, Receiver, RunEnd, SentMessages};
use reqwest::{Client, redirect};
use serde_json::Value;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    api::Api,
    check::Identity,
    directory::Directory,
    errors::{ApiError, Refusal},
    gateway::{Queues, Shard, StoredSeq},
    interactions::{InteractionRecord, Interactions},
    known_chats::KnownChats,
    position::Position,
    receive::{EventStorer, InteractionStorer},
    snowflake::Snowflake,
};
pub use crate::{
    check::{BotProfile, CheckError, check},
    format::MESSAGE_UNITS,
    section::{API_URL, DiscordSection, ID_FORMAT, Pace, Streaming},
};

const UNKNOWN_TOKEN: &str = "Discord does not know the token";

/// How many thread titles, and how many messages without threads, are remembered.
const CACHE_SIZE: usize = 4096;

/// How long a delivery waits for the stored interactions to be loaded after a start.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// One Discord application: the adapter of one channel.
pub struct Discord {
    channel: ChannelId,
    options: DiscordSection,
    clock: SharedClock,
    api: Arc<Api>,
    /// Speaks HTTP/1.1 only and follows no redirects: for the Gateway and for Discord's file server.
    plain_http: Client,
    identity: OnceCell<Identity>,
    directory: Directory,
    sent: SentMessages<Snowflake>,
    health: Health,
    interactions: Arc<Interactions>,
    /// The titles of threads to open, by the message that they start from.
    thread_titles: Cache<Snowflake, Arc<str>>,
    /// Messages that no thread can be opened from.
    threadless: Cache<Snowflake, ()>,
    identified_at: Mutex<Option<Timestamp>>,
    /// Whether the interactions that an earlier run stored were loaded.
    loaded: watch::Sender<bool>,
    tasks: TaskTracker,
}

impl Discord {
    /// Creates the adapter for one application. `http` makes the REST calls; its own timeout, if any, must be at least a
    /// minute.
    ///
    /// # Panics
    /// If no HTTP client can be built, because the machine has no readable certificates.
    #[must_use]
    pub fn new(channel: ChannelId, options: DiscordSection, clock: SharedClock, http: Client) -> Self {
        let plain_http = Client::builder()
            .http1_only()
            .connect_timeout(Duration::from_secs(10))
            .redirect(redirect::Policy::none())
            .build()
            .expect("the certificates can be read");
        let api = Api::new(http, options.api_url.clone(), options.token.get().clone(), Arc::clone(&clock));
        Self {
            channel,
            options,
            clock,
            api: Arc::new(api),
            plain_http,
            identity: OnceCell::new(),
            directory: Directory::default(),
            sent: SentMessages::default(),
            health: Health::stale_after(gateway::stale_after(gateway::USUAL_INTERVAL)),
            interactions: Arc::default(),
            thread_titles: Cache::new(CACHE_SIZE),
            threadless: Cache::new(CACHE_SIZE),
            identified_at: Mutex::new(None),
            loaded: watch::Sender::new(false),
            tasks: TaskTracker::new(),
        }
    }

    async fn me(&self) -> Result<Identity, ApiError> {
        self.identity.get_or_try_init(|| check::who_am_i(&self.api)).await.copied()
    }

    /// Acknowledges an interaction in the background, with `answer` if there is one. If not `is_heard`, no answer will come,
    /// so the "thinking" notice is removed.
    fn acknowledge(&self, record: Arc<InteractionRecord>, answer: Option<Value>, is_heard: bool) {
        let (api, interactions) = (Arc::clone(&self.api), Arc::clone(&self.interactions));
        self.tasks.spawn(async move {
            interactions::acknowledge(&api, &interactions, &record, answer).await;
            if !is_heard {
                interactions::delete_notice(&api, &record).await;
            }
        });
    }

    async fn wait_until_loaded(&self) {
        let mut loaded = self.loaded.subscribe();
        // If that takes too long, the answer goes to the channel.
        let _ = tokio::time::timeout(LOAD_TIMEOUT, loaded.wait_for(|loaded| *loaded)).await;
    }

    async fn receive(&self, receiver: Receiver<'_>) -> Result<(), RunEnd> {
        let position = receiver.cursor(position::CURSOR).await?.unwrap_or_default();
        let known_chats = receiver.cursor(known_chats::CURSOR).await?.unwrap_or_default();
        let interactions = receiver.cursor(interactions::CURSOR).await?.unwrap_or_default();
        let (position, known_chats) = (Position::parse(&position), KnownChats::parse(&known_chats));
        for chat in known_chats.direct() {
            self.directory.learn_direct(chat);
        }
        let waiting = self.interactions.load(&interactions, self.clock.now());
        self.loaded.send_replace(true);
        if position.identified_at.is_some() {
            *self.identified_at.lock() = position.identified_at;
        }
        let classify = |error: &ApiError| {
            if error.refusal().is_some_and(Refusal::is_about_token) {
                self.health.inbound_fails(UNKNOWN_TOKEN);
                return Err(ChannelError::Unauthorized(error.to_string()));
            }
            Ok(error.pause().unwrap_or_default())
        };
        let me = receiver.ask("Discord", || self.me(), classify).await?;
        let (all, queued) = mpsc::channel(gateway::QUEUE);
        let (urgent, queued_urgent) = mpsc::unbounded_channel();
        let stored = Arc::new(StoredSeq::default());
        let shard = Shard {
            discord: self,
            receiver,
            stored: Arc::clone(&stored),
            queues: Queues { all, urgent },
            session: position.resumable_session(),
            is_content_denied: false,
        };
        let interaction_storer = InteractionStorer { discord: self, receiver, me };
        let event_storer = EventStorer::new(self, receiver, me, position, known_chats, stored);
        for record in waiting {
            self.acknowledge(record, None, true);
        }
        let working = async {
            let storing = async {
                let result = event_storer.run(queued).await;
                receiver.shutdown.cancel();
                result
            };
            // Only the shard can fail. The other two end when it does, or at shutdown.
            tokio::join!(shard.run(), storing, interaction_storer.run(queued_urgent)).0
        };
        let commands = async {
            self.keep_commands(me, &receiver).await;
            std::future::pending().await
        };
        tokio::select! {
            ended = working => ended,
            never = commands => never,
        }
    }

    /// Registers the commands in the background. Gives up on a permanent error.
    async fn keep_commands(&self, me: Identity, receiver: &Receiver<'_>) {
        if !self.options.commands {
            return;
        }
        let mut backoff = Backoff::default();
        loop {
            match self.register_commands(me.application, receiver.intake).await {
                Ok(()) => return,
                Err(error) if error.is_transient() => {
                    let pause = backoff.pause().max(error.pause().unwrap_or_default());
                    if receiver.pause(pause).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(channel = %self.channel, %error, "the slash commands could not be registered");
                    return;
                }
            }
        }
    }
}

#[async_trait]
impl ChannelAdapter for Discord {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    fn capabilities(&self, conversation: &ConversationRef) -> Capabilities {
        let is_private = inbound::private_to(conversation).is_some();
        capabilities::capabilities(is_private, self.options.streaming == Streaming::Edit, &self.options.pace.limits())
    }

    fn surface(&self) -> Surface {
        Surface::Chat("Discord".into())
    }

    fn health(&self) -> ChannelHealth {
        self.health.report()
    }

    fn parts(&self, text: &str) -> Vec<String> {
        format::parts(text)
    }

    fn album_of(&self, file: &Attachment) -> Option<&'static str> {
        outbound::album_of(file)
    }

    fn fits_caption(&self, text: &str) -> bool {
        format::fits_caption(text)
    }

    fn shows_anything(&self, text: &str) -> bool {
        rejoinder_core::shows_anything(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        // When one of the tasks ends, this ends the others.
        let ended = shutdown.child_token();
        let _ended = ended.clone().drop_guard();
        let receiver = Receiver { channel: &self.channel, intake: &intake, health: &self.health, shutdown: &ended };
        self.receive(receiver).await.or_else(RunEnd::into_result)
    }

    async fn fetch(&self, attachment: &Attachment, limit: usize) -> Result<Vec<u8>, FetchError> {
        self.fetch_file(attachment, limit).await
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let result = self.perform(delivery).await;
        self.note_outbound(&result);
        result
    }
}
