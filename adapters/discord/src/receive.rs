//! Receives events from the Gateway. Each is read in order and stored, and only then acknowledged.

mod backfill;
mod missed;

use std::{collections::VecDeque, sync::Arc};

use rejoinder_core::{Accepted, Backoff, ChatKind, EventKind, InboundEvent, store::SentText};
use rejoinder_kit::{Receiver, ShuttingDown};
use tokio::sync::mpsc;

use self::backfill::{Backfill, Page};
use crate::{
    Discord,
    check::Identity,
    closing::closing,
    gateway::{Dispatch, StoredSeq, Urgent},
    inbound::{ReadEvent, Reader},
    interactions,
    known_chats::KnownChats,
    payload::{Channel, Guild, GuildId, Member, Message, Ready, RoleChange, Threads},
    position::{self, DIRECT, Position},
    snowflake::Snowflake,
};

const BATCH: usize = 100;

/// How many messages of others are remembered, to which somebody reacts.
const OF_OTHERS: usize = 256;

/// How often an unknown channel is requested before it is treated as not being a thread.
const MAX_FETCHES: u32 = 4;

/// What happens next in the main queue.
enum Next {
    /// This many events arrived; none if the queue is closed.
    Events(usize),
    /// A page of missed messages was read.
    Page(Page),
}

/// The problem that is reported for messages without text.
const HIDDEN: &str = "messages in servers arrive without their text: the MESSAGE CONTENT INTENT is not switched on for the \
    application (developer portal, \"Bot\"); switch it on, or set message_content = false";

impl Discord {
    fn reader(&self, me: Identity) -> Reader<'_> {
        Reader {
            channel: &self.channel,
            me,
            options: &self.options,
            directory: &self.directory,
            sent: &self.sent,
            now: self.clock.now(),
        }
    }

    /// Stores events together with a cursor. Retries until the store accepts them.
    async fn store(
        &self,
        receiver: &Receiver<'_>,
        read: Vec<ReadEvent>,
        (cursor, position): (&str, String),
    ) -> Result<Vec<Accepted>, ShuttingDown> {
        let events: Vec<InboundEvent> = read.into_iter().map(|read| read.event).collect();
        let accepted = receiver.accept(&events, Some((cursor, &position))).await?;
        for (event, accepted) in events.iter().zip(&accepted) {
            // The answer will open a thread from this message.
            if let (Some(_), Some(message)) = (accepted.opened(), &event.message_id)
                && event.conversation.thread.as_deref() == Some(message)
            {
                self.note_thread_title(message, &event.text);
            }
        }
        Ok(accepted)
    }
}

/// Stores the events of the main queue, and missed messages.
pub(crate) struct EventStorer<'a> {
    pub(crate) discord: &'a Discord,
    pub(crate) receiver: Receiver<'a>,
    pub(crate) me: Identity,
    pub(crate) position: Position,
    pub(crate) known_chats: KnownChats,
    pub(crate) stored: Arc<StoredSeq>,
    backfill: Backfill<'a>,
    waiting: Vec<ReadEvent>,
    /// The latest messages of others that were looked up among ours.
    of_others: VecDeque<Snowflake>,
}

impl<'a> EventStorer<'a> {
    pub(crate) fn new(
        discord: &'a Discord,
        receiver: Receiver<'a>,
        me: Identity,
        position: Position,
        known_chats: KnownChats,
        stored: Arc<StoredSeq>,
    ) -> Self {
        let (backfill, waiting, of_others) = (Backfill::new(discord), Vec::new(), VecDeque::new());
        Self { discord, receiver, me, position, known_chats, stored, backfill, waiting, of_others }
    }

