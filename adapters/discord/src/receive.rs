//! Taking events in: read in the order in which they came, stored, and only then known to be ours.

mod backfill;

use std::{sync::Arc, time::Duration};

use rejoinder_core::{Accepted, Backoff, ChannelError, ChatKind, InboundEvent, Intake, IntakeError};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio_util::sync::CancellationToken;

use crate::{
    Discord,
    check::Identity,
    closing::closing,
    gateway::{Dispatch, StoredSeq, Urgent},
    inbound::{Read, Reader},
    interactions,
    payload::{Channel, Guild, GuildId, Member, Message, Ready, RoleChange, Threads},
    places::Places,
    position::{self, DIRECT, Position},
    snowflake::Snowflake,
};

/// How many events are stored at once.
const BATCH: usize = 100;

/// How often a channel that is not known is asked for, before it counts as one without a thread.
const MAX_ASKED: u32 = 4;

/// What messages without words mean.
const HIDDEN: &str = "what is said in servers comes without its words: the MESSAGE CONTENT INTENT is not switched on for the \
    application (developer portal, \"Bot\"); or set message_content = false";

/// The gateway is shutting down, and something was not taken in: Discord will be asked for it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotNow;

impl Discord {
    fn reader(&self, me: Identity) -> Reader<'_> {
        Reader {
            channel: &self.channel,
            me,
            options: &self.options,
            directory: &self.directory,
            said: &self.said,
            now: self.clock.now(),
        }
    }
}

/// Takes events in.
pub(crate) struct Taking<'a> {
    pub(crate) discord: &'a Discord,
    storing: Storing<'a>,
    pub(crate) shutdown: &'a CancellationToken,
    pub(crate) me: Identity,
    pub(crate) position: Position,
    pub(crate) places: Places,
    pub(crate) stored: Arc<StoredSeq>,
    /// Events that are read and not stored yet.
    waiting: Vec<Read>,
}

impl<'a> Taking<'a> {
    pub(crate) const fn new(
        discord: &'a Discord,
        intake: &'a Intake,
        shutdown: &'a CancellationToken,
        me: Identity,
        position: Position,
        places: Places,
        stored: Arc<StoredSeq>,
    ) -> Self {
        let storing = Storing { discord, intake, shutdown };
        Self { discord, storing, shutdown, me, position, places, stored, waiting: Vec::new() }
    }

    /// Takes in what the queue brings, until `shutdown` or until nobody fills it.
    pub(crate) async fn run(mut self, mut queue: Receiver<Dispatch>) -> Result<(), ChannelError> {
        // An earlier run ended before these were read. A session that is taken up again brings what is newer.
        if self.fill_direct().await.is_err() {
            return Ok(());
        }
        let mut dispatches = Vec::with_capacity(BATCH);
        loop {
            let count = tokio::select! {
                count = queue.recv_many(&mut dispatches, BATCH) => count,
                () = self.shutdown.cancelled() => return Ok(()),
            };
            if count == 0 {
                return Ok(());
            }
            for dispatch in dispatches.drain(..) {
                if self.take(dispatch).await.is_err() {
                    return Ok(());
                }
            }
            if self.flush().await.is_err() {
                return Ok(());
            }
        }
    }

