//! What is missing of a room, read back page by page.

use matrix_sdk::{Room, deserialized_responses::TimelineEvent, room::MessagesOptions, ruma::UInt};
use rejoinder_core::Backoff;
use tokio_util::sync::CancellationToken;

use super::{
    Ending,
    rooms::{From, Position, read},
};
use crate::{
    Matrix,
    errors::{self, Failure},
};

/// How many events one page has.
const PAGE: u32 = 100;

/// How much older than what is stored an event may look, by the clocks of other servers, and still be new.
const SLACK_MS: i64 = 24 * 60 * 60 * 1000;

/// How many pages are read in search of the invitation to a room that is new to us.
const PAGES_BEFORE_JOIN: usize = 10;

impl Matrix {
    /// The events before `before` that concern us, oldest first; and the one that shows where they begin, if there
    /// is one. `since` is the token up to which all rooms are stored.
    pub(super) async fn gap(
        &self,
        room: &Room,
        from: &From,
        me: &str,
        mut before: Option<String>,
        since: Option<&str>,
        shutdown: &CancellationToken,
    ) -> Result<Vec<TimelineEvent>, Ending> {
        let mut newest_first: Vec<TimelineEvent> = Vec::new();
        let mut joined_at = None;
        let mut pages = 0;
        loop {
            let Some(page) = self.page(room, before.as_deref(), from, since, shutdown).await? else { break };
            let (is_last, end) = (page.chunk.is_empty(), page.end);
            for event in page.chunk {
                let parsed = read(&event);
                let is_begin = parsed.as_ref().is_some_and(|event| from.is_before(event, me));
                let is_too_old = parsed.as_ref().is_some_and(|event| is_too_old(from, event.origin_server_ts));
                if is_too_old {
                    newest_first.reverse();
                    return Ok(newest_first);
                }
                if joined_at.is_none() && parsed.is_some_and(|event| From::Join.is_before(&event, me)) {
                    joined_at = Some(newest_first.len());
                }
                newest_first.push(event);
                if is_begin {
                    newest_first.reverse();
                    return Ok(newest_first);
                }
            }
            pages += 1;
            let is_in_vain = *from == From::Invite && pages >= PAGES_BEFORE_JOIN;
            match end {
                Some(end) if !is_last && !is_in_vain => before = Some(end),
                _ => break,
            }
        }
        if !matches!(from, From::After(_)) {
            // There was no invitation that we may see; without a trace of how we came in, nothing is new.
            newest_first.truncate(joined_at.map_or(0, |joined_at| joined_at + 1));
        }
        newest_first.reverse();
        Ok(newest_first)
    }

    /// The last event of a room.
    pub(super) async fn end_of(&self, room: &Room, shutdown: &CancellationToken) -> Result<Option<Position>, Ending> {
        let page = self.page(room, None, &From::Join, None, shutdown).await?;
        Ok(page.and_then(|page| page.chunk.iter().find_map(Position::of)))
    }

    /// One page; `None` where the room cannot be read.
    async fn page(
        &self,
        room: &Room,
        before: Option<&str>,
        from: &From,
        since: Option<&str>,
        shutdown: &CancellationToken,
    ) -> Result<Option<matrix_sdk::room::Messages>, Ending> {
        let mut backoff = Backoff::default();
        // A new room is read to before what is stored of the others.
        let mut to = since.filter(|_| matches!(from, From::After(_)));
        loop {
            let mut options = MessagesOptions::backward().from(before);
            options.limit = UInt::from(PAGE);
            options.to = to.map(str::to_owned);
            let read = tokio::select! {
                read = room.messages(options) => read,
                () = shutdown.cancelled() => return Err(Ending),
            };
            let mut pause = backoff.pause();
            match read.map_err(|error| errors::sdk(&error)) {
                Ok(page) => return Ok(Some(page)),
                // The server may not know the token any more.
                Err(Failure::Refused(_)) if to.is_some() => to = None,
                Err(Failure::Refused(detail)) => {
                    tracing::warn!(channel = %self.channel, room = %room.room_id(), error = detail, "cannot read a room");
                    return Ok(None);
                }
                Err(Failure::Unauthorized { detail, .. }) => {
                    // The next sync says so as well, and does what follows.
                    self.pulse.fails(detail);
                    return Err(Ending);
                }
                Err(Failure::Limited { retry_after, .. }) => pause = pause.max(retry_after),
                Err(Failure::NotSent(detail) | Failure::Unknown(detail) | Failure::Duplicate(detail)) => {
                    self.pulse.fails(format!("a room cannot be read: {detail}"));
                }
            }
            if !self.pause(pause, shutdown).await {
                return Err(Ending);
            }
        }
    }
}

/// Whether an event lies so far before what is stored that the server does not know that one any more.
fn is_too_old(from: &From, at: i64) -> bool {
    matches!(from, From::After(Position::Event { at: stored, .. }) if at < stored.saturating_sub(SLACK_MS))
}
