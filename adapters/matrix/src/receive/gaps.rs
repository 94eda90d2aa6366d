//! Reads the missing events of a room back, page by page.

use matrix_sdk::{
    Room,
    deserialized_responses::TimelineEvent,
    room::{Messages, MessagesOptions},
    ruma::UInt,
};
use rejoinder_core::Backoff;
use rejoinder_kit::RunEnd;

use super::timeline::{Position, TimelineStart};
use crate::{
    errors::{self, Failure},
    payload::Membership,
    room::read,
    run::Run,
};

const PAGE_SIZE: u32 = 100;

/// How many pages stay in memory besides the oldest one. Those in between are read again when they are to be stored.
const MAX_HELD_PAGES: usize = 20;

/// How much older than the last stored event a new event may appear, by the clocks of other servers.
const SLACK_MS: i64 = 24 * 60 * 60 * 1000;

/// How many pages are searched for the invitation to a room that is new to us.
const PAGES_BEFORE_JOIN: usize = 10;

/// How often a page is requested before the room is left for later.
const TRIES: u32 = 3;

pub(super) struct Page {
    /// The tokens between which the page lies: `before` at its newer end, `to` at its older end at the latest.
    before: Option<String>,
    to: Option<String>,
    /// How many of its events concern us, counted from the newest.
    count: usize,
    /// Its events, newest first; `None`: to be read again.
    events: Option<Vec<TimelineEvent>>,
}

/// The missing events of a room.
#[derive(Default)]
pub(super) struct Gap {
    /// Its pages, newest first.
    pub(super) pages: Vec<Page>,
    /// The oldest change of our own membership.
    pub(super) first: Option<Membership>,
    /// Whether the homeserver did not let us read all of it.
    pub(super) is_refused: bool,
}

pub(super) enum Fetched<T> {
    Got(T),
    /// We may not read the room.
    Refused,
    /// The homeserver cannot answer now.
    Later,
}

impl Run<'_> {
    /// Reads the events before `before` that concern us. `since` is the token up to which the room is stored. `None`: the
    /// homeserver cannot answer now.
    pub(super) async fn read_gap(
        &self,
        room: &Room,
        start: &TimelineStart,
        mut before: Option<String>,
        since: Option<&str>,
    ) -> Result<Option<Gap>, RunEnd> {
        let me = self.session.me();
        let mut gap = Gap::default();
        let mut joined_at = None;
        // Only a room of which an event is stored is stored up to `since`: events of a new one may be older.
        let is_known = matches!(start, TimelineStart::After(Position::Event { .. }));
        let mut to = since.filter(|_| is_known).map(str::to_owned);
        loop {
            let page = match self.fetch_page(room, before.clone(), &mut to).await? {
                Fetched::Got(page) => page,
                Fetched::Refused => {
                    gap.is_refused = true;
                    break;
                }
                Fetched::Later => return Ok(None),
            };
            let (is_last, end) = (page.chunk.is_empty(), page.end);
            let events: Vec<_> = page.chunk.iter().map(read).collect();
            if to.is_none()
                && !is_last
                && events.iter().flatten().all(|event| is_too_old(start, event.origin_server_ts))
            {
                return Ok(Some(gap));
            }
            let is_begin = |event: &Option<_>| event.as_ref().is_some_and(|event| start.is_before(event, me));
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
                return Ok(Some(gap));
            }
            let is_search_over = *start == TimelineStart::Invite && gap.pages.len() >= PAGES_BEFORE_JOIN;
            match end {
                Some(end) if !is_last && !is_search_over => before = Some(end),
                _ => break,
            }
        }
        if !matches!(start, TimelineStart::After(_)) {
            // We can see no invitation: only events after our join are new. Without a join, none are.
            gap.end_at(joined_at);
        }
        Ok(Some(gap))
    }

    /// The events of a page that concern us, oldest first. Reads the page again if it is no longer in memory.
    pub(super) async fn events_of(&self, room: &Room, page: Page) -> Result<Fetched<Vec<TimelineEvent>>, RunEnd> {
        let Page { before, mut to, count, events } = page;
        let mut events = match events {
            Some(events) => events,
            None => match self.fetch_page(room, before, &mut to).await? {
                Fetched::Got(page) => page.chunk,
                Fetched::Refused => return Ok(Fetched::Refused),
                Fetched::Later => return Ok(Fetched::Later),
            },
        };
        events.truncate(count);
        events.reverse();
        Ok(Fetched::Got(events))
    }

    /// Where a room begins at our first start; `None` if the homeserver cannot say now.
    pub(super) async fn begin_of(&self, room: &Room) -> Result<Option<Position>, RunEnd> {
        Ok(match self.fetch_page(room, None, &mut None).await? {
            Fetched::Got(page) => {
                Some(Position::at_first_start(page.chunk.iter(), self.session.me(), self.matrix.clock.now()))
            }
            Fetched::Refused => Some(Position::Joined),
            Fetched::Later => None,
        })
    }

    async fn fetch_page(
        &self,
        room: &Room,
        before: Option<String>,
        to: &mut Option<String>,
    ) -> Result<Fetched<Messages>, RunEnd> {
        let mut backoff = Backoff::default();
        let mut tries = 0;
        while tries < TRIES {
            let mut options = MessagesOptions::backward().from(before.as_deref());
            options.limit = UInt::from(PAGE_SIZE);
            options.to.clone_from(to);
            let read = self.receiver.until_shutdown(room.messages(options)).await?;
            let mut pause = backoff.pause();
            match read.map_err(|error| errors::sdk(&error)) {
                Ok(page) => return Ok(Fetched::Got(page)),
                // The server may have forgotten the token.
                Err(Failure::Refused(_)) if to.is_some() => *to = None,
                Err(Failure::Refused(detail)) => {
                    tracing::warn!(channel = %self.matrix.channel, room = %room.room_id(), error = detail, "the homeserver does not let us read a room");
                    return Ok(Fetched::Refused);
                }
                Err(Failure::Unauthorized { is_soft, detail }) => {
                    return Err(RunEnd::Failed(self.matrix.session_ended(is_soft, detail).await));
                }
                Err(Failure::Limited { retry_after, .. }) => pause = pause.max(retry_after),
                Err(Failure::NotSent(detail) | Failure::Unknown(detail) | Failure::Duplicate(detail)) => {
                    tracing::warn!(channel = %self.matrix.channel, room = %room.room_id(), error = detail, "reading a room failed, retrying");
                    tries += 1;
                }
            }
            self.receiver.pause(pause).await?;
        }
        Ok(Fetched::Later)
    }
}

impl Gap {
    fn push(&mut self, page: Page) {
        // The oldest page is always kept: it is stored next.
        let is_full = self.pages.len() > MAX_HELD_PAGES;
        if let Some(newer) = self.pages.last_mut().filter(|_| is_full) {
            newer.events = None;
        }
        self.pages.push(page);
    }

    /// Keeps only the events newer than `newest`, a page and an event in it; without one, keeps nothing.
    fn end_at(&mut self, newest: Option<(usize, usize)>) {
        let (pages, count) = newest.map_or((0, 0), |(page, index)| (page + 1, index));
        self.pages.truncate(pages);
        if let Some(oldest) = self.pages.last_mut() {
            oldest.count = count;
        }
    }
}

/// Whether an event is so much older than the last stored one that the server must have forgotten that one.
fn is_too_old(start: &TimelineStart, at: i64) -> bool {
    matches!(start, TimelineStart::After(Position::Event { at: stored, .. } | Position::Since { at: stored }) if at < stored.saturating_sub(SLACK_MS))
}
