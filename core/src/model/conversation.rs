//! Where messages live: platforms, channels, chats and threads.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// One configured account on a platform: `telegram.main`, `webhook.siri`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChannelId(Arc<str>);

impl ChannelId {
    /// The channel `name` on `platform`.
    pub fn new(platform: &str, name: &str) -> Self {
        Self(format!("{platform}.{name}").into())
    }

    /// Parses the stored form, `platform.name`, without checking it.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The platform: `telegram` of `telegram.main`.
    pub fn platform(&self) -> &str {
        self.0.split_once('.').map_or(&*self.0, |(platform, _)| platform)
    }

    /// The name: `main` of `telegram.main`.
    pub fn name(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, name)| name)
    }

    /// The id as `platform.name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The address of a conversation: a chat on a channel, and a thread or topic in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationRef {
    /// The account through which the chat is reached.
    pub channel: ChannelId,
    /// The platform's id of the chat.
    pub chat: Arc<str>,
    /// The platform's id of the thread or topic, where the chat has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Arc<str>>,
}

impl ConversationRef {
    /// The chat `chat` on `channel`, without a thread.
    pub fn new(channel: ChannelId, chat: &str) -> Self {
        Self { channel, chat: chat.into(), thread: None }
    }

    /// Reads what [`Display`](fmt::Display) writes: `telegram.main/42`, or with a thread.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, '/');
        let (channel, chat) = (parts.next()?, parts.next()?);
        if !channel.contains('.') || chat.is_empty() {
            return None;
        }
        let conversation = Self::new(ChannelId::from_stored(channel), chat);
        Some(match parts.next().filter(|thread| !thread.is_empty()) {
            Some(thread) => conversation.in_thread(thread),
            None => conversation,
        })
    }

    /// The address of `thread` in the same chat.
    #[must_use]
    pub fn in_thread(mut self, thread: &str) -> Self {
        self.thread = Some(thread.into());
        self
    }
}

impl fmt::Display for ConversationRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.channel, self.chat)?;
        self.thread.as_ref().map_or(Ok(()), |thread| write!(f, "/{thread}"))
    }
}

named! {
    /// Whether a chat is between one person and the agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ChatKind {
        /// A chat between one person and the agent.
        Direct = "direct",
        /// A chat of several people.
        Group = "group",
    }
}
