//! Joins rooms: on invitation, and when a room is replaced by another (an upgrade).
//!
//! Anybody can invite the account. Each sync looks at the new invitations only, and invitations that are not accepted are
//! declined when there are many: each costs rows in the SDK's store. A room whose invitation has ended is forgotten.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use matrix_sdk::{
    Client, Error, Room, RoomState,
    ruma::{OwnedRoomId, OwnedServerName, RoomId, api::client::membership::leave_room},
    sync::RoomUpdates,
};
use parking_lot::Mutex;
use rejoinder_core::{ConversationRef, Timestamp};
use rejoinder_kit::RunEnd;
use tokio::sync::Semaphore;

use crate::{AutoJoin, inbound, receive::Position, room::chat_kind, run::Run};

/// Timeout of one attempt to join: the room may be on a slow server.
const JOIN_TIMEOUT: Duration = Duration::from_mins(1);

/// The pause after the first failed attempt. It doubles with each further one.
const MIN_PAUSE: Duration = Duration::from_secs(5);

const MAX_PAUSE: Duration = Duration::from_hours(1);

const MAX_PARALLEL: usize = 8;

/// How many invitations that we do not accept stay open, for the operator to see. Further ones are declined.
const MAX_REFUSED: usize = 100;

#[derive(Debug)]
pub(crate) struct RoomJoins {
    permits: Semaphore,
    state: Mutex<JoinState>,
}

#[derive(Debug, Default)]
struct JoinState {
    joining: HashSet<OwnedRoomId>,
    /// How many attempts failed, and when the next one may begin.
    tried: HashMap<OwnedRoomId, (u32, Timestamp)>,
    /// Replaced rooms whose successor is settled: reported to the intake, or not believed.
    moved: HashSet<OwnedRoomId>,
    /// Invitations that are not accepted and stay open.
    refused: HashSet<OwnedRoomId>,
    /// Invitations that were declined, until the homeserver reports it.
    declined: HashSet<OwnedRoomId>,
    invited: HashSet<OwnedRoomId>,
    /// Whether the invitations from before this process were looked at.
    has_looked: bool,
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
        let mut state = self.state.lock();
        state.may_try(room, now) && state.joining.insert(room.to_owned())
    }

    fn failed(&self, room: &RoomId, now: Timestamp) {
        let mut state = self.state.lock();
        let (times, next) = state.tried.entry(room.to_owned()).or_insert((0, now));
        *next = now + (MIN_PAUSE * 2_u32.saturating_pow((*times).min(16))).min(MAX_PAUSE);
        *times += 1;
        state.joining.remove(room);
    }

    fn joined(&self, room: &RoomId) {
        let mut state = self.state.lock();
        state.tried.remove(room);
        state.invited.remove(room);
        state.joining.remove(room);
    }

    /// Notes an invitation: a room that could not be joined without one is tried at once.
    fn note_invited(&self, room: &RoomId) {
        let mut state = self.state.lock();
        if state.invited.insert(room.to_owned()) {
            state.tried.remove(room);
        }
    }

    /// How long until a room may have to be tried again.
    pub(crate) fn next_try(&self, now: Timestamp) -> Option<Duration> {
        let state = self.state.lock();
        let next = state.tried.values().filter(|(_, next)| *next > now).map(|(_, next)| next.since(now)).min();
        // A running attempt may fail.
        next.into_iter().chain((!state.joining.is_empty()).then_some(MIN_PAUSE)).min()
    }

    /// Decides what happens to an invitation that is not accepted.
    fn refuse(&self, room: &RoomId) -> Refused {
        let mut state = self.state.lock();
        if state.refused.contains(room) {
            Refused::IsOpen
        } else if state.refused.len() < MAX_REFUSED {
            state.refused.insert(room.to_owned());
            Refused::StaysOpen
        } else {
            state.declined.insert(room.to_owned());
            Refused::IsDeclined
        }
    }

    /// Notes that an invitation is no longer open. Returns whether there was one: we declined it, or it was withdrawn.
    fn ended(&self, room: &RoomId) -> bool {
        let mut state = self.state.lock();
        state.refused.remove(room) | state.invited.remove(room) | state.declined.remove(room)
    }

    fn due(&self, now: Timestamp) -> Vec<OwnedRoomId> {
        self.state.lock().tried.iter().filter(|(_, (_, next))| *next <= now).map(|(room, _)| room.clone()).collect()
    }
}

/// What happens to an invitation that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// It was looked at before.
    IsOpen,
    StaysOpen,
    IsDeclined,
}

impl JoinState {
    fn may_try(&self, room: &RoomId, now: Timestamp) -> bool {
        self.tried.get(room).is_none_or(|(_, next)| *next <= now)
    }
}

