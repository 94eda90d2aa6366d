//! Rooms that cannot be read to their end now. They are retried until they can be, while other rooms continue.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use matrix_sdk::ruma::{OwnedRoomId, RoomId};
use rejoinder_core::Backoff;
use rejoinder_kit::{Receiver, RunEnd};
use tokio::sync::Notify;

use super::rooms::Brought;
use crate::{Matrix, Session};

/// The cursor that stores the list, so that it survives a restart.
const LIST: &str = "late";

/// Shortest pause before rooms are retried.
const PAUSE: Duration = Duration::from_secs(2);

/// The rooms that are behind.
#[derive(Debug, Default)]
pub(crate) struct Late {
    rooms: Mutex<HashMap<OwnedRoomId, Behind>>,
    more: Notify,
}

/// How far a room is behind.
#[derive(Clone, Debug, Default)]
struct Behind {
    /// The sync token up to which the room is stored.
    since: Option<String>,
    /// How many times a sync left the room's events for later.
    left: u64,
}

impl Late {
    /// Whether the room is behind, so that its new events are left for later. Counts them if it is.
    pub(super) fn leaves(&self, room: &RoomId) -> bool {
        self.lock().get_mut(room).map(|behind| behind.left += 1).is_some()
    }

    /// Removes a room that was read to its end, unless more was left for later since. Returns whether it was removed.
    fn caught_up(&self, room: &RoomId, left: u64) -> bool {
        let mut rooms = self.lock();
        let is_end = rooms.get(room).is_some_and(|behind| behind.left == left);
        is_end && rooms.remove(room).is_some()
    }

    fn list(&self) -> String {
        let rooms = self.lock();
        let list: HashMap<_, _> = rooms.iter().map(|(room, behind)| (room, &behind.since)).collect();
        serde_json::to_string(&list).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OwnedRoomId, Behind>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Matrix {
    /// Loads the stored list.
    pub(super) async fn load_late(&self, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let stored = receiver.cursor(LIST).await?.unwrap_or_default();
        let stored: HashMap<OwnedRoomId, Option<String>> = serde_json::from_str(&stored).unwrap_or_default();
        let rooms = stored.into_iter().map(|(room, since)| (room, Behind { since, left: 0 }));
        self.late.lock().extend(rooms);
        self.late.more.notify_one();
        Ok(())
    }

    /// Adds a room that is stored up to `since` and cannot be read further now.
    pub(super) async fn fall_behind(
        &self,
        room: &RoomId,
        since: Option<&str>,
        receiver: &Receiver<'_>,
    ) -> Result<(), RunEnd> {
        tracing::warn!(channel = %self.channel, %room, "cannot read a room to its end, retrying; other rooms continue");
        let behind = Behind { since: since.map(str::to_owned), left: 0 };
        self.late.lock().entry(room.to_owned()).or_insert(behind);
        receiver.move_cursor(LIST, &self.late.list()).await?;
        self.late.more.notify_one();
        Ok(())
    }

    /// Reads rooms that are behind, until the run ends.
    pub(super) async fn catch_late_up(&self, session: &Session, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        let mut backoff = Backoff::default();
        loop {
            let rooms: Vec<_> = self.late.lock().iter().map(|(room, it)| (room.clone(), it.clone())).collect();
            if rooms.is_empty() {
                backoff.reset();
                receiver.until_shutdown(self.late.more.notified()).await?;
                continue;
            }
            for (id, behind) in rooms {
                let is_read = match session.client.get_room(&id) {
                    Some(room) => {
                        let since = behind.since.as_deref();
                        self.room(session, &room, Brought::nothing(), since, receiver).await?
                    }
                    None => true,
                };
                if is_read && self.late.caught_up(&id, behind.left) {
                    tracing::info!(channel = %self.channel, room = %id, "a room has caught up");
                    receiver.move_cursor(LIST, &self.late.list()).await?;
                }
            }
            if !self.late.lock().is_empty() {
                receiver.pause(backoff.pause().max(PAUSE)).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_read_to_its_end_when_nothing_came_meanwhile() {
        let (late, room) = (Late::default(), RoomId::parse("!a:example.org").expect("a room"));

        assert!(!late.leaves(&room), "not behind");
        late.lock().insert(room.clone(), Behind { since: Some("s1".to_owned()), left: 0 });
        assert_eq!(late.list(), r#"{"!a:example.org":"s1"}"#);
        assert!(late.leaves(&room));

        assert!(!late.caught_up(&room, 0), "more was left");
        assert!(late.caught_up(&room, 1));
        assert!(!late.leaves(&room));
    }
}
