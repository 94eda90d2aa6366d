//! Reads messages, new or edited.

use rejoinder_core::{
    Amends, Attachment, Author, ChatKind, ConversationRef, Directed, EventKind, InboundEvent, Quote, SenderKind, Voice,
};

use super::{ReadEvent, Reader};
use crate::{
    directory::ChannelInfo,
    payload::{File, Message},
};

/// The types of messages that people and applications write
/// (<https://discord.com/developers/docs/resources/message#message-object-message-types>).
mod kind {
    pub(super) const DEFAULT: u64 = 0;
    pub(super) const REPLY: u64 = 19;
    /// An application's response to a command.
    pub(super) const COMMANDS: [u64; 2] = [20, 23];
}

/// The type of a reference to a forwarded message.
const FORWARD: u64 = 1;

/// The flag of a voice message, which has one file (Discord's page "Message", `IS_VOICE_MESSAGE`).
const VOICE_MESSAGE: u64 = 1 << 13;

impl Reader<'_> {
    pub(super) fn message(&self, message: &Message, is_edit: bool) -> Option<ReadEvent> {
        let is_written = matches!(message.kind, kind::DEFAULT | kind::REPLY) || kind::COMMANDS.contains(&message.kind);
        // Discord updates messages too: a link gets its preview, a thread is started.
        let is_changed_by_its_author = !is_edit || message.edited_timestamp.is_some();
        if !is_written || !is_changed_by_its_author {
            return None;
        }
        let author = message.author.as_ref()?;
        let sender = self.sender(author, message.member.as_ref(), message.webhook_id);
        if sender.kind == SenderKind::Ourselves {
            return None;
        }
        let info = self.directory.channel(message.channel_id);
        let guild = message.guild_id.or_else(|| info.as_ref()?.guild);
        let chat = if guild.is_some() { ChatKind::Group } else { ChatKind::Direct };
        let text = self.whole_text(message);
        let attachments = whole_attachments(message);
        let directed = self.directed(message, chat, info.as_ref());
        let conversation = self.conversation_of(message, directed, info.as_ref(), sender.kind);
        let external_id = format!("{}:{}", message.channel_id, message.id);
        let event = InboundEvent {
            message_id: Some(message.id.to_string()),
            sent_at: Some(message.id.created_at()),
            directed,
            ..self.event(conversation, chat, external_id, sender)
        };
        let event = match (is_edit, &message.edited_timestamp) {
            (true, Some(at)) => InboundEvent { revision: millis(at), amends: Some(Amends::Replaces), ..event },
            _ => event,
        };
        if text.is_empty() && attachments.is_empty() {
            let has_more = !message.embeds.is_empty() || !message.components.is_empty();
            let is_hidden = chat == ChatKind::Group && !has_more && directed == Directed::Ambient;
            let event = InboundEvent { kind: EventKind::Other, amends: None, ..event };
            return Some(ReadEvent { is_hidden, ..ReadEvent::of(event, message.id) });
        }
        let replied_to = message.referenced_message.as_deref().filter(|_| message.kind == kind::REPLY);
        let quoted = replied_to.map(|it| self.quote(it)).filter(|quoted| !quoted.is_empty());
        // Discord does not say who wrote it first.
        let forwarded = is_forward(message).then(Author::unknown);
        let voice = voice(message);
        Some(ReadEvent::of(InboundEvent { text, attachments, voice, quoted, forwarded, ..event }, message.id))
    }

    fn quote(&self, message: &Message) -> Quote {
        let author = message.author.as_ref().filter(|_| !is_forward(message));
        let author = author.map(|author| self.sender(author, message.member.as_ref(), message.webhook_id).into());
        Quote {
            author: author.unwrap_or_else(Author::unknown),
            text: self.whole_text(message),
            attachments: whole_attachments(message),
            message_id: Some(message.id.to_string()),
        }
    }

    /// The conversation of a message. With `auto_thread`, a mention starts a thread, whose id will be the message's.
    fn conversation_of(
        &self,
        message: &Message,
        directed: Directed,
        info: Option<&ChannelInfo>,
        sender: SenderKind,
    ) -> ConversationRef {
        let conversation = self.conversation(message.channel_id, info);
        let opens_thread = self.options.auto_thread
            && directed == Directed::Mention
            && sender == SenderKind::Person
            && info.is_some_and(ChannelInfo::can_have_threads);
        if opens_thread { conversation.in_thread(&message.id.to_string()) } else { conversation }
    }

    fn directed(&self, message: &Message, chat: ChatKind, info: Option<&ChannelInfo>) -> Directed {
        if chat == ChatKind::Direct {
            return Directed::DirectChat;
        }
        let us = self.me.user;
        let guild = message.guild_id.or_else(|| info?.guild);
        let is_our_role = |role| guild.is_some_and(|guild| self.directory.is_our_role(guild, role) == Some(true));
        let answers_us = || {
            let to = message.referenced_message.as_deref().filter(|_| message.kind == kind::REPLY);
            to.and_then(|it| it.author.as_ref()).is_some_and(|author| author.id == us)
        };
        let is_our_thread =
            || self.options.auto_thread && info.is_some_and(|it| it.thread_of().is_some() && it.owner == Some(us));
        if self.mentions_us(&message.content) || message.mention_roles.iter().any(|role| is_our_role(*role)) {
            Directed::Mention
        } else if answers_us() {
            Directed::ReplyToUs
        } else if message.mentions.iter().any(|user| user.id == us) {
            Directed::Mention
        } else if is_our_thread() {
            // A message in a thread that we opened is directed at us.
            Directed::ReplyToUs
        } else {
            Directed::Ambient
        }
    }

    /// The text of a message, with lines for forwarded messages, stickers and polls.
    fn whole_text(&self, message: &Message) -> String {
        let mut lines = vec![self.plain_text(&message.content, &message.mentions)];
        for snapshot in message.message_snapshots.iter().filter(|_| is_forward(message)) {
            lines.push(self.plain_text(&snapshot.message.content, &[]));
        }
        lines.extend(message.sticker_items.iter().map(|sticker| format!("[sticker: {}]", sticker.name)));
        lines.extend(message.poll.iter().map(|poll| {
            let answers: Vec<&str> = poll.answers.iter().map(|answer| answer.poll_media.text.as_str()).collect();
            format!("[poll: {} {}]", poll.question.text, answers.join(" / "))
        }));
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }
}

fn voice(message: &Message) -> Option<Voice> {
    let recording = message.attachments.first().filter(|_| message.flags & VOICE_MESSAGE != 0)?;
    Some(Voice::lasting(recording.duration_secs))
}

fn is_forward(message: &Message) -> bool {
    message.message_reference.as_ref().is_some_and(|it| it.kind == FORWARD)
}

/// The files of a message, and of the one that it forwards.
fn whole_attachments(message: &Message) -> Vec<Attachment> {
    let forwarded = message.message_snapshots.iter().flat_map(|it| &it.message.attachments);
    attachments(message.attachments.iter().chain(forwarded))
}

pub(super) fn attachments<'a>(files: impl IntoIterator<Item = &'a File>) -> Vec<Attachment> {
    let attachment = |file: &File| Attachment {
        name: file.filename.clone(),
        media_type: file.content_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned()),
        url: file.url.clone(),
    };
    files.into_iter().map(attachment).collect()
}

/// Parses a time of Discord's to milliseconds; 0 if it is invalid.
fn millis(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond).unwrap_or_default()
}
