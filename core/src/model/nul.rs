//! Texts without U+0000: PostgreSQL cannot store it, and some functions of SQLite end a text at it.
//!
//! It is removed where texts enter the core: from events, from what runs report and return, and from what adapters say of
//! deliveries. It is not removed from an id, which would then be the id of somebody else: an id that an event can do without is left
//! out, and an event with it in its key, its address or its sender's id is refused.

use std::{borrow::Cow, iter, sync::Arc};

use rejoinder_guard::{ApprovalOption, ApprovalRequest, Attachment, Choices, Outcome, Reply};

use crate::model::{
    brief::{Brief, EarlierLine},
    conversation::ConversationRef,
    delivery::DeliveryError,
    event::{Author, EventKind, InboundEvent, Quote, Sender},
    run::{Activity, ModelInput, ToolUse},
    schedule::{ScheduleCall, ScheduledAction},
};

/// The text without U+0000. It is copied only if it has one.
pub fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "")) } else { Cow::Borrowed(text) }
}

/// A value that contains texts. Ids are none.
pub(crate) trait Texts {
    /// Removes U+0000 from the texts.
    fn strip_nul(&mut self);

    /// The same value without U+0000 in its texts.
    #[must_use]
    fn without_nul(mut self) -> Self
    where
        Self: Sized,
    {
        self.strip_nul();
        self
    }
}

impl Texts for String {
    fn strip_nul(&mut self) {
        if self.contains('\0') {
            self.retain(|character| character != '\0');
        }
    }
}

impl Texts for Arc<str> {
    fn strip_nul(&mut self) {
        if self.contains('\0') {
            *self = self.replace('\0', "").into();
        }
    }
}

impl<T: Texts> Texts for Option<T> {
    fn strip_nul(&mut self) {
        self.iter_mut().for_each(T::strip_nul);
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn strip_nul(&mut self) {
        self.iter_mut().for_each(T::strip_nul);
    }
}

impl<T: Texts> Texts for Box<T> {
    fn strip_nul(&mut self) {
        (**self).strip_nul();
    }
}

impl<T: Texts, E: Texts> Texts for Result<T, E> {
    fn strip_nul(&mut self) {
        match self {
            Ok(value) => value.strip_nul(),
            Err(error) => error.strip_nul(),
        }
    }
}

/// Implements [`Texts`] for structs. Behind the semicolon stand all fields that are no texts, so that a new field is not forgotten.
macro_rules! texts_of {
    ($($of:ident { $($text:ident),* $(; $($other:ident),*)? })*) => {
        $(impl Texts for $of {
            fn strip_nul(&mut self) {
                let Self { $($text,)* $($($other: _,)*)? } = self;
                $($text.strip_nul();)*
            }
        })*
    };
}

texts_of! {
    InboundEvent {
        sender, kind, text, said, attachments, quoted, forwarded, brief, seal_to, raw;
        conversation, chat, external_id, revision, message_id, directed, patience, amends, part_of, more_within,
        language, trace, voice, heard_by, speaks, instead_of, waits_in_quiet_hours, sent_at, received_at
    }
    Sender { name; id, username, kind }
    Author { name; id, username, kind, is_elsewhere, is_stranger }
    Quote { author, text, attachments; message_id }
    Brief { agent, model, instructions, said_before }
    EarlierLine { text; is_agents }
    Attachment { name, media_type, url }
    Reply { text, attachments, choices, sealed }
    Choices { options; free_text, expires }
    ApprovalRequest { action, details, kind, choices, options }
    ApprovalOption { name; allows }
    ToolUse { name, arguments, result; duration_ms }
    Activity { title; state }
    ModelInput { settings, messages; left_out }
}

impl Texts for EventKind {
    fn strip_nul(&mut self) {
        match self {
            Self::Reaction { emoji, removed, message: _ } => {
                emoji.strip_nul();
                removed.strip_nul();
            }
            Self::ReactionsRemoved { emoji, message: _ } => emoji.strip_nul(),
            Self::PersonAsks { code } => code.strip_nul(),
            Self::Prompt { agent, .. } => agent.strip_nul(),
            Self::Message
            | Self::Choice { .. }
            | Self::Expired { .. }
            | Self::Moved { .. }
            | Self::Unreadable
            | Self::LinkAsked { .. }
            | Self::ApprovalAsked { .. }
            | Self::Digest { .. }
            | Self::Other => {}
        }
    }
}

impl Texts for Outcome {
    fn strip_nul(&mut self) {
        match self {
            Self::Reply(reply) => reply.strip_nul(),
            Self::Approval(request) => request.strip_nul(),
            Self::React(text) | Self::Silent(text) => text.strip_nul(),
            Self::Defer { note, due: _ } => note.strip_nul(),
        }
    }
}

impl Texts for ScheduleCall {
    fn strip_nul(&mut self) {
        match self {
            // The pattern and the time zone are checked.
            Self::Add { name, action, .. } => {
                name.strip_nul();
                if let ScheduledAction::Message(text) | ScheduledAction::Prompt { text, .. } = action {
                    text.strip_nul();
                }
            }
            Self::Remove { name } => name.strip_nul(),
            Self::List => {}
        }
    }
}

impl Texts for DeliveryError {
    fn strip_nul(&mut self) {
        if let Some(said) = self.said_mut() {
            said.strip_nul();
        }
    }
}

impl InboundEvent {
    /// Leaves out the ids that contain U+0000 and that it can do without. What happened to a message or a chat with such an id
    /// happened to none that is known.
    pub(crate) fn drop_ids_with_nul(&mut self) {
        if self.part_of.take_if(|id| id.contains('\0')).is_some() {
            self.more_within = None;
        }
        let quoted = self.quoted.iter_mut().flat_map(|quote| {
            let Quote { author: Author { id, username, .. }, message_id, .. } = quote;
            [id, username, message_id]
        });
        let forwarded = self.forwarded.iter_mut().flat_map(|Author { id, username, .. }| [id, username]);
        let own = [&mut self.sender.username, &mut self.message_id];
        for id in own.into_iter().chain(quoted).chain(forwarded) {
            id.take_if(|id| id.contains('\0'));
        }
        let changed = match &self.kind {
            EventKind::Reaction { message, .. } | EventKind::ReactionsRemoved { message, .. } => message.as_str(),
            EventKind::Moved { chat } => chat.as_str(),
            _ => "",
        };
        if changed.contains('\0') {
            self.kind = EventKind::Other;
        }
    }

