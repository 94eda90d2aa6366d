//! Reads missed messages over REST
//! (<https://discord.com/developers/docs/resources/message#get-channel-messages>), beside the live events.
//!
//! While a channel has missed messages, its live messages are held: they are stored after the missed ones, also if those
//! cannot be read. So each channel keeps its order, and a channel that cannot be read delays no other.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use rejoinder_core::{Backoff, Timestamp};
use rejoinder_kit::ShuttingDown;
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use super::EventStorer;
use crate::{
    Discord,
    errors::ApiError,
    gateway::Dispatch,
    payload::{Message, SentMessage},
    snowflake::Snowflake,
};

/// The most messages per call.
const PAGE: usize = 100;

/// The most channels that are read at once.
const AT_ONCE: usize = 4;

/// After this many failures in a row, a channel is reported.
const REPORTED: u32 = 3;

/// The most live messages that are held, in all channels. Further ones are read back like missed ones.
const MAX_HELD: usize = 1000;

/// The channels with missed messages.
pub(super) struct Backfill<'a> {
    discord: &'a Discord,
    unread: HashMap<Snowflake, UnreadChannel>,
    /// Live messages and edits of these channels, in order.
    held: Vec<HeldMessage>,
    /// The channels to read next.
    queue: VecDeque<Snowflake>,
    reading: JoinSet<Page>,
    /// Channels that failed, and are read again after a pause.
    pausing: JoinSet<Snowflake>,
}

struct UnreadChannel {
    /// The gap in the position that it belongs to.
    place: String,
    /// Read up to this message.
    after: Snowflake,
    /// Whether messages that are not held may have come since the last call began.
    has_more: bool,
    /// Whether a page was stored.
    is_begun: bool,
    backoff: Backoff,
    failures: u32,
}

struct HeldMessage {
    channel: Snowflake,
    id: Snowflake,
    dispatch: Dispatch,
}

/// A channel that is no longer read.
struct EndedChannel {
    place: String,
    /// Its live messages and edits, to be stored now.
    held: Vec<Dispatch>,
}

/// The result of one call.
pub(super) struct Page {
    channel: Snowflake,
    messages: Result<Vec<Box<RawValue>>, ApiError>,
}

impl<'a> Backfill<'a> {
    pub(super) fn new(discord: &'a Discord) -> Self {
        Self {
            discord,
            unread: HashMap::new(),
            held: Vec::new(),
            queue: VecDeque::new(),
            reading: JoinSet::new(),
            pausing: JoinSet::new(),
        }
    }

    /// Reads the messages of a channel after `from` that are not older than `backfill_max_age`.
    pub(super) fn add(&mut self, place: &str, channel: Snowflake, from: Snowflake) {
        match self.unread.entry(channel) {
            Entry::Occupied(mut unread) => unread.get_mut().has_more = true,
            Entry::Vacant(vacant) => {
                let max_age = i64::try_from(self.discord.options.backfill_max_age.as_millis()).unwrap_or(i64::MAX);
                let now = self.discord.clock.now().as_millis();
                let oldest = Timestamp::from_millis(now.saturating_sub(max_age).max(0));
                vacant.insert(UnreadChannel {
                    place: place.to_owned(),
                    after: from.max(Snowflake::at(oldest)),
                    has_more: false,
                    is_begun: false,
                    backoff: Backoff::default(),
                    failures: 0,
                });
                self.queue.push_back(channel);
                self.read_next();
            }
        }
    }

    /// Holds a live message, or an edit of one, if its channel has missed messages. That channel is read first then.
    /// Otherwise returns it, to be stored now: so is an edit of a message that was read.
    pub(super) fn hold(&mut self, dispatch: Dispatch) -> Option<Dispatch> {
        if self.unread.is_empty() {
            return Some(dispatch);
        }
        let Ok(Message { id, channel_id: channel, .. }) = serde_json::from_str(&dispatch.data) else {
            return Some(dispatch);
        };
        let Some(unread) = self.unread.get_mut(&channel).filter(|unread| !is_edit(&dispatch) || id > unread.after)
        else {
            return Some(dispatch);
        };
        if self.held.len() < MAX_HELD {
            self.held.push(HeldMessage { channel, id, dispatch });
        } else {
            unread.has_more = true;
        }
        if let Some(at) = self.queue.iter().position(|queued| *queued == channel) {
            self.queue.remove(at);
            self.queue.push_front(channel);
        }
        None
    }

    /// Whether all missed messages of a place are read.
    pub(super) fn is_read(&self, place: &str) -> bool {
        self.unread.values().all(|unread| unread.place != place)
    }

    /// Whether no page of a channel was stored yet.
    fn is_untouched(&self, channel: Snowflake) -> bool {
        self.unread.get(&channel).is_some_and(|unread| !unread.is_begun)
    }

    /// The result of the next call that ends. Can be dropped and called again.
    pub(super) async fn next(&mut self) -> Page {
        loop {
            tokio::select! {
                Some(read) = self.reading.join_next() => {
                    if let Ok(page) = read {
                        return page;
                    }
                }
                Some(paused) = self.pausing.join_next() => {
                    self.queue.extend(paused);
                    self.read_next();
                }
                else => std::future::pending::<()>().await,
            }
        }
    }