    /// Stores the events of the queue, until the run ends or the queue is closed.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Dispatch>) -> Result<(), ShuttingDown> {
        // Reads what an earlier run missed and did not finish reading. A resumed session delivers what is newer.
        self.fill_direct().await?;
        let mut dispatches = Vec::with_capacity(BATCH);
        loop {
            let backfill = &mut self.backfill;
            let next = async {
                tokio::select! {
                    count = queue.recv_many(&mut dispatches, BATCH) => Next::Events(count),
                    page = backfill.next() => Next::Page(page),
                }
            };
            match self.receiver.until_shutdown(next).await? {
                Next::Events(0) => return Ok(()),
                Next::Events(_) => {
                    for dispatch in dispatches.drain(..) {
                        self.handle(dispatch).await?;
                    }
                    self.flush().await?;
                }
                Next::Page(page) => self.handle_page(page).await?,
            }
        }
    }

    async fn handle(&mut self, dispatch: Dispatch) -> Result<(), ShuttingDown> {
        match dispatch.kind.as_str() {
            "READY" => self.handle_ready(&dispatch).await?,
            "GUILD_CREATE" => self.handle_server(&dispatch).await?,
            "MESSAGE_CREATE" | "MESSAGE_UPDATE" => {
                self.fetch_unknown_channels(&dispatch.data).await?;
                self.position.mark_handled(&dispatch);
                if let Some(dispatch) = self.backfill.hold(dispatch) {
                    self.read_event(&dispatch);
                }
            }
            "INTERACTION_CREATE" => self.wait_until_stored(dispatch).await?,
            "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE" => {
                self.recall(&dispatch).await?;
                self.read_event(&dispatch);
            }
            "MESSAGE_REACTION_REMOVE_ALL" | "MESSAGE_REACTION_REMOVE_EMOJI" => self.read_event(&dispatch),
            _ => {
                self.update_directory(&dispatch);
                self.position.mark_handled(&dispatch);
            }
        }
        if self.waiting.is_empty() {
            self.publish_stored_seq();
        }
        Ok(())
    }

    pub(crate) fn reader(&self) -> Reader<'a> {
        self.discord.reader(self.me)
    }

    /// Waits until [`InteractionStorer`] has stored an interaction, so that later events are not stored before it.
    async fn wait_until_stored(&mut self, dispatch: Dispatch) -> Result<(), ShuttingDown> {
        self.flush().await?;
        if let Some(stored) = dispatch.stored {
            self.receiver.until_shutdown(stored).await?.map_err(|_| ShuttingDown)?;
            self.position.mark_handled_to(&dispatch.session, dispatch.seq);
        }
        Ok(())
    }

    /// Recalls the message of a reaction, if we sent it before the start. Nothing is looked up for those who may not talk to the agent.
    async fn recall(&mut self, Dispatch { kind, data, seq, .. }: &Dispatch) -> Result<(), ShuttingDown> {
        let Some((event, id)) = self.reader().unknown_reaction(kind, data, *seq) else { return Ok(()) };
        if self.of_others.contains(&id) {
            return Ok(());
        }
        let InboundEvent { conversation, sender, chat, .. } = &event;
        if !self.receiver.intake.lets_in(&sender.id, sender.username.as_deref(), *chat, conversation) {
            return Ok(());
        }
        if let Some(SentText { thread, text }) = self.receiver.sent_text(&conversation.chat, &id.to_string()).await? {
            self.discord.sent.note(id, &text, thread);
        } else {
            self.of_others.truncate(OF_OTHERS - 1);
            self.of_others.push_front(id);
        }
        Ok(())
    }

    fn read_event(&mut self, dispatch: &Dispatch) {
        if let Some(read) = self.reader().read(&dispatch.kind, &dispatch.data, dispatch.seq) {
            self.check_content_intent(&read);
            self.waiting.push(read);
        }
        self.position.mark_handled(dispatch);
    }

    /// Stores messages that were held while their channel was read back.
    async fn release(&mut self, held: Vec<Dispatch>) -> Result<(), ShuttingDown> {
        let reader = self.reader();
        let read = held.iter().filter_map(|dispatch| reader.read(&dispatch.kind, &dispatch.data, dispatch.seq));
        self.waiting.extend(read);
        self.flush().await
    }

    fn check_content_intent(&self, read: &ReadEvent) {
        let health = &self.discord.health;
        if read.is_hidden && self.discord.options.message_content {
            if health.setup_fails(HIDDEN) {
                tracing::warn!(channel = %self.discord.channel, "{HIDDEN}");
            }
        } else if read.is_ambient() {
            // A readable message that is not directed at us proves that the intent is granted.
            health.setup_is_complete();
        }
    }

    /// Handles the start of a session: missed messages must be read over REST.
    async fn handle_ready(&mut self, dispatch: &Dispatch) -> Result<(), ShuttingDown> {
        self.flush().await?;
        let Ok(ready) = serde_json::from_str::<Ready>(&dispatch.data) else {
            tracing::error!(channel = %self.discord.channel, "READY from Discord's gateway cannot be read");
            return Ok(());
        };
        self.me.user = ready.user.id;
        if let Some(application) = ready.application {
            self.me.application = application.id;
        }
        let now = self.discord.clock.now();
        let servers: Vec<String> = ready.guilds.iter().map(|guild| guild.id.to_string()).collect();
        self.position.start_session(servers.iter().map(String::as_str), now);
        self.position.mark_handled(dispatch);
        *self.discord.identified_at.lock() = Some(now);
        self.store_position().await?;
        tracing::info!(channel = %self.discord.channel, servers = servers.len(), "connected to Discord");
        self.fill_direct().await
    }

    /// Has missed messages in direct chats read.
    async fn fill_direct(&mut self) -> Result<(), ShuttingDown> {
        let Some(from) = self.position.gap(DIRECT) else { return Ok(()) };
        self.flush().await?;
        for channel in self.known_chats.direct() {
            self.discord.directory.learn_direct(channel);
            self.backfill.add(DIRECT, channel, from);
        }
        self.close_gap_if_read(DIRECT).await
    }

    /// Handles a server that becomes available: learns its channels and has missed messages read.
    async fn handle_server(&mut self, dispatch: &Dispatch) -> Result<(), ShuttingDown> {
        let guild = match serde_json::from_str::<Guild<'_>>(&dispatch.data) {
            Ok(guild) if !guild.unavailable => guild,
            Ok(_) => {
                self.position.mark_handled(dispatch);
                return Ok(());
            }
            Err(error) => {
                tracing::warn!(channel = %self.discord.channel, %error, "a server from Discord cannot be read, skipping it");
                self.position.mark_handled(dispatch);
                return Ok(());
            }
        };
        self.flush().await?;
        let latest = self.discord.directory.learn_guild(&guild, self.me.user);
        let (id, name) = (guild.id, guild.id.to_string());
        let is_new = !self.known_chats.servers.contains(&id);
        if let Some(gap) = self.position.gap(&name) {
            // If we were added while offline, messages from before that are not answered.
            let joined = guild.joined_at.as_deref().and_then(|at| at.parse::<jiff::Timestamp>().ok());
            let joined = joined.map(|at| Snowflake::at(rejoinder_core::Timestamp::from_millis(at.as_millisecond())));
            let from = if is_new { gap.max(joined.unwrap_or_default()) } else { gap };
            for latest in latest {
                if latest.message.is_none_or(|message| message > from) {
                    self.backfill.add(&name, latest.channel, from);
                }
            }
            self.close_gap_if_read(&name).await?;
        }
        if is_new {
            self.known_chats.servers.insert(id);
            self.store_known_chats().await?;
        }
        self.position.mark_handled(dispatch);
        self.store_position().await
    }

    fn update_directory(&mut self, dispatch: &Dispatch) {
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
                    directory.learn_role(change.role, self.me.user);
                }
            }
            "GUILD_DELETE" => {
                if let Ok(guild) = serde_json::from_str::<GuildId>(data)
                    && guild.unavailable
                {
                    self.position.add_gap(&guild.id.to_string());
                }
            }
            _ => {}
        }
    }

    /// Notes the direct chat of a message, or fetches the unknown channel and our unknown roles in its server.
    async fn fetch_unknown_channels(&mut self, data: &str) -> Result<(), ShuttingDown> {
        let Ok(message) = serde_json::from_str::<Message>(data) else { return Ok(()) };
        let is_ours = message.author.as_ref().is_some_and(|author| author.id == self.me.user);
        let directory = &self.discord.directory;
        let Some(guild) = message.guild_id else {
            if directory.channel(message.channel_id).is_none() {
                directory.learn_direct(message.channel_id);
            }
            if !is_ours && self.known_chats.note_message_in(message.channel_id) {
                self.store_known_chats().await?;
            }
            return Ok(());
        };
        if is_ours {
            return Ok(());
        }
        if directory.channel(message.channel_id).is_none() {
            let path = format!("channels/{}", message.channel_id);
            if let Some(channel) = self.fetch::<Channel>(&path).await? {
                directory.learn(&channel, Some(guild));
            }
        }
        if message.mention_roles.iter().any(|role| directory.is_our_role(guild, *role).is_none()) {
            let path = format!("guilds/{guild}/members/{}", self.me.user);
            if let Some(member) = self.fetch::<Member>(&path).await? {
                directory.learn_our_roles(guild, member.roles);
            }
        }
        Ok(())
    }

    /// Fetches something that an event does not contain; `None` if it is not available.
    async fn fetch<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ShuttingDown> {
        let mut backoff = Backoff::default();
        for _ in 0..MAX_FETCHES {
            match self.receiver.until_shutdown(self.discord.api.get(path)).await? {
                Ok(found) => return Ok(Some(found)),
                Err(error) if error.is_transient() => {
                    tracing::debug!(channel = %self.discord.channel, %error, "a channel or member cannot be fetched yet, retrying");
                    self.receiver.pause(backoff.pause().max(error.pause().unwrap_or_default())).await?;
                }
                Err(_) => break,
            }
        }
        Ok(None)
    }

    /// Stores the waiting events, with the position that covers them.
    pub(crate) async fn flush(&mut self) -> Result<(), ShuttingDown> {
        if self.waiting.is_empty() {
            self.publish_stored_seq();
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.store_events(waiting).await
    }

    pub(crate) async fn store_events(&mut self, read: Vec<ReadEvent>) -> Result<(), ShuttingDown> {
        for message in read.iter().filter_map(|read| read.message) {
            self.position.note_message(message);
        }
        let cursor = (position::CURSOR, self.position.to_text());
        self.discord.store(&self.receiver, read, cursor).await?;
        self.publish_stored_seq();
        Ok(())
    }

    async fn store_position(&mut self) -> Result<(), ShuttingDown> {
        self.store_events(Vec::new()).await
    }

    async fn store_known_chats(&self) -> Result<(), ShuttingDown> {
        self.receiver.move_cursor(crate::known_chats::CURSOR, &self.known_chats.to_text()).await
    }

    /// Lets heartbeats acknowledge all events up to the position.
    fn publish_stored_seq(&self) {
        if let Some(session) = &self.position.session {
            self.stored.set(session.seq);
        }
    }
}

