//! Joins rooms: on invitation, and when a room is replaced by another (an upgrade).

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use matrix_sdk::{
    Client, Error, Room,
    ruma::{OwnedRoomId, OwnedServerName, RoomId},
};
use rejoinder_core::Timestamp;
use rejoinder_kit::{Receiver, RunEnd};
use tokio::sync::Semaphore;

use crate::{
    Matrix, Session,
    inbound::{self, EventContext},
    room::chat_kind,
};

/// Timeout of one attempt to join: the room may be on a slow server.
const JOIN_TIMEOUT: Duration = Duration::from_mins(1);

/// The pause after the first failed attempt. It doubles with each further one.
const MIN_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// How many rooms we try to join at the same time.
const MAX_PARALLEL: usize = 8;

/// The rooms that we try to join.
#[derive(Debug)]
pub(crate) struct RoomJoins {
    /// Limits the attempts at the same time.
    permits: Semaphore,
    state: Mutex<JoinState>,
}

#[derive(Debug, Default)]
struct JoinState {
    /// Rooms with a running attempt.
    joining: HashSet<OwnedRoomId>,
    /// How many attempts failed, and when the next one may begin.
    tried: HashMap<OwnedRoomId, (u32, Timestamp)>,
    /// Replaced rooms whose successor is settled: reported to the intake, or not believed.
    moved: HashSet<OwnedRoomId>,
    /// Invitations that are not accepted, and were logged.
    ignored: HashSet<OwnedRoomId>,
    invited: HashSet<OwnedRoomId>,
}

impl Default for RoomJoins {
    fn default() -> Self {
        Self { permits: Semaphore::new(MAX_PARALLEL), state: Mutex::default() }
    }
}

impl RoomJoins {
    /// Whether to try a room now. If so, it counts as being tried until [`failed`](Self::failed) or
    /// [`joined`](Self::joined).
    fn begin(&self, room: &RoomId, now: Timestamp) -> bool {
        let mut state = self.lock();
        state.may_try(room, now) && state.joining.insert(room.to_owned())
    }

    fn failed(&self, room: &RoomId, now: Timestamp) {
        let mut state = self.lock();
        let (times, next) = state.tried.entry(room.to_owned()).or_insert((0, now));
        *next = now + (MIN_PAUSE * 2_u32.saturating_pow((*times).min(16))).min(MAX_PAUSE);
        *times += 1;
        state.joining.remove(room);
    }

    fn joined(&self, room: &RoomId) {
        let mut state = self.lock();
        state.tried.remove(room);
        state.invited.remove(room);
        state.joining.remove(room);
    }

    /// Notes an invitation: a room that could not be joined without one is tried at once.
    fn note_invited(&self, room: &RoomId) {
        let mut state = self.lock();
        if state.invited.insert(room.to_owned()) {
            state.tried.remove(room);
        }
    }

    /// How long until a room may have to be tried again.
    pub(crate) fn next_try(&self, now: Timestamp) -> Option<Duration> {
        let state = self.lock();
        let next = state.tried.values().filter(|(_, next)| *next > now).map(|(_, next)| next.since(now)).min();
        // A running attempt may fail.
        next.into_iter().chain((!state.joining.is_empty()).then_some(MIN_PAUSE)).min()
    }

    /// Notes an invitation that is not accepted. Returns whether it is new.
    fn ignore(&self, room: &RoomId) -> bool {
        self.lock().ignored.insert(room.to_owned())
    }

    fn was_moved(&self, room: &RoomId) -> bool {
        self.lock().moved.contains(room)
    }

