//! From a cleared signal to stored deliveries, and from a stored delivery to the platform.
//!
//! Nothing is sent that is not a row first, and no row is made but from what the guard cleared.

pub(crate) mod calls;
pub(crate) mod dispatcher;
pub(crate) mod gate;
pub(crate) mod hints;
pub(crate) mod retry;

use std::{panic::AssertUnwindSafe, time::Duration};

use rejoinder_guard::{Body, Cleared, Draft, Signal};

use crate::{
    Action, Capabilities, ChannelAdapter, ChatKind, Class, Content, ConversationRef, Delivery, DeliveryId, Line,
    Receipts, Resend, SignalKind, Speaker, Support, Timestamp, Via, Words, commands,
    store::{DeliveryRecord, DeliveryState, NewDelivery, Shown, TranscriptLine, TurnRecord},
};

/// A signal in the words and parts of its channel.
pub(crate) struct Rendered {
    pub(crate) deliveries: Vec<NewDelivery>,
    pub(crate) transcript: Vec<TranscriptLine>,
    pub(crate) shown: Shown,
}

/// Puts a cleared signal into the words of the operator and the parts of the platform.
pub(crate) fn render(
    cleared: &Cleared<Signal>,
    turn: &TurnRecord,
    address: &ConversationRef,
    channel: Option<&dyn ChannelAdapter>,
    capabilities: &Capabilities,
    words: &Words,
    now: Timestamp,
) -> Rendered {
    let signal = cleared.get();
    let actions = actions(signal, turn, channel, capabilities, words);
    let class = match signal.kind() {
        SignalKind::Reply => Class::Final,
        SignalKind::Deferral | SignalKind::Reaction => Class::Interim,
    };
    let parts = u32::try_from(actions.len()).unwrap_or(u32::MAX);
    let by_row = capabilities.receipts != Receipts::Platform;
    let record = |part: u32, action: Action, is_copy: bool| {
        let delivered = by_row && !is_copy;
        let id = DeliveryId::new(now);
        DeliveryRecord {
            id,
            turn: turn.id,
            claim: signal.claim,
            part,
            parts,
            conversation: address.clone(),
            class,
            signal: signal.kind(),
            via: signal.via.clone(),
            is_copy,
            action,
            state: if delivered { DeliveryState::Delivered } else { DeliveryState::Pending },
            attempts: 0,
            next_attempt_at: now,
            labelled: false,
            message_ids: if delivered { vec![id.to_string()] } else { Vec::new() },
            error: None,
            created_at: now,
            delivered_at: delivered.then_some(now),
            fetched_at: None,
        }
    };
    let mut records: Vec<DeliveryRecord> =
        (1..).zip(&actions).map(|(part, action)| record(part, action.clone(), false)).collect();
    let shown = Shown::of(&records, due(signal)).expect("a signal has at least one part");
    if capabilities.receipts == Receipts::RowThenCopy && signal.kind() != SignalKind::Deferral {
        records.extend((1..).zip(actions).map(|(part, action)| record(part, action, true)));
    }
    Rendered {
        transcript: transcript(signal, &shown, turn, now),
        deliveries: records.into_iter().map(NewDelivery::new).collect(),
        shown,
    }
}

/// The message of a draft: as much of the text as its first part holds.
pub(crate) fn draft(
    cleared: &Cleared<Draft>,
    turn: &TurnRecord,
    address: &ConversationRef,
    channel: Option<&dyn ChannelAdapter>,
    now: Timestamp,
) -> NewDelivery {
    let text = parts(channel, &cleared.get().text).into_iter().next().unwrap_or_default();
    let content = Content { text, ..Content::default() };
    NewDelivery::new(DeliveryRecord {
        id: DeliveryId::new(now),
        turn: turn.id,
        claim: Draft::CLAIM,
        part: 1,
        parts: 1,
        conversation: address.clone(),
        class: Class::Draft,
        signal: SignalKind::Reply,
        via: Via::Draft,
        is_copy: false,
        action: Action::Send { content, reply_to: turn.event.message_id.clone() },
        state: DeliveryState::Pending,
        attempts: 0,
        next_attempt_at: now,
        labelled: false,
        message_ids: Vec::new(),
        error: None,
        created_at: now,
        delivered_at: None,
        fetched_at: None,
    })
}

