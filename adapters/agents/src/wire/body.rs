//! An answer as bytes, which are text or objects.

use rejoinder_core::{AgentError, Outcome};
use serde_json::{Map, Value};

use super::{
    answer::KEYS,
    lines::{Lines, MARK, TextPieces, without_mark},
    said::{MAX_OBJECT, Said},
};
use crate::file_kind::essence;

/// What an answer consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// One object.
    Object,
    /// One object in each line.
    Lines,
    /// One object in each event of a stream.
    Events,
}

impl Format {
    /// The format of an answer of this content type.
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        Some(match essence(content_type).as_str() {
            "text/plain" => Self::Text,
            "application/json" => Self::Object,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Self::Lines,
            "text/event-stream" => Self::Events,
            _ => return None,
        })
    }
}

/// The bytes of an answer that do not show its format yet.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    bytes: Vec<u8>,
    /// How many of them stand before the first line: a byte order mark and white space.
    before: usize,
    /// How many of them have no line break of the first line.
    searched: usize,
}

impl Beginning {
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// The format of an answer that begins with these bytes: lines, if the first one is an object with a known key, or else
    /// text. `None`: more bytes are needed.
    pub(super) fn format(&mut self, has_ended: bool) -> Option<Format> {
        if self.before == 0 {
            self.before = self.bytes.len() - without_mark(&self.bytes).len();
        }
        let rest = &self.bytes[self.before..];
        self.before += rest.len() - rest.trim_ascii_start().len();
        let begun = &self.bytes[self.before..];
        let needs_more = !has_ended && self.bytes.len() <= MAX_OBJECT;
        if (begun.is_empty() || MARK.starts_with(&self.bytes)) && needs_more {
            return None;
        }
        if !begun.starts_with(b"{") {
            return Some(Format::Text);
        }
        let from = self.searched.max(self.before);
        let line = match self.bytes[from..].iter().position(|byte| *byte == b'\n') {
            Some(end) => &self.bytes[self.before..from + end],
            None if needs_more => {
                self.searched = self.bytes.len();
                return None;
            }
            None => begun,
        };
        let object: Option<Map<String, Value>> = serde_json::from_slice(line).ok();
        let is_known = object.is_some_and(|object| object.keys().any(|key| KEYS.contains(&&**key)));
        Some(if is_known { Format::Lines } else { Format::Text })
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }
}

/// An answer while it arrives.
pub(crate) struct Body<'a> {
    /// `None`: the bytes do not show it yet.
    format: Option<Format>,
    said: Said<'a>,
    beginning: Beginning,
    /// The bytes of the only object.
    object: Vec<u8>,
    lines: Lines,
    text: TextPieces,
    /// The data of the current event.
    event: String,
}

impl<'a> Body<'a> {
    /// Without a format, the answer is text or lines.
    pub(crate) fn new(format: Option<Format>, said: Said<'a>) -> Self {
        let (lines, text) = (Lines::default(), TextPieces::default());
        Self { format, said, beginning: Beginning::default(), object: Vec::new(), lines, text, event: String::new() }
    }

    /// Whether the outcome is known: nothing more is to be read.
    pub(crate) const fn has_ended(&self) -> bool {
        self.said.has_ended()
    }

    /// After how much of the answer an error came, for its text.
    pub(crate) fn after(&self) -> String {
        self.said.after()
    }

    /// Reads more bytes.
    ///
    /// # Errors
    /// When they are no answer.
    pub(crate) async fn push(&mut self, piece: &[u8]) -> Result<(), AgentError> {
        match self.format {
            None => {
                self.beginning.push(piece);
                self.begin(false).await
            }
            Some(Format::Object) if self.object.len() + piece.len() > MAX_OBJECT => Err(too_large()),
            Some(Format::Object) => {
                self.object.extend_from_slice(piece);
                Ok(())
            }
            Some(format) => self.more(format, piece).await,
        }
    }

    /// The bytes have ended.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) async fn end(&mut self) -> Result<(), AgentError> {
        if self.format.is_none() {
            self.begin(true).await?;
        }
        let text = std::mem::take(&mut self.text).rest();
        self.said.text(&text).await;
        if let Some(line) = std::mem::take(&mut self.lines).rest()? {
            self.line(&line).await?;
        }
        if self.format == Some(Format::Object) {
            let object = std::str::from_utf8(without_mark(&self.object));
            self.said.object(object.map_err(|_| AgentError::Broken("it is not UTF-8".to_owned()))?).await?;
        }
        Ok(())
    }

    /// The outcome, after the end.
    ///
    /// # Errors
    /// When the answer consists of objects, and none of them ended the run.
    pub(crate) async fn outcome(self) -> Result<Outcome, AgentError> {
        match self.format {
            None | Some(Format::Text) => self.said.into_text().await,
            Some(Format::Object | Format::Lines | Format::Events) => self.said.into_outcome(),
        }
    }

    /// Reads what has come so far, if it shows the format.
    async fn begin(&mut self, has_ended: bool) -> Result<(), AgentError> {
        self.format = self.beginning.format(has_ended);
        let Some(format) = self.format else { return Ok(()) };
        let begun = self.beginning.take();
        self.more(format, &begun).await
    }

    async fn more(&mut self, format: Format, piece: &[u8]) -> Result<(), AgentError> {
        if format == Format::Text {
            let text = self.text.push(piece);
            self.said.text(&text).await;
            return Ok(());
        }
        self.lines.push(piece);
        while let Some(line) = self.lines.next_line(format == Format::Events)? {
            self.line(&line).await?;
        }
        Ok(())
    }

    /// Reads a line. An event has lines with its data and others, and ends with an empty one: without that it does not count.
    async fn line(&mut self, line: &str) -> Result<(), AgentError> {
        if self.format == Some(Format::Lines) {
            return self.said.object(line).await;
        }
        if let Some(data) = line.strip_prefix("data:") {
            if self.event.len() + data.len() > MAX_OBJECT {
                return Err(too_large());
            }
            self.event.push_str(data);
            self.event.push('\n');
        } else if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if !event.trim().is_empty() {
                return self.said.object(&event).await;
            }
        }
        Ok(())
    }
}

fn too_large() -> AgentError {
    AgentError::Broken(format!("an object is larger than {MAX_OBJECT} bytes"))
}