    async fn take(&mut self, dispatch: Dispatch) -> Result<(), NotNow> {
        match dispatch.kind.as_str() {
            "READY" => self.ready(&dispatch).await?,
            "GUILD_CREATE" => self.server(&dispatch).await?,
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" => {
                self.know_places(&dispatch.data).await?;
                self.read(&dispatch);
            }
            "INTERACTION_CREATE" => self.wait_until_stored(dispatch).await?,
            "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE" => self.read(&dispatch),
            _ => {
                self.learn(&dispatch);
                self.position.passes(&dispatch);
            }
        }
        if self.waiting.is_empty() {
            self.caught_up();
        }
        Ok(())
    }

    pub(crate) fn reader(&self) -> Reader<'a> {
        self.discord.reader(self.me)
    }

    /// An interaction was handed over to [`Answering`]: what comes after it is not stored before it.
    async fn wait_until_stored(&mut self, dispatch: Dispatch) -> Result<(), NotNow> {
        self.flush().await?;
        if let Some(stored) = dispatch.stored {
            tokio::select! {
                stored = stored => stored.map_err(|_| NotNow)?,
                () = self.shutdown.cancelled() => return Err(NotNow),
            }
            self.position.passes_to(&dispatch.session, dispatch.seq);
        }
        Ok(())
    }

    fn read(&mut self, dispatch: &Dispatch) {
        if let Some(read) = self.reader().read(&dispatch.kind, &dispatch.data, dispatch.seq) {
            self.heed(&read);
            self.waiting.push(read);
        }
        self.position.passes(dispatch);
    }

    fn heed(&self, read: &Read) {
        let pulse = &self.discord.pulse;
        if read.is_hidden && self.discord.options.message_content {
            if pulse.lacks(HIDDEN) {
                tracing::warn!(channel = %self.discord.channel, "{HIDDEN}");
            }
        } else if read.is_ambient() {
            // Whoever reads what is not directed at us reads everything.
            pulse.lacks_nothing();
        }
    }

    /// A session begins: what was missed before it has to be read over REST.
    async fn ready(&mut self, dispatch: &Dispatch) -> Result<(), NotNow> {
        self.flush().await?;
        let Ok(ready) = serde_json::from_str::<Ready>(&dispatch.data) else {
            tracing::error!(channel = %self.discord.channel, "the gateway's READY cannot be read");
            return Ok(());
        };
        self.me.user = ready.user.id;
        if let Some(application) = ready.application {
            self.me.application = application.id;
        }
        let now = self.discord.clock.now();
        let servers: Vec<String> = ready.guilds.iter().map(|guild| guild.id.to_string()).collect();
        self.position.begins(servers.iter().map(String::as_str), now);
        self.position.passes(dispatch);
        self.discord.begun(now);
        self.store_position().await?;
        tracing::info!(channel = %self.discord.channel, servers = servers.len(), "connected");
        self.fill_direct().await
    }

    /// Reads what was said in direct chats while we were away.
    async fn fill_direct(&mut self) -> Result<(), NotNow> {
        let Some(from) = self.position.gap(DIRECT) else { return Ok(()) };
        self.flush().await?;
        for channel in self.places.direct() {
            self.discord.directory.learn_direct(channel);
            self.fill(channel, from).await?;
        }
        self.position.filled(DIRECT);
        self.store_position().await
    }

    /// A server is there, at the start or again: reads what was said in it meanwhile.
    async fn server(&mut self, dispatch: &Dispatch) -> Result<(), NotNow> {
        let guild = match serde_json::from_str::<Guild<'_>>(&dispatch.data) {
            Ok(guild) if !guild.unavailable => guild,
            Ok(_) => {
                self.position.passes(dispatch);
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(channel = %self.discord.channel, %error, "a server cannot be read");
                self.position.passes(dispatch);
                return Ok(());
            }
        };
        self.flush().await?;
        let latest = self.discord.directory.learn_guild(&guild, self.me.user);
        let (id, name) = (guild.id, guild.id.to_string());
        let is_new = !self.places.knows(id);
        if let Some(gap) = self.position.gap(&name) {
            // We were added to it while we were away: what was said before that is not ours to answer.
            let joined = guild.joined_at.as_deref().and_then(|at| at.parse::<jiff::Timestamp>().ok());
            let joined = joined.map(|at| Snowflake::at(rejoinder_core::Timestamp::from_millis(at.as_millisecond())));
            let from = if is_new { gap.max(joined.unwrap_or_default()) } else { gap };
            for latest in latest {
                if latest.message.is_none_or(|message| message > from) {
                    self.fill(latest.channel, from).await?;
                }
            }
            self.position.filled(&name);
        }
        if is_new {
            self.places.add_server(id);
            self.store_places().await?;
        }
        self.position.passes(dispatch);
        self.store_position().await
    }

    /// What else changes what is where.
    fn learn(&mut self, dispatch: &Dispatch) {
        let directory = &self.discord.directory;
        let data = &dispatch.data;
        match dispatch.kind.as_str() {
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                if let Ok(channel) = serde_json::from_str::<Channel>(data) {
                    directory.learn(&channel, None);
                }
            }
            "CHANNEL_DELETE" | "THREAD_DELETE" => {
                if let Ok(channel) = serde_json::from_str::<Channel>(data) {
                    directory.forget(channel.id);
                }
            }
            "THREAD_LIST_SYNC" => {
                let threads = serde_json::from_str::<Threads>(data).map(|list| list.threads).unwrap_or_default();
                for thread in &threads {
                    directory.learn(thread, None);
                }
            }
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => {
                if let Ok(change) = serde_json::from_str::<RoleChange>(data) {
                    directory.learn_role(change.guild_id, change.role, self.me.user);
                }
            }
            "GUILD_DELETE" => {
                if let Ok(guild) = serde_json::from_str::<GuildId>(data)
                    && guild.unavailable
                {
                    self.position.loses(&guild.id.to_string());
                }
            }
            _ => {}
        }
    }

    /// Learns of the places that a message names and nothing is known of.
    async fn know_places(&mut self, data: &str) -> Result<(), NotNow> {
        let Ok(message) = serde_json::from_str::<Message>(data) else { return Ok(()) };
        let is_ours = message.author.as_ref().is_some_and(|author| author.id == self.me.user);
        let directory = &self.discord.directory;
        let Some(guild) = message.guild_id else {
            if directory.place(message.channel_id).is_none() {
                directory.learn_direct(message.channel_id);
            }
            if !is_ours && self.places.talks_in(message.channel_id) {
                self.store_places().await?;
            }
            return Ok(());
        };
        if is_ours {
            return Ok(());
        }
        if directory.place(message.channel_id).is_none() {
            let path = format!("channels/{}", message.channel_id);
            if let Some(channel) = self.ask::<Channel>(&path).await? {
                directory.learn(&channel, Some(guild));
            }
        }
        if message.mention_roles.iter().any(|role| directory.is_our_role(guild, *role).is_none()) {
            let path = format!("guilds/{guild}/members/{}", self.me.user);
            let roles = self.ask::<Member>(&path).await?.map(|member| member.roles).unwrap_or_default();
            directory.learn_our_roles(guild, roles);
        }
        Ok(())
    }

    /// Asks for something that an event does not say; `None` when it is not to be had.
    async fn ask<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<Option<T>, NotNow> {
        let mut backoff = Backoff::default();
        for _ in 0..MAX_ASKED {
            let answer = tokio::select! {
                answer = self.discord.api.get(path) => answer,
                () = self.shutdown.cancelled() => return Err(NotNow),
            };
            match answer {
                Ok(found) => return Ok(Some(found)),
                Err(error) if error.may_pass() => {
                    tracing::debug!(channel = %self.discord.channel, %error, "a place cannot be asked for yet");
                    self.wait(backoff.pause().max(error.pause().unwrap_or_default())).await?;
                }
                Err(_) => break,
            }
        }
        Ok(None)
    }

    /// Stores what waits, with the position that covers it.
    pub(crate) async fn flush(&mut self) -> Result<(), NotNow> {
        if self.waiting.is_empty() {
            self.caught_up();
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.take_in(waiting).await
    }

    /// Stores events, with the position that covers them.
    pub(crate) async fn take_in(&mut self, read: Vec<Read>) -> Result<(), NotNow> {
        for message in read.iter().filter_map(|read| read.message) {
            self.position.sees(message);
        }
        let cursor = (position::CURSOR, self.position.to_text());
        self.storing.store(read, cursor).await?;
        self.caught_up();
        Ok(())
    }

    async fn store_position(&mut self) -> Result<(), NotNow> {
        self.take_in(Vec::new()).await
    }

    async fn store_places(&self) -> Result<(), NotNow> {
        self.storing.store(Vec::new(), (crate::places::CURSOR, self.places.to_text())).await.map(|_| ())
    }

    /// Everything up to the position is stored.
    fn caught_up(&self) {
        if let Some(session) = &self.position.session {
            self.stored.set(session.seq);
        }
    }

    pub(crate) async fn wait(&self, pause: Duration) -> Result<(), NotNow> {
        self.storing.wait(pause).await
    }
}

