//! The sync loop (<https://spec.matrix.org/latest/client-server-api/#syncing>).
//!
//! The SDK keeps the state of rooms and keys, and saves its own sync token before anything is done with what
//! came. So what counts is ours: for each room the last event that is stored (the cursor of the room's name),
//! and the token up to which that holds for all rooms (the cursor `sync`). Where the SDK is ahead of it, after
//! a crash, every room is read back to its cursor; and so is a room whose timeline has a gap.

mod gaps;
mod late;
mod rooms;
mod take_in;
mod timeline;

use std::time::Duration;

use matrix_sdk::{
    Error,
    config::SyncSettings,
    ruma::{
        UInt,
        api::client::{
            filter::{FilterDefinition, LazyLoadOptions, RoomEventFilter},
            sync::sync_events::v3::Filter,
        },
    },
    store::{StateStoreDataKey, StateStoreDataValue},
    sync::SyncResponse,
};
use rejoinder_core::{Backoff, ChannelError};
use rejoinder_kit::{Receiver, RunEnd};

use crate::{
    Matrix, Session,
    errors::{self, Failure},
    session,
};

/// The cursor of the token up to which everything is stored.
const SYNC: &str = "sync";

/// How many events of a room come with one sync.
const TIMELINE: u32 = 50;

pub(crate) use self::late::Late;

impl Matrix {
    /// Takes events in until the run ends.
    pub(crate) async fn receive(&self, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let session = &self.open(receiver).await?;
        self.load_locked(receiver).await?;
        let besides = async {
            tokio::join!(self.be_trusted(&session.client), self.unlock(session, receiver));
            receiver.shutdown.cancelled().await;
            Err(RunEnd::Shutdown)
        };
        tokio::select! {
            ended = self.sync(session, receiver) => ended,
            ended = self.catch_late_up(session, receiver) => ended,
            ended = besides => ended,
        }
    }

    async fn sync(&self, session: &Session, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        self.load_late(receiver).await?;
        let mut stored = receiver.cursor(SYNC).await?;
        let mut backoff = Backoff::default();
        // The first sync comes back at once: it shows that syncing works.
        let mut wait = Duration::ZERO;
        let mut is_away = true;
        loop {
            let reached = session.sync_token().await;
            let is_first = stored.is_none();
            if reached != stored
                && let (Some(reached), false) = (reached, is_first)
            {
                tracing::info!(channel = %self.channel, "reading rooms back to what is stored");
                self.catch_up(session, stored.as_deref(), receiver).await?;
                receiver.move_cursor(SYNC, &reached).await?;
                stored = Some(reached);
            }
            let response = match receiver.until_shutdown(session.client.sync_once(settings(wait))).await? {
                Ok(response) => response,
                Err(error) => {
                    is_away = true;
                    let pause = backoff.pause_unreachable().max(self.judge_sync(&error)?);
                    wait = Duration::ZERO;
                    receiver.pause(pause).await?;
                    continue;
                }
            };
            backoff.reset();
            if std::mem::take(&mut is_away) {
                receiver.intake.is_back();
            }
            self.store(session, &response, stored.as_deref(), receiver).await?;
            stored = Some(response.next_batch);
            wait = self.doors.next_try(self.clock.now()).map_or(self.options.sync_timeout, |next| {
                // A room that could not be joined is tried again then.
                next.clamp(Duration::from_secs(1), self.options.sync_timeout)
            });
            self.health.inbound_works(self.clock.now());
        }
    }