const fn due(signal: &Signal) -> Option<Timestamp> {
    match signal.body {
        Body::Defer { due, .. } => Some(due),
        _ => None,
    }
}

fn actions(
    signal: &Signal,
    turn: &TurnRecord,
    channel: Option<&dyn ChannelAdapter>,
    capabilities: &Capabilities,
    words: &Words,
) -> Vec<Action> {
    let say = |template: &str| words.say(&turn.event.conversation.channel, template).to_owned();
    let content = match &signal.body {
        Body::Reply(reply) => {
            Content { text: reply.text.clone(), attachments: reply.attachments.clone(), ..Content::default() }
        }
        Body::Say(template) => Content { text: say(template), ..Content::default() },
        Body::Ask(name) => question(name, turn, capabilities, words, say("silent")),
        Body::Defer { note, .. } => {
            Content { text: note.clone().unwrap_or_else(|| say("deferral")), ..Content::default() }
        }
        Body::React(emoji) if capabilities.reactions == Support::No => {
            Content { text: emoji.clone(), ..Content::default() }
        }
        Body::React(emoji) => {
            let react = Action::React { message: turn.event.message_id.clone(), emoji: emoji.clone() };
            let remove = |message| Action::Delete { message };
            return std::iter::once(react).chain(shown_before(signal, capabilities).map(remove)).collect();
        }
    };
    let mut earlier = shown_before(signal, capabilities);
    let mut actions: Vec<Action> = contents(content, channel, capabilities)
        .into_iter()
        .enumerate()
        .map(|(index, content)| {
            // A message of words does not become a file.
            let message = if content.attachments.is_empty() { earlier.next() } else { None };
            let reply_to = turn.event.message_id.clone().filter(|_| index == 0);
            match message {
                Some(message) => Action::Edit { message, content, reply_to },
                None => Action::Send { content, reply_to },
            }
        })
        .collect();
    // What is left of a longer deferral or a draft, once the answer is there.
    actions.extend(earlier.map(|message| Action::Delete { message }));
    actions
}

/// The messages of the turn that the answer takes the place of: its deferral's, and its draft.
fn shown_before<'a>(signal: &'a Signal, capabilities: &Capabilities) -> impl Iterator<Item = String> + use<'a> {
    let may_edit = capabilities.edit == Support::Full;
    signal.replaces.iter().filter(move |_| may_edit).cloned()
}

/// A content in the messages that it takes: its words in parts, and where a platform acknowledges messages
/// every file by itself, so that one that is not taken never takes the words with it.
fn contents(content: Content, channel: Option<&dyn ChannelAdapter>, capabilities: &Capabilities) -> Vec<Content> {
    let Content { text, attachments, choices, chooser } = content;
    let are_apart = capabilities.receipts == Receipts::Platform;
    let has_words = !text.trim().is_empty() || attachments.is_empty() || !are_apart;
    let texts = if has_words { parts(channel, &text) } else { Vec::new() };
    let mut contents: Vec<Content> = texts.into_iter().map(|text| Content { text, ..Content::default() }).collect();
    if let Some(last) = contents.last_mut() {
        (last.choices, last.chooser) = (choices, chooser);
    }
    if are_apart {
        let apart = |attachment| Content { attachments: vec![attachment], ..Content::default() };
        contents.extend(attachments.into_iter().map(apart));
    } else if let Some(last) = contents.last_mut() {
        last.attachments = attachments;
    }
    contents
}

/// The parts of a text. An adapter that fails at it is no reason to say nothing: the text is one part then.
fn parts(channel: Option<&dyn ChannelAdapter>, text: &str) -> Vec<String> {
    let split = channel.and_then(|channel| std::panic::catch_unwind(AssertUnwindSafe(|| channel.parts(text))).ok());
    split.filter(|parts| !parts.is_empty()).unwrap_or_else(|| vec![text.to_owned()])
}

