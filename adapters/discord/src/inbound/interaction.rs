//! Reads slash commands and pressed buttons.

use rejoinder_core::{ChatKind, Directed, EventKind, InboundEvent, Language};
use rejoinder_kit::picked;
use serde_json::Value;

use super::{INTERACTION, ReadEvent, Reader, message::attachments};
use crate::{
    commands::{ASK, FILE, PRIVATELY},
    directory::ChannelInfo,
    interactions::{EPHEMERAL, InteractionRecord},
    payload::{CommandOption, Interaction, Message, User},
    snowflake::Snowflake,
};

/// The types of interactions that are read.
mod kind {
    pub(super) const COMMAND: u64 = 2;
    pub(super) const COMPONENT: u64 = 3;
}

impl Reader<'_> {
    pub(super) fn interaction(&self, interaction: Interaction) -> Option<ReadEvent> {
        if !matches!(interaction.kind, kind::COMMAND | kind::COMPONENT) {
            return None;
        }
        let member = interaction.member.as_ref();
        let user: &User = interaction.user.as_ref().or_else(|| member?.user.as_ref())?;
        let sender = self.sender(user, member, None);
        let channel = interaction.channel_id.or_else(|| Some(interaction.channel.as_ref()?.id)).unwrap_or_default();
        let info = interaction.channel.as_ref().map(ChannelInfo::from).or_else(|| self.directory.channel(channel));
        let chat = if interaction.guild_id.is_some() { ChatKind::Group } else { ChatKind::Direct };
        let public = self.conversation(channel, info.as_ref());
        let is_private = chat == ChatKind::Group && is_private(&interaction);
        let user = user.id;
        let chat_id = Snowflake::parse(&public.chat).unwrap_or(channel);
        let conversation = if is_private { Self::private(&public, user) } else { public };
        let event = InboundEvent {
            language: interaction.locale.as_deref().and_then(Language::of),
            ..self.event(conversation, chat, format!("{INTERACTION}{}", interaction.id), sender)
        };
        let event = if interaction.kind == kind::COMMAND {
            command(&interaction, event)
        } else {
            component(&interaction, event)
        };
        let record = InteractionRecord {
            id: interaction.id,
            application: interaction.application_id,
            token: interaction.token,
            user,
            chat: chat_id,
            is_private,
            is_command: interaction.kind == kind::COMMAND,
            at: self.now,
            turn: None,
            answered_by: None,
        };
        Some(ReadEvent { event, message: None, interaction: Some(record), is_hidden: false })
    }
}

/// Whether the person asked for a private answer, or pressed a button of one.
fn is_private(interaction: &Interaction) -> bool {
    let option = interaction.data.iter().flat_map(|data| &data.options).find(|option| option.name == PRIVATELY);
    let is_asked = option.is_some_and(|option| option.value == Value::Bool(true));
    is_asked || interaction.message.as_ref().is_some_and(|message| message.flags & EPHEMERAL != 0)
}

fn command(interaction: &Interaction, event: InboundEvent) -> InboundEvent {
    let Some(data) = &interaction.data else { return InboundEvent { kind: EventKind::Other, ..event } };
    let is_input = |option: &&CommandOption| option.name != PRIVATELY && option.name != FILE;
    let input = data.options.iter().filter(is_input).map(|option| match &option.value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    });
    let input = input.collect::<Vec<_>>().join(" ");
    let text = match data.name.as_str() {
        ASK => input,
        // A command that the operator registered by hand is for the agent.
        name if input.is_empty() => format!("/{name}"),
        name => format!("/{name} {input}"),
    };
    InboundEvent {
        // There is no message to reply to: the answer replaces the "thinking" notice.
        message_id: Some(event.external_id.clone()),
        directed: Directed::Command,
        text,
        attachments: attachments(data.resolved.attachments.values()),
        ..event
    }
}

fn component(interaction: &Interaction, event: InboundEvent) -> InboundEvent {
    let message = interaction.message.as_deref();
    let custom_id = interaction.data.as_ref().map_or("", |data| &data.custom_id);
    let event = InboundEvent { message_id: message.map(|message| message.id.to_string()), ..event };
    let Some((turn, index)) = picked(custom_id) else { return InboundEvent { kind: EventKind::Other, ..event } };
    let label = message.and_then(|message| label_of(message, custom_id));
    let text = label.unwrap_or_else(|| (index + 1).to_string());
    // A press on our button is directed at us.
    InboundEvent { kind: EventKind::Choice { turn }, directed: Directed::ReplyToUs, text, ..event }
}

fn label_of(message: &Message, custom_id: &str) -> Option<String> {
    let rows = message.components.iter().filter_map(|row| row.get("components")?.as_array());
    let mut buttons = rows.flatten();
    let button = buttons.find(|button| button.get("custom_id").and_then(Value::as_str) == Some(custom_id))?;
    Some(button.get("label")?.as_str()?.to_owned())
}