    /// Stores what a sync brought, and then that it is stored.
    async fn store(
        &self,
        session: &Session,
        response: &SyncResponse,
        since: Option<&str>,
        receiver: &Receiver<'_>,
    ) -> Result<(), RunEnd> {
        self.take_up_verifications(session, response);
        let is_first = since.is_none();
        if is_first {
            self.remember_old_invites(session, receiver).await?;
            self.begin_at_the_end(session, response, receiver).await?;
        }
        for (room, update) in response.rooms.joined.iter().filter(|_| !is_first) {
            let Some(room) = session.client.get_room(room) else { continue };
            let timeline = &update.timeline;
            if self.late.leaves(room.room_id()) {
                // What came is read with what is missing before it.
                continue;
            }
            if !timeline.events.is_empty() || timeline.limited {
                let brought = rooms::Brought {
                    events: timeline.events.clone(),
                    before: timeline.prev_batch.clone(),
                    has_gap: timeline.limited,
                };
                if !self.room(session, &room, brought, since, receiver).await? {
                    self.fall_behind(room.room_id(), since, receiver).await?;
                }
            }
        }
        // Also when nothing came: at the next start there is nothing to read back then.
        if since != Some(&response.next_batch) {
            receiver.move_cursor(SYNC, &response.next_batch).await?;
        }
        self.join_rooms(session).await;
        self.follow_rooms(session, receiver).await
    }

    /// Reads every room back to what is stored.
    async fn catch_up(&self, session: &Session, since: Option<&str>, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        for room in session.client.joined_rooms() {
            if self.late.leaves(room.room_id()) {
                continue;
            }
            if !self.room(session, &room, rooms::Brought::nothing(), since, receiver).await? {
                self.fall_behind(room.room_id(), since, receiver).await?;
            }
        }
        Ok(())
    }

    /// At the first start nothing old is answered: every room begins after what is there.
    async fn begin_at_the_end(
        &self,
        session: &Session,
        response: &SyncResponse,
        receiver: &Receiver<'_>,
    ) -> Result<(), RunEnd> {
        for room in session.client.joined_rooms() {
            let came = response.rooms.joined.get(room.room_id()).map(|update| &update.timeline.events[..]);
            let last = match came
                .unwrap_or_default()
                .iter()
                .rev()
                .find_map(|event| timeline::Position::of(event, self.clock.now()))
            {
                Some(last) => Some(last),
                // The SDK has seen the room before, and we have not.
                None => self.end_of(&room, receiver).await?,
            };
            let position = last.unwrap_or(timeline::Position::Joined).to_text();
            receiver.move_cursor(room.room_id().as_str(), &position).await?;
        }
        Ok(())
    }

    /// How long to leave the homeserver alone at least after a sync that failed.
    fn judge_sync(&self, error: &Error) -> Result<Duration, ChannelError> {
        let (pause, detail) = match errors::sdk(error) {
            Failure::Unauthorized { is_soft, detail } => return Err(self.session_ended(is_soft, detail)),
            Failure::Limited { retry_after, detail } => (retry_after, detail),
            Failure::Refused(detail)
            | Failure::NotSent(detail)
            | Failure::Unknown(detail)
            | Failure::Duplicate(detail) => (Duration::ZERO, detail),
        };
        tracing::warn!(channel = %self.channel, error = detail, "a sync failed, trying again");
        self.health.inbound_fails(format!("syncing fails: {detail}"));
        Ok(pause)
    }

    /// The homeserver has ended the session. Where it keeps the device, the next one logs in as the same.
    fn session_ended(&self, is_soft: bool, detail: String) -> ChannelError {
        self.health.inbound_fails(format!("the homeserver has ended the session: {detail}"));
        self.close();
        if !is_soft {
            return ChannelError::Unauthorized(detail);
        }
        match session::forget_token(&self.folder) {
            Ok(()) => ChannelError::Failed("the session has ended, logging in again".to_owned()),
            Err(error) => ChannelError::Failed(error.to_string()),
        }
    }
}

impl Session {
    /// How far the SDK has synced.
    async fn sync_token(&self) -> Option<String> {
        let stored = self.client.state_store().get_kv_data(StateStoreDataKey::SyncToken).await;
        stored.ok().flatten().and_then(StateStoreDataValue::into_sync_token)
    }
}

/// What is asked for: no presence, and nothing of who has read what.
fn settings(wait: Duration) -> SyncSettings {
    let mut filter = FilterDefinition::default();
    filter.presence.types = Some(Vec::new());
    filter.room.ephemeral = RoomEventFilter::ignore_all();
    filter.room.timeline.limit = Some(UInt::from(TIMELINE));
    filter.room.state.lazy_load_options = LazyLoadOptions::Enabled { include_redundant_members: false };
    SyncSettings::new().timeout(wait).filter(Filter::FilterDefinition(filter))
}
