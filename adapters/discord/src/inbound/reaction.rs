//! Reads a reaction that was added or removed, and the removal of everybody's.

use rejoinder_core::{ChatKind, Directed, EventKind, InboundEvent, Quote, Sender, SenderKind};

use super::{REACTION_ADDED, ReadEvent, Reader};
use crate::{
    payload::{Emoji, Reaction, RemovedReactions},
    snowflake::Snowflake,
};

impl Reader<'_> {
    pub(super) fn reaction(&self, reaction: &Reaction, seq: u64, is_added: bool) -> Option<ReadEvent> {
        let us = self.me.user;
        let event = self.reacts(reaction, seq, is_added);
        let is_ours = event.quoted.is_some() || reaction.message_author_id == Some(us);
        (is_ours && reaction.user_id != us).then_some(ReadEvent {
            event,
            message: None,
            interaction: None,
            is_hidden: false,
        })
    }

    /// A reaction to a message that is not known, and may be one of ours from before the start. Discord says whose it is only when a
    /// reaction is added: <https://discord.com/developers/docs/events/gateway-events#message-reaction-remove>.
    pub(crate) fn unknown_reaction(&self, kind: &str, data: &str, seq: u64) -> Option<(InboundEvent, Snowflake)> {
        let reaction: Reaction = serde_json::from_str(data).ok()?;
        let us = self.me.user;
        let may_be_ours = reaction.message_author_id.is_none_or(|author| author == us) && reaction.user_id != us;
        let is_unknown = may_be_ours && self.sent.get(&reaction.message_id).is_none();
        is_unknown.then(|| (self.reacts(&reaction, seq, kind == REACTION_ADDED), reaction.message_id))
    }

    fn reacts(&self, reaction: &Reaction, seq: u64, is_added: bool) -> InboundEvent {
        let user = reaction.member.as_ref().and_then(|member| member.user.as_ref());
        let sender = match user {
            Some(user) => self.sender(user, reaction.member.as_ref(), None),
            // In a direct chat there is no member; only the person can react.
            None => Sender { id: reaction.user_id.to_string(), name: None, username: None, kind: SenderKind::Person },
        };
        let info = self.directory.channel(reaction.channel_id);
        let chat = if reaction.guild_id.is_some() { ChatKind::Group } else { ChatKind::Direct };
        let quoted = self.sent.get(&reaction.message_id);
        let emoji = named(&reaction.emoji);
        let what = if is_added { "added" } else { "removed" };
        let (channel, message) = (reaction.channel_id, reaction.message_id.to_string());
        // Discord gives a reaction no id. If it is added, removed and added again, only the event's number differs.
        let external_id = format!("reaction:{channel}:{message}:{}:{emoji}:{what}:{seq}", sender.id);
        let (emoji, removed) = if is_added { (emoji, None) } else { (String::new(), Some(emoji)) };
        InboundEvent {
            kind: EventKind::Reaction { message: message.clone(), emoji, removed },
            message_id: Some(message),
            directed: if chat == ChatKind::Direct { Directed::DirectChat } else { Directed::ReplyToUs },
            quoted: quoted.map(|message| Quote::of_ours(&message.text)),
            ..self.event(self.conversation(channel, info.as_ref()), chat, external_id, sender)
        }
    }

    /// Also of a message that is not known as ours: the core finds the answer in it.
    pub(super) fn removed_reactions(&self, removed: &RemovedReactions, seq: u64) -> ReadEvent {
        let sender = Sender { id: "0".to_owned(), name: None, username: None, kind: SenderKind::OtherAgent };
        let info = self.directory.channel(removed.channel_id);
        let chat = if removed.guild_id.is_some() { ChatKind::Group } else { ChatKind::Direct };
        let (channel, message) = (removed.channel_id, removed.message_id.to_string());
        let emoji = removed.emoji.as_ref().map(named);
        let external_id = format!("reactions:{channel}:{message}:removed:{seq}");
        let event = InboundEvent {
            kind: EventKind::ReactionsRemoved { message: message.clone(), emoji },
            message_id: Some(message),
            ..self.event(self.conversation(channel, info.as_ref()), chat, external_id, sender)
        };
        ReadEvent { event, message: None, interaction: None, is_hidden: false }
    }
}

fn named(emoji: &Emoji) -> String {
    match &emoji.name {
        Some(name) if emoji.id.is_some() => format!(":{name}:"),
        Some(name) => name.clone(),
        None => "[emoji]".to_owned(),
    }
}
