//! Discord as a channel: direct chats, servers, threads, slash commands and buttons.
//!
//! Events come in over the Gateway: one task reads them and another one stores them, in the order in which they
//! came, before anything else is done with them. What was missed is read over REST. Everything goes out over
//! REST. What is sent is made of serenity's types; what comes in is read with views of our own (`payload.rs`),
//! to which nothing unknown is an error. The connection to the Gateway and the calls are our own as well: see
//! `gateway.rs` and `api.rs` for why.
//!
//! What it never does: decide who may talk to the agent, say a token anywhere, open an address that somebody
//! else gave, or let an answer call anybody: every message goes out with `allowed_mentions: {"parse": []}`.
//!
//! # What was decided
//!
//! * **Conversation**: the channel is the chat; a thread, and a forum's post, is a thread in the channel that it
//!   belongs to. What only one person sees is a conversation of its own (`private:<user>`), so that no answer
//!   in it can go anywhere else: when its interaction cannot be answered any more, it goes to their direct chat.
//! * **Ids**: a message is `channel:message`, with the time of an edit as its revision; a command or a button is
//!   `interaction:<id>`, which stands for the message that an answer replies to.
//! * **Position**: one id for all channels, since ids grow with time; a gap by server from a new session until
//!   it is filled. It is stored with the events, together with the session, which a restart takes up again.
//! * **Interactions** are acknowledged once they are stored. Their tokens are kept for as long as they are of
//!   use, apart from the events.
//! * **Threads of our own** (`auto_thread`): the thread of a mention has the message's id, so it is known before
//!   it is opened, and opening it twice is one thread.
//! * **Resending**: by the nonce for as long as Discord surely knows it, then the channel is read back.
//!
//! # To add …
//!
//! * a kind of event: its view in `payload.rs`, its reading in `inbound/`, its name in `receive.rs`;
//! * something to send: its arm in `outbound.rs`;
//! * a failure of Discord's that wants something done: its code in `errors.rs`;
//! * a number that Discord sets: its line in `capabilities.rs` or `section.rs`, with its source.

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
mod outbound;
mod payload;
mod places;
mod position;
mod receive;
mod section;
mod snowflake;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use quick_cache::sync::Cache;
use rejoinder_core::{
    Attachment, Backoff, Capabilities, ChannelAdapter, ChannelError, ChannelHealth, ChannelId, ConversationRef,
    Delivery, DeliveryError, FetchError, Intake, Receipt, SharedClock, Timestamp,
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
    interactions::{Interactions, Record},
    places::Places,
    position::Position,
    receive::{Answering, Taking},
    snowflake::Snowflake,
};
pub use crate::{
    check::{BotProfile, CheckError, check},
    format::MESSAGE_UNITS,
    section::{API_URL, DiscordSection, LOOKS, Pace, Streaming},
};

const UNKNOWN_TOKEN: &str = "Discord does not know the token";

/// How many places of threads are remembered.
const PLACES: usize = 4096;

/// How long a delivery waits for what a start has to read first.
const LOADED_WITHIN: Duration = Duration::from_secs(10);

/// One application on Discord.
pub struct Discord {
    channel: ChannelId,
    options: DiscordSection,
    clock: SharedClock,
    api: Arc<Api>,
    /// A client that speaks HTTP/1.1 only and follows nobody: for the Gateway, and for Discord's file server.
    plain_http: Client,
    identity: OnceCell<Identity>,
    directory: Directory,
    sent: SentMessages<Snowflake>,
    health: Health,
    interactions: Arc<Interactions>,
    /// What the threads are called that are not opened yet.
    topics: Cache<Snowflake, Arc<str>>,
    /// Messages that no thread can be opened from.
    threadless: Cache<Snowflake, ()>,
    /// When the last session was begun.
    identified_at: Mutex<Option<Timestamp>>,
    /// Whether what an earlier run left was read.
    loaded: watch::Sender<bool>,
    tasks: TaskTracker,
}