    fn note_moved(&self, room: &RoomId) {
        self.lock().moved.insert(room.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, JoinState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JoinState {
    fn may_try(&self, room: &RoomId, now: Timestamp) -> bool {
        self.tried.get(room).is_none_or(|(_, next)| *next <= now)
    }
}

impl Matrix {
    /// Sets the cursors of invitations older than our first start: of these rooms only events after our join are new.
    pub(crate) async fn remember_old_invites(&self, session: &Session, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        for room in session.client.invited_rooms() {
            receiver.move_cursor(room.room_id().as_str(), "joined").await?;
        }
        Ok(())
    }

    /// Accepts the invitations that the configuration allows.
    pub(crate) async fn join_rooms(&self, session: &Session) {
        let invited = session.client.invited_rooms();
        if invited.is_empty() {
            return;
        }
        // The successor of a joined room needs no permission of its own.
        let successors: HashSet<OwnedRoomId> = session
            .client
            .joined_rooms()
            .iter()
            .filter_map(|room| room.successor_room())
            .map(|next| next.room_id)
            .collect();
        for room in invited {
            let host = room.invite_details().await.ok().map(|invite| invite.inviter_id);
            let may_join = host.as_ref().is_some_and(|host| self.options.accepts_invite_of(host.as_str()));
            if !may_join && !successors.contains(room.room_id()) {
                if self.joins.ignore(room.room_id()) {
                    let host = host.map(|host| host.to_string());
                    tracing::info!(channel = %self.channel, room = %room.room_id(), inviter = host, "invitation not accepted");
                }
                continue;
            }
            self.joins.note_invited(room.room_id());
            let id = room.room_id().to_owned();
            self.join_in_background(id, async move { room.join().await });
        }
    }

    /// Joins the successors of replaced rooms, and reports the move to the intake once we are in.
    pub(crate) async fn follow_rooms(&self, session: &Session, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        for room in session.client.joined_rooms() {
            let Some(next) = room.successor_room().map(|next| next.room_id) else { continue };
            if self.joins.was_moved(room.room_id()) {
                continue;
            }
            if !session.client.get_room(&next).is_some_and(|next| is_joined(&next)) {
                self.join_successor(session, room, next);
                continue;
            }
            if successor(&session.client, &room).is_none() {
                // Anybody who may close a room can name any successor, so the successor must name the room too.
                tracing::warn!(channel = %self.channel, from = %room.room_id(), to = %next, "ignored a successor that does not name the room as its predecessor");
                self.joins.note_moved(room.room_id());
                continue;
            }
            let context = EventContext {
                channel: &self.channel,
                me: session.me(),
                names: &[],
                room: room.room_id().as_str(),
                chat: chat_kind(&room),
                sender_name: None,
                related: None,
                open_question: None,
                now: self.clock.now(),
                raw: "",
            };
            let moved = inbound::moved(room.room_id().as_str(), next.as_str(), &context);
            receiver.accept(&[moved], None).await?;
            tracing::info!(channel = %self.channel, from = %room.room_id(), to = %next, "a room was replaced by another one");
            self.joins.note_moved(room.room_id());
        }
        Ok(())
    }

    /// Tries to join `next`, the successor of `room`.
    fn join_successor(&self, session: &Session, room: Room, next: OwnedRoomId) {
        let client = session.client.clone();
        let id = next.clone();
        self.join_in_background(id, async move {
            let mut servers: Vec<OwnedServerName> = room.route().await.unwrap_or_default();
            servers.extend(next.server_name().map(ToOwned::to_owned));
            client.join_room_by_id_or_alias((&*next).into(), &servers).await.map(|_| ())
        });
    }

    /// Joins a room in the background: the room may be on a slow server, and the other rooms must not wait.
    fn join_in_background(&self, room: OwnedRoomId, joining: impl Future<Output = Result<(), Error>> + Send + 'static) {
        if !self.joins.begin(&room, self.clock.now()) {
            return;
        }
        let (joins, clock, channel) = (Arc::clone(&self.joins), Arc::clone(&self.clock), self.channel.clone());
        self.tasks.spawn(async move {
            let _turn = joins.permits.acquire().await;
            match tokio::time::timeout(JOIN_TIMEOUT, joining).await {
                Ok(Ok(())) => {
                    tracing::info!(%channel, %room, "joined a room");
                    joins.joined(&room);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%channel, %room, %error, "cannot join a room");
                    joins.failed(&room, clock.now());
                }
                Err(_) => {
                    tracing::warn!(%channel, %room, "cannot join a room: timed out");
                    joins.failed(&room, clock.now());
                }
            }
        });
    }
}

/// The successor of a room, if it names the room as its predecessor and the SDK knows it.
pub(crate) fn successor(client: &Client, room: &Room) -> Option<Room> {
    let next = client.get_room(&room.successor_room()?.room_id)?;
    let is_meant = next.predecessor_room().is_some_and(|before| before.room_id == room.room_id());
    is_meant.then_some(next)
}

pub(crate) fn is_joined(room: &Room) -> bool {
    room.state() == matrix_sdk::RoomState::Joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_room_that_is_closed_is_tried_again_and_at_once_when_we_are_invited() {
        let (joins, room) = (RoomJoins::default(), RoomId::parse("!a:example.org").expect("a room"));

        assert!(joins.begin(&room, at(0)) && !joins.begin(&room, at(0)), "an attempt is running");
        joins.failed(&room, at(0));
        assert!(!joins.lock().may_try(&room, at(4)) && joins.lock().may_try(&room, at(5)));
        assert_eq!(joins.next_try(at(2)), Some(Duration::from_secs(3)));
        assert_eq!(joins.next_try(at(9)), None, "no longer tried: the invitation is gone");
        joins.note_invited(&room);
        assert!(joins.lock().may_try(&room, at(1)));
        joins.failed(&room, at(1));
        joins.note_invited(&room);
        assert!(!joins.lock().may_try(&room, at(2)), "the same invitation");
        joins.joined(&room);
        assert_eq!(joins.next_try(at(2)), None);
    }
}
                related_name: None,