    /// Whether its key, its address or its sender's id contains U+0000. A prompt also has those of what it is about.
    pub(crate) fn has_nul_in_key(&self) -> bool {
        let (asked_by, about) = match &self.kind {
            EventKind::Prompt { asked_by, about, .. } => (asked_by.as_deref(), about.as_ref()),
            _ => (None, None),
        };
        let own = [Some(self.external_id.as_str()), Some(self.sender.id.as_str()), asked_by];
        let addresses = iter::once(&self.conversation).chain(about);
        let addresses = addresses.flat_map(|ConversationRef { channel, chat, thread }| {
            [Some(channel.as_str()), Some(&**chat), thread.as_deref()]
        });
        own.into_iter().chain(addresses).flatten().any(|id| id.contains('\0'))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rejoinder_guard::Timestamp;

    use super::*;
    use crate::model::{ChannelId, ChatKind, SenderKind, When};

    const TEXT: &str = "a\0b\0";

    fn text() -> String {
        TEXT.to_owned()
    }

    fn file() -> Attachment {
        Attachment { name: text(), media_type: text(), url: text() }
    }

    /// An author whose ids are `id`.
    fn author(id: &str) -> Author {
        Author { id: Some(id.to_owned()), name: Some(text()), username: Some(id.to_owned()), ..Author::default() }
    }

    /// An event with U+0000 in all its texts.
    fn event(kind: EventKind) -> InboundEvent {
        let address = ConversationRef::new(ChannelId::new("test", "main"), "chat").in_thread("thread");
        let sender = Sender {
            id: "ann".to_owned(),
            name: Some(text()),
            username: Some("ann_2".to_owned()),
            kind: SenderKind::Person,
        };
        let said_before = vec![EarlierLine { is_agents: true, text: text() }];
        InboundEvent {
            message_id: Some("7".to_owned()),
            kind,
            text: text(),
            said: Some(text()),
            attachments: vec![file(), file()],
            quoted: Some(Quote {
                author: author("bob"),
                text: text(),
                attachments: vec![file()],
                message_id: Some("6".to_owned()),
            }),
            forwarded: Some(author("cid")),
            part_of: Some("album".to_owned()),
            brief: Some(Box::new(Brief {
                agent: Some(TEXT.into()),
                model: Some(TEXT.into()),
                instructions: Some(text()),
                said_before: Some(said_before),
            })),
            seal_to: Some(TEXT.into()),
            raw: text(),
            ..InboundEvent::new(address, ChatKind::Group, "key".to_owned(), sender, Timestamp::from_millis(0))
        }
    }

    fn prompt() -> EventKind {
        let about = Some(ConversationRef::new(ChannelId::new("test", "main"), "other"));
        EventKind::Prompt { agent: Some(TEXT.into()), quiet: true, asked_by: Some("ann".into()), about, on_copy: false }
    }

    fn request() -> ApprovalRequest {
        let choices = Choices { options: vec![text()], free_text: true, expires: None };
        let options = vec![ApprovalOption { name: text(), allows: true }];
        ApprovalRequest {
            details: Some(text()),
            kind: Some(text()),
            options,
            ..ApprovalRequest::question(TEXT, choices)
        }
    }

    /// Whether the texts had U+0000, and have nothing else less.
    fn is_stripped<T: Texts + std::fmt::Debug>(value: T) -> bool {
        let before = format!("{value:?}");
        before.contains("\\0") && format!("{:?}", value.without_nul()) == before.replace("\\0", "")
    }

    #[test]
    fn a_text_without_it_is_not_copied() {
        assert!(matches!(without_nul("ab"), Cow::Borrowed("ab")));
        assert_eq!(without_nul("\0a\0\0b\0"), "ab");
        assert_eq!((text().without_nul(), Arc::<str>::from(TEXT).without_nul()), ("ab".to_owned(), "ab".into()));
    }

    #[test]
    fn each_text_of_an_event_is_stripped() {
        let message = || "5".to_owned();
        for kind in [
            EventKind::Message,
            EventKind::Reaction { message: message(), emoji: text(), removed: Some(text()) },
            EventKind::ReactionsRemoved { message: message(), emoji: Some(text()) },
            EventKind::PersonAsks { code: text() },
            prompt(),
        ] {
            let event = event(kind);
            assert!(is_stripped(event.clone()), "{event:?}");
            assert!(!event.has_nul_in_key(), "{event:?}");
        }
    }

    #[test]
    fn each_text_of_a_run_is_stripped() {
        let reply = Reply { attachments: vec![file()], choices: request().choices, ..Reply::sealed(TEXT) };
        for outcome in [
            Outcome::Reply(Reply { text: text(), ..reply }),
            Outcome::React(text()),
            Outcome::Defer { note: Some(text()), due: Timestamp::from_millis(0) },
            Outcome::Approval(request()),
            Outcome::Silent(text()),
        ] {
            assert!(is_stripped(outcome.clone()), "{outcome:?}");
        }
        assert!(is_stripped(ToolUse { name: text(), arguments: text(), result: text(), duration_ms: Some(1) }));
        assert!(is_stripped(ModelInput { settings: text(), messages: text(), left_out: 0 }));
        let (when, time_zone) = (When::Every(Duration::from_hours(1)), Arc::from("UTC"));
        let action = ScheduledAction::Message(text());
        assert!(is_stripped(ScheduleCall::Add { name: text(), when, time_zone, action }));
        assert!(is_stripped(ScheduleCall::Remove { name: text() }));
    }

    #[test]
    fn an_id_that_an_event_can_do_without_is_left_out() {
        let damages: [fn(&mut InboundEvent); 10] = [
            |event| event.message_id = Some(TEXT.to_owned()),
            |event| event.part_of = Some(TEXT.to_owned()),
            |event| event.sender.username = Some(TEXT.to_owned()),
            |event| event.forwarded = Some(Author { username: None, ..author(TEXT) }),
            |event| event.forwarded = Some(Author { id: None, ..author(TEXT) }),
            |event| event.quoted = Some(Quote { author: author(TEXT), ..Quote::default() }),
            |event| event.quoted = Some(Quote { message_id: Some(TEXT.to_owned()), ..Quote::default() }),
            |event| event.kind = EventKind::Moved { chat: TEXT.to_owned() },
            |event| {
                let (message, emoji) = (TEXT.to_owned(), "👍".to_owned());
                event.kind = EventKind::Reaction { message, emoji, removed: None };
            },
            |event| event.kind = EventKind::ReactionsRemoved { message: TEXT.to_owned(), emoji: None },
        ];
        for damage in damages {
            let mut event = event(EventKind::Message).without_nul();
            let whole = event.clone();
            event.drop_ids_with_nul();
            assert_eq!(event, whole);
            damage(&mut event);
            event.strip_nul();
            assert!(format!("{event:?}").contains("\\0"), "it is an id: {event:?}");
            event.drop_ids_with_nul();
            assert!(!format!("{event:?}").contains("\\0") && !event.has_nul_in_key(), "{event:?}");
        }
    }

    /// The pause for the other parts of an album is not left without the album.
    #[test]
    fn a_part_of_no_album_waits_for_no_other() {
        let more_within = Some(Duration::from_secs(1));
        let mut event = InboundEvent { part_of: Some(text()), more_within, ..event(EventKind::Message) };
        event.drop_ids_with_nul();
        assert_eq!((event.part_of, event.more_within), (None, None));
    }

    #[test]
    fn an_id_that_an_event_needs_is_neither_stripped_nor_left_out() {
        let damages: [fn(&mut InboundEvent); 7] = [
            |event| event.external_id = TEXT.to_owned(),
            |event| event.conversation.chat = TEXT.into(),
            |event| event.conversation.thread = Some(TEXT.into()),
            |event| event.conversation.channel = ChannelId::from_stored(TEXT),
            |event| event.sender.id = TEXT.to_owned(),
            |event| {
                event.kind = prompt();
                if let EventKind::Prompt { asked_by, .. } = &mut event.kind {
                    *asked_by = Some(TEXT.into());
                }
            },
            |event| {
                event.kind = prompt();
                if let EventKind::Prompt { about: Some(about), .. } = &mut event.kind {
                    about.chat = TEXT.into();
                }
            },
        ];
        for damage in damages {
            let mut event = event(EventKind::Message);
            damage(&mut event);
            event.strip_nul();
            event.drop_ids_with_nul();
            assert!(event.has_nul_in_key(), "{event:?}");
        }
    }
}
