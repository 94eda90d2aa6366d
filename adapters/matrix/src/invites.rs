//! Coming into rooms: invitations, and rooms that go on as others.

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
    inbound::{self, Around},
    room::chat_kind,
};

/// How long one attempt to come in may take: the room may be on a server far away.
const JOIN: Duration = Duration::from_mins(1);

/// How long to wait after the first attempt that failed; then twice as long, and so on.
const PAUSE: Duration = Duration::from_secs(5);

/// The longest pause.
const LONGEST: Duration = Duration::from_hours(1);

/// Into how many rooms we try to come at once.
const AT_ONCE: usize = 8;

/// Rooms that we try to come into, and what became of it.
#[derive(Debug)]
pub(crate) struct Doors {
    /// Who may try now.
    turnstile: Semaphore,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    entering: HashSet<OwnedRoomId>,
    tried: HashMap<OwnedRoomId, (u32, Timestamp)>,
    moved: HashSet<OwnedRoomId>,
    ignored: HashSet<OwnedRoomId>,
    invited: HashSet<OwnedRoomId>,
}

impl Default for Doors {
    fn default() -> Self {
        Self { turnstile: Semaphore::new(AT_ONCE), known: Mutex::default() }
    }
}

impl Doors {
    /// Whether a room is to be tried now. It then is being tried, until it is said what became of it.
    fn begin(&self, room: &RoomId, now: Timestamp) -> bool {
        let mut known = self.lock();
        known.may_try(room, now) && known.entering.insert(room.to_owned())
    }

    fn failed(&self, room: &RoomId, now: Timestamp) {
        let mut known = self.lock();
        let (times, next) = known.tried.entry(room.to_owned()).or_insert((0, now));
        *next = now + (PAUSE * 2_u32.saturating_pow((*times).min(16))).min(LONGEST);
        *times += 1;
        known.entering.remove(room);
    }

    fn is_in(&self, room: &RoomId) {
        let mut known = self.lock();
        known.tried.remove(room);
        known.invited.remove(room);
        known.entering.remove(room);
    }

    /// We are invited: what failed without an invitation is tried at once.
    fn note_invited(&self, room: &RoomId) {
        let mut known = self.lock();
        if known.invited.insert(room.to_owned()) {
            known.tried.remove(room);
        }
    }

    /// How long until a room is tried again, if one may be.
    pub(crate) fn next_try(&self, now: Timestamp) -> Option<Duration> {
        let known = self.lock();
        let next = known.tried.values().filter(|(_, next)| *next > now).map(|(_, next)| next.since(now)).min();
        // What is being tried may fail.
        next.into_iter().chain((!known.entering.is_empty()).then_some(PAUSE)).min()
    }

    /// Whether this is the first time that an invitation is left as it is.
    fn ignore(&self, room: &RoomId) -> bool {
        self.lock().ignored.insert(room.to_owned())
    }

    fn was_moved(&self, room: &RoomId) -> bool {
        self.lock().moved.contains(room)
    }

    fn note_moved(&self, room: &RoomId) {
        self.lock().moved.insert(room.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn may_try(&self, room: &RoomId, now: Timestamp) -> bool {
        self.tried.get(room).is_none_or(|(_, next)| *next <= now)
    }
}

impl Matrix {
    /// Of rooms that we were invited to before our first start, only what comes after we joined is new.
    pub(crate) async fn remember_old_invites(&self, session: &Session, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        for room in session.client.invited_rooms() {
            receiver.move_cursor(room.room_id().as_str(), "joined").await?;
        }
        Ok(())
    }

    /// Accepts the invitations that the operator lets us accept.
    pub(crate) async fn join_rooms(&self, session: &Session) {
        let invited = session.client.invited_rooms();
        if invited.is_empty() {
            return;
        }
        // A room that takes the place of one of ours was invited to before.
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
                if self.doors.ignore(room.room_id()) {
                    let host = host.map(|host| host.to_string());
                    tracing::info!(channel = %self.channel, room = %room.room_id(), inviter = host, "an invitation is left as it is");
                }
                continue;
            }
            self.doors.note_invited(room.room_id());
            let id = room.room_id().to_owned();
            self.enter(id, async move { room.join().await });
        }
    }

