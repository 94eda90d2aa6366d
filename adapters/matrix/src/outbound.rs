//! Sends a delivery to the homeserver and returns the receipt.

mod files;
mod search;

use std::{sync::Arc, time::Duration};

use matrix_sdk::{
    Room,
    config::RequestConfig,
    room::{IncludeRelations, RelationsOptions},
    ruma::{
        EventId, OwnedTransactionId, RoomId,
        api::client::{
            redact::redact_event,
            typing::create_typing_event::v3::{Request as TypingRequest, Typing, TypingInfo},
        },
        events::relation::RelationType,
    },
};
use rejoinder_core::{Action, ChatKind, Content, Delivery, DeliveryError, Receipt, Scope, SignalKind};
use serde_json::{Value, json};

use crate::{
    Matrix, Session,
    capabilities::TYPING_LASTS,
    content,
    drafts::{LEFT_BY_FIRST_DRAFTS, LEFT_BY_UPDATES},
    errors::{self, Failure},
    format,
    invites::{is_joined, successor},
    memory::{Question, RememberedEvent},
    payload::{Event, OUR_FIELD},
    room::{chat_kind, read},
    section::{ReadReceipts, Streaming},
};

/// Timeout of a request for a message. In an encrypted room the room key is shared first.
pub(crate) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a typing notice, draft, button, or a look at what was sent: later it would be of no use.
const EPHEMERAL_TIMEOUT: Duration = Duration::from_secs(8);

/// How long a delivery waits for the session to open at start-up.
const PATIENCE: Duration = Duration::from_secs(2);

/// When to retry while there is no session.
const NOT_CONNECTED: Duration = Duration::from_secs(2);

/// How many reactions to a message are looked at to find ours. The latest come first.
const MOST_REACTIONS: u32 = 100;

/// Shortest pause of a draft that exceeds the budget.
const DRAFT_PAUSE: Duration = Duration::from_secs(1);

/// A delivery, and where it goes.
struct Sending<'a> {
    matrix: &'a Matrix,
    session: Arc<Session>,
    room: Room,
    delivery: &'a Delivery,
}

impl Matrix {
    pub(crate) async fn perform(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        if matches!(delivery.action(), Action::Draft { .. }) && self.options.streaming == Streaming::Off {
            return Err(DeliveryError::Unsupported("drafts are not shown".to_owned()));
        }
        let sending = self.resolve(delivery).await?;
        if let Some(receipt) = sending.find_earlier_attempt().await? {
            return Ok(receipt);
        }
        let receipt = match delivery.action() {
            Action::Send { content, reply_to } => sending.send(content, reply_to.as_deref()).await?,
            Action::Edit { message, content, .. } => sending.edit(message, content).await?,
            Action::React { message, emoji } => sending.react(message.as_deref(), emoji).await?,
            Action::Mark { message, emoji, on: true } => sending.mark(message, emoji).await?,
            Action::Mark { message, emoji, on: false } => sending.unmark(message, emoji).await?,
            Action::Draft { text, message, .. } => sending.draft(text, message.as_deref()).await?,
            Action::Typing { on } => sending.typing(*on).await?,
            Action::Delete { message } => sending.delete(message).await?,
        };
        sending.mark_answered();
        Ok(receipt)
    }

