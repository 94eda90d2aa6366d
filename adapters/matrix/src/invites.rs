//! Coming into rooms: invitations, and rooms that go on as others.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use matrix_sdk::{
    Room,
    ruma::{OwnedRoomId, OwnedServerName, RoomId},
};
use rejoinder_core::{Intake, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::{
    Matrix, Session,
    inbound::{self, Around},
    sync::{Ending, chat_kind},
};

/// How long one attempt to come in may take: the room may be on a server far away.
const JOIN: Duration = Duration::from_mins(1);

/// How long to wait after the first attempt that failed; then twice as long, and so on.
const PAUSE: Duration = Duration::from_secs(5);

/// The longest pause.
const LONGEST: Duration = Duration::from_hours(1);

/// Rooms that we try to come into, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    tried: Mutex<HashMap<OwnedRoomId, (u32, Timestamp)>>,
    moved: Mutex<HashSet<OwnedRoomId>>,
    ignored: Mutex<HashSet<OwnedRoomId>>,
    invited: Mutex<HashSet<OwnedRoomId>>,
}

impl Doors {
    fn may_try(&self, room: &RoomId, now: Timestamp) -> bool {
        let tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        tried.get(room).is_none_or(|(_, next)| *next <= now)
    }

    fn failed(&self, room: &RoomId, now: Timestamp) {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let (times, next) = tried.entry(room.to_owned()).or_insert((0, now));
        *next = now + (PAUSE * 2_u32.saturating_pow((*times).min(16))).min(LONGEST);
        *times += 1;
    }

    fn is_in(&self, room: &RoomId) {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).remove(room);
        self.invited.lock().unwrap_or_else(PoisonError::into_inner).remove(room);
    }

    /// We are invited: what failed without an invitation is tried at once.
    fn note_invited(&self, room: &RoomId) {
        if self.invited.lock().unwrap_or_else(PoisonError::into_inner).insert(room.to_owned()) {
            self.tried.lock().unwrap_or_else(PoisonError::into_inner).remove(room);
        }
    }

    /// How long until a room is tried again, if one is.
    pub(crate) fn next_try(&self, now: Timestamp) -> Option<Duration> {
        let tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        tried.values().filter(|(_, next)| *next > now).map(|(_, next)| next.since(now)).min()
    }

    /// Whether this is the first time that an invitation is left as it is.
    fn ignore(&self, room: &RoomId) -> bool {
        self.ignored.lock().unwrap_or_else(PoisonError::into_inner).insert(room.to_owned())
    }

    fn was_moved(&self, room: &RoomId) -> bool {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).contains(room)
    }

    fn note_moved(&self, room: &RoomId) {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).insert(room.to_owned());
    }
}

impl Matrix {
    /// Of rooms that we were invited to before our first start, only what comes after we joined is new.
    pub(crate) async fn remember_old_invites(
        &self,
        session: &Session,
        intake: &Intake,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        for room in session.client.invited_rooms() {
            self.move_cursor(intake, room.room_id().as_str(), "joined".to_owned(), shutdown).await?;
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
            let now = self.clock.now();
            let inviter = room.invite_details().await.ok().map(|invite| invite.inviter_id);
            let may_join = inviter.as_ref().is_some_and(|inviter| self.options.accepts_invite_of(inviter.as_str()));
            if !may_join && !successors.contains(room.room_id()) {
                if self.doors.ignore(room.room_id()) {
                    let inviter = inviter.map(|inviter| inviter.to_string());
                    tracing::info!(channel = %self.channel, room = %room.room_id(), inviter, "an invitation is left as it is");
                }
                continue;
            }
            self.doors.note_invited(room.room_id());
            if self.doors.may_try(room.room_id(), now) {
                let joined = tokio::time::timeout(JOIN, room.join()).await;
                self.note_joined(room.room_id(), joined.map(|joined| joined.map_err(|error| error.to_string())), now);
            }
        }
    }

    /// Goes on in the rooms that took the place of ours.
    pub(crate) async fn follow_rooms(
        &self,
        session: &Session,
        intake: &Intake,
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        for room in session.client.joined_rooms() {
            let Some(next) = room.successor_room().map(|next| next.room_id) else { continue };
            if self.doors.was_moved(room.room_id()) {
                continue;
            }
            let is_in = session.client.get_room(&next).is_some_and(|next| is_joined(&next));
            if !is_in {
                self.enter(session, &room, &next).await;
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
            self.accept(intake, vec![moved], None, shutdown).await?;
            tracing::info!(channel = %self.channel, from = %room.room_id(), to = %next, "a room goes on as another one");
            self.doors.note_moved(room.room_id());
        }
        Ok(())
    }

    /// Comes into the room that takes the place of `room`, where its rules let us.
    async fn enter(&self, session: &Session, room: &Room, next: &RoomId) {
        let now = self.clock.now();
        if !self.doors.may_try(next, now) {
            return;
        }
        let mut servers: Vec<OwnedServerName> = room.route().await.unwrap_or_default();
        servers.extend(next.server_name().map(ToOwned::to_owned));
        let joining = session.client.join_room_by_id_or_alias(next.into(), &servers);
        let joined = tokio::time::timeout(JOIN, joining).await;
        self.note_joined(next, joined.map(|joined| joined.map(|_| ()).map_err(|error| error.to_string())), now);
    }

    fn note_joined<E>(&self, room: &RoomId, joined: Result<Result<(), String>, E>, now: Timestamp) {
        match joined {
            Ok(Ok(())) => {
                tracing::info!(channel = %self.channel, %room, "joined a room");
                self.doors.is_in(room);
            }
            Ok(Err(error)) => {
                tracing::warn!(channel = %self.channel, %room, error, "a room cannot be joined");
                self.doors.failed(room, now);
            }
            Err(_) => self.doors.failed(room, now),
        }
    }
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

        doors.failed(&room, at(0));
        assert!(!doors.may_try(&room, at(4)) && doors.may_try(&room, at(5)));
        assert_eq!(doors.next_try(at(2)), Some(Duration::from_secs(3)));
        assert_eq!(doors.next_try(at(9)), None, "it was not tried again when it could be: it is gone");
        doors.note_invited(&room);
        assert!(doors.may_try(&room, at(1)));
        doors.failed(&room, at(1));
        doors.note_invited(&room);
        assert!(!doors.may_try(&room, at(2)), "it is the same invitation");
        doors.is_in(&room);
        assert_eq!(doors.next_try(at(2)), None);
    }
}
