//! Renders what the guard cleared: the operator's templates, in parts that fit the platform.

use std::panic::AssertUnwindSafe;

use rejoinder_guard::{Attachment, Body, Choices, Cleared, Draft, Reply, Signal, SignalKind, Timestamp, Via};

use super::{albums, in_words::in_words, markdown::spoken};
use crate::{
    base::{
        verbatim::verbatim,
        words::{excerpt, filled},
    },
    model::{
        Action, AskedQuestion, Author, Capabilities, ChatKind, Class, Content, Delivery, DeliveryId, DeliveryRecord,
        DeliveryState, HistoryLine, Label, LineState, Question, Receipts, SenderKind, Settings, Shown, Speaker,
        Support, Templates, TurnRecord, agent_of, data_url, numbered,
    },
    ports::{ChannelAdapter, NewDelivery, TranscriptLine},
};

/// The name and the media type of the file that holds an answer of too many parts.
const ANSWER_FILE: (&str, &str) = ("answer.md", "text/markdown");

/// How many characters the person is told of an action that waits for approval.
const ACTION: usize = 300;

pub(crate) struct Rendered {
    pub(crate) deliveries: Vec<NewDelivery>,
    pub(crate) transcript: Vec<TranscriptLine>,
    pub(crate) shown: Shown,
    pub(crate) question: Option<AskedQuestion>,
}

/// The turn, channel and time that a signal is rendered for.
pub(crate) struct Target<'a> {
    pub(crate) turn: &'a TurnRecord,
    /// `None`: the channel is no longer configured.
    pub(crate) channel: Option<&'a dyn ChannelAdapter>,
    pub(crate) now: Timestamp,
    /// When the quiet hours end for which it waits.
    pub(crate) quiet_until: Option<Timestamp>,
}

impl Target<'_> {
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.channel.map_or_else(Capabilities::minimal, |channel| channel.capabilities(&self.turn.event.conversation))
    }

    /// When it is sent, and can be seen.
    fn seen_at(&self) -> Timestamp {
        self.quiet_until.unwrap_or(self.now)
    }

    /// A delivery that waits for its first attempt, or for the operator who holds the turn.
    fn pending(&self, claim: u32, class: Class, signal: SignalKind, via: Via, action: Action) -> DeliveryRecord {
        DeliveryRecord {
            id: DeliveryId::new(self.now),
            turn: self.turn.id,
            claim,
            part: 1,
            parts: 1,
            conversation_id: self.turn.conversation,
            conversation: self.turn.event.conversation.clone(),
            class,
            signal,
            via,
            is_copy: false,
            action,
            state: if self.turn.obligation.is_held() { DeliveryState::Held } else { DeliveryState::Pending },
            attempts: 0,
            next_attempt_at: self.seen_at(),
            label: None,
            // Answers to what somebody writes meanwhile do not wait for it.
            parked: self.quiet_until.is_some(),
            copies: 0,
            resend_from: None,
            message_ids: Vec::new(),
            error: None,
            created_at: self.now,
            retried_at: None,
            delivered_at: None,
            fetched_at: None,
        }
    }
}

/// Renders a cleared signal: its deliveries, its lines of the transcript, and its view for clients.
pub(crate) fn signal(
    cleared: &Cleared<Signal>,
    target: &Target<'_>,
    capabilities: &Capabilities,
    settings: &Settings,
) -> Rendered {
    let signal = cleared.get();
    let Target { turn, channel, now, .. } = *target;
    let asked = asked(signal, target, &settings.templates);
    let mut actions = actions(signal, asked.as_ref(), turn, channel, capabilities, settings);
    actions.extend(aloud(signal, asked.as_ref(), &actions, turn, capabilities, &settings.templates));
    let class = match signal.kind() {
        SignalKind::Reply => Class::Final,
        SignalKind::Deferral | SignalKind::Reaction => Class::Interim,
    };
    let parts = u32::try_from(actions.len()).unwrap_or(u32::MAX);
    let record = |part: u32, action: Action| DeliveryRecord {
        part,
        parts,
        ..target.pending(signal.claim, class, signal.kind(), signal.via.clone(), action)
    };
    let mut records: Vec<DeliveryRecord> =
        (1..).zip(&actions).map(|(part, action)| record(part, action.clone())).collect();
    if capabilities.receipts != Receipts::Platform {
        // The row is the receipt: it is delivered once it is stored.
        for record in &mut records {
            record.state = DeliveryState::Delivered;
            record.message_ids = vec![record.id.to_string()];
            record.delivered_at = Some(now);
        }
    }
    let agent = agent_of(&turn.handler, &turn.obligation);
    let shown = Shown::of(&records, agent.as_ref(), due(signal)).expect("a signal has at least one part");
    if capabilities.receipts == Receipts::RowThenCopy && signal.kind() != SignalKind::Deferral {
        let state = DeliveryState::Pending;
        let copy = |(part, action)| DeliveryRecord { is_copy: true, state, ..record(part, action) };
        records.extend((1..).zip(actions).map(copy));
    }
    Rendered {
        transcript: transcript(signal, asked.as_ref(), &shown, turn, capabilities.receipts, now),
        deliveries: records.into_iter().map(NewDelivery::new).collect(),
        shown,
        question: asked,
    }
}

