//! The destination of an agent's answer to a prompt of the gateway, and what the prompt leaves in the session.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::model::{
    conversation::{ChannelId, ConversationRef},
    target::Target,
};

const CHAT: &str = "chat";
const NOWHERE: &str = "nowhere";

/// What becomes of the words of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    #[serde(default, skip_serializing_if = "WordsTo::is_chat")]
    pub to: WordsTo,
    #[serde(default, skip_serializing_if = "PromptSession::is_current")]
    pub session: PromptSession,
}

/// The session in which a prompt is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptSession {
    /// That of the conversation: the prompt and the answer are remembered there.
    #[default]
    Current,
    /// A copy of it: it stays as it is.
    Copy,
}

impl PromptSession {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_current(&self) -> bool {
        *self == Self::Current
    }
}

impl Words {
    /// Whether they are said in the chat, and remembered there.
    pub fn are_ordinary(&self) -> bool {
        *self == Self::default()
    }
}

/// Where the words of a prompt go. Written `chat`, `nowhere`, `words.journal`, `telegram.main/42` or `ada`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WordsTo {
    /// The conversation whose history the agent gets.
    #[default]
    Chat,
    /// A channel of the platform [`words`](Self::PLATFORM): a file, a URL, or the record alone.
    Channel(ChannelId),
    /// Another conversation, or a known person, where they are reached.
    Other(Target),
}

impl WordsTo {
    /// The platform whose channels are places for words, and not for people.
    pub const PLATFORM: &str = "words";

    /// The name of the channel for `nowhere`.
    pub const NOWHERE: &str = NOWHERE;

    /// The channel that it names.
    pub const fn channel(&self) -> Option<&ChannelId> {
        match self {
            Self::Chat => None,
            Self::Channel(channel) => Some(channel),
            Self::Other(target) => target.channel(),
        }
    }

    fn is_chat(&self) -> bool {
        *self == Self::Chat
    }

    /// The conversation on a channel of words that belongs to `source`.
    pub(crate) fn address_of(channel: &ChannelId, source: &ConversationRef) -> ConversationRef {
        let chat = match &source.thread {
            Some(thread) => format!("{}/{thread}", source.chat),
            None => source.chat.to_string(),
        };
        ConversationRef::new(channel.clone(), source.channel.as_str()).in_thread(&chat)
    }
}

/// A text does not say where words go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be chat, nowhere, a channel such as words.journal (files and URLs are configured as [channels.words.NAME]), a \
     conversation (CHANNEL/CHAT or CHANNEL/CHAT/THREAD), or the name of a person"
)]
pub struct NotAPlaceForWords;

impl FromStr for WordsTo {
    type Err = NotAPlaceForWords;

    fn from_str(text: &str) -> Result<Self, NotAPlaceForWords> {
        let text = text.trim();
        match text {
            CHAT => return Ok(Self::Chat),
            NOWHERE => return Ok(Self::Channel(ChannelId::new(Self::PLATFORM, NOWHERE))),
            _ => {}
        }
        let name = text.strip_prefix(Self::PLATFORM).and_then(|rest| rest.strip_prefix('.'));
        if let Some(name) = name.filter(|name| !name.is_empty() && !name.contains('/')) {
            return Ok(Self::Channel(ChannelId::new(Self::PLATFORM, name)));
        }
        let is_location = text.contains("://") || text.starts_with("file:") || name.is_some_and(str::is_empty);
        match text.parse() {
            // Each of several people would cost a run.
            Ok(Target::Role(_)) | Err(_) => Err(NotAPlaceForWords),
            Ok(_) if is_location => Err(NotAPlaceForWords),
            Ok(target) => Ok(Self::Other(target)),
        }
    }
}

impl fmt::Display for WordsTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chat => f.write_str(CHAT),
            Self::Channel(channel) if channel.name() == NOWHERE => f.write_str(NOWHERE),
            Self::Channel(channel) => channel.fmt(f),
            Self::Other(target) => target.fmt(f),
        }
    }
}

stored_as_text!(WordsTo);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for text in ["chat", "nowhere", "words.journal", "telegram.main/42", "discord.main/1/2", "ada"] {
            assert_eq!(text.parse::<WordsTo>().map(|to| to.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("words.nowhere".parse::<WordsTo>(), "nowhere".parse());
        for text in ["", "role:owner", "https://example.org/hook", "file:journal.md", "words.", "journal/today.md"] {
            assert_eq!(text.parse::<WordsTo>(), Err(NotAPlaceForWords), "{text:?}");
        }
    }

    #[test]
    fn each_conversation_has_its_own_on_a_channel_of_words() {
        let journal = ChannelId::new("words", "journal");
        for source in ["telegram.main/42", "discord.main/1/2"] {
            let source = ConversationRef::parse(source).expect("an address");
            let address = WordsTo::address_of(&journal, &source);

            assert_eq!(address.to_string(), format!("words.journal/{source}"));
            assert_eq!(ConversationRef::parse(&address.to_string()), Some(address));
        }
    }
}
