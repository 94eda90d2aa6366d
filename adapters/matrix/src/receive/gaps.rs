//! What is missing of a room, read back page by page.

use matrix_sdk::{
    Room,
    deserialized_responses::TimelineEvent,
    room::{Messages, MessagesOptions},
    ruma::UInt,
};
use rejoinder_core::Backoff;
use rejoinder_kit::{Receiver, RunEnd};

use super::timeline::{From, Position};
use crate::{
    Matrix,
    errors::{self, Failure},
    payload::Membership,
    room::read,
};

/// How many events one page has.
const PAGE: u32 = 100;

/// How many pages are held at once; what lies between them and the oldest one is read again when it is its turn.
const HELD: usize = 20;

/// How much older than what is stored an event may look, by the clocks of other servers, and still be new.
const SLACK_MS: i64 = 24 * 60 * 60 * 1000;

/// How many pages are read in search of the invitation to a room that is new to us.
const PAGES_BEFORE_JOIN: usize = 10;

/// How often a page is asked for that the homeserver does not give.
const TRIES: u32 = 3;

/// A page of a room's past.
pub(super) struct Page {
    /// Before what it ends, and where it ends at the latest.
    before: Option<String>,
    to: Option<String>,
    /// How many of its events concern us, from the newest on.
    count: usize,
    /// Its events, newest first.
    events: Option<Vec<TimelineEvent>>,
}

/// What is missing of a room.
#[derive(Default)]
pub(super) struct Gap {
    /// Its pages, newest first.
    pub(super) pages: Vec<Page>,
    /// What became of our own membership first.
    pub(super) first: Option<Membership>,
}

/// What came of asking for something.
pub(super) enum Asked<T> {
    Got(T),
    /// We may not read the room.
    Refused,
    /// The homeserver does not give it now.
    Later,
}

impl Matrix {
    /// The events before `before` that concern us. `since` is the token up to which the room is stored.
    pub(super) async fn gap(
        &self,
        room: &Room,
        from: &From,
        me: &str,
        mut before: Option<String>,
        since: Option<&str>,
        receiver: &Receiver<'_>,
    ) -> Result<Asked<Gap>, RunEnd> {
        let mut gap = Gap::default();
        let mut joined_at = None;
        // A new room is read to before what is stored of the others.
        let mut to = since.filter(|_| matches!(from, From::After(_))).map(str::to_owned);
        loop {
            let page = match self.page(room, before.clone(), &mut to, receiver).await? {
                Asked::Got(page) => page,
                Asked::Refused => break,
                Asked::Later => return Ok(Asked::Later),
            };
            let (is_last, end) = (page.chunk.is_empty(), page.end);
            let events: Vec<_> = page.chunk.iter().map(read).collect();
            if to.is_none() && !is_last && events.iter().flatten().all(|event| is_too_old(from, event.origin_server_ts))
            {
                return Ok(Asked::Got(gap));
            }
            let is_begin = |event: &Option<_>| event.as_ref().is_some_and(|event| from.is_before(event, me));
            let begin = events.iter().position(is_begin);
            let count = begin.unwrap_or(events.len());
            for (index, event) in events[..count].iter().enumerate() {
                let Some(membership) = event.as_ref().and_then(|event| event.membership_of(me)) else { continue };
                if joined_at.is_none() && membership.is_join() {
                    joined_at = Some((gap.pages.len(), index));
                }
                gap.first = Some(membership);
            }
            gap.push(Page { before: before.take(), to: to.clone(), count, events: Some(page.chunk) });
            if begin.is_some() {
                return Ok(Asked::Got(gap));
            }
            let is_in_vain = *from == From::Invite && gap.pages.len() >= PAGES_BEFORE_JOIN;
            match end {
                Some(end) if !is_last && !is_in_vain => before = Some(end),
                _ => break,
            }
        }
        if !matches!(from, From::After(_)) {
            // There was no invitation that we may see; without a trace of how we came in, nothing is new.
            gap.end_at(joined_at);
        }
        Ok(Asked::Got(gap))
    }

