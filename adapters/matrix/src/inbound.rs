//! Normalises an event of a room. Pure: the event that it refers to ([`refers_to`]) is looked up before.

mod context;
#[cfg(test)]
mod tests;
mod text;

use matrix_sdk::ruma::{EventId, RoomId};
use rejoinder_core::{
    Amends, Attachment, Author, ChatKind, ConversationRef, Directed, EventKind, InboundEvent, Quote, Sender,
    SenderKind, Timestamp, Voice,
};

use crate::{
    memory::RememberedEvent,
    payload::{Event, Message, Relation},
};

pub(crate) use self::{context::EventContext, text::keycap};

/// The id of the event that must be looked up before this one can be normalised.
pub(crate) fn refers_to(event: &Event) -> Option<String> {
    let relation = event.relation();
    let target = relation
        .replaces()
        .or_else(|| relation.annotates().map(|(target, _)| target))
        .or_else(|| relation.replies_to())
        .or_else(|| relation.thread());
    target.map(str::to_owned)
}

/// Normalises an event. `None` if it does not concern us; our own events never do.
pub(crate) fn normalise(event: &Event, context: &EventContext<'_>) -> Option<InboundEvent> {
    if event.sender == context.me || event.state_key.is_some() || event.is_redacted() {
        return None;
    }
    match &*event.kind {
        "m.room.message" | "m.sticker" => message(event, &event.message()?, context),
        "m.reaction" => reaction(event, context),
        "m.room.redaction" => redaction(event, context),
        _ => None,
    }
}

/// An encrypted event whose key is missing, as the intake stores it until the key arrives.
pub(crate) fn undecrypted(event: &Event, context: &EventContext<'_>) -> InboundEvent {
    let thread = event.relation().thread().map(str::to_owned);
    let undecrypted = base(event, thread.as_deref(), context);
    InboundEvent { external_id: format!("locked:{}", event.id), kind: EventKind::Other, ..undecrypted }
}

/// An encrypted event whose key did not arrive. Its relations are not encrypted; in a group, an event that is no reply
/// to us may be for anybody, and is only stored.
pub(crate) fn unreadable(event: &Event, context: &EventContext<'_>) -> InboundEvent {
    let relation = event.relation();
    let unreadable = base(event, relation.thread(), context);
    match directed(&Message::default(), &relation, context) {
        Directed::Ambient => InboundEvent { kind: EventKind::Other, ..unreadable },
        directed => InboundEvent { kind: EventKind::Unreadable, directed, ..unreadable },
    }
}

/// The event that `room` was replaced by `successor`.
pub(crate) fn moved(room: ConversationRef, chat: ChatKind, successor: &str, me: &str, now: Timestamp) -> InboundEvent {
    let id = format!("moved:{}:{successor}", room.chat);
    let sender = Sender { id: me.to_owned(), name: None, username: None, kind: SenderKind::Ourselves };
    InboundEvent {
        kind: EventKind::Moved { chat: successor.to_owned() },
        directed: unaddressed(chat),
        sent_at: Some(Timestamp::from_millis(0)),
        ..InboundEvent::new(room, chat, id, sender, now)
    }
}

const fn unaddressed(chat: ChatKind) -> Directed {
    match chat {
        ChatKind::Direct => Directed::DirectChat,
        ChatKind::Group => Directed::Ambient,
    }
}

/// The fields that events of every kind have in common.
fn base(event: &Event, thread: Option<&str>, context: &EventContext<'_>) -> InboundEvent {
    let room = ConversationRef::new(context.channel.clone(), context.room);
    let conversation = match thread {
        Some(thread) => room.in_thread(thread),
        None => room,
    };
    let sender = Sender {
        id: event.sender.clone(),
        name: context.sender_name.clone(),
        username: None,
        kind: SenderKind::Person,
    };
    InboundEvent {
        message_id: Some(event.id.clone()),
        directed: unaddressed(context.chat),
        sent_at: Some(Timestamp::from_millis(event.origin_server_ts)),
        raw: context.raw.to_owned(),
        ..InboundEvent::new(conversation, context.chat, event.id.clone(), sender, context.now)
    }
}

fn message(event: &Event, message: &Message, context: &EventContext<'_>) -> Option<InboundEvent> {
    if let (Some(original), Some(new)) = (message.relates_to.replaces(), message.new_content.as_deref()) {
        return edit(event, original, new, context);
    }
    let relation = &message.relates_to;
    let read = base(event, relation.thread(), context);
    if message.msgtype.starts_with("m.key.verification.") {
        return Some(InboundEvent { kind: EventKind::Other, ..read });
    }
    let text = text::message_text(event, message, context);
    let directed = directed(message, relation, context);
    let answers = relation.replies_to().and(context.related);
    Some(InboundEvent {
        sender: Sender { kind: sender_kind(message), ..read.sender },
        directed,
        text,
        attachments: attachment(event, message, context).into_iter().collect(),
        voice: voice(message),
        quoted: answers.and_then(|known| quote(known, relation.replies_to(), context)),
        ..read
    })
}

