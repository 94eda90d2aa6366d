//! The messages that the gateway itself writes to people, as events and texts. Nothing here decides when one is sent,
//! and nothing here sends it.

use rejoinder_guard::Timestamp;

use crate::{
    base::{
        verbatim::verbatim,
        words::{excerpt, filled, plain},
    },
    model::{
        ApprovalId, AskedQuestion, ChannelId, ChatKind, ConversationRef, DirectChat, EventKind, InboundEvent, Language,
        Pairing, PersonId, Sender, SenderKind, Settings, TurnId,
    },
    people::People,
};

/// How many characters are told of a question that expires, and of a message that is answered elsewhere.
const EXCERPT: usize = 200;

/// The event of a message to a conversation. `key` is the same for a request that is repeated.
pub(crate) fn message(to: &ConversationRef, text: String, by: &str, key: &str, at: Timestamp) -> InboundEvent {
    let sender = Sender { id: by.to_owned(), name: Some(by.to_owned()), username: None, kind: SenderKind::Operator };
    InboundEvent {
        kind: EventKind::Other,
        text,
        ..InboundEvent::new(to.clone(), ChatKind::Direct, format!("operator:{key}"), sender, at)
    }
}

/// The message to somebody who was let in, or linked.
pub(crate) fn paired(pairing: &Pairing, people: &People, settings: &Settings, at: Timestamp) -> (TurnId, InboundEvent) {
    let channel = &pairing.conversation.channel;
    let name = people.person_of(&pairing.identity).map(|person| plain(&person.name)).unwrap_or_default();
    let values = [("agent", settings.agent(channel).to_string()), ("name", name)];
    let template = if pairing.linked_by.is_some() { "linked" } else { "paired" };
    let language = people.chosen_language(&pairing.identity).or(pairing.language);
    let text = filled(settings.templates.template(channel, language, template), &values);
    let key = format!("paired:{}:{}", pairing.identity.id, pairing.asked_at.as_millis());
    (TurnId::new(at), message(&pairing.conversation, text, "gateway", &key, at))
}

/// An answer that a person gets in `chat`, because it could not be delivered where they wrote.
pub(crate) fn sent_elsewhere(
    event: &InboundEvent,
    chat: &DirectChat,
    answer: &str,
    people: &People,
    settings: &Settings,
) -> String {
    let language = event.language.or_else(|| people.spoken_language(chat));
    let template = settings.templates.template(&chat.identity.channel, language, "elsewhere");
    let values = [("channel", event.conversation.channel.to_string()), ("text", excerpt(&event.text, EXCERPT))];
    format!("{}\n\n{answer}", filled(template, &values))
}

/// The message to an owner that somebody asks to be let in. What it says is decided when it is sent.
pub(crate) fn asks(
    pairing: &Pairing,
    owner: PersonId,
    to: &ConversationRef,
    language: Option<Language>,
    at: Timestamp,
) -> InboundEvent {
    let key = format!("asks:{}:{}:{owner}", pairing.identity, pairing.asked_at.as_millis());
    let kind = EventKind::PersonAsks { code: pairing.code.clone() };
    InboundEvent { kind, language, ..message(to, String::new(), "gateway", &key, at) }
}

/// The message to an owner that strangers are turned away on a channel, at most once an hour.
pub(crate) fn turned_away(
    from: &ChannelId,
    owner: PersonId,
    to: &ConversationRef,
    language: Option<Language>,
    settings: &Settings,
    at: Timestamp,
) -> InboundEvent {
    const HOUR_MS: i64 = 60 * 60 * 1000;
    let text = filled(
        settings.templates.template(&to.channel, language, "people_turned_away"),
        &[("channel", from.to_string())],
    );
    let key = format!("turned-away:{from}:{}:{owner}", at.as_millis() / HOUR_MS);
    InboundEvent { language, ..message(to, text, "gateway", &key, at) }
}

/// The message to the person whose code was used in `turn`. What it says is decided when it is sent.
pub(crate) fn link_asked(link: &Pairing, turn: TurnId, language: Option<Language>, at: Timestamp) -> InboundEvent {
    let key = format!("link:{turn}");
    let kind = EventKind::LinkAsked { turn };
    InboundEvent { kind, language, ..message(&link.conversation, String::new(), "gateway", &key, at) }
}

/// The message to somebody who may decide what an agent asks approval for. What it says is decided when it is sent.
pub(crate) fn approval_asked(
    approval: ApprovalId,
    person: PersonId,
    to: &ConversationRef,
    language: Option<Language>,
    at: Timestamp,
) -> InboundEvent {
    let key = format!("approval:{approval}:{person}");
    let kind = EventKind::ApprovalAsked { approval, person };
    InboundEvent { kind, language, ..message(to, String::new(), "gateway", &key, at) }
}

/// The message that nobody answered a question in time; nothing is said if `told` is empty. It also closes the question.
pub(crate) fn expired(
    AskedQuestion { turn, address, .. }: &AskedQuestion,
    told: String,
    at: Timestamp,
) -> InboundEvent {
    InboundEvent {
        external_id: format!("expired:{turn}"),
        kind: EventKind::Expired { turn: *turn },
        ..message(address, told, "gateway", "", at)
    }
}

/// What somebody who was asked for an approval is told when it is not waited for any more.
pub(crate) fn approval_dropped(question: &AskedQuestion, action: &str, settings: &Settings) -> String {
    let template = settings.templates.template(&question.address.channel, question.language, "approval_dropped");
    filled(template, &[("action", verbatim(action))])
}

pub(crate) fn question_expired(
    channel: &ChannelId,
    language: Option<Language>,
    question: &str,
    settings: &Settings,
) -> String {
    let template = settings.templates.template(channel, language, "question_expired");
    filled(template, &[("question", excerpt(question, EXCERPT))])
}

/// What somebody who was asked for an approval is told when it is too late.
pub(crate) fn approval_expired(question: &AskedQuestion, action: &str, settings: &Settings) -> String {
    let template = settings.templates.template(&question.address.channel, question.language, "question_expired");
    filled(template, &[("question", verbatim(&excerpt(action, EXCERPT)))])
}
