//! Normalises a page's frames. Pure.

use std::{borrow::Cow, sync::Arc};

use rejoinder_core::{
    Attachment, ChannelId, ChatKind, ConversationRef, Directed, EventKind, InboundEvent, Sender, SenderKind, Timestamp,
    Voice, without_nul,
};
use sha2::{Digest, Sha256};

use crate::{
    protocol::{MAX_TEXT_BYTES, Problem},
    visitor::Visitor,
};

/// The command that cancels the running turn.
pub(crate) const STOP: &str = "/stop";

/// The conversation with this id. The page generates the id: 22 random characters of 64, so 132 bits; other clients may use 16
/// characters or more. For somebody who is signed in, it is a thread of their chat. Otherwise the id is a secret, and the address a digest:
/// a reader of an address can neither read the conversation nor write in it.
pub(crate) fn conversation(
    channel: &ChannelId,
    id: &str,
    visitor: Option<&Visitor>,
) -> Result<ConversationRef, Problem> {
    if !is_id(id, 16) {
        return Err(Problem::BAD_CONVERSATION);
    }
    if let Some(visitor) = visitor {
        return Ok(ConversationRef::new(channel.clone(), &visitor.account).in_thread(id));
    }
    Ok(ConversationRef::new(channel.clone(), &digest(id)))
}

/// 128 bits, as anybody may choose an id in search of the same digest.
fn digest(id: &str) -> String {
    hex::encode(&Sha256::digest(id)[..16])
}

/// The digest of the id of a conversation, by which a page finds it among those that it has.
pub(crate) fn digest_of(conversation: &ConversationRef) -> Cow<'_, str> {
    conversation.thread.as_ref().map_or(Cow::Borrowed(&*conversation.chat), |id| Cow::Owned(digest(id)))
}

/// Who writes in a conversation.
pub(crate) fn sender(conversation: &ConversationRef, visitor: Option<&Visitor>) -> Sender {
    let (id, name, kind) = match visitor {
        Some(visitor) => (visitor.account.clone(), visitor.name.clone(), SenderKind::Person),
        None => (conversation.chat.to_string(), "visitor".to_owned(), SenderKind::KeyHolder),
    };
    Sender { id, name: Some(name), username: None, kind }
}

/// What the pages are known by that have a conversation open.
pub(crate) fn room(conversation: &ConversationRef) -> Arc<str> {
    match &conversation.thread {
        Some(thread) => format!("{}/{thread}", conversation.chat).into(),
        None => Arc::clone(&conversation.chat),
    }
}

pub(crate) fn message(
    conversation: &ConversationRef,
    sender: &Sender,
    id: &str,
    text: &str,
    raw: &str,
    at: Timestamp,
) -> Result<InboundEvent, Problem> {
    let text = without_nul(text);
    if text.trim().is_empty() {
        return Err(Problem::EMPTY);
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(Problem::TOO_LONG);
    }
    event(conversation, sender, id, EventKind::Message, text.into_owned(), raw, at)
}

/// A message with files, whose bytes are kept once and not in its payload. `voice`: the first file is a voice note.
pub(crate) fn message_with(
    conversation: &ConversationRef,
    sender: &Sender,
    id: &str,
    text: &str,
    files: Vec<Attachment>,
    voice: Option<Voice>,
    at: Timestamp,
) -> Result<InboundEvent, Problem> {
    if files.is_empty() {
        return message(conversation, sender, id, text, "", at);
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(Problem::TOO_LONG);
    }
    let event = event(conversation, sender, id, EventKind::Message, without_nul(text).into_owned(), "", at)?;
    Ok(InboundEvent { attachments: files, voice, ..event })
}

/// A message, a choice or a command of the person. `raw` is the frame as it came.
pub(crate) fn event(
    conversation: &ConversationRef,
    sender: &Sender,
    id: &str,
    kind: EventKind,
    text: String,
    raw: &str,
    at: Timestamp,
) -> Result<InboundEvent, Problem> {
    if !is_id(id, 8) {
        return Err(Problem::BAD_ID);
    }
    // Pages choose these ids, so the conversation is part of the key: one page cannot use up another's ids.
    let (external_id, sender) = (format!("{}:{id}", room(conversation)), sender.clone());
    Ok(InboundEvent {
        kind,
        directed: Directed::DirectChat,
        text,
        raw: raw.to_owned(),
        ..InboundEvent::new(conversation.clone(), ChatKind::Direct, external_id, sender, at)
    })
}

