//! Where a sent message is, as stored in a receipt.

use rejoinder_core::{ConversationRef, DeliveryError};

use crate::snowflake::Snowflake;

/// Where a sent message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// In the conversation's channel.
    Message(Snowflake),
    /// Private: reachable only by the token of this interaction. Holds the ids of the interaction and the message.
    Interaction(Snowflake, Snowflake),
    /// In a direct chat, as the answer to a private request. Holds the ids of the chat and the message.
    Direct(Snowflake, Snowflake),
}

impl Address {
    pub(super) fn to_text(self) -> String {
        match self {
            Self::Message(message) => message.to_string(),
            Self::Interaction(interaction, message) => format!("i:{interaction}:{message}"),
            Self::Direct(chat, message) => format!("d:{chat}:{message}"),
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let pair = |text: &str| {
            let (first, second) = text.split_once(':')?;
            Some((Snowflake::parse(first)?, Snowflake::parse(second)?))
        };
        if let Some(rest) = text.strip_prefix("i:") {
            return pair(rest).map(|(interaction, message)| Self::Interaction(interaction, message));
        }
        if let Some(rest) = text.strip_prefix("d:") {
            return pair(rest).map(|(chat, message)| Self::Direct(chat, message));
        }
        Snowflake::parse(text).map(Self::Message)
    }
}

/// The channel of a conversation, and its thread.
pub(super) fn channels(conversation: &ConversationRef) -> Result<(Snowflake, Option<Snowflake>), DeliveryError> {
    let parse = |id: &str| {
        Snowflake::parse(id).ok_or_else(|| DeliveryError::Refused(format!("`{id}` is not a Discord channel")))
    };
    let thread = conversation.thread.as_deref().map(parse).transpose()?;
    Ok((parse(&conversation.chat)?, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_as_it_was() {
        let id = |text: &str| Snowflake::parse(text).expect("an id");
        let all =
            [Address::Message(id("1")), Address::Interaction(id("1"), id("2")), Address::Direct(id("3"), id("4"))];

        for address in all {
            assert_eq!(Address::parse(&address.to_text()), Some(address));
        }
        assert_eq!(Address::parse("typing"), None);
    }
}