    async fn resolve<'a>(&'a self, delivery: &'a Delivery) -> Result<Sending<'a>, DeliveryError> {
        let chat = &*delivery.conversation().chat;
        let room = RoomId::parse(chat).map_err(|_| DeliveryError::Refused(format!("bad room id: `{chat}`")))?;
        let session = self.wait_for_session(PATIENCE).await.ok_or_else(|| DeliveryError::NotSent {
            retry_after: Some(NOT_CONNECTED),
            detail: "not logged in yet".to_owned(),
        })?;
        let refused = |why: &str| {
            if self.health.has_worked() {
                return DeliveryError::Refused(format!("{why}: {chat}"));
            }
            // Until the first sync, the SDK may not know the room.
            DeliveryError::NotSent { retry_after: Some(NOT_CONNECTED), detail: format!("{why} (unsynced): {chat}") }
        };
        let room = session.client.get_room(&room).ok_or_else(|| refused("the account has never joined the room"))?;
        // A delivery for a replaced room goes to its successor.
        if let Some(next) = successor(&session.client, &room).filter(is_joined) {
            return Err(DeliveryError::Moved { chat: next.room_id().to_string() });
        }
        if !is_joined(&room) {
            return Err(refused("the account is no longer in the room"));
        }
        Ok(Sending { matrix: self, session, room, delivery })
    }
}