/// What to count on where a channel is not configured any more: its deliveries wait for it as rows.
pub(crate) const fn least_capabilities() -> Capabilities {
    Capabilities {
        receipts: Receipts::Platform,
        resend: Resend::Ambiguous,
        edit: Support::No,
        reactions: Support::No,
        allowed_reactions: None,
        choices: Support::No,
        attachments: Support::No,
        drafts: Support::No,
        drafts_are_messages: false,
        draft_interval: Duration::ZERO,
        typing: Support::No,
        typing_interval: Duration::ZERO,
        typing_ends_by_itself: true,
        text_limit: None,
        conversation_rate: None,
        account_rate: None,
    }
}

fn question(name: &str, turn: &TurnRecord, capabilities: &Capabilities, words: &Words, otherwise: String) -> Content {
    let Some(question) = words.question(name) else {
        return Content { text: otherwise, ..Content::default() };
    };
    if capabilities.choices == Support::Full {
        let is_for_one = turn.event.chat == ChatKind::Group && !question.anyone;
        let chooser = is_for_one.then(|| turn.event.sender.id.clone());
        let (text, choices) = (question.text.clone(), question.choices.clone());
        return Content { text, choices, chooser, ..Content::default() };
    }
    let mut text = format!("{}\n", question.text);
    for (number, choice) in (1..).zip(&question.choices) {
        text.push('\n');
        text.push_str(&number.to_string());
        text.push_str(". ");
        text.push_str(choice);
    }
    Content { text, ..Content::default() }
}

/// What the agent will know of this turn later: what the person said, and what they saw. An answer takes the place of
/// what the agent said when it put the answer off.
fn transcript(signal: &Signal, shown: &Shown, turn: &TurnRecord, now: Timestamp) -> Vec<TranscriptLine> {
    let event = &turn.event;
    let line = |speaker, text: &str, at| TranscriptLine {
        session: turn.session,
        turn: turn.id,
        line: Line { speaker, name: None, text: text.to_owned(), at },
    };
    let ours = match signal.kind() {
        SignalKind::Deferral if is_gateways_own(turn) => return Vec::new(),
        SignalKind::Reaction => None,
        SignalKind::Reply if is_ours(signal, turn) => Some(line(Speaker::Gateway, &shown.text, now)),
        SignalKind::Deferral | SignalKind::Reply => Some(line(Speaker::Agent, &shown.text, now)),
    };
    let mut person = line(Speaker::Person, &event.text, event.received_at);
    person.line.name = event.sender.name.clone().filter(|_| event.chat == ChatKind::Group);
    // A picture or a reaction has no words.
    let has_words = !event.text.trim().is_empty();
    has_words.then_some(person).into_iter().chain(ours).collect()
}

/// Whether a deferral is made because there is no answer yet, and not by the agent. The answer takes its place.
fn is_gateways_own(turn: &TurnRecord) -> bool {
    turn.obligation.is_running() || turn.obligation.is_waiting()
}

/// Whether the words are the gateway's: the ladder's, or the answer to a command.
fn is_ours(signal: &Signal, turn: &TurnRecord) -> bool {
    let is_answer = matches!(signal.body, Body::Reply(_));
    &*turn.agent == commands::AGENT || (matches!(signal.via, Via::Fallback { .. }) && !is_answer)
}

/// A stored delivery, as it is handed to its adapter for its next attempt.
pub(crate) fn delivery(record: &DeliveryRecord, attempt: u32, words: &Words) -> Delivery {
    Delivery {
        id: record.id,
        conversation: record.conversation.clone(),
        turn: Some(record.turn),
        part: record.part,
        parts: record.parts,
        via: Some(record.via.clone()),
        signal: Some(record.signal).filter(|_| !record.is_draft()),
        action: record.action.clone(),
        attempt,
        label: record.labelled.then(|| words.say(&record.conversation.channel, "resent").to_owned()),
    }
}