fn is_id(text: &str, min: usize) -> bool {
    (min..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use rejoinder_core::TurnId;
    use rstest::rstest;

    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1);

    fn here() -> ConversationRef {
        conversation(&ChannelId::new("webchat", "main"), "abcdefghijklmnopqrstuv", None).expect("a conversation")
    }

    fn visitor() -> Sender {
        sender(&here(), None)
    }

    #[rstest]
    #[case("abcdefghijklmnop", true)]
    #[case("AZaz09-_AZaz09-_", true)]
    #[case("short", false)]
    #[case("", false)]
    #[case("abcdefghijklmno:", false)]
    #[case("abcdefghijklmno/", false)]
    #[case("abcdefghijklmnoé", false)]
    fn a_conversation_has_an_id_that_is_hard_to_guess(#[case] id: &str, #[case] is_valid: bool) {
        assert_eq!(conversation(&ChannelId::new("webchat", "main"), id, None).is_ok(), is_valid);
    }

    #[test]
    fn an_id_that_is_too_long_is_refused() {
        assert!(conversation(&ChannelId::new("webchat", "main"), &"a".repeat(65), None).is_err());
    }

    #[test]
    fn a_message_is_a_direct_chat_and_keeps_its_payload() {
        let event = message(&here(), &visitor(), "12345678", "h\u{0}i", "{raw}", AT).expect("an event");

        assert_eq!(
            (event.chat, event.directed, event.kind),
            (ChatKind::Direct, Directed::DirectChat, EventKind::Message)
        );
        assert_eq!((event.text.as_str(), event.raw.as_str()), ("hi", "{raw}"));
    }

    /// What operators read is no key.
    #[test]
    fn an_event_does_not_tell_the_secret_id_of_its_conversation() {
        let event = message(&here(), &visitor(), "12345678", "hi", "", AT).expect("an event");
        let other =
            conversation(&ChannelId::new("webchat", "main"), "abcdefghijklmnopqrstuw", None).expect("a conversation");

        let digest = "f69f9b70d1c9a5442258ca76f8b0a7a4";
        assert_eq!((&*event.conversation.chat, &*event.sender.id), (digest, digest));
        assert!(event.external_id.starts_with(digest) && event.sender.kind == SenderKind::KeyHolder);
        assert_ne!(here(), other);
    }

    /// E6.
    #[test]
    fn the_same_id_is_the_same_event_in_its_own_conversation_only() {
        let other =
            conversation(&ChannelId::new("webchat", "main"), "zyxwvutsrqponmlkjihgfe", None).expect("a conversation");
        let said = |conversation: &ConversationRef| {
            message(conversation, &sender(conversation, None), "12345678", "hi", "", AT).expect("an event")
        };

        assert_eq!(said(&here()).external_id, said(&here()).external_id);
        assert_ne!(said(&here()).external_id, said(&other).external_id);
    }

    #[rstest]
    #[case("12345678", "", Problem::EMPTY)]
    #[case("12345678", " \n\t", Problem::EMPTY)]
    #[case("12345678", "\0", Problem::EMPTY)]
    #[case("1234567", "hi", Problem::BAD_ID)]
    #[case("1234567:", "hi", Problem::BAD_ID)]
    #[case("", "hi", Problem::BAD_ID)]
    fn what_cannot_be_a_message_is_refused(#[case] id: &str, #[case] text: &str, #[case] problem: Problem) {
        assert_eq!(message(&here(), &visitor(), id, text, "", AT), Err(problem));
    }

    #[test]
    fn a_message_may_be_long_and_not_longer() {
        let said = |length| message(&here(), &visitor(), "12345678", &"a".repeat(length), "", AT);

        assert!(said(MAX_TEXT_BYTES).is_ok());
        assert_eq!(said(MAX_TEXT_BYTES + 1), Err(Problem::TOO_LONG));
    }

    #[test]
    fn a_message_with_a_file_needs_no_words() {
        let file = Attachment { name: "a".to_owned(), media_type: "image/png".to_owned(), url: "data:,x".to_owned() };
        let said = |files| message_with(&here(), &visitor(), "12345678", "", files, None, AT);

        assert_eq!(said(vec![file.clone()]).map(|event| event.attachments), Ok(vec![file]));
        assert_eq!(said(vec![]), Err(Problem::EMPTY));
    }

    #[test]
    fn a_pick_names_the_question_it_belongs_to() {
        let turn = TurnId::new(AT);

        let event = event(&here(), &visitor(), "12345678", EventKind::Choice { turn }, "Yes".to_owned(), "", AT)
            .expect("an event");

        assert_eq!((event.kind, event.text.as_str()), (EventKind::Choice { turn }, "Yes"));
    }

    /// On another device too, and for nobody else.
    #[test]
    fn a_conversation_of_a_person_is_a_thread_of_their_chat() {
        let channel = ChannelId::new("webchat", "main");
        let of = |account: &str| {
            let person = Visitor::named(account);
            let there = conversation(&channel, "abcdefghijklmnopqrstuv", Some(&person)).expect("a conversation");
            message(&there, &sender(&there, Some(&person)), "12345678", "hi", "", AT).expect("an event")
        };

        let (ada, bob) = (of("ada"), of("bob"));

        assert_eq!(ada.conversation, ConversationRef::new(channel.clone(), "ada").in_thread("abcdefghijklmnopqrstuv"));
        assert_eq!((&*ada.sender.id, ada.sender.kind, ada.person()), ("ada", SenderKind::Person, "ada"));
        assert_ne!((&ada.conversation, &ada.external_id), (&bob.conversation, &bob.external_id));
        assert_ne!(room(&ada.conversation), room(&here()));
    }
}
