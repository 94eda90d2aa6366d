//! What the index of lines holds, and how it is asked.

use std::{borrow::Cow, fmt::Write};

use rejoinder_core::{
    ChannelId, ConversationId,
    store::{SearchFilter, SearchTerm, is_word_alone},
};

/// A text as it is indexed. The tokenizer takes what stands between spaces and signs for one word, so each character that is
/// a word alone gets spaces.
pub(super) fn indexed(text: &str) -> Cow<'_, str> {
    if !text.contains(is_word_alone) {
        return Cow::Borrowed(text);
    }
    let mut spaced = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if is_word_alone(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    Cow::Owned(spaced)
}

/// The words that stand for where a line is.
pub(super) fn where_it_is(channel: &ChannelId, conversation: ConversationId) -> String {
    format!("{} {}", word_of_channel(channel), word_of_conversation(conversation))
}

/// One word for the tokenizer, whatever the channel's name is.
fn word_of_channel(channel: &ChannelId) -> String {
    channel.as_str().bytes().fold("c".to_owned(), |mut word, byte| {
        let _ = write!(word, "{byte:02x}");
        word
    })
}

fn word_of_conversation(conversation: ConversationId) -> String {
    format!("v{}", conversation.as_uuid().simple())
}

/// The condition on the index in FTS5's syntax. Channels are only narrowed down: the query must check them. `words` are those
/// with which the last word of the query may go on, if they are known.
pub(super) fn condition(filter: &SearchFilter, words: Option<&[String]>) -> String {
    let terms: Vec<String> = filter.query.terms().iter().map(|term| matching(term, words)).collect();
    let mut condition = format!("text : ({})", terms.join(" AND "));
    if let Some(channels) = &filter.channels {
        let words: Vec<String> = channels.iter().map(word_of_channel).collect();
        let _ = write!(condition, " AND place : ({})", words.join(" OR "));
    }
    if let Some(conversations) = &filter.conversations {
        let words: Vec<String> = conversations.iter().copied().map(word_of_conversation).collect();
        let _ = write!(condition, " AND place : ({})", words.join(" OR "));
    }
    condition
}

fn matching(term: &SearchTerm, words: Option<&[String]>) -> String {
    if !is_prefix(term) {
        return quoted(&term.text);
    }
    let Some(words) = words else { return format!("{} *", quoted(&term.text)) };
    let (before, _) = term.split_last();
    let words: Vec<String> = words.iter().map(|word| quoted(&format!("{before}{word}"))).collect();
    format!("({})", words.join(" OR "))
}

/// Whether the last word of a term may go on. A character that is a word alone does not.
pub(super) fn is_prefix(term: &SearchTerm) -> bool {
    term.is_prefix && !term.text.ends_with(is_word_alone)
}

/// A text between quotation marks, of which it has none itself.
fn quoted(text: &str) -> String {
    format!("\"{}\"", indexed(text).replace('"', " "))
}
