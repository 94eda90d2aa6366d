//! Rooms that cannot be read to their end now. They are retried until they can be, while other rooms continue.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use matrix_sdk::{
    deserialized_responses::TimelineEvent,
    ruma::{OwnedRoomId, RoomId},
};
use parking_lot::Mutex;
use rejoinder_core::Backoff;
use rejoinder_kit::RunEnd;
use tokio::sync::{Notify, Semaphore};

use super::rooms::{ReadTo, SyncedEvents};
use crate::run::Run;

/// The cursor that stores the list, so that it survives a restart.
const LIST: &str = "late";

/// Shortest pause before a room is retried.
const PAUSE: Duration = Duration::from_secs(2);

/// How long reading one room may take. What was stored until then is kept.
const TIMEOUT: Duration = Duration::from_mins(10);

pub(super) const ROOMS_AT_ONCE: usize = 16;

/// How many events are kept of all rooms, for a homeserver that does not let us read them back.
const MAX_EVENTS: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct LaggingRooms {
    rooms: Mutex<HashMap<OwnedRoomId, Lag>>,
    more: Notify,
}

/// How far a room is behind.
#[derive(Clone, Debug, Default)]
struct Lag {
    /// The sync token up to which the room is stored.
    since: Option<String>,
    /// How many times a sync left the room's events for later.
    deferred: u64,
    /// These events, as far as they are kept.
    events: Vec<TimelineEvent>,
    /// Whether reading it beside the sync has failed.
    has_failed: bool,
}

impl LaggingRooms {
    /// Whether the room is behind, so that its new events are left for later. Keeps them if it is.
    pub(super) fn defer_events(&self, room: &RoomId, events: &[TimelineEvent]) -> bool {
        let mut rooms = self.rooms.lock();
        let kept: usize = rooms.values().map(|lag| lag.events.len()).sum();
        let Some(lag) = rooms.get_mut(room) else { return false };
        lag.deferred += 1;
        lag.events.extend(events.iter().take(MAX_EVENTS.saturating_sub(kept)).cloned());
        true
    }

    /// Removes a room that was read to its end, unless more was left for later since. Returns whether it was removed.
    fn remove_if_caught_up(&self, room: &RoomId, deferred: u64) -> bool {
        let mut rooms = self.rooms.lock();
        let is_end = rooms.get(room).is_some_and(|lag| lag.deferred == deferred);
        is_end && rooms.remove(room).is_some()
    }

    fn get(&self, room: &RoomId) -> Option<Lag> {
        self.rooms.lock().get(room).cloned()
    }

    fn note_failed(&self, room: &RoomId) {
        if let Some(lag) = self.rooms.lock().get_mut(room) {
            lag.has_failed = true;
        }
    }

    fn failed(&self) -> Vec<String> {
        let rooms = self.rooms.lock();
        let mut failed: Vec<_> =
            rooms.iter().filter(|(_, lag)| lag.has_failed).map(|(room, _)| room.to_string()).collect();
        failed.sort_unstable();
        failed
    }

    fn list(&self) -> String {
        let rooms = self.rooms.lock();
        let list: HashMap<_, _> = rooms.iter().map(|(room, lag)| (room, &lag.since)).collect();
        serde_json::to_string(&list).unwrap_or_default()
    }
}