impl Sending<'_> {
    fn thread(&self) -> Option<&str> {
        self.delivery.conversation().thread.as_deref()
    }

    /// A message that is sent in place of an edit is another event, and needs another id.
    fn transaction(&self) -> OwnedTransactionId {
        let id = self.delivery.id();
        if matches!(self.delivery.action(), Action::Edit { .. }) {
            format!("{id}.edit").into()
        } else {
            id.to_string().into()
        }
    }

    /// Sends an event, encrypted if the room is. Repeating a transaction id returns the id of the first event.
    async fn send_event(&self, kind: &str, content: Value, timeout: Duration) -> Result<String, Failure> {
        let transaction = self.transaction();
        self.spend();
        let sending = self.room.send_raw(kind, content).with_transaction_id(&transaction);
        let sent = sending.with_request_config(config(timeout)).await;
        sent.map(|sent| sent.response.event_id.to_string()).map_err(|error| errors::sdk(&error))
    }

    /// The content of a message: the text, its choices as a numbered list, and our field.
    fn text_content(&self, content: &Content) -> Value {
        let delivery = self.delivery;
        let mut ours = json!({ "id": delivery.id() });
        if !content.choices.is_empty() {
            ours["turn"] = json!(delivery.turn());
            ours["choices"] = json!(content.choices);
            if let Some(chooser) = &content.chooser {
                ours["chooser"] = json!(chooser);
            }
        }
        content::text(&content::question(&labelled(delivery, &content.text), &content.choices), &ours)
    }

    async fn send(&self, content: &Content, reply_to: Option<&str>) -> Result<Receipt, DeliveryError> {
        // A retry ignores the budget: the answer waits until it is known whether the draft arrived.
        if self.delivery.is_draft() && self.delivery.attempt() == 1 {
            self.leaves(LEFT_BY_FIRST_DRAFTS)?;
        }
        let message = match &content.attachments[..] {
            [] => self.text_content(content),
            [file] => self.file(file, &labelled(self.delivery, &content.text)).await?,
            _ => return Err(DeliveryError::Unsupported("several files in one message".to_owned())),
        };
        let message = self.with_relations(message, reply_to);
        let id = self.send_message(message.clone(), MESSAGE_TIMEOUT).await?;
        self.remember_sent(&id, &message, content);
        Ok(Receipt::of(id))
    }

    async fn edit(&self, message: &str, content: &Content) -> Result<Receipt, DeliveryError> {
        self.check_not_redacted(message).await?;
        let text = self.text_content(content);
        let replacing = content::replacing(message, &text);
        let edit = self.send_message(replacing, MESSAGE_TIMEOUT).await?;
        self.check_seen(message, &edit).await?;
        self.remember_sent(message, &text, content);
        Ok(Receipt::of(message))
    }

    /// Fails if our message was redacted before the edit that the homeserver has accepted: the sync may be behind.
    async fn check_seen(&self, message: &str, edit: &str) -> Result<(), DeliveryError> {
        let redacted_at = match self.look_up(message, EPHEMERAL_TIMEOUT).await {
            Ok(Some(event)) => event.unsigned.redacted_because,
            // The edit is sent, and nothing says that it is not seen.
            Ok(None) | Err(_) => None,
        };
        let Some(redaction) = redacted_at else { return Ok(()) };
        let edited_at = self.look_up(edit, EPHEMERAL_TIMEOUT).await.ok().flatten().map(|event| event.origin_server_ts);
        match (redaction["origin_server_ts"].as_i64(), edited_at) {
            // Somebody has removed the whole answer, or may have.
            (_, None) => Ok(()),
            (Some(redacted_at), Some(edited_at)) if edited_at < redacted_at => Ok(()),
            _ => {
                self.matrix.memory.note_redacted(self.room.room_id().as_str(), message);
                Err(DeliveryError::Gone(format!("`{message}` was deleted before it was edited")))
            }
        }
    }

    async fn look_up(&self, event: &str, timeout: Duration) -> Result<Option<Event>, matrix_sdk::Error> {
        let Ok(id) = EventId::parse(event) else { return Ok(None) };
        Ok(read(&self.room.event(&id, Some(config(timeout))).await?))
    }

    /// Fails if our message was redacted: homeservers accept an edit of it, but clients do not show the edit.
    async fn check_not_redacted(&self, message: &str) -> Result<(), DeliveryError> {
        let gone = || DeliveryError::Gone(format!("`{message}` was deleted"));
        EventId::parse(message).map_err(|_| DeliveryError::Gone(format!("bad event id: `{message}`")))?;
        let is_redacted = match self.matrix.memory.get(self.room.room_id().as_str(), message) {
            Some(known) => known.is_redacted,
            // It was sent before the last start, or so many events ago that it was forgotten.
            None => match self.look_up(message, MESSAGE_TIMEOUT).await {
                Ok(event) => event.is_some_and(|event| event.is_redacted()),
                Err(error) => match errors::sdk(&error) {
                    Failure::Refused(_) => true,
                    // A lookup changes nothing: the delivery was not sent.
                    Failure::Unknown(detail) => return Err(DeliveryError::NotSent { retry_after: None, detail }),
                    failure => return Err(self.classify(failure)),
                },
            },
        };
        if is_redacted { Err(gone()) } else { Ok(()) }
    }

    /// Adds a message's relations: its thread, the message that it answers if that is not obvious, and a mention.
    fn with_relations(&self, mut content: Value, reply_to: Option<&str>) -> Value {
        let conversation = self.delivery.conversation();
        let is_group = chat_kind(&self.room) == ChatKind::Group;
        let last = self.matrix.last_messages.get(conversation);
        if let Some(root) = self.thread() {
            content["m.relates_to"] = json!({
                "rel_type": "m.thread", "event_id": root,
                "is_falling_back": true, "m.in_reply_to": { "event_id": reply_to.unwrap_or(root) },
            });
        } else if let Some(reply_to) = reply_to.filter(|to| is_group || last.as_deref() != Some(*to)) {
            content["m.relates_to"] = json!({ "m.in_reply_to": { "event_id": reply_to } });
        }
        // Mentioned, the asker is notified of the answer.
        let asker = reply_to
            .filter(|_| is_group)
            .and_then(|to| self.matrix.memory.get(&conversation.chat, to))
            .map(|known| known.sender);
        if let Some(asker) = asker.filter(|asker| asker != self.session.me()) {
            content["m.mentions"] = json!({ "user_ids": [asker] });
        }
        content
    }

    /// Remembers a message of ours. Adds the buttons of a question in the background.
    fn remember_sent(&self, message: &str, sent: &Value, content: &Content) {
        let conversation = self.delivery.conversation();
        let Content { choices, chooser, .. } = content.clone();
        let buttons = content::buttons(&choices);
        let turn = self.delivery.turn();
        let question = (!choices.is_empty()).then_some(Question { turn, choices, chooser, is_closed: false });
        let known = RememberedEvent {
            sender: self.session.me().to_owned(),
            text: sent["body"].as_str().unwrap_or_default().to_owned(),
            thread: self.thread().map(str::to_owned),
            question: question.clone(),
            directed: None,
            is_redacted: false,
        };
        self.matrix.memory.insert(&conversation.chat, message, known);
        let Some(question) = question else { return };
        self.matrix.questions_by_turn.insert(question.turn, message.into());
        let (room, id, message) = (self.room.clone(), self.delivery.id(), message.to_owned());
        let (memory, budget) = (Arc::clone(&self.matrix.memory), Arc::clone(&self.matrix.budget));
        let (rate, clock) = (self.matrix.options.pace.limit(), Arc::clone(&self.matrix.clock));
        self.matrix.tasks.spawn(async move {
            for (number, button) in buttons.iter().enumerate() {
                let known = memory.get(room.room_id().as_str(), &message).and_then(|known| known.question);
                if known.is_some_and(|question| question.is_closed) {
                    return;
                }
                let transaction: OwnedTransactionId = format!("{id}.{number}").into();
                budget.spend(rate, clock.now());
                let sent = room
                    .send_raw("m.reaction", content::reaction(&message, button))
                    .with_transaction_id(&transaction)
                    .with_request_config(config(EPHEMERAL_TIMEOUT))
                    .await;
                if let Err(error) = sent {
                    // The person can type the number instead.
                    return tracing::debug!(room = %room.room_id(), %error, "could not add a button for a choice");
                }
            }
        });
    }

    async fn react(&self, message: Option<&str>, emoji: &str) -> Result<Receipt, DeliveryError> {
        let message = message.ok_or_else(|| DeliveryError::Refused("there is no message to react to".to_owned()))?;
        match self.send_event("m.reaction", content::reaction(message, emoji), MESSAGE_TIMEOUT).await {
            Ok(_) | Err(Failure::Duplicate(_)) => Ok(Receipt::of(message)),
            Err(failure) => Err(self.classify(failure)),
        }
    }

    /// Marks a message with a reaction. It and its removal count as drafts, so that answers are not limited for them.
    async fn mark(&self, message: &str, emoji: &str) -> Result<Receipt, DeliveryError> {
        self.leaves(LEFT_BY_UPDATES + 1)?;
        self.react(Some(message), emoji).await
    }

    /// Redacts our reaction to a message. Asks the homeserver for it: an earlier process may have sent it.
    async fn unmark(&self, message: &str, emoji: &str) -> Result<Receipt, DeliveryError> {
        let id = EventId::parse(message).map_err(|_| DeliveryError::Refused(format!("bad event id: `{message}`")))?;
        let options = RelationsOptions {
            limit: Some(MOST_REACTIONS.into()),
            include_relations: IncludeRelations::RelationsOfType(RelationType::Annotation),
            ..RelationsOptions::default()
        };
        let relations = self.room.relations(id, options).await;
        let related = relations.map_err(|error| self.classify(errors::sdk(&error)))?.chunk;
        let is_ours = |event: &Event| event.sender == self.session.me();
        let ours = related
            .iter()
            .filter_map(read)
            .find(|event| is_ours(event) && event.relation().annotates() == Some((message, emoji)));
        match ours {
            Some(event) => self.delete(&event.id).await,
            None => Ok(Receipt::of(message)),
        }
    }

    /// Fails unless `left` requests of the burst are left to answers.
    fn leaves(&self, left: u32) -> Result<(), DeliveryError> {
        let leaves = self.matrix.budget.leaves(left, self.matrix.options.pace.limit(), self.matrix.clock.now());
        // Not `Limited`: the homeserver would still accept an answer.
        leaves.map_err(|wait| DeliveryError::NotSent {
            retry_after: Some(wait.max(DRAFT_PAUSE)),
            detail: "what the homeserver accepts now is left to answers".to_owned(),
        })
    }

    fn spend(&self) {
        self.matrix.budget.spend(self.matrix.options.pace.limit(), self.matrix.clock.now());
    }

    async fn draft(&self, text: &str, message: Option<&str>) -> Result<Receipt, DeliveryError> {
        let Some(message) = message else {
            return Err(DeliveryError::Unsupported("the first draft must be sent as a message".to_owned()));
        };
        self.leaves(LEFT_BY_UPDATES)?;
        let first = format::parts(text).into_iter().next().unwrap_or_default();
        let text = content::text(&first, &json!({ "id": self.delivery.id() }));
        self.check_not_redacted(message).await?;
        let replacing = content::replacing(message, &text);
        self.send_message(replacing, EPHEMERAL_TIMEOUT).await?;
        Ok(Receipt::of(message))
    }

    async fn typing(&self, on: bool) -> Result<Receipt, DeliveryError> {
        let receipt = Receipt::of(self.delivery.id().to_string());
        if let Some(retry_after) = self.matrix.budget.limit(self.matrix.clock.now()).filter(|_| on) {
            let detail = "the homeserver limits the account".to_owned();
            return Err(DeliveryError::Limited { retry_after, scope: Scope::Account, detail });
        }
        let state = if on { Typing::Yes(TypingInfo::new(TYPING_LASTS)) } else { Typing::No };
        let (me, room) = (self.room.own_user_id().to_owned(), self.room.room_id().to_owned());
        let sent = self.session.client.send(TypingRequest::new(me, room, state));
        match sent.with_request_config(config(EPHEMERAL_TIMEOUT)).await {
            Ok(_) => Ok(receipt),
            Err(error) => Err(self.classify(errors::http(&error))),
        }
    }

    async fn delete(&self, message: &str) -> Result<Receipt, DeliveryError> {
        let event = EventId::parse(message).map_err(|_| DeliveryError::Gone(format!("bad event id: `{message}`")))?;
        let room = self.room.room_id().to_owned();
        let request = redact_event::v3::Request::new(room, event, self.transaction());
        self.spend();
        let sent = self.session.client.send(request).with_request_config(config(MESSAGE_TIMEOUT)).await;
        sent.map(|_| Receipt::of(message)).map_err(|error| self.classify(errors::http(&error)))
    }

    async fn send_message(&self, content: Value, timeout: Duration) -> Result<String, DeliveryError> {
        self.send_event("m.room.message", content, timeout).await.map_err(|failure| self.classify(failure))
    }

    /// Maps a failure to the delivery's error. A rate limit also holds back drafts and typing notices.
    fn classify(&self, failure: Failure) -> DeliveryError {
        if let Failure::Limited { retry_after, .. } = &failure {
            self.matrix.budget.note_limited(self.matrix.clock.now() + *retry_after);
        }
        failure.into()
    }

    /// F7. Marks the message that was answered as read.
    fn mark_answered(&self) {
        let delivery = self.delivery;
        let is_answer = delivery.signal().is_some_and(|signal| signal != SignalKind::Deferral);
        if !is_answer || self.matrix.options.read_receipts != ReadReceipts::OnAnswer {
            return;
        }
        let answered = match delivery.action() {
            Action::Send { reply_to, .. } | Action::Edit { reply_to, .. } => reply_to.as_deref(),
            Action::React { message, .. } => message.as_deref(),
            Action::Draft { .. } | Action::Typing { .. } | Action::Mark { .. } | Action::Delete { .. } => None,
        };
        if let Some(event) = answered {
            self.matrix.mark_read(&self.session, self.room.room_id(), event);
        }
    }
}

pub(crate) fn config(timeout: Duration) -> RequestConfig {
    RequestConfig::new().timeout(timeout).disable_retry()
}

/// The text, after the label that says that it may be a second copy.
fn labelled(delivery: &Delivery, text: &str) -> String {
    delivery.label().map_or_else(|| text.to_owned(), |label| format!("{label}\n\n{text}"))
}

/// The delivery id that our field contains.
fn delivery_of(content: &Value) -> Option<&str> {
    content[OUR_FIELD]["id"].as_str()
}