    /// Goes on in the rooms that took the place of ours.
    pub(crate) async fn follow_rooms(&self, session: &Session, receiver: &Receiver<'_>) -> Result<(), RunEnd> {
        for room in session.client.joined_rooms() {
            let Some(next) = room.successor_room().map(|next| next.room_id) else { continue };
            if self.doors.was_moved(room.room_id()) {
                continue;
            }
            if !session.client.get_room(&next).is_some_and(|next| is_joined(&next)) {
                self.enter_successor(session, room, next);
                continue;
            }
            if successor(&session.client, &room).is_none() {
                // Whoever closes a room could name any other one; that one would have to name it as well.
                tracing::warn!(channel = %self.channel, from = %room.room_id(), to = %next, "a room says that it goes on as another one, which does not say so");
                self.doors.note_moved(room.room_id());
                continue;
            }
            let around = Around {
                channel: &self.channel,
                me: session.me(),
                names: &[],
                room: room.room_id().as_str(),
                chat: chat_kind(&room),
                sender_name: None,
                related: None,
                asked: None,
                now: self.clock.now(),
                raw: "",
            };
            let moved = inbound::moved(room.room_id().as_str(), next.as_str(), &around);
            receiver.accept(&[moved], None).await?;
            tracing::info!(channel = %self.channel, from = %room.room_id(), to = %next, "a room goes on as another one");
            self.doors.note_moved(room.room_id());
        }
        Ok(())
    }

    /// Comes into the room that takes the place of `room`, where its rules let us.
    fn enter_successor(&self, session: &Session, room: Room, next: OwnedRoomId) {
        let client = session.client.clone();
        let id = next.clone();
        self.enter(id, async move {
            let mut servers: Vec<OwnedServerName> = room.route().await.unwrap_or_default();
            servers.extend(next.server_name().map(ToOwned::to_owned));
            client.join_room_by_id_or_alias((&*next).into(), &servers).await.map(|_| ())
        });
    }

    /// Comes into a room, while what is said in the others is taken in: the room may be on a server that takes its
    /// time.
    fn enter(&self, room: OwnedRoomId, joining: impl Future<Output = Result<(), Error>> + Send + 'static) {
        if !self.doors.begin(&room, self.clock.now()) {
            return;
        }
        let (doors, clock, channel) = (Arc::clone(&self.doors), Arc::clone(&self.clock), self.channel.clone());
        self.tasks.spawn(async move {
            let _turn = doors.turnstile.acquire().await;
            match tokio::time::timeout(JOIN, joining).await {
                Ok(Ok(())) => {
                    tracing::info!(%channel, %room, "joined a room");
                    doors.is_in(&room);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%channel, %room, %error, "a room cannot be joined");
                    doors.failed(&room, clock.now());
                }
                Err(_) => {
                    tracing::warn!(%channel, %room, "a room cannot be joined: it does not answer");
                    doors.failed(&room, clock.now());
                }
            }
        });
    }
}

/// The room that takes the place of another one, when both say so and we have heard of it.
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
        let (doors, room) = (Doors::default(), RoomId::parse("!a:example.org").expect("a room"));

        assert!(doors.begin(&room, at(0)) && !doors.begin(&room, at(0)), "it is being tried");
        doors.failed(&room, at(0));
        assert!(!doors.lock().may_try(&room, at(4)) && doors.lock().may_try(&room, at(5)));
        assert_eq!(doors.next_try(at(2)), Some(Duration::from_secs(3)));
        assert_eq!(doors.next_try(at(9)), None, "it was not tried again when it could be: it is gone");
        doors.note_invited(&room);
        assert!(doors.lock().may_try(&room, at(1)));
        doors.failed(&room, at(1));
        doors.note_invited(&room);
        assert!(!doors.lock().may_try(&room, at(2)), "it is the same invitation");
        doors.is_in(&room);
        assert_eq!(doors.next_try(at(2)), None);
    }
}