impl Run<'_> {
    pub(super) async fn load_lagging(&self) -> Result<(), RunEnd> {
        let stored = self.receiver.cursor(LIST).await?.unwrap_or_default();
        let stored: HashMap<OwnedRoomId, Option<String>> = serde_json::from_str(&stored).unwrap_or_default();
        let rooms = stored.into_iter().map(|(room, since)| (room, Lag { since, ..Lag::default() }));
        // Another node may have read others to their end.
        *self.matrix.lagging.rooms.lock() = rooms.collect();
        self.matrix.lagging.more.notify_one();
        Ok(())
    }

    /// Adds a room that is stored up to `since` and cannot be read further now. `events` are those of the latest sync.
    pub(super) async fn mark_lagging(
        &self,
        room: &RoomId,
        since: Option<&str>,
        events: &[TimelineEvent],
    ) -> Result<(), RunEnd> {
        tracing::warn!(channel = %self.matrix.channel, %room, "cannot read a room to its end, retrying; other rooms continue");
        let lag = Lag { since: since.map(str::to_owned), ..Lag::default() };
        self.matrix.lagging.rooms.lock().entry(room.to_owned()).or_insert(lag);
        self.matrix.lagging.defer_events(room, events);
        self.receiver.move_cursor(LIST, &self.matrix.lagging.list()).await?;
        self.matrix.lagging.more.notify_one();
        Ok(())
    }

    /// Reads rooms that are behind, each by itself, until the run ends.
    pub(super) async fn catch_up_lagging(&self) -> Result<(), RunEnd> {
        let permits = &Semaphore::new(ROOMS_AT_ONCE);
        let mut reading: FuturesUnordered<BoxFuture<'_, Result<OwnedRoomId, RunEnd>>> = FuturesUnordered::new();
        let mut begun = HashSet::new();
        loop {
            let rooms: Vec<_> = self.matrix.lagging.rooms.lock().keys().cloned().collect();
            for room in rooms {
                if begun.insert(room.clone()) {
                    let catching_up = async move {
                        self.catch_up_room(&room, permits).await?;
                        Ok(room)
                    };
                    reading.push(catching_up.boxed());
                }
            }
            tokio::select! {
                Some(room) = reading.next() => {
                    begun.remove(&room?);
                }
                more = self.receiver.until_shutdown(self.matrix.lagging.more.notified()) => more?,
            }
        }
    }

    /// Reads a room that is behind, until it has caught up.
    async fn catch_up_room(&self, id: &RoomId, permits: &Semaphore) -> Result<(), RunEnd> {
        let mut backoff = Backoff::default();
        while let Some(lag) = self.matrix.lagging.get(id) {
            let permit = self.receiver.until_shutdown(permits.acquire()).await?;
            let storing = async {
                let Some(room) = self.session.client.get_room(id) else { return Ok::<_, RunEnd>(ReadTo::End) };
                let (since, nothing) = (lag.since.as_deref(), SyncedEvents::nothing());
                let read_to = self.store_room(&room, nothing, since).await?;
                if read_to == ReadTo::Refusal {
                    self.store_deferred(&room, lag.events).await?;
                }
                Ok(read_to)
            };
            let read_to = tokio::time::timeout(TIMEOUT, storing.boxed()).await.unwrap_or(Ok(ReadTo::Trouble))?;
            drop(permit);
            if read_to == ReadTo::Trouble {
                self.matrix.lagging.note_failed(id);
            } else if self.matrix.lagging.remove_if_caught_up(id, lag.deferred) {
                tracing::info!(channel = %self.matrix.channel, room = %id, "a room has caught up");
                self.receiver.move_cursor(LIST, &self.matrix.lagging.list()).await?;
            }
            self.matrix.health.set_unread(&self.matrix.lagging.failed());
            if self.matrix.lagging.get(id).is_some() {
                self.receiver.pause(backoff.pause().max(PAUSE)).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_read_to_its_end_when_nothing_came_meanwhile() {
        let (lagging, room) = (LaggingRooms::default(), RoomId::parse("!a:example.org").expect("a room"));

        assert!(!lagging.defer_events(&room, &[]), "not behind");
        lagging.rooms.lock().insert(room.clone(), Lag { since: Some("s1".to_owned()), ..Lag::default() });
        assert_eq!(lagging.list(), r#"{"!a:example.org":"s1"}"#);
        assert!(lagging.defer_events(&room, &[]));

        assert!(!lagging.remove_if_caught_up(&room, 0), "more was left");
        assert!(lagging.remove_if_caught_up(&room, 1));
        assert!(!lagging.defer_events(&room, &[]));
    }
}
