//! The sync loop (<https://spec.matrix.org/latest/client-server-api/#syncing>).
//!
//! The SDK keeps the state of rooms and the keys, and saves its sync token before we have stored the events of the
//! response. So our own cursors count: for each room its last stored event (the cursor named by the room's id), and the
//! token up to which all rooms are stored (the cursor `sync`). If the SDK is ahead of that token, after a crash, every
//! room is read back to its cursor. So is a room whose timeline has a gap.

mod gaps;
mod lagging;
mod rooms;
mod store_events;
mod timeline;

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use matrix_sdk::{
    Room,
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

pub(crate) use self::{lagging::LaggingRooms, timeline::Position};
use self::{
    lagging::ROOMS_AT_ONCE,
    rooms::{ReadTo, SyncedEvents},
};
use crate::{
    Matrix, Session,
    errors::{self, Failure},
    run::Run,
    session,
};

/// The cursor that holds the sync token up to which all rooms are stored.
const SYNC: &str = "sync";

/// How long the sync loop waits for one room. A room that takes longer lags, and is read beside the sync.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);

/// How many events of a room one sync response contains at most.
const TIMELINE: u32 = 50;

impl Matrix {
    pub(crate) async fn receive(&self, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let session = self.open(receiver).await?;
        let run = Run { matrix: self, session: &session, receiver };
        run.load_undecrypted().await?;
        let background = async {
            tokio::join!(self.sign_device(&session.client), run.decrypt_waiting());
            receiver.shutdown.cancelled().await;
            Err(RunEnd::Shutdown)
        };
        tokio::select! {
            ended = run.sync() => ended,
            ended = run.catch_up_lagging() => ended,
            ended = background => ended,
            ended = run.until_keys_fail() => ended,
        }
    }

    /// Reports a failed sync. Returns the shortest pause before the next one; an error ends the run.
    async fn report_sync_failure(&self, failure: Failure) -> Result<Duration, ChannelError> {
        let (pause, detail) = match failure {
            Failure::Unauthorized { is_soft, detail } => return Err(self.session_ended(is_soft, detail).await),
            Failure::Limited { retry_after, detail } => (retry_after, detail),
            Failure::Refused(detail)
            | Failure::NotSent(detail)
            | Failure::Unknown(detail)
            | Failure::Duplicate(detail) => (Duration::ZERO, detail),
        };
        tracing::warn!(channel = %self.channel, error = detail, "sync failed, retrying");
        self.health.inbound_fails(format!("syncing fails: {detail}"));
        Ok(pause)
    }

    /// Handles the end of the session. If the homeserver keeps the device, the next run logs in as the same device.
    async fn session_ended(&self, is_soft: bool, detail: String) -> ChannelError {
        self.health.inbound_fails(format!("the homeserver has ended the session: {detail}"));
        let session = self.session();
        // The next run opens another one.
        self.set_session(None);
        match session {
            Some(session) if is_soft => match session::forget_token(&session.device).await {
                Ok(()) => ChannelError::Failed("the session ended, logging in again".to_owned()),
                Err(error) => ChannelError::Failed(error.to_string()),
            },
            _ => ChannelError::Unauthorized(detail),
        }
    }
}

impl Run<'_> {
    /// Waits until the keys of our device cannot be used any more, or are not those that are stored.
    async fn until_keys_fail(&self) -> Result<(), RunEnd> {
        let error = self.session.device.failure().await;
        if error.is_move() {
            // The lease is over, and so is the run as soon as that is known here.
            self.receiver.shutdown.cancelled().await;
            return Err(RunEnd::Shutdown);
        }
        self.matrix.set_session(None);
        let detail = format!("the keys of the device cannot be stored: {error}");
        self.matrix.health.inbound_fails(detail.clone());
        Err(RunEnd::Failed(ChannelError::Failed(detail)))
    }

    async fn sync(&self) -> Result<(), RunEnd> {
        self.load_lagging().await?;
        let mut stored = self.receiver.cursor(SYNC).await?;
        let mut backoff = Backoff::default();
        // The first sync returns at once, to show that syncing works.
        let mut wait = Duration::ZERO;
        let mut is_away = true;
        loop {
            let reached = self.session.sync_token().await;
            let is_first = stored.is_none();
            if reached != stored
                && let (Some(reached), false) = (reached, is_first)
            {
                tracing::info!(channel = %self.matrix.channel, "reading rooms back to their last stored events");
                self.catch_up(stored.as_deref()).await?;
                self.receiver.move_cursor(SYNC, &reached).await?;
                stored = Some(reached);
            }
            let response = match self.receiver.until_shutdown(self.session.client.sync_once(settings(wait))).await? {
                Ok(response) => response,
                Err(error) => {
                    is_away = true;
                    let least = self.matrix.report_sync_failure(errors::sdk(&error)).await?;
                    let pause = backoff.pause_unreachable().max(least);
                    wait = Duration::ZERO;
                    self.receiver.pause(pause).await?;
                    continue;
                }
            };
            backoff.reset();
            if std::mem::take(&mut is_away) {
                self.receiver.intake.report_recovered();
            }
            self.store(&response, stored.as_deref()).await?;
            stored = Some(response.next_batch);
            wait =
                self.matrix.joins.next_try(self.matrix.clock.now()).map_or(self.matrix.options.sync_timeout, |next| {
                    // Wakes up in time to retry a room that could not be joined.
                    next.clamp(Duration::from_secs(1), self.matrix.options.sync_timeout)
                });
            self.matrix.health.inbound_works(self.matrix.clock.now());
        }
    }

    /// Stores the events of a sync response, then its token.
    async fn store(&self, response: &SyncResponse, since: Option<&str>) -> Result<(), RunEnd> {
        self.matrix.accept_verifications(self.session, response, self.receiver.intake);
        let is_first = since.is_none();
        if is_first {
            self.remember_old_invites().await?;
            self.skip_old_events(response).await?;
        }
        for (room, update) in &response.rooms.joined {
            let Some(room) = self.session.client.get_room(room) else { continue };
            let timeline = &update.timeline;
            if self.matrix.lagging.defer_events(room.room_id(), &timeline.events) {
                // `catch_up_lagging` stores these events, after those that are missing before them.
                continue;
            }
            if !timeline.events.is_empty() || timeline.limited {
                let synced = SyncedEvents {
                    events: timeline.events.clone(),
                    before: timeline.prev_batch.clone(),
                    has_gap: timeline.limited,
                };
                self.store_or_lag(&room, synced, since).await?;
            }
        }
        // Even for an empty response: otherwise the next start would read rooms back.
        if since != Some(&response.next_batch) {
            self.receiver.move_cursor(SYNC, &response.next_batch).await?;
        }
        self.join_rooms(&response.rooms).await?;
        self.follow_rooms().await
    }

    /// Reads every room back to its cursor.
    async fn catch_up(&self, since: Option<&str>) -> Result<(), RunEnd> {
        let rooms = self.session.client.joined_rooms();
        let mut reading: FuturesUnordered<BoxFuture<'_, Result<(), RunEnd>>> = FuturesUnordered::new();
        for room in &rooms {
            if self.matrix.lagging.defer_events(room.room_id(), &[]) {
                continue;
            }
            if reading.len() >= ROOMS_AT_ONCE {
                reading.next().await.transpose()?;
            }
            reading.push(self.store_or_lag(room, SyncedEvents::nothing(), since).boxed());
        }
        while reading.next().await.transpose()?.is_some() {}
        Ok(())
    }

    /// Stores a room's events. If that cannot be done soon, leaves them to `catch_up_lagging`.
    async fn store_or_lag(&self, room: &Room, synced: SyncedEvents, since: Option<&str>) -> Result<(), RunEnd> {
        let events = synced.events.clone();
        let storing = self.store_room(room, synced, since).boxed();
        match tokio::time::timeout(ROOM_PATIENCE, storing).await {
            Ok(Ok(ReadTo::End | ReadTo::Refusal)) => Ok(()),
            Ok(Err(ended)) => Err(ended),
            Ok(Ok(ReadTo::Trouble)) | Err(_) => self.mark_lagging(room.room_id(), since, &events).await,
        }
    }

    /// On the first start, sets every room's cursor, so that nothing old is answered.
    async fn skip_old_events(&self, response: &SyncResponse) -> Result<(), RunEnd> {
        let (now, me) = (self.matrix.clock.now(), self.session.me());
        for room in self.session.client.joined_rooms() {
            let came = response.rooms.joined.get(room.room_id()).map(|update| &update.timeline.events[..]);
            let came = came.unwrap_or_default();
            // The sync brought no event of it, for example because the SDK had synced the room before.
            let read = if came.is_empty() {
                let reading = self.begin_of(&room);
                tokio::time::timeout(ROOM_PATIENCE, reading).await.ok().transpose()?.flatten()
            } else {
                None
            };
            let begin = match &read {
                Some(begin) => begin.clone(),
                None if came.is_empty() => Position::Since { at: now.as_millis() },
                None => Position::at_first_start(came.iter().rev(), me, now),
            };
            self.receiver.move_cursor(room.room_id().as_str(), &begin.to_text()).await?;
            if read.is_some() {
                self.store_or_lag(&room, SyncedEvents::nothing(), None).await?;
            }
        }
        Ok(())
    }
}

impl Session {
    /// The token up to which the SDK has synced.
    async fn sync_token(&self) -> Option<String> {
        let stored = self.client.state_store().get_kv_data(StateStoreDataKey::SyncToken).await;
        stored.ok().flatten().and_then(StateStoreDataValue::into_sync_token)
    }
}

/// Requests no presence, no typing notices and no read receipts.
fn settings(wait: Duration) -> SyncSettings {
    let mut filter = FilterDefinition::default();
    filter.presence.types = Some(Vec::new());
    filter.room.ephemeral = RoomEventFilter::ignore_all();
    filter.room.timeline.limit = Some(UInt::from(TIMELINE));
    filter.room.state.lazy_load_options = LazyLoadOptions::Enabled { include_redundant_members: false };
    SyncSettings::new().timeout(wait).filter(Filter::FilterDefinition(filter))
}