/// The question with choices that a signal asks: the agent's, or a guided one.
fn asked(signal: &Signal, target: &Target<'_>, templates: &Templates) -> Option<AskedQuestion> {
    let turn = target.turn;
    let (text, choices, anyone) = match &signal.body {
        Body::Reply(Reply { text, choices: Some(choices), .. }) | Body::Question { text, choices } => {
            (text.clone(), choices.clone(), false)
        }
        Body::Ask(name) => {
            let Question { text, choices, anyone } =
                templates.question(&turn.event.conversation.channel, turn.event.language, name)?.clone();
            (text, Choices { options: choices, free_text: true, expires: None }, anyone)
        }
        _ => return None,
    };
    // What nobody asked for is for everybody.
    let has_asker = turn.event.sender.kind != SenderKind::Operator;
    let is_for_one = turn.event.chat == ChatKind::Group && !anyone && has_asker;
    Some(AskedQuestion {
        turn: turn.id,
        claim: signal.claim,
        conversation: turn.conversation,
        address: turn.event.conversation.clone(),
        chooser: is_for_one.then(|| turn.event.sender.id.clone()),
        text,
        choices: choices.options,
        free_text: choices.free_text,
        // It grows old from when it can be seen.
        asked_at: target.seen_at(),
        expires_at: choices.expires.map(|at| at + target.seen_at().since(target.now)),
        language: turn.event.language,
    })
}

/// Renders the message of a draft: the first part of its text.
pub(crate) fn draft(cleared: &Cleared<Draft>, target: &Target<'_>) -> NewDelivery {
    let text = parts(target.channel, &cleared.get().text).into_iter().next().unwrap_or_default();
    let content = Content { text, ..Content::default() };
    let action = Action::Send { content, reply_to: target.turn.event.message_id.clone() };
    NewDelivery::new(target.pending(Draft::CLAIM, Class::Interim, SignalKind::Reply, Via::Draft, action))
}

const fn due(signal: &Signal) -> Option<Timestamp> {
    match signal.body {
        Body::Defer { due, .. } => Some(due),
        _ => None,
    }
}