    /// The events of a page, oldest first.
    pub(super) async fn events_of(
        &self,
        room: &Room,
        page: Page,
        receiver: &Receiver<'_>,
    ) -> Result<Asked<Vec<TimelineEvent>>, RunEnd> {
        let Page { before, mut to, count, events } = page;
        let mut events = match events {
            Some(events) => events,
            None => match self.page(room, before, &mut to, receiver).await? {
                Asked::Got(page) => page.chunk,
                Asked::Refused => return Ok(Asked::Refused),
                Asked::Later => return Ok(Asked::Later),
            },
        };
        events.truncate(count);
        events.reverse();
        Ok(Asked::Got(events))
    }

    /// The last event of a room, for as long as it takes.
    pub(super) async fn end_of(&self, room: &Room, receiver: &Receiver<'_>) -> Result<Option<Position>, RunEnd> {
        loop {
            match self.page(room, None, &mut None, receiver).await? {
                Asked::Got(page) => {
                    let now = self.clock.now();
                    return Ok(page.chunk.iter().find_map(|event| Position::of(event, now)));
                }
                Asked::Refused => return Ok(None),
                Asked::Later => {}
            }
        }
    }

    async fn page(
        &self,
        room: &Room,
        before: Option<String>,
        to: &mut Option<String>,
        receiver: &Receiver<'_>,
    ) -> Result<Asked<Messages>, RunEnd> {
        let mut backoff = Backoff::default();
        let mut tries = 0;
        while tries < TRIES {
            let mut options = MessagesOptions::backward().from(before.as_deref());
            options.limit = UInt::from(PAGE);
            options.to.clone_from(to);
            let read = receiver.until_shutdown(room.messages(options)).await?;
            let mut pause = backoff.pause();
            match read.map_err(|error| errors::sdk(&error)) {
                Ok(page) => return Ok(Asked::Got(page)),
                // The server may not know the token any more.
                Err(Failure::Refused(_)) if to.is_some() => *to = None,
                Err(Failure::Refused(detail)) => {
                    tracing::warn!(channel = %self.channel, room = %room.room_id(), error = detail, "cannot read a room");
                    return Ok(Asked::Refused);
                }
                Err(Failure::Unauthorized { is_soft, detail }) => {
                    return Err(RunEnd::Failed(self.session_ended(is_soft, detail)));
                }
                Err(Failure::Limited { retry_after, .. }) => pause = pause.max(retry_after),
                Err(Failure::NotSent(detail) | Failure::Unknown(detail) | Failure::Duplicate(detail)) => {
                    tracing::warn!(channel = %self.channel, room = %room.room_id(), error = detail, "cannot read a room now");
                    tries += 1;
                }
            }
            receiver.pause(pause).await?;
        }
        Ok(Asked::Later)
    }
}

impl Gap {
    fn push(&mut self, page: Page) {
        // The oldest one is always held: it is the next to be stored.
        let is_full = self.pages.len() > HELD;
        if let Some(newer) = self.pages.last_mut().filter(|_| is_full) {
            newer.events = None;
        }
        self.pages.push(page);
    }

    /// Leaves what is newer than the event `index` of page `page`, or nothing.
    fn end_at(&mut self, newest: Option<(usize, usize)>) {
        let (pages, count) = newest.map_or((0, 0), |(page, index)| (page + 1, index));
        self.pages.truncate(pages);
        if let Some(oldest) = self.pages.last_mut() {
            oldest.count = count;
        }
    }
}

/// Whether an event lies so far before what is stored that the server does not know that one any more.
fn is_too_old(from: &From, at: i64) -> bool {
    matches!(from, From::After(Position::Event { at: stored, .. }) if at < stored.saturating_sub(SLACK_MS))
}