/// Takes interactions in, beside everything else.
pub(crate) struct Answering<'a> {
    storing: Storing<'a>,
    me: Identity,
}

impl<'a> Answering<'a> {
    pub(crate) const fn new(
        discord: &'a Discord,
        intake: &'a Intake,
        shutdown: &'a CancellationToken,
        me: Identity,
    ) -> Self {
        Self { storing: Storing { discord, intake, shutdown }, me }
    }

    /// Takes in what the queue brings, until `shutdown` or until nobody fills it.
    pub(crate) async fn run(self, mut queue: UnboundedReceiver<Urgent>) {
        loop {
            let urgent = tokio::select! {
                urgent = queue.recv() => urgent,
                () = self.storing.shutdown.cancelled() => return,
            };
            let Some(urgent) = urgent else { return };
            if self.take(urgent).await.is_err() {
                return;
            }
        }
    }

    /// Stores an interaction with its token, and acknowledges it.
    async fn take(&self, urgent: Urgent) -> Result<(), NotNow> {
        let discord = self.storing.discord;
        let Some(mut read) = discord.reader(self.me).read(&urgent.kind, &urgent.data, urgent.seq) else {
            // Whoever waits for it may have ended.
            let _ = urgent.stored.send(());
            return Ok(());
        };
        let now = discord.clock.now();
        let record = read.interaction.take().map(|record| discord.interactions.note(record, now));
        let cursor = || (interactions::CURSOR, discord.interactions.to_text(discord.clock.now()));
        let is_direct = read.event.chat == ChatKind::Direct;
        let event = read.event.clone();
        let accepted = self.storing.store(vec![read], cursor()).await?;
        let _ = urgent.stored.send(());
        let Some(record) = record else { return Ok(()) };
        let id = record.id;
        // Nobody answers whoever may not talk to the agent; only in a direct chat they may be told so.
        let is_heard = accepted.iter().any(|accepted| match accepted {
            Accepted::Kept => is_direct,
            Accepted::Refused => false,
            Accepted::Turn(_) | Accepted::Amended(_) | Accepted::Picked { .. } | Accepted::Duplicate { .. } => true,
        });
        let choice = accepted.iter().find_map(|accepted| accepted.choice(&event));
        discord.acknowledge(record, choice.map(|choice| closing(&event.raw, choice)), is_heard);
        let turn = accepted.into_iter().find_map(|accepted| match accepted {
            Accepted::Turn(turn) | Accepted::Duplicate { turn: Some(turn), .. } => Some(turn),
            _ => None,
        });
        if let Some(turn) = turn {
            discord.interactions.became(id, turn);
            self.storing.store(Vec::new(), cursor()).await?;
        }
        Ok(())
    }
}