fn actions(
    signal: &Signal,
    asked: Option<&AskedQuestion>,
    turn: &TurnRecord,
    channel: Option<&dyn ChannelAdapter>,
    capabilities: &Capabilities,
    settings: &Settings,
) -> Vec<Action> {
    let templates = &settings.templates;
    let (channel_id, language) = (&turn.event.conversation.channel, turn.event.language);
    let say = |template: &str| templates.template(channel_id, language, template).to_owned();
    let content = match &signal.body {
        Body::Reply(reply) => {
            let (attachments, sealed) = (reply.attachments.clone(), reply.sealed.clone());
            Content { attachments, sealed, ..said(&reply.text, asked, capabilities) }
        }
        Body::Say(template) => Content { text: say(template), ..Content::default() },
        // The operator has removed the question.
        Body::Ask(_) if asked.is_none() => Content { text: say("silent"), ..Content::default() },
        Body::Ask(_) => said("", asked, capabilities),
        Body::Defer { note, .. } => {
            Content { text: note.clone().unwrap_or_else(|| say("deferral")), ..Content::default() }
        }
        Body::Question { text, .. } => said(text, asked, capabilities),
        Body::Wait(action) => {
            let text = filled(&say("approval_waits"), &[("action", verbatim(&excerpt(action, ACTION)))]);
            Content { text, ..Content::default() }
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
    let mut earlier = shown_before(signal, capabilities).peekable();
    // A message that is in the chat becomes the text, and has no files.
    let may_caption = earlier.peek().is_none() && !turn.obligation.is_draft_pending();
    let mut actions: Vec<Action> = contents(content, channel, capabilities, settings.max_parts, may_caption, say)
        .into_iter()
        .enumerate()
        .map(|(index, content)| {
            // A text message cannot be edited into a file.
            let message = if content.attachments.is_empty() { earlier.next() } else { None };
            let reply_to = turn.event.message_id.clone().filter(|_| index == 0);
            match message {
                Some(message) => Action::Edit { message, content, reply_to },
                None => Action::Send { content, reply_to },
            }
        })
        .collect();
    // Delete the messages of a deferral or a draft that the answer has no part for.
    actions.extend(earlier.map(|message| Action::Delete { message }));
    actions
}

/// The message in which a voice says the answer, below its text: its sound is made before it is sent.
fn aloud(
    signal: &Signal,
    asked: Option<&AskedQuestion>,
    actions: &[Action],
    turn: &TurnRecord,
    capabilities: &Capabilities,
    templates: &Templates,
) -> Option<Action> {
    if !turn.event.speaks || !capabilities.may_speak() || signal.kind() != SignalKind::Reply {
        return None;
    }
    let text = match (&signal.body, asked) {
        (_, Some(question)) => numbered(&question.text, &question.choices),
        (Body::Reply(reply), None) if reply.sealed.is_some() => return None,
        // Also what was cut off, or is in a file.
        (Body::Reply(reply), None) => reply.text.clone(),
        _ => match actions.first()? {
            Action::Send { content, .. } | Action::Edit { content, .. } => content.text.clone(),
            _ => return None,
        },
    };
    let of_channel = || templates.language(&turn.event.conversation.channel, None);
    let words = in_words(&spoken(&text), turn.event.language.or_else(of_channel));
    if words.trim().is_empty() {
        return None;
    }
    let content = Content { spoken: Some(words), ..Content::default() };
    Some(Action::Send { content, reply_to: None })
}

/// The messages of the turn that the answer replaces: its deferral's and its draft's. None where the platform cannot
/// edit.
fn shown_before<'a>(signal: &'a Signal, capabilities: &Capabilities) -> impl Iterator<Item = String> + use<'a> {
    let may_edit = capabilities.edit == Support::Full;
    signal.replaces.iter().filter(move |_| may_edit).cloned()
}

/// Splits a content into messages: its text in parts and, where the platform acknowledges messages, its files in albums. The first
/// of them has the text if that is short and `may_caption`.
fn contents(
    content: Content,
    channel: Option<&dyn ChannelAdapter>,
    capabilities: &Capabilities,
    max_parts: usize,
    may_caption: bool,
    say: impl Fn(&str) -> String,
) -> Vec<Content> {
    let Content { text, attachments, choices, chooser, sealed, .. } = content;
    let are_apart = capabilities.receipts == Receipts::Platform;
    let has_text = !text.trim().is_empty() || attachments.is_empty() || !are_apart;
    let mut texts = if has_text { parts(channel, &text) } else { Vec::new() };
    let rest = (are_apart && texts.len() > max_parts).then(|| {
        if capabilities.attachments == Support::Full {
            texts.truncate(1);
            Content { text: say("in_file"), attachments: vec![answer_file(&text)], ..Content::default() }
        } else {
            texts.truncate(max_parts);
            Content { text: say("cut_long"), ..Content::default() }
        }
    });
    let mut contents: Vec<Content> = texts.into_iter().map(|text| Content { text, ..Content::default() }).collect();
    contents.extend(rest);
    // Not the file that holds a text which is too long.
    if let Some(last) = contents.iter_mut().rfind(|content| content.attachments.is_empty()) {
        (last.choices, last.chooser) = (choices, chooser);
    }
    if are_apart {
        let mut files = albums::messages(attachments, channel, capabilities);
        if let Some(first) = files.first_mut()
            && may_caption
            && albums::is_caption(&contents, channel, capabilities)
        {
            first.text = contents.pop().unwrap_or_default().text;
        }
        contents.extend(files);
    } else if let Some(last) = contents.last_mut() {
        (last.attachments, last.sealed) = (attachments, sealed);
    }
    contents
}

/// A file with the whole answer, as an agent's own file would be sent: its bytes are in its URL.
pub(crate) fn answer_file(text: &str) -> Attachment {
    let (name, media_type) = ANSWER_FILE;
    text_file(name, media_type, text)
}

pub(crate) fn text_file(name: &str, media_type: &str, text: &str) -> Attachment {
    let url = data_url(media_type, text.as_bytes());
    Attachment { name: name.to_owned(), media_type: media_type.to_owned(), url }
}