impl Discord {
    /// A channel for one application. `http` makes the calls: a client without a timeout of its own that is
    /// shorter than a minute.
    ///
    /// # Panics
    /// When no HTTP client can be built: the machine has no certificates that could be read.
    #[must_use]
    pub fn new(channel: ChannelId, options: DiscordSection, clock: SharedClock, http: Client) -> Self {
        let plain_http = Client::builder()
            .http1_only()
            .connect_timeout(Duration::from_secs(10))
            .redirect(redirect::Policy::none())
            .build()
            .expect("a client without unusual options");
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
            topics: Cache::new(PLACES),
            threadless: Cache::new(PLACES),
            identified_at: Mutex::new(None),
            loaded: watch::Sender::new(false),
            tasks: TaskTracker::new(),
        }
    }

    /// Who we are.
    async fn me(&self) -> Result<Identity, ApiError> {
        self.identity.get_or_try_init(|| check::who_am_i(&self.api)).await.copied()
    }

    /// Acknowledges an interaction while everything else goes on, with `answer` where it has one of its own; takes the
    /// notice back that it is thought over when nobody does.
    fn acknowledge(&self, record: Arc<Record>, answer: Option<Value>, is_heard: bool) {
        let (api, interactions) = (Arc::clone(&self.api), Arc::clone(&self.interactions));
        self.tasks.spawn(async move {
            interactions::acknowledge(&api, &interactions, &record, answer).await;
            if !is_heard {
                interactions::take_back(&api, &record).await;
            }
        });
    }

    /// Waits until it is known what an earlier run left.
    async fn loaded(&self) {
        let mut loaded = self.loaded.subscribe();
        // A delivery that does without is answered in its channel.
        let _ = tokio::time::timeout(LOADED_WITHIN, loaded.wait_for(|loaded| *loaded)).await;
    }

    fn identified_at(&self) -> Option<Timestamp> {
        *self.identified_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self, at: Timestamp) {
        *self.identified_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Takes events in until the run ends.
    async fn receive(&self, receiver: Receiver<'_>) -> Result<(), RunEnd> {
        let position = receiver.cursor(position::CURSOR).await?.unwrap_or_default();
        let places = receiver.cursor(places::CURSOR).await?.unwrap_or_default();
        let interactions = receiver.cursor(interactions::CURSOR).await?.unwrap_or_default();
        let (position, places) = (Position::parse(&position), Places::parse(&places));
        for chat in places.direct() {
            self.directory.learn_direct(chat);
        }
        let waiting = self.interactions.load(&interactions, self.clock.now());
        self.loaded.send_replace(true);
        if let Some(at) = position.identified_at {
            self.begun(at);
        }
        let judge = |error: &ApiError| {
            if error.refusal().is_some_and(Refusal::is_about_token) {
                self.health.inbound_fails(UNKNOWN_TOKEN);
                return Err(ChannelError::Unauthorized(error.to_string()));
            }
            Ok(error.pause().unwrap_or_default())
        };
        let me = receiver.ask("Discord", || self.me(), judge).await?;
        let (all, queued) = mpsc::channel(gateway::QUEUE);
        let (urgent, hurried) = mpsc::unbounded_channel();
        let stored = Arc::new(StoredSeq::default());
        let shard = Shard::new(self, receiver, Arc::clone(&stored), Queues { all, urgent }, position.session.clone());
        let answering = Answering { discord: self, receiver, me };
        let taking = Taking::new(self, receiver, me, position, places, stored);
        for record in waiting {
            self.acknowledge(record, None, true);
        }
        let working = async {
            let storing = async {
                let result = taking.run(queued).await;
                receiver.shutdown.cancel();
                result
            };
            // Of the three only the shard can fail: the others end when it does, or with the gateway.
            tokio::join!(shard.run(), storing, answering.run(hurried)).0
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

    /// Registers the commands while everything else goes on: nothing waits for them.
    async fn keep_commands(&self, me: Identity, receiver: &Receiver<'_>) {
        if !self.options.commands {
            return;
        }
        let mut backoff = Backoff::default();
        loop {
            match self.register_commands(me.application).await {
                Ok(()) => return,
                Err(error) if error.may_pass() => {
                    let pause = backoff.pause().max(error.pause().unwrap_or_default());
                    if receiver.pause(pause).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(channel = %self.channel, %error, "the slash commands were not registered");
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

    fn health(&self) -> ChannelHealth {
        self.health.report()
    }

    fn parts(&self, text: &str) -> Vec<String> {
        format::parts(text)
    }

    fn shows_anything(&self, text: &str) -> bool {
        rejoinder_core::shows_anything(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        // Once one of its tasks has ended, the others have nothing left to do.
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