    fn read_next(&mut self) {
        while self.reading.len() < AT_ONCE
            && let Some(channel) = self.queue.pop_front()
        {
            let Some(unread) = self.unread.get_mut(&channel) else { continue };
            unread.has_more = false;
            let path = format!("channels/{channel}/messages?after={}&limit={PAGE}", unread.after);
            let api = Arc::clone(&self.discord.api);
            self.reading.spawn(async move { Page { channel, messages: api.get(&path).await } });
        }
    }

    /// Notes that a page was stored. Returns the channel if it is read to its end.
    fn page_stored(&mut self, channel: Snowflake, last: Option<Snowflake>, is_full: bool) -> Option<EndedChannel> {
        let unread = self.unread.get_mut(&channel)?;
        unread.is_begun = true;
        unread.backoff.reset();
        unread.failures = 0;
        let has_advanced = last.is_some_and(|last| last > unread.after);
        unread.after = unread.after.max(last.unwrap_or_default());
        let after = unread.after;
        self.held.retain(|held| held.channel != channel || held.id > after || is_edit(&held.dispatch));
        if unread.has_more || (is_full && has_advanced) {
            self.queue.push_front(channel);
            self.read_next();
            return None;
        }
        self.end(channel)
    }

    /// Stops reading a channel.
    fn end(&mut self, channel: Snowflake) -> Option<EndedChannel> {
        let ended = self.unread.remove(&channel);
        self.read_next();
        let held = self.held.extract_if(.., |held| held.channel == channel).map(|held| held.dispatch).collect();
        ended.map(|unread| EndedChannel { place: unread.place, held })
    }

    /// Reads a channel again after a pause of at least `min`.
    fn retry(&mut self, channel: Snowflake, min: Duration) {
        if let Some(unread) = self.unread.get_mut(&channel) {
            unread.failures += 1;
            let pause = unread.backoff.pause().max(min);
            let clock = Arc::clone(&self.discord.clock);
            self.pausing.spawn(async move {
                clock.sleep(pause).await;
                channel
            });
        }
        self.read_next();
    }

    /// Names the channels that have failed for a while in the health.
    fn report(&self) {
        let name = |(channel, _): (&Snowflake, &UnreadChannel)| {
            self.discord.directory.channel_name(*channel).unwrap_or_else(|| channel.to_string())
        };
        let mut names: Vec<_> =
            self.unread.iter().filter(|(_, unread)| unread.failures >= REPORTED).map(name).collect();
        names.sort_unstable();
        self.discord.health.set_unread(&names);
    }
}

impl EventStorer<'_> {
    /// Stores the missed messages of a page, oldest first. Stored ones are recognised as duplicates.
    pub(super) async fn handle_page(&mut self, page: Page) -> Result<(), ShuttingDown> {
        let Page { channel, messages } = page;
        let ended = match messages {
            Ok(page) => {
                let mut messages: Vec<(Snowflake, &RawValue)> = page
                    .iter()
                    .filter_map(|raw| Some((serde_json::from_str::<SentMessage>(raw.get()).ok()?.id, raw.as_ref())))
                    .collect();
                messages.sort_unstable_by_key(|(id, _)| *id);
                let last = messages.last().map(|(last, _)| *last);
                if self.position.is_new && self.backfill.is_untouched(channel) {
                    // An earlier installation has answered what is before our own last message.
                    let is_ours = |raw: &RawValue| {
                        let message = serde_json::from_str::<Message>(raw.get()).ok();
                        message.and_then(|message| message.author).is_some_and(|author| author.id == self.me.user)
                    };
                    let answered = messages.iter().rposition(|(_, raw)| is_ours(raw)).map_or(0, |index| index + 1);
                    messages.drain(..answered);
                }
                let reader = self.reader();
                let read: Vec<_> =
                    messages.iter().filter_map(|(_, raw)| reader.read("MESSAGE_CREATE", raw.get(), 0)).collect();
                if !read.is_empty() {
                    self.store_events(read).await?;
                }
                self.backfill.page_stored(channel, last, page.len() >= PAGE)
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(channel = %self.discord.channel, in_channel = %channel, %error, "missed messages cannot be read yet, retrying");
                self.backfill.retry(channel, error.pause().unwrap_or_default());
                None
            }
            Err(error) => {
                // The channel is closed to us.
                tracing::debug!(channel = %self.discord.channel, in_channel = %channel, %error, "a channel cannot be read, skipping it");
                self.backfill.end(channel)
            }
        };
        self.backfill.report();
        let Some(EndedChannel { place, held }) = ended else { return Ok(()) };
        self.release(held).await?;
        self.close_gap_if_read(&place).await
    }

    /// Closes a gap, once all its channels are read.
    pub(super) async fn close_gap_if_read(&mut self, place: &str) -> Result<(), ShuttingDown> {
        if !self.backfill.is_read(place) {
            return Ok(());
        }
        self.position.close_gap(place);
        self.store_position().await
    }
}

fn is_edit(dispatch: &Dispatch) -> bool {
    dispatch.kind == "MESSAGE_UPDATE"
}
