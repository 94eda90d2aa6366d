//! Stored messages.

use std::{collections::BTreeMap, time::Instant};

use serde_json::{Map, Value};

use crate::text::Formatted;

/// The content of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Content {
    pub(crate) text: Option<Formatted>,
    pub(crate) caption: Option<Formatted>,
    /// `photo`, `sticker`, `location`, ... as in the Bot API.
    pub(crate) fields: Map<String, Value>,
}

impl Content {
    pub(crate) fn text(text: Formatted) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    pub(crate) fn field(key: &str, value: Value) -> Self {
        let mut fields = Map::new();
        fields.insert(key.to_owned(), value);
        Self { fields, ..Self::default() }
    }

    pub(crate) fn captioned(mut self, caption: Formatted) -> Self {
        self.caption = (!caption.is_empty()).then_some(caption);
        self
    }

    /// The text or the caption.
    pub(crate) fn words(&self) -> Option<&Formatted> {
        self.text.as_ref().or(self.caption.as_ref())
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// A person or a bot.
    User(i64),
    /// The channel itself.
    Channel,
}

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) id: i64,
    /// Unix time in seconds.
    pub(crate) date: i64,
    pub(crate) arrived: Instant,
    /// Unix times in seconds.
    pub(crate) edits: Vec<i64>,
    pub(crate) author: Author,
    pub(crate) thread: Option<i64>,
    pub(crate) reply_to: Option<i64>,
    pub(crate) quote: Option<Value>,
    pub(crate) album: Option<String>,
    pub(crate) content: Content,
    /// The inline keyboard.
    pub(crate) markup: Option<Value>,
    pub(crate) link_preview: Option<Value>,
    /// By the id of the user who reacted.
    pub(crate) reactions: BTreeMap<i64, Vec<Value>>,
}

/// A message that is not in a chat yet.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(crate) author: Author,
    pub(crate) thread: Option<i64>,
    pub(crate) reply_to: Option<i64>,
    pub(crate) quote: Option<Value>,
    pub(crate) album: Option<String>,
    pub(crate) content: Content,
    pub(crate) markup: Option<Value>,
    pub(crate) link_preview: Option<Value>,
}

impl NewMessage {
    pub(crate) fn new(author: Author, content: Content) -> Self {
        Self {
            author,
            thread: None,
            reply_to: None,
            quote: None,
            album: None,
            content,
            markup: None,
            link_preview: None,
        }
    }
}