impl Run<'_> {
    /// Sets the cursors of invitations older than our first start that are accepted.
    pub(crate) async fn remember_old_invites(&self) -> Result<(), RunEnd> {
        for room in self.session.client.invited_rooms() {
            if !self.accepts(&room).await.0 {
                continue;
            }
            let begin = Position::before_first_start(self.matrix.clock.now()).to_text();
            self.receiver.move_cursor(room.room_id().as_str(), &begin).await?;
        }
        Ok(())
    }

    /// Whether an invitation is accepted, and who sent it.
    async fn accepts(&self, invited: &Room) -> (bool, Option<String>) {
        let host = invited.invite_details().await.ok().map(|invite| invite.inviter_id.to_string());
        let is_accepted = |host: &String| match self.matrix.options.auto_join {
            AutoJoin::Always => true,
            AutoJoin::Never => false,
            AutoJoin::Allowlist => self.receiver.intake.may_invite(host),
        };
        (host.as_ref().is_some_and(is_accepted), host)
    }

    /// Accepts the invitations of a sync that the configuration allows.
    pub(crate) async fn join_rooms(&self, updates: &RoomUpdates) -> Result<(), RunEnd> {
        for room in updates.left.keys() {
            // An invitation that came and was withdrawn between two syncs was never seen as one.
            if self.matrix.joins.ended(room) || self.receiver.cursor(room.as_str()).await?.is_none() {
                self.forget_in_background(room);
            }
        }
        let is_first = !std::mem::replace(&mut self.matrix.joins.state.lock().has_looked, true);
        let invited: Vec<Room> = if is_first {
            self.session.client.invited_rooms()
        } else {
            let due = self.matrix.joins.due(self.matrix.clock.now());
            let rooms = updates.invited.keys().chain(&due).collect::<HashSet<_>>();
            let rooms = rooms.into_iter().filter_map(|room| self.session.client.get_room(room));
            rooms.filter(|room| room.state() == RoomState::Invited).collect()
        };
        if invited.is_empty() {
            return Ok(());
        }
        // The successor of a joined room needs no permission of its own.
        let successors: HashSet<OwnedRoomId> = self
            .session
            .client
            .joined_rooms()
            .iter()
            .filter_map(|room| room.successor_room())
            .map(|next| next.room_id)
            .collect();
        for room in invited {
            let (may_join, host) = self.accepts(&room).await;
            if !may_join && !successors.contains(room.room_id()) {
                match self.matrix.joins.refuse(room.room_id()) {
                    Refused::IsOpen => {}
                    Refused::StaysOpen => {
                        tracing::info!(channel = %self.matrix.channel, room = %room.room_id(), inviter = host, "invitation not accepted");
                    }
                    Refused::IsDeclined => self.decline_in_background(room.room_id()),
                }
                continue;
            }
            self.matrix.joins.note_invited(room.room_id());
            let id = room.room_id().to_owned();
            self.join_in_background(id, async move { room.join().await });
        }
        Ok(())
    }

    fn decline_in_background(&self, room: &RoomId) {
        tracing::debug!(channel = %self.matrix.channel, %room, "declining an invitation, because too many are open");
        // Not `Room::leave`: that also leaves the room that the invitation names as its predecessor.
        let (client, request) = (self.session.client.clone(), leave_room::v3::Request::new(room.to_owned()));
        self.change_in_background(
            room.to_owned(),
            ["declined an invitation", "cannot decline an invitation"],
            async move {
                client.send(request).await?;
                Ok(())
            },
        );
    }

    /// Removes a room that we were only invited to, or never read, from the SDK's store.
    fn forget_in_background(&self, room: &RoomId) {
        let Some(room) = self.session.client.get_room(room) else { return };
        let (joins, channel) = (Arc::clone(&self.matrix.joins), self.matrix.channel.clone());
        self.matrix.tasks.spawn(async move {
            let _turn = joins.permits.acquire().await;
            match tokio::time::timeout(JOIN_TIMEOUT, room.forget()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%channel, %error, "cannot forget a room"),
                Err(_) => tracing::debug!(%channel, "cannot forget a room: timed out"),
            }
        });
    }

    /// Joins the successors of replaced rooms, and reports the move to the intake once we are in.
    pub(crate) async fn follow_rooms(&self) -> Result<(), RunEnd> {
        for room in self.session.client.joined_rooms() {
            let Some(next) = room.successor_room().map(|next| next.room_id) else { continue };
            if self.matrix.joins.state.lock().moved.contains(room.room_id()) {
                continue;
            }
            if !self.session.client.get_room(&next).is_some_and(|next| is_joined(&next)) {
                self.join_successor(room, next);
                continue;
            }
            if successor(&self.session.client, &room).is_none() {
                // Anybody who may close a room can name any successor, so the successor must name the room too.
                tracing::warn!(channel = %self.matrix.channel, from = %room.room_id(), to = %next, "ignored a successor that does not name the room as its predecessor");
                self.matrix.joins.state.lock().moved.insert(room.room_id().to_owned());
                continue;
            }
            let from = ConversationRef::new(self.matrix.channel.clone(), room.room_id().as_str());
            let (me, now) = (self.session.me(), self.matrix.clock.now());
            let moved = inbound::moved(from, chat_kind(&room), next.as_str(), me, now);
            self.receiver.accept(&[moved], None).await?;
            tracing::info!(channel = %self.matrix.channel, from = %room.room_id(), to = %next, "a room was replaced by another one");
            self.matrix.joins.state.lock().moved.insert(room.room_id().to_owned());
        }
        Ok(())
    }

    fn join_successor(&self, room: Room, next: OwnedRoomId) {
        let client = self.session.client.clone();
        let id = next.clone();
        self.join_in_background(id, async move {
            let mut servers: Vec<OwnedServerName> = room.route().await.unwrap_or_default();
            servers.extend(next.server_name().map(ToOwned::to_owned));
            client.join_room_by_id_or_alias((&*next).into(), &servers).await.map(|_| ())
        });
    }

    /// Joins a room in the background: the room may be on a slow server, and the other rooms must not wait.
    fn join_in_background(&self, room: OwnedRoomId, joining: impl Future<Output = Result<(), Error>> + Send + 'static) {
        self.change_in_background(room, ["joined a room", "cannot join a room"], joining);
    }

    /// Joins a room, or declines to. The texts are for the log.
    fn change_in_background(
        &self,
        room: OwnedRoomId,
        [done, failed]: [&'static str; 2],
        changing: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        if !self.matrix.joins.begin(&room, self.matrix.clock.now()) {
            return;
        }
        let (joins, clock, channel) =
            (Arc::clone(&self.matrix.joins), Arc::clone(&self.matrix.clock), self.matrix.channel.clone());
        self.matrix.tasks.spawn(async move {
            let _turn = joins.permits.acquire().await;
            match tokio::time::timeout(JOIN_TIMEOUT, changing).await {
                Ok(Ok(())) => {
                    tracing::info!(%channel, %room, "{done}");
                    joins.joined(&room);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%channel, %room, %error, "{failed}");
                    joins.failed(&room, clock.now());
                }
                Err(_) => {
                    tracing::warn!(%channel, %room, "{failed}: timed out");
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
    room.state() == RoomState::Joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn only_so_many_invitations_stay_open() {
        let joins = RoomJoins::default();
        let room = |number: usize| RoomId::parse(format!("!{number}:example.org")).expect("a room");

        let refused: Vec<_> = (0..MAX_REFUSED + 2).map(|number| joins.refuse(&room(number))).collect();

        assert_eq!(refused[..MAX_REFUSED], [Refused::StaysOpen; MAX_REFUSED]);
        assert_eq!(refused[MAX_REFUSED..], [Refused::IsDeclined; 2]);
        assert_eq!(joins.refuse(&room(0)), Refused::IsOpen);
        assert!(joins.ended(&room(MAX_REFUSED)) && !joins.ended(&room(MAX_REFUSED)), "it is forgotten once");
        assert!(joins.ended(&room(0)) && !joins.ended(&room(0)), "it was withdrawn");
        assert_eq!(joins.refuse(&room(MAX_REFUSED + 1)), Refused::StaysOpen, "there is room again");
    }

    #[test]
    fn a_room_that_is_closed_is_tried_again_and_at_once_when_we_are_invited() {
        let (joins, room) = (RoomJoins::default(), RoomId::parse("!a:example.org").expect("a room"));

        assert!(joins.begin(&room, at(0)) && !joins.begin(&room, at(0)), "an attempt is running");
        joins.failed(&room, at(0));
        assert!(!joins.state.lock().may_try(&room, at(4)) && joins.state.lock().may_try(&room, at(5)));
        assert_eq!(joins.next_try(at(2)), Some(Duration::from_secs(3)));
        assert_eq!(joins.next_try(at(9)), None, "no longer tried: the invitation is gone");
        joins.note_invited(&room);
        assert!(joins.state.lock().may_try(&room, at(1)));
        joins.failed(&room, at(1));
        joins.note_invited(&room);
        assert!(!joins.state.lock().may_try(&room, at(2)), "the same invitation");
        joins.joined(&room);
        assert_eq!(joins.next_try(at(2)), None);
    }
}