/// Stores and acknowledges interactions, in parallel to the main queue.
pub(crate) struct InteractionStorer<'a> {
    pub(crate) discord: &'a Discord,
    pub(crate) receiver: Receiver<'a>,
    pub(crate) me: Identity,
}

impl InteractionStorer<'_> {
    /// Stores the interactions of the queue, until the run ends or the queue is closed.
    pub(crate) async fn run(self, mut queue: mpsc::UnboundedReceiver<Urgent>) -> Result<(), ShuttingDown> {
        loop {
            let next = async {
                tokio::select! {
                    biased;
                    urgent = queue.recv() => Some(urgent),
                    () = self.discord.interactions.until_answered() => None,
                }
            };
            match self.receiver.until_shutdown(next).await? {
                Some(Some(urgent)) => self.handle(urgent).await?,
                Some(None) => return Ok(()),
                None => self.store_interactions().await?,
            }
        }
    }

    /// Stores which interactions were answered, so that no message replaces the answer after a restart.
    async fn store_interactions(&self) -> Result<(), ShuttingDown> {
        let stored = self.discord.interactions.to_text(self.discord.clock.now());
        self.receiver.move_cursor(interactions::CURSOR, &stored).await
    }

    /// Stores an interaction with its token, and acknowledges it.
    async fn handle(&self, urgent: Urgent) -> Result<(), ShuttingDown> {
        let discord = self.discord;
        let Some(mut read) = discord.reader(self.me).read(&urgent.kind, &urgent.data, urgent.seq) else {
            // The receiver may be gone.
            let _ = urgent.stored.send(());
            return Ok(());
        };
        let now = discord.clock.now();
        let record = read.interaction.take().map(|record| discord.interactions.note(record, now));
        let cursor = || (interactions::CURSOR, discord.interactions.to_text(discord.clock.now()));
        let is_direct = read.event.chat == ChatKind::Direct;
        let event = read.event.clone();
        let accepted = discord.store(&self.receiver, vec![read], cursor()).await?;
        let _ = urgent.stored.send(());
        let Some(record) = record else { return Ok(()) };
        let id = record.id;
        // A person who may not talk to the agent gets no answer, except perhaps a notice in a direct chat.
        let is_heard = accepted.iter().any(|accepted| match accepted {
            Accepted::Kept | Accepted::Limited { .. } => is_direct,
            Accepted::Refused => false,
            Accepted::Turn(_)
            | Accepted::Answers { .. }
            | Accepted::Amended(_)
            | Accepted::Picked { .. }
            | Accepted::Expired { .. }
            | Accepted::Duplicate { .. } => true,
        });
        // Words after a slash command close nothing: there is no button's message to edit.
        let is_press = matches!(event.kind, EventKind::Choice { .. });
        let line = accepted.iter().find_map(|accepted| accepted.closing(&event)).filter(|_| is_press);
        discord.acknowledge(record, line.map(|(_, line)| closing(&event.raw, &line)), is_heard);
        let turn = accepted.into_iter().find_map(|accepted| match accepted {
            Accepted::Duplicate { turn, .. } => turn,
            accepted => accepted.opened(),
        });
        if let Some(turn) = turn {
            discord.interactions.set_turn(id, turn);
            discord.store(&self.receiver, Vec::new(), cursor()).await?;
        }
        Ok(())
    }
}
