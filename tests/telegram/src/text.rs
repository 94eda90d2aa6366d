//! Texts with entities: `parse_mode`, validation, and detection.
//!
//! Lengths and offsets are UTF-16 units throughout (<https://core.telegram.org/bots/api#messageentity>).

mod detect;
mod entity;
mod html;
mod markdown;
mod markdown_v2;

pub use entity::Entity;

use serde_json::{Value, json};

use crate::{error::ApiError, params::Params};

/// The maximum length of a message, in UTF-16 units after parsing entities.
pub(crate) const MAX_TEXT: usize = 4096;
/// The maximum length of a caption.
pub(crate) const MAX_CAPTION: usize = 1024;

/// A text and its entities.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Formatted {
    pub(crate) text: String,
    pub(crate) entities: Vec<Entity>,
}

/// The length of a text in UTF-16 units.
pub(crate) fn utf16(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Collects a text and counts its UTF-16 units.
#[derive(Default)]
struct Builder {
    text: String,
    at: usize,
    entities: Vec<Entity>,
}

impl Builder {
    fn push(&mut self, it: char) {
        self.text.push(it);
        self.at += it.len_utf16();
    }

    /// Adds an entity for the text since `from`, unless that is empty.
    fn mark(&mut self, kind: &str, from: usize, set: impl FnOnce(&mut Entity)) {
        if self.at > from {
            let mut entity = Entity::new(kind, from, self.at - from);
            set(&mut entity);
            self.entities.push(entity);
        }
    }

    /// Adds a link for the text since `from`, if `url` is valid.
    fn link(&mut self, url: &str, from: usize) {
        match markdown::target(url) {
            Some(markdown::Target::Link(url)) => self.mark("text_link", from, |entity| entity.url = Some(url)),
            Some(markdown::Target::Person(id)) => {
                // The user's data is filled in later, where users are known.
                self.mark("text_mention", from, |entity| entity.user = Some(json!({ "id": id })));
            }
            None => (),
        }
    }

    fn finish(self) -> Formatted {
        Formatted { text: self.text, entities: self.entities }
    }
}

impl Formatted {
    /// The text of a call, formatted by `parse_mode` if there is one, otherwise by `entities`.
    ///
    /// Trims white space and detects entities.
    ///
    /// # Errors
    /// 400 if the markup or the entities are invalid.
    pub(crate) fn of_call(text: &str, parse_mode: Option<&str>, entities: Option<&Value>) -> Result<Self, ApiError> {
        let parsed = match parse_mode.map(str::to_ascii_lowercase).as_deref() {
            Some("html") => html::parse(text),
            Some("markdown") => markdown::parse(text),
            Some("markdownv2") => markdown_v2::parse(text),
            None | Some("" | "none") => Ok(Self { text: text.to_owned(), entities: entity::read(entities)? }),
            Some(_) => return Err(ApiError::bad_request("unsupported parse_mode")),
        };
        let mut formatted = parsed.map_err(|error| ApiError::bad_request(format!("can't parse entities: {error}")))?;
        entity::check(&formatted.text, &formatted.entities)?;
        formatted.trim();
        formatted.complete();
        Ok(formatted)
    }

    /// As [`Formatted::of_call`], with the text and the entities from parameters.
    pub(crate) fn of_params(params: &Params, text_key: &str, entities_key: &str) -> Result<Self, ApiError> {
        let entities = params.json(entities_key, "entities")?;
        let text = params.text(text_key).unwrap_or_default();
        Self::of_call(&text, params.text("parse_mode").as_deref(), entities.as_ref())
    }

    /// A text that a person typed, with `entities` and detected entities.
    pub(crate) fn typed(text: &str, entities: Vec<Entity>) -> Self {
        let mut formatted = Self { text: text.to_owned(), entities };
        formatted.complete();
        formatted
    }

    /// In UTF-16 units.
    pub(crate) fn len(&self) -> usize {
        utf16(&self.text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn entities_json(&self) -> Option<Value> {
        (!self.entities.is_empty()).then(|| serde_json::to_value(&self.entities).expect("entities are plain data"))
    }

    /// Trims white space, and adjusts the entities.
    fn trim(&mut self) {
        let kept = self.text.trim();
        if kept.len() == self.text.len() {
            return;
        }
        let before = utf16(&self.text[..self.text.len() - self.text.trim_start().len()]);
        let end = utf16(kept);
        for entity in &mut self.entities {
            let from = entity.offset.saturating_sub(before).min(end);
            let to = (entity.offset + entity.length).saturating_sub(before).min(end);
            (entity.offset, entity.length) = (from, to - from);
        }
        self.entities.retain(|entity| entity.length > 0);
        self.text = kept.to_owned();
    }

    /// Adds detected entities outside of links and code.
    fn complete(&mut self) {
        let taken: Vec<_> = self
            .entities
            .iter()
            .filter(|entity| entity.hides_what_is_found())
            .map(|entity| entity.offset..entity.offset + entity.length)
            .collect();
        let free = |found: &Entity| {
            !taken.iter().any(|taken| found.offset < taken.end && taken.start < found.offset + found.length)
        };
        self.entities.extend(detect::find(&self.text).into_iter().filter(free));
        self.entities.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
    }
}