/// An edit of an earlier message. `None` if the earlier message has another sender.
fn edit(event: &Event, original: &str, new: &Message, context: &EventContext<'_>) -> Option<InboundEvent> {
    let earlier = context.related;
    if earlier.is_some_and(|known| known.sender != event.sender) {
        return None;
    }
    let read = base(event, earlier.and_then(|known| known.thread.as_deref()), context);
    let directed = match directed(new, &new.relates_to, &EventContext { related: None, ..context.clone() }) {
        Directed::Ambient => earlier.and_then(|known| known.directed).unwrap_or(Directed::Ambient),
        directed => directed,
    };
    Some(InboundEvent {
        external_id: original.to_owned(),
        // The time of the edit: a later edit has a larger one.
        revision: event.origin_server_ts.max(1),
        message_id: Some(original.to_owned()),
        sender: Sender { kind: sender_kind(new), ..read.sender },
        directed,
        text: text::message_text(event, new, context),
        attachments: attachment(event, new, context).into_iter().collect(),
        voice: voice(new),
        amends: Some(Amends::Replaces),
        ..read
    })
}

/// A redaction. The homeserver has checked that the sender may redact the message.
fn redaction(event: &Event, context: &EventContext<'_>) -> Option<InboundEvent> {
    let target = event.redaction_target()?;
    Some(InboundEvent {
        external_id: target.to_owned(),
        revision: event.origin_server_ts.max(1),
        message_id: Some(target.to_owned()),
        amends: Some(Amends::Withdraws),
        ..base(event, None, context)
    })
}

/// A reaction to a message of ours. A number on a question is a choice.
fn reaction(event: &Event, context: &EventContext<'_>) -> Option<InboundEvent> {
    let relation = event.relation();
    let (target, emoji) = relation.annotates()?;
    let known = context.related?;
    let read = base(event, known.thread.as_deref(), context);
    if known.sender != context.me {
        return None;
    }
    if let Some(question) = &known.question
        && let Some(choice) = text::number(emoji).and_then(|index| question.choices.get(index))
    {
        let kind = EventKind::Choice { turn: question.turn };
        let (directed, text) = (Directed::ReplyToUs, choice.clone());
        return Some(InboundEvent { message_id: Some(target.to_owned()), kind, directed, text, ..read });
    }
    Some(InboundEvent {
        message_id: Some(target.to_owned()),
        kind: EventKind::Reaction { message: target.to_owned(), emoji: emoji.to_owned(), removed: None },
        directed: Directed::ReplyToUs,
        quoted: quote(known, Some(target), context),
        ..read
    })
}

fn quote(known: &RememberedEvent, id: Option<&str>, context: &EventContext<'_>) -> Option<Quote> {
    let author = if known.sender == context.me {
        Author::ourselves()
    } else {
        Author { id: Some(known.sender.clone()), name: context.related_name.clone(), ..Author::default() }
    };
    let message_id = id.map(str::to_owned);
    (!known.text.is_empty()).then(|| Quote { author, text: known.text.clone(), message_id, ..Quote::default() })
}

/// Programs send notices (<https://spec.matrix.org/latest/client-server-api/#mnotice>), and messages of another
/// Rejoinder contain its field.
fn sender_kind(message: &Message) -> SenderKind {
    let is_program = message.ours.is_some() || matches!(&*message.msgtype, "m.notice" | "m.server_notice");
    if is_program { SenderKind::OtherAgent } else { SenderKind::Person }
}

fn directed(message: &Message, relation: &Relation, context: &EventContext<'_>) -> Directed {
    if context.chat == ChatKind::Direct {
        return Directed::DirectChat;
    }
    if text::mentions(message, context) {
        return Directed::Mention;
    }
    let is_of_ours = context.related.is_some_and(|known| known.sender == context.me);
    let is_about_it = relation.replies_to().is_some() || relation.thread().is_some();
    if is_of_ours && is_about_it { Directed::ReplyToUs } else { Directed::Ambient }
}

/// Set if a message was spoken.
fn voice(message: &Message) -> Option<Voice> {
    let is_voice = message.msgtype == "m.audio" && message.voice.is_some();
    is_voice.then(|| Voice::lasting(message.info.duration.as_f64().map(|millis| millis / 1000.0)))
}

/// The file of a message. Its URL names the event, because the key of an encrypted file stays in the event.
fn attachment(event: &Event, message: &Message, context: &EventContext<'_>) -> Option<Attachment> {
    let otherwise = match &*message.msgtype {
        "m.image" => "image/png",
        "m.audio" => "audio/ogg",
        "m.video" => "video/mp4",
        "m.file" => "application/octet-stream",
        _ => return None,
    };
    let name = message.filename.as_deref().unwrap_or(&message.body);
    Some(Attachment {
        name: if name.is_empty() { "file".to_owned() } else { name.to_owned() },
        media_type: message.info.mimetype.clone().unwrap_or_else(|| otherwise.to_owned()),
        url: file_url(context.room, &event.id),
    })
}

fn file_url(room: &str, event: &str) -> String {
    match (RoomId::parse(room), EventId::parse(event)) {
        (Ok(room), Ok(event)) => room.matrix_event_uri(event).to_string(),
        _ => format!("matrix:{room}/{event}"),
    }
}
