//! Events of a room, brought before the intake.

use std::time::Duration;

use matrix_sdk::{
    Room,
    deserialized_responses::{TimelineEvent, TimelineEventKind},
    room::{IncludeRelations, RelationsOptions},
    ruma::{EventId, RoomId, UserId, events::relation::RelationType},
};
use rejoinder_core::{Accepted, Backoff, ChatKind, EventKind, InboundEvent, Intake, IntakeError, SenderKind};
use tokio_util::sync::CancellationToken;

use super::{
    Ending,
    rooms::{Position, read},
};
use crate::{
    Matrix, Session,
    errors::{self, Failure},
    inbound::{self, Around},
    known::Known,
    locked::Locked,
    payload::Event,
    section::ReadReceipts,
};

/// How often an event that another refers to is asked for.
const TRIES: u32 = 6;

/// How long one of these questions may take.
const LOOK_UP: Duration = Duration::from_secs(10);

/// What kind of chat a room is. Two people, whatever it is called; where nobody has counted, what the account
/// has marked as direct.
pub(crate) fn chat_kind(room: &Room) -> ChatKind {
    let helpers = room.active_service_members_count().unwrap_or(0);
    match room.active_members_count() {
        0 if room.direct_targets_length() > 0 => ChatKind::Direct,
        0 => ChatKind::Group,
        // Bridges and the like, which say of themselves that they are no people.
        count if count.saturating_sub(helpers) <= 2 => ChatKind::Direct,
        _ => ChatKind::Group,
    }
}

impl Matrix {
    /// Stores events of a room, in order, together with the room's cursor.
    pub(super) async fn take_in(
        &self,
        session: &Session,
        intake: &Intake,
        room: &Room,
        events: &[TimelineEvent],
        shutdown: &CancellationToken,
    ) -> Result<(), Ending> {
        let Some(position) = events.iter().rev().find_map(|event| Position::of(event, self.clock.now())) else {
            return Ok(());
        };
        let (mut inbound, mut locked) = (Vec::new(), Vec::new());
        for event in events {
            let raw = event.raw().json().get();
            let Some(parsed) = read(event) else { continue };
            if let Some(target) = parsed.takes_back() {
                locked.retain(|entry: &Locked| !entry.is(target));
                self.give_up_locked(intake, target, shutdown).await?;
                self.memory.note_taken_back(room.room_id().as_str(), target);
            }
            match &event.kind {
                TimelineEventKind::UnableToDecrypt { .. } if parsed.sender != session.me() => {
                    let entry = Locked::new(room.room_id(), &parsed, raw, self.clock.now());
                    inbound.push(self.seen(session, room, &parsed, raw, shutdown, inbound::locked).await?);
                    locked.push(entry);
                }
                TimelineEventKind::UnableToDecrypt { .. } => {}
                TimelineEventKind::Decrypted(_) => {
                    // Our own we can always read.
                    if parsed.sender != session.me() {
                        self.pulse.encrypted(true);
                    }
                    inbound.extend(self.read_event(session, room, &parsed, raw, shutdown).await?);
                }
                TimelineEventKind::PlainText { .. } => {
                    inbound.extend(self.read_event(session, room, &parsed, raw, shutdown).await?);
                }
            }
        }
        if !locked.is_empty() {
            // First: an event that is stored and has nobody waiting for its key would be forgotten.
            self.keep_locked(intake, locked, shutdown).await?;
        }
        let cursor = (room.room_id().as_str(), position.to_text());
        let accepted = self.accept(intake, inbound.clone(), Some(cursor), shutdown).await?;
        self.took_in(session, room, &inbound, &accepted);
        Ok(())
    }

    /// What an event is to us, with what it refers to looked up.
    pub(crate) async fn read_event(
        &self,
        session: &Session,
        room: &Room,
        event: &Event,
        raw: &str,
        shutdown: &CancellationToken,
    ) -> Result<Option<InboundEvent>, Ending> {
        let read = self.seen(session, room, event, raw, shutdown, inbound::normalise).await?;
        self.memory.note(room.room_id().as_str(), event, read.as_ref().map(|read| read.directed));
        Ok(read)
    }