/// The parts of a text. If the adapter panics or returns none, the text is one part.
pub(crate) fn parts(channel: Option<&dyn ChannelAdapter>, text: &str) -> Vec<String> {
    let split = channel.and_then(|channel| std::panic::catch_unwind(AssertUnwindSafe(|| channel.parts(text))).ok());
    split.filter(|parts| !parts.is_empty()).unwrap_or_else(|| vec![text.to_owned()])
}

/// The content of a question, with its choices as the channel shows them; of a text if nothing is asked.
fn said(text: &str, asked: Option<&AskedQuestion>, capabilities: &Capabilities) -> Content {
    let Some(AskedQuestion { text, choices, chooser, .. }) = asked else {
        return Content { text: text.to_owned(), ..Content::default() };
    };
    if capabilities.choices == Support::Full {
        let (text, choices, chooser) = (text.clone(), choices.clone(), chooser.clone());
        return Content { text, choices, chooser, ..Content::default() };
    }
    Content { text: numbered(text, choices), ..Content::default() }
}

/// The lines of the turn for the transcript: the person's message and the signal. A question has its choices as a numbered list.
fn transcript(
    signal: &Signal,
    asked: Option<&AskedQuestion>,
    shown: &Shown,
    turn: &TurnRecord,
    receipts: Receipts,
    now: Timestamp,
) -> Vec<TranscriptLine> {
    if !turn.is_recorded() {
        return Vec::new();
    }
    let is_ours = turn.handler.is_gateway() || signal.via.is_gateways();
    let speaker = match signal.kind() {
        // There is no answer yet.
        SignalKind::Deferral if is_ours => return Vec::new(),
        _ if is_ours => Speaker::Gateway,
        SignalKind::Deferral | SignalKind::Reply | SignalKind::Reaction => Speaker::Agent,
    };
    // Without a line, the agent would be given the message again as unanswered.
    let text = match signal.kind() {
        SignalKind::Reaction => format!("[reacted with {}]", shown.text),
        SignalKind::Deferral | SignalKind::Reply => match (&signal.body, asked) {
            (_, Some(question)) => numbered(&question.text, &question.choices),
            // Also what was cut off, or is in a file.
            (Body::Reply(reply), None) => reply.text.clone(),
            _ => shown.text.clone(),
        },
    };
    // After the messages that it answers as well.
    let seq = turn.obligation.merged_turns().last().map_or(turn.seq, |merged| merged.place);
    let state = if receipts == Receipts::Platform { LineState::OnItsWay } else { LineState::Seen };
    let line = HistoryLine { spoken: false, speaker, author: None, forwarded: None, text, at: now, state };
    let ours = TranscriptLine { session: turn.session, turn: turn.id, seq, claim: signal.claim, line };
    persons_line(turn, LineState::Seen).into_iter().chain([ours]).collect()
}

/// The line of what the person wrote, or of what the gateway told the agent to do, for the transcript. A picture or a reaction has
/// no text. An operator's text is the message that is sent.
pub(crate) fn persons_line(turn: &TurnRecord, state: LineState) -> Option<TranscriptLine> {
    let event = &turn.event;
    let is_prompt = event.is_prompt();
    if event.text.trim().is_empty() || event.is_on_copy() || (event.sender.kind == SenderKind::Operator && !is_prompt) {
        return None;
    }
    let author = (event.chat == ChatKind::Group || is_prompt).then(|| Author::from(event.sender.clone()));
    let (forwarded, text, at) = (event.forwarded.clone(), event.text.clone(), event.received_at);
    let line = HistoryLine { speaker: Speaker::Person, author, forwarded, text, spoken: event.is_spoken(), at, state };
    Some(TranscriptLine { session: turn.session, turn: turn.id, seq: turn.seq, claim: 0, line })
}

/// Turns a stored delivery into the one that the adapter gets for the given attempt. `is_overtaken`: later deliveries of
/// its conversation were sent before it. `say`: the operator's text with this name.
pub(crate) fn delivery<'a>(
    record: &DeliveryRecord,
    attempt: u32,
    is_overtaken: bool,
    say: impl Fn(&str) -> &'a str,
) -> Delivery {
    let labels = [record.label.map(Label::as_str), is_overtaken.then_some("overtaken")];
    let labels: Vec<&str> = labels.into_iter().flatten().map(say).collect();
    Delivery {
        id: record.id,
        conversation: record.conversation.clone(),
        turn: record.turn,
        part: record.part,
        parts: record.parts,
        via: Some(record.via.clone()),
        signal: Some(record.signal).filter(|_| !record.is_draft()),
        action: record.action.clone(),
        attempt,
        is_overtaken,
        label: (!labels.is_empty()).then(|| labels.join("\n")),
    }
}