/// Stores events, for as long as it takes.
#[derive(Clone, Copy)]
struct Storing<'a> {
    discord: &'a Discord,
    intake: &'a Intake,
    shutdown: &'a CancellationToken,
}

impl Storing<'_> {
    /// Stores events together with a cursor, for as long as it takes.
    async fn store(self, read: Vec<Read>, cursor: (&str, String)) -> Result<Vec<Accepted>, NotNow> {
        let events: Vec<InboundEvent> = read.into_iter().map(|read| read.event).collect();
        let mut backoff = Backoff::default();
        loop {
            match self.intake.accept_all(events.clone(), Some((cursor.0, cursor.1.clone()))).await {
                Ok(accepted) => {
                    self.discord.pulse.storing(None);
                    self.remember(&events, &accepted);
                    return Ok(accepted);
                }
                Err(IntakeError::ShuttingDown) => return Err(NotNow),
                Err(error @ IntakeError::Store(_)) => {
                    tracing::warn!(channel = %self.discord.channel, %error, "events cannot be stored, trying again");
                    self.discord.pulse.storing(Some(format!("events cannot be stored: {error}")));
                }
            }
            self.wait(backoff.pause()).await?;
        }
    }

    /// Remembers what the threads are called that are opened from a turn's message.
    fn remember(self, events: &[InboundEvent], accepted: &[Accepted]) {
        for (event, accepted) in events.iter().zip(accepted) {
            if let (Accepted::Turn(_), Some(message)) = (accepted, &event.message_id)
                && event.conversation.thread.as_deref() == Some(message)
            {
                self.discord.note_topic(message, &event.text);
            }
        }
    }

    async fn wait(self, pause: Duration) -> Result<(), NotNow> {
        if self.discord.pause(pause, self.shutdown).await { Ok(()) } else { Err(NotNow) }
    }
}