    /// What `look` makes of an event in the light of what it refers to.
    pub(crate) async fn seen<T>(
        &self,
        session: &Session,
        room: &Room,
        event: &Event,
        raw: &str,
        shutdown: &CancellationToken,
        look: impl FnOnce(&Event, &Around<'_>) -> T,
    ) -> Result<T, Ending> {
        let is_ours = event.sender == session.me();
        let related = match inbound::refers_to(event).filter(|_| !is_ours && event.state_key.is_none()) {
            Some(target) => {
                let related = self.look_up(session, room, &target, shutdown).await?;
                let ours = related.as_ref().filter(|known| known.sender == session.me());
                if let Some(asks) = ours.and_then(|known| known.asks.as_ref()) {
                    self.asked.insert(asks.turn, target.into());
                }
                related
            }
            None => None,
        };
        let asked = self.questions.last(room.room_id().as_str(), event.relation().thread());
        let names = session.names_in(room).await;
        let around = Around {
            channel: &self.channel,
            me: session.me(),
            names: &names,
            room: room.room_id().as_str(),
            chat: chat_kind(room),
            sender_name: name_of(room, &event.sender).await,
            related: related.as_ref(),
            asked: asked.as_ref(),
            now: self.clock.now(),
            raw,
        };
        Ok(look(event, &around))
    }

    /// What is known of an event; it is asked for when nothing is.
    async fn look_up(
        &self,
        session: &Session,
        room: &Room,
        target: &str,
        shutdown: &CancellationToken,
    ) -> Result<Option<Known>, Ending> {
        let name = room.room_id().as_str();
        if let Some(known) = self.memory.get(name, target) {
            return Ok(Some(known));
        }
        let Ok(id) = EventId::parse(target) else { return Ok(None) };
        let mut backoff = Backoff::default();
        let mut tries = 0;
        while tries < TRIES {
            let asked = tokio::select! {
                asked = tokio::time::timeout(LOOK_UP, room.event(&id, None)) => asked,
                () = shutdown.cancelled() => return Err(Ending::Shutdown),
            };
            let mut pause = backoff.pause();
            match asked.map(|asked| asked.map_err(|error| errors::sdk(&error))) {
                Ok(Ok(event)) => {
                    let Some(event) = read(&event) else { return Ok(None) };
                    let mut known = Known::of(&event);
                    if known.sender == session.me()
                        && let Some(latest) = latest_edit(room, &id, session.me()).await
                    {
                        (known.text, known.asks) = (latest.text, latest.asks.or(known.asks));
                    }
                    self.memory.learn(name, target, known.clone());
                    return Ok(Some(known));
                }
                Ok(Err(Failure::Refused(_))) => return Ok(None),
                // It is not asked now; what is said meanwhile waits as well.
                Ok(Err(Failure::Limited { retry_after, .. })) => pause = pause.max(retry_after),
                Ok(Err(Failure::NotSent(_))) => {}
                Ok(Err(_)) | Err(_) => tries += 1,
            }
            if !self.pause(pause, shutdown).await {
                return Err(Ending::Shutdown);
            }
        }
        tracing::warn!(channel = %self.channel, room = %room.room_id(), "what an event refers to cannot be read");
        Ok(None)
    }

    /// Hands events to the intake until they are stored.
    pub(crate) async fn accept(
        &self,
        intake: &Intake,
        events: Vec<InboundEvent>,
        cursor: Option<(&str, String)>,
        shutdown: &CancellationToken,
    ) -> Result<Vec<Accepted>, Ending> {
        let mut backoff = Backoff::default();
        loop {
            match intake.accept_all(events.clone(), cursor.clone()).await {
                Ok(accepted) => return Ok(accepted),
                Err(IntakeError::ShuttingDown) => return Err(Ending::Shutdown),
                Err(IntakeError::Store(error)) => {
                    tracing::warn!(channel = %self.channel, %error, "events cannot be stored, trying again");
                    self.pulse.fails(format!("events cannot be stored: {error}"));
                }
            }
            if !self.pause(backoff.pause(), shutdown).await {
                return Err(Ending::Shutdown);
            }
        }
    }

    /// Remembers what was stored, and marks it as read.
    pub(crate) fn took_in(&self, session: &Session, room: &Room, events: &[InboundEvent], accepted: &[Accepted]) {
        let mut last = None;
        for (event, accepted) in events.iter().zip(accepted) {
            let is_persons = event.sender.kind == SenderKind::Person;
            if let Some(message) = event.message_id.as_deref().filter(|_| is_persons && event.amends.is_none()) {
                self.said.note(&event.conversation, message);
            }
            if let (Some(choice), EventKind::Choice { turn }) = (accepted.choice(event), &event.kind) {
                self.close_question(session, room, *turn, choice);
            }
            if let Accepted::Turn(turn) = accepted {
                if let Some(message) = &event.message_id {
                    self.turns.insert(*turn, message.as_str().into());
                }
                // Whatever is asked next, it is not the last question that it answers.
                self.questions.forget(&event.conversation);
                last = Some(event.external_id.clone());
            }
        }
        if let Some(event) = last.filter(|_| self.options.read_receipts == ReadReceipts::Immediate) {
            self.mark_read(session, room.room_id(), &event);
        }
    }

    /// Marks what was said as read, some time soon.
    pub(crate) fn mark_read(&self, session: &Session, room: &RoomId, event: &str) {
        use matrix_sdk::ruma::{api::client::receipt::create_receipt::v3::ReceiptType, events::receipt::ReceiptThread};
        let Some(room) = session.client.get_room(room) else { return };
        let Ok(event) = EventId::parse(event) else { return };
        self.tasks.spawn(async move {
            let sent = room.send_single_receipt(ReceiptType::Read, ReceiptThread::Unthreaded, event).await;
            if let Err(error) = sent {
                tracing::debug!(room = %room.room_id(), %error, "a read receipt was not sent");
            }
        });
    }
}

async fn name_of(room: &Room, user: &str) -> Option<String> {
    let user = UserId::parse(user).ok()?;
    let member = room.get_member_no_sync(&user).await.ok().flatten()?;
    member.display_name().map(str::to_owned)
}

/// What a message of ours says since we last changed it.
async fn latest_edit(room: &Room, event: &EventId, me: &str) -> Option<Known> {
    let options = RelationsOptions {
        include_relations: IncludeRelations::RelationsOfType(RelationType::Replacement),
        ..RelationsOptions::default()
    };
    let relations = tokio::time::timeout(LOOK_UP, room.relations(event.to_owned(), options)).await.ok()?.ok()?;
    let mut edits = relations.chunk.iter().filter_map(read);
    edits.find(|edit| edit.sender == me).map(|edit| Known::of(&edit))
}

impl Session {
    /// What we are called in a room.
    async fn names_in(&self, room: &Room) -> Vec<String> {
        let ours = name_of(room, self.me()).await;
        ours.into_iter().chain(self.name.clone()).collect()
    }
}
