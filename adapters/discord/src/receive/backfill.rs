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
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use crate::{Discord, errors::ApiError, gateway::Dispatch, payload::Message, snowflake::Snowflake};

pub(super) const PAGE: usize = 100;

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
    scope: String,
    /// Read up to this message.
    after: Snowflake,
    /// Whether messages that are not held may have come since the last call began.
    has_more: bool,
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
pub(super) struct EndedChannel {
    pub(super) scope: String,
    /// Its live messages and edits, to be stored now.
    pub(super) held: Vec<Dispatch>,
}

pub(super) struct Page {
    pub(super) channel: Snowflake,
    pub(super) messages: Result<Vec<Box<RawValue>>, ApiError>,
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
    pub(super) fn add(&mut self, scope: &str, channel: Snowflake, from: Snowflake) {
        match self.unread.entry(channel) {
            Entry::Occupied(mut unread) => unread.get_mut().has_more = true,
            Entry::Vacant(vacant) => {
                let max_age = i64::try_from(self.discord.options.backfill_max_age.as_millis()).unwrap_or(i64::MAX);
                let now = self.discord.clock.now().as_millis();
                let oldest = Timestamp::from_millis(now.saturating_sub(max_age).max(0));
                vacant.insert(UnreadChannel {
                    scope: scope.to_owned(),
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

    /// Whether all missed messages of a scope are read.
    pub(super) fn is_read(&self, scope: &str) -> bool {
        self.unread.values().all(|unread| unread.scope != scope)
    }

    /// Whether no page of a channel was stored yet.
    pub(super) fn is_untouched(&self, channel: Snowflake) -> bool {
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
    pub(super) fn page_stored(
        &mut self,
        channel: Snowflake,
        last: Option<Snowflake>,
        is_full: bool,
    ) -> Option<EndedChannel> {
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

    pub(super) fn end(&mut self, channel: Snowflake) -> Option<EndedChannel> {
        let ended = self.unread.remove(&channel);
        self.read_next();
        let held = self.held.extract_if(.., |held| held.channel == channel).map(|held| held.dispatch).collect();
        ended.map(|unread| EndedChannel { scope: unread.scope, held })
    }

    /// Reads a channel again after a pause of at least `min`.
    pub(super) fn retry(&mut self, channel: Snowflake, min: Duration) {
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
    pub(super) fn report(&self) {
        let name = |(channel, _): (&Snowflake, &UnreadChannel)| {
            self.discord.directory.channel_name(*channel).unwrap_or_else(|| channel.to_string())
        };
        let mut names: Vec<_> =
            self.unread.iter().filter(|(_, unread)| unread.failures >= REPORTED).map(name).collect();
        names.sort_unstable();
        self.discord.health.set_unread(&names);
    }
}

fn is_edit(dispatch: &Dispatch) -> bool {
    dispatch.kind == "MESSAGE_UPDATE"
}
