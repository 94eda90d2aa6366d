//! Passes the events of a room to the intake.

use std::time::Duration;

use matrix_sdk::{
    Room,
    deserialized_responses::{TimelineEvent, TimelineEventKind},
    room::{IncludeRelations, RelationsOptions},
    ruma::{EventId, RoomId, UserId, events::relation::RelationType},
};
use rejoinder_core::{Accepted, Backoff, ConversationRef, InboundEvent, SenderKind};
use rejoinder_kit::RunEnd;

use super::timeline::Position;
use crate::{
    Matrix, Session,
    errors::{self, Failure},
    inbound::{self, EventContext},
    memory::RememberedEvent,
    payload::Event,
    room::{chat_kind, read},
    run::Run,
    section::ReadReceipts,
    undecrypted::UndecryptedEvent,
};

/// How often a referenced event is requested.
const TRIES: u32 = 6;

/// Timeout of one such request.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

impl Run<'_> {
    /// Stores events of a room, in order, together with the room's cursor.
    pub(super) async fn store_events(&self, room: &Room, events: &[TimelineEvent]) -> Result<(), RunEnd> {
        let Some(position) = events.iter().rev().find_map(|event| Position::of(event, self.matrix.clock.now())) else {
            return Ok(());
        };
        let (mut inbound, mut undecrypted) = (Vec::new(), Vec::new());
        for event in events {
            let raw = event.raw().json().get();
            let Some(parsed) = read(event) else { continue };
            if let Some(target) = parsed.redaction_target() {
                undecrypted.retain(|entry: &UndecryptedEvent| entry.event != target);
                self.remove_undecrypted(target).await?;
                self.matrix.memory.note_redacted(room.room_id().as_str(), target);
            }
            match &event.kind {
                TimelineEventKind::UnableToDecrypt { .. } if parsed.sender != self.session.me() => {
                    let entry = UndecryptedEvent::new(room.room_id(), &parsed, raw, self.matrix.clock.now());
                    inbound.push(self.with_context(room, &parsed, raw, inbound::undecrypted).await?);
                    undecrypted.push(entry);
                }
                TimelineEventKind::UnableToDecrypt { .. } => {}
                TimelineEventKind::Decrypted(_) => {
                    // Our own events do not count: their keys are always there.
                    if parsed.sender != self.session.me() {
                        self.matrix.decryption.note(true);
                    }
                    inbound.extend(self.read_event(room, &parsed, raw).await?);
                }
                TimelineEventKind::PlainText { .. } => {
                    inbound.extend(self.read_event(room, &parsed, raw).await?);
                }
            }
        }
        if !undecrypted.is_empty() {
            // Before the intake: an event that is stored but not on this list would never be read.
            self.add_undecrypted(undecrypted).await?;
        }
        let position = position.to_text();
        let cursor = (room.room_id().as_str(), position.as_str());
        let accepted = self.receiver.accept(&inbound, Some(cursor)).await?;
        self.after_stored(room, &inbound, &accepted);
        Ok(())
    }

    /// Normalises an event, after looking up the event that it refers to, and remembers it.
    pub(crate) async fn read_event(
        &self,
        room: &Room,
        event: &Event,
        raw: &str,
    ) -> Result<Option<InboundEvent>, RunEnd> {
        let read = self.with_context(room, event, raw, inbound::normalise).await?;
        self.matrix.memory.note(room.room_id().as_str(), event, read.as_ref().map(|read| read.directed));
        Ok(read)
    }

    /// Calls `action` with an event and its context, after looking up the event that it refers to. For a sender who may
    /// not write nothing is looked up: their event is not heard.
    pub(crate) async fn with_context<T>(
        &self,
        room: &Room,
        event: &Event,
        raw: &str,
        action: impl FnOnce(&Event, &EventContext<'_>) -> T,
    ) -> Result<T, RunEnd> {
        let (is_ours, chat) = (event.sender == self.session.me(), chat_kind(room));
        let address = ConversationRef::new(self.matrix.channel.clone(), room.room_id().as_str());
        let is_heard = !is_ours && self.receiver.intake.lets_in(&event.sender, None, chat, &address);
        let related = match inbound::refers_to(event).filter(|_| is_heard && event.state_key.is_none()) {
            Some(target) => {
                let related = self.look_up(room, &target).await?;
                let ours = related.as_ref().filter(|known| known.sender == self.session.me());
                if let Some(question) = ours.and_then(|known| known.question.as_ref()) {
                    self.matrix.questions_by_turn.insert(question.turn, target.into());
                }
                related
            }
            None => None,
        };
        let names = self.session.names_in(room).await;
        let context = EventContext {
            channel: &self.matrix.channel,
            me: self.session.me(),
            names: &names,
            room: room.room_id().as_str(),
            chat,
            sender_name: name_of(room, &event.sender).await,
            related: related.as_ref(),
            related_name: match &related {
                Some(known) => name_of(room, &known.sender).await,
                None => None,
            },
            now: self.matrix.clock.now(),
            raw,
        };
        Ok(action(event, &context))
    }

    /// An event that another refers to, from memory or else from the homeserver. `None` if it cannot be read.
    async fn look_up(&self, room: &Room, target: &str) -> Result<Option<RememberedEvent>, RunEnd> {
        let name = room.room_id().as_str();
        if let Some(known) = self.matrix.memory.get(name, target) {
            return Ok(Some(known));
        }
        let Ok(id) = EventId::parse(target) else { return Ok(None) };
        let mut backoff = Backoff::default();
        let mut tries = 0;
        while tries < TRIES {
            let asking = tokio::time::timeout(LOOKUP_TIMEOUT, room.event(&id, None));
            let asked = self.receiver.until_shutdown(asking).await?;
            let mut pause = backoff.pause();
            match asked.map(|asked| asked.map_err(|error| errors::sdk(&error))) {
                Ok(Ok(event)) => {
                    let Some(event) = read(&event) else { return Ok(None) };
                    let mut known = RememberedEvent::of(&event);
                    if known.sender == self.session.me()
                        && let Some(latest) = latest_edit(room, &id, self.session.me()).await
                    {
                        (known.text, known.question) = (latest.text, latest.question.or(known.question));
                    }
                    self.matrix.memory.insert(name, target, known.clone());
                    return Ok(Some(known));
                }
                Ok(Err(Failure::Refused(_))) => return Ok(None),
                // Neither of these counts as a try. Later events of the room wait.
                Ok(Err(Failure::Limited { retry_after, .. })) => pause = pause.max(retry_after),
                Ok(Err(Failure::NotSent(_))) => {}
                Ok(Err(_)) | Err(_) => tries += 1,
            }
            self.receiver.pause(pause).await?;
        }
        tracing::warn!(channel = %self.matrix.channel, room = %room.room_id(), "cannot read the event that another event refers to");
        Ok(None)
    }

    /// Follows up on stored events: remembers the last message, closes questions, and marks messages as read.
    pub(crate) fn after_stored(&self, room: &Room, events: &[InboundEvent], accepted: &[Accepted]) {
        let mut last = None;
        for (event, accepted) in events.iter().zip(accepted) {
            let is_persons = event.sender.kind == SenderKind::Person;
            if let Some(message) = event.message_id.as_deref().filter(|_| is_persons && event.amends.is_none()) {
                self.matrix.last_messages.insert(event.conversation.clone(), message.to_owned());
            }
            if let Some((question, line)) = accepted.closing(event) {
                self.matrix.close_question(self.session, room, question, line);
            }
            if accepted.opened().is_some() {
                last = Some(event.external_id.clone());
            }
        }
        if let Some(event) = last.filter(|_| self.matrix.options.read_receipts == ReadReceipts::Immediate) {
            self.matrix.mark_read(self.session, room.room_id(), &event);
        }
    }
}

impl Matrix {
    /// Marks a message as read, in the background.
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

/// Our latest edit of a message of ours.
async fn latest_edit(room: &Room, event: &EventId, me: &str) -> Option<RememberedEvent> {
    let options = RelationsOptions {
        include_relations: IncludeRelations::RelationsOfType(RelationType::Replacement),
        ..RelationsOptions::default()
    };
    let relations = tokio::time::timeout(LOOKUP_TIMEOUT, room.relations(event.to_owned(), options)).await.ok()?.ok()?;
    let mut edits = relations.chunk.iter().filter_map(read);
    edits.find(|edit| edit.sender == me).map(|edit| RememberedEvent::of(&edit))
}

impl Session {
    /// Our display names: in the room, then the account's.
    async fn names_in(&self, room: &Room) -> Vec<String> {
        let ours = name_of(room, self.me()).await;
        ours.into_iter().chain(self.name.clone()).collect()
    }
}
