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
//! * a kind of event: its view in `payload.rs`, its reading in `normalise/`, its name in `inbound.rs`;
//! * something to send: its arm in `outbound.rs`;
//! * a failure of Discord's that wants something done: its code in `api/error.rs`;
//! * a number that Discord sets: its line in `capabilities.rs` or `section.rs`, with its source.

mod api;
mod backfill;
mod capabilities;
mod check;
mod closing;
mod commands;
#[cfg(test)]
mod conformance;
mod directory;
mod format;
mod gateway;
mod inbound;
mod interactions;
mod normalise;
mod outbound;
mod payload;
mod places;
mod position;
mod pulse;
mod said;
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
use reqwest::{Client, redirect};
use serde_json::Value;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    api::{Api, Refusal},
    check::Identity,
    directory::Directory,
    gateway::{Queues, Shard, StoredSeq},
    inbound::{Answering, Taking},
    interactions::{Interactions, Record},
    places::Places,
    position::Position,
    pulse::Pulse,
    said::Said,
    snowflake::Snowflake,
};
pub use crate::{
    check::{BotProfile, CheckError, check},
    format::MESSAGE_UNITS,
    section::{API_URL, DiscordSection, LOOKS, Pace, Streaming},
};

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
    said: Said,
    pulse: Pulse,
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
            said: Said::default(),
            pulse: Pulse::default(),
            interactions: Arc::default(),
            topics: Cache::new(PLACES),
            threadless: Cache::new(PLACES),
            identified_at: Mutex::new(None),
            loaded: watch::Sender::new(false),
            tasks: TaskTracker::new(),
        }
    }

    /// Who we are.
    async fn me(&self) -> Result<Identity, api::ApiError> {
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

    /// Waits; whether to go on afterwards.
    async fn pause(&self, pause: Duration, shutdown: &CancellationToken) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = shutdown.cancelled() => false,
        }
    }

    fn identified_at(&self) -> Option<Timestamp> {
        *self.identified_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self, at: Timestamp) {
        *self.identified_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Reads a cursor, for as long as it takes. `None`: shutting down.
    async fn cursor(&self, intake: &Intake, name: &str, shutdown: &CancellationToken) -> Option<String> {
        let mut backoff = Backoff::default();
        loop {
            match intake.cursor(name).await {
                Ok(stored) => return Some(stored.unwrap_or_default()),
                Err(error) => {
                    self.pulse.storing(Some(format!("the cursor cannot be read: {error}")));
                    if !self.pause(backoff.pause(), shutdown).await {
                        return None;
                    }
                }
            }
        }
    }

    /// Finds out who we are, for as long as it takes. `None`: shutting down.
    async fn introduce(&self, shutdown: &CancellationToken) -> Result<Option<Identity>, ChannelError> {
        let mut backoff = Backoff::default();
        loop {
            let asked = tokio::select! {
                asked = self.me() => asked,
                () = shutdown.cancelled() => return Ok(None),
            };
            let error = match asked {
                Ok(me) => return Ok(Some(me)),
                Err(error) => error,
            };
            if error.refusal().is_some_and(Refusal::is_about_token) {
                self.pulse.fails("Discord does not know the token".to_owned());
                return Err(ChannelError::Unauthorized(error.to_string()));
            }
            tracing::warn!(channel = %self.channel, %error, "Discord cannot be reached, trying again");
            self.pulse.fails(format!("Discord cannot be reached: {error}"));
            let pause = backoff.pause().max(error.pause().unwrap_or_default());
            if !self.pause(pause, shutdown).await {
                return Ok(None);
            }
        }
    }

    /// Registers the commands while everything else goes on: nothing waits for them.
    async fn keep_commands(&self, me: Identity, shutdown: &CancellationToken) {
        if !self.options.commands {
            return;
        }
        let mut backoff = Backoff::default();
        loop {
            match self.register_commands(me.application).await {
                Ok(()) => return,
                Err(error) if error.may_pass() => {
                    let pause = backoff.pause().max(error.pause().unwrap_or_default());
                    if !self.pause(pause, shutdown).await {
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
        let is_private = normalise::private_to(conversation).is_some();
        capabilities::capabilities(is_private, self.options.streaming == Streaming::Edit, &self.options.pace.limits())
    }

    fn health(&self) -> ChannelHealth {
        self.pulse.health()
    }

    fn parts(&self, text: &str) -> Vec<String> {
        format::parts(text)
    }

    fn shows_anything(&self, text: &str) -> bool {
        rejoinder_core::shows_anything(text)
    }

    async fn run(&self, intake: Intake, shutdown: CancellationToken) -> Result<(), ChannelError> {
        // Once one of the tasks has ended, the others have nothing left to do.
        let ended = shutdown.child_token();
        let _ended = ended.clone().drop_guard();
        let (Some(position), Some(places), Some(interactions)) = (
            self.cursor(&intake, position::CURSOR, &shutdown).await,
            self.cursor(&intake, places::CURSOR, &shutdown).await,
            self.cursor(&intake, interactions::CURSOR, &shutdown).await,
        ) else {
            return Ok(());
        };
        self.pulse.storing(None);
        let (position, places) = (Position::parse(&position), Places::parse(&places));
        for chat in places.direct() {
            self.directory.learn_direct(chat);
        }
        let waiting = self.interactions.load(&interactions, self.clock.now());
        self.loaded.send_replace(true);
        if let Some(at) = position.identified_at {
            self.begun(at);
        }
        let Some(me) = self.introduce(&shutdown).await? else { return Ok(()) };
        let (all, queued) = mpsc::channel(gateway::QUEUE);
        let (urgent, hurried) = mpsc::unbounded_channel();
        let stored = Arc::new(StoredSeq::default());
        let shard = Shard::new(self, &intake, Arc::clone(&stored), Queues { all, urgent }, position.session.clone());
        let answering = Answering::new(self, &intake, &ended, me);
        let taking = Taking::new(self, &intake, &ended, me, position, places, stored);
        for record in waiting {
            self.acknowledge(record, None, true);
        }
        let working = async {
            let reading = shard.run(&ended);
            let storing = async {
                let result = taking.run(queued).await;
                ended.cancel();
                result
            };
            let (read, stored, ()) = tokio::join!(reading, storing, answering.run(hurried));
            read.and(stored)
        };
        let commands = async {
            self.keep_commands(me, &ended).await;
            std::future::pending().await
        };
        tokio::select! {
            result = working => result,
            never = commands => never,
        }
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
