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
use rejoinder_core::{Backoff, ChannelError, Intake};
use tokio_util::sync::CancellationToken;

use crate::{
    Matrix, Session,
    errors::{self, Failure},
    session,
};

/// The cursor of the token up to which everything is stored.
const SYNC: &str = "sync";

/// How many events of a room come with one sync.
const TIMELINE: u32 = 50;

/// Why nothing more is taken in.
pub(crate) enum Ending {
    /// The gateway is shutting down.
    Shutdown,
    /// The session is over.
    Session(ChannelError),
}

impl Ending {
    fn into_result(self) -> Result<(), ChannelError> {
        match self {
            Self::Shutdown => Ok(()),
            Self::Session(error) => Err(error),
        }
    }
}

pub(crate) use self::{late::Late, rooms::read, take_in::chat_kind};

impl Matrix {
    /// Takes events in until `shutdown`.
    pub(crate) async fn sync(
        &self,
        session: &Session,
        intake: &Intake,
        shutdown: &CancellationToken,
    ) -> Result<(), ChannelError> {
        let ended = tokio::select! {
            ended = self.take_events_in(session, intake, shutdown) => ended,
            ended = self.catch_late_up(session, intake, shutdown) => ended,
        };
        ended.or_else(Ending::into_result)
    }

    async fn take_events_in(
        &self,
        session: &Session,
        intake: &Intake,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        self.load_late(intake, shutdown).await?;
        let mut stored = self.cursor(intake, SYNC, shutdown).await?;
        let mut backoff = Backoff::default();
        // The first sync comes back at once: it shows that syncing works.
        let mut wait = Duration::ZERO;
        let mut is_away = true;
        while !shutdown.is_cancelled() {
            let reached = session.sync_token().await;
            let is_first = stored.is_none();
            if reached != stored
                && let (Some(reached), false) = (reached, is_first)
            {
                tracing::info!(channel = %self.channel, "reading rooms back to what is stored");
                self.catch_up(session, intake, stored.as_deref(), shutdown).await?;
                self.move_cursor(intake, SYNC, reached.clone(), shutdown).await?;
                stored = Some(reached);
            }
            let synced = tokio::select! {
                synced = session.client.sync_once(settings(wait)) => synced,
                () = shutdown.cancelled() => return Ok(()),
            };
            let response = match synced {
                Ok(response) => response,
                Err(error) => {
                    is_away = true;
                    let pause = backoff.pause_unreachable().max(self.judge_sync(&error).map_err(Ending::Session)?);
                    wait = Duration::ZERO;
                    if !self.pause(pause, shutdown).await {
                        return Ok(());
                    }
                    continue;
                }
            };
            backoff.reset();
            if std::mem::take(&mut is_away) {
                intake.is_back();
            }
            self.store(session, intake, &response, stored.as_deref(), shutdown).await?;
            stored = Some(response.next_batch);
            wait = self.doors.next_try(self.clock.now()).map_or(self.options.sync_timeout, |next| {
                // A room that could not be joined is tried again then.
                next.clamp(Duration::from_secs(1), self.options.sync_timeout)
            });
            self.pulse.beats(self.clock.now());
        }
        Ok(())
    }

    /// Stores what a sync brought, and then that it is stored.
    async fn store(
        &self,
        session: &Session,
        intake: &Intake,
        response: &SyncResponse,
        since: Option<&str>,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        self.take_up_verifications(session, response);
        let is_first = since.is_none();
        if is_first {
            self.remember_old_invites(session, intake, shutdown).await?;
            self.begin_at_the_end(session, intake, response, shutdown).await?;
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
                if !self.room(session, intake, &room, brought, since, shutdown).await? {
                    self.fall_behind(intake, room.room_id(), since, shutdown).await?;
                }
            }
        }
        // Also when nothing came: at the next start there is nothing to read back then.
        if since != Some(&response.next_batch) {
            self.move_cursor(intake, SYNC, response.next_batch.clone(), shutdown).await?;
        }
        self.join_rooms(session).await;
        self.follow_rooms(session, intake, shutdown).await
    }

    /// Reads every room back to what is stored.
    async fn catch_up(
        &self,
        session: &Session,
        intake: &Intake,
        since: Option<&str>,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        for room in session.client.joined_rooms() {
            if self.late.leaves(room.room_id()) {
                continue;
            }
            if !self.room(session, intake, &room, rooms::Brought::nothing(), since, shutdown).await? {
                self.fall_behind(intake, room.room_id(), since, shutdown).await?;
            }
        }
        Ok(())
    }

    /// At the first start nothing old is answered: every room begins after what is there.
    async fn begin_at_the_end(
        &self,
        session: &Session,
        intake: &Intake,
        response: &SyncResponse,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        for room in session.client.joined_rooms() {
            let came = response.rooms.joined.get(room.room_id()).map(|update| &update.timeline.events[..]);
            let last = match came
                .unwrap_or_default()
                .iter()
                .rev()
                .find_map(|event| rooms::Position::of(event, self.clock.now()))
            {
                Some(last) => Some(last),
                // The SDK has seen the room before, and we have not.
                None => self.end_of(&room, shutdown).await?,
            };
            let position = last.unwrap_or(rooms::Position::Joined).to_text();
            self.move_cursor(intake, room.room_id().as_str(), position, shutdown).await?;
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
        self.pulse.fails(format!("syncing fails: {detail}"));
        Ok(pause)
    }

    /// The homeserver has ended the session. Where it keeps the device, the next one logs in as the same.
    fn session_ended(&self, is_soft: bool, detail: String) -> ChannelError {
        self.pulse.fails(format!("the homeserver has ended the session: {detail}"));
        self.close();
        if !is_soft {
            return ChannelError::Unauthorized(detail);
        }
        match session::forget_token(&self.folder) {
            Ok(()) => ChannelError::Failed("the session has ended, logging in again".to_owned()),
            Err(error) => ChannelError::Failed(error.to_string()),
        }
    }

    /// Where a cursor stands, for as long as it takes to read it.
    pub(crate) async fn cursor(
        &self,
        intake: &Intake,
        name: &str,
        shutdown: &CancellationToken,
    ) -> Result<Option<String>, Ending> {
        let mut backoff = Backoff::default();
        loop {
            match intake.cursor(name).await {
                Ok(position) => return Ok(position),
                Err(error) => self.pulse.fails(format!("a cursor cannot be read: {error}")),
            }
            if !self.pause(backoff.pause(), shutdown).await {
                return Err(Ending::Shutdown);
            }
        }
    }

    /// Moves a cursor alone.
    pub(crate) async fn move_cursor(
        &self,
        intake: &Intake,
        name: &str,
        position: String,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        self.accept(intake, Vec::new(), Some((name, position)), shutdown).await.map(|_| ())
    }

    /// Waits; whether to go on.
    pub(crate) async fn pause(&self, pause: Duration, shutdown: &CancellationToken) -> bool {
        tokio::select! {
            () = self.clock.sleep(pause) => true,
            () = shutdown.cancelled() => false,
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
