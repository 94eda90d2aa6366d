//! Message entities and their validation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;

/// Formatting of a range of text (<https://core.telegram.org/bots/api#messageentity>).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    /// `bold`, `mention`, `bot_command`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// In UTF-16 units.
    pub offset: usize,
    /// In UTF-16 units.
    pub length: usize,
    /// Of a `text_link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Of a `text_mention`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Value>,
    /// Of a `pre`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Of a `custom_emoji`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_emoji_id: Option<String>,
}

const KINDS: [&str; 21] = [
    "mention",
    "hashtag",
    "cashtag",
    "bot_command",
    "url",
    "email",
    "phone_number",
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
    "date_time",
    "bank_card",
];

/// The kinds that the server detects. A bot cannot set them: they are dropped from calls.
const FOUND: [&str; 7] = ["mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"];

impl Entity {
    /// An entity without optional fields.
    #[must_use]
    pub fn new(kind: &str, offset: usize, length: usize) -> Self {
        Self { kind: kind.to_owned(), offset, length, url: None, user: None, language: None, custom_emoji_id: None }
    }

    /// Whether the server detects nothing inside this entity.
    pub(super) fn hides_what_is_found(&self) -> bool {
        matches!(&*self.kind, "code" | "pre" | "text_link" | "text_mention") || FOUND.contains(&&*self.kind)
    }
}

/// The entities of a call, without those that only the server sets.
pub(super) fn read(given: Option<&Value>) -> Result<Vec<Entity>, ApiError> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let entities = Vec::<Entity>::deserialize(given)
        .map_err(|error| ApiError::bad_request(format!("can't parse MessageEntity: {error}")))?;
    if let Some(unknown) = entities.iter().find(|entity| !KINDS.contains(&&*entity.kind)) {
        return Err(ApiError::bad_request(format!(
            "can't parse MessageEntity: unsupported type \"{}\" specified",
            unknown.kind
        )));
    }
    if entities.iter().any(|entity| entity.kind == "text_link" && entity.url.is_none()) {
        return Err(ApiError::bad_request("can't parse MessageEntity: Can't find field \"url\""));
    }
    Ok(entities.into_iter().filter(|entity| !FOUND.contains(&&*entity.kind)).collect())
}

/// Checks that all entities lie inside the text, on character boundaries.
pub(super) fn check(text: &str, entities: &[Entity]) -> Result<(), ApiError> {
    if entities.is_empty() {
        return Ok(());
    }
    let mut edges = Vec::with_capacity(text.len() + 1);
    let mut at = 0;
    for it in text.chars() {
        edges.push(at);
        at += it.len_utf16();
    }
    edges.push(at);
    for entity in entities {
        let (from, to) = (entity.offset, entity.offset.saturating_add(entity.length));
        if entity.length == 0 {
            return Err(ApiError::bad_request(format!("entity beginning at UTF-16 offset {from} is empty")));
        }
        if to > at {
            return Err(ApiError::bad_request(format!(
                "entity beginning at UTF-16 offset {from} ends after the end of the text at UTF-16 offset {at}"
            )));
        }
        if edges.binary_search(&from).is_err() || edges.binary_search(&to).is_err() {
            return Err(ApiError::bad_request(format!(
                "entity beginning at UTF-16 offset {from} ends in a middle of a UTF-16 symbol at UTF-16 offset {to}"
            )));
        }
    }
    Ok(())
}
