//! The body of a response, as text or as objects. No I/O.

use rejoinder_core::{AgentError, Outcome};

use crate::wire::{Lines, MAX_OBJECT, Said, TextPieces};

/// What a body consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    /// One object.
    Object,
    /// One object in each line.
    Lines,
    /// One object in each event.
    Events,
}

impl Format {
    pub(super) fn of(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Some(match media_type.as_str() {
            "text/plain" => Self::Text,
            "application/json" => Self::Object,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Self::Lines,
            "text/event-stream" => Self::Events,
            _ => return None,
        })
    }
}

/// A body while it arrives.
pub(super) struct Body<'a> {
    format: Format,
    said: Said<'a>,
    whole: Vec<u8>,
    lines: Lines,
    text: TextPieces,
    /// The data of the current event.
    event: String,
}

impl<'a> Body<'a> {
    pub(super) fn new(format: Format, said: Said<'a>) -> Self {
        let (lines, text) = (Lines::default(), TextPieces::default());
        Self { format, said, whole: Vec::new(), lines, text, event: String::new() }
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.said.has_ended()
    }

    /// After how much of the answer an error came, for its text.
    pub(super) fn after(&self) -> String {
        match self.said.shown() {
            0 => String::new(),
            shown => format!(" after {shown} characters"),
        }
    }

    pub(super) async fn push(&mut self, piece: &[u8]) -> Result<(), AgentError> {
        match self.format {
            Format::Text => {
                let text = self.text.push(piece);
                self.said.text(&text).await;
            }
            Format::Object if self.whole.len() + piece.len() > MAX_OBJECT => return Err(too_large()),
            Format::Object => self.whole.extend_from_slice(piece),
            Format::Lines | Format::Events => {
                self.lines.push(piece);
                while let Some(line) = self.lines.next_line(self.format == Format::Events)? {
                    self.line(&line).await?;
                }
            }
        }
        Ok(())
    }

    /// The body has ended.
    pub(super) async fn end(&mut self) -> Result<(), AgentError> {
        let text = std::mem::take(&mut self.text).rest();
        self.said.text(&text).await;
        if let Some(line) = std::mem::take(&mut self.lines).rest()? {
            self.line(&line).await?;
        }
        if self.format == Format::Object {
            let object =
                std::str::from_utf8(&self.whole).map_err(|_| AgentError::Broken("it is not UTF-8".to_owned()))?;
            self.said.object(object.trim_start_matches('\u{feff}')).await?;
        }
        Ok(())
    }

    pub(super) async fn outcome(self) -> Result<Outcome, AgentError> {
        match self.format {
            Format::Text => Ok(self.said.into_text().await),
            Format::Object | Format::Lines | Format::Events => self.said.into_outcome(),
        }
    }

    /// Reads a line. An event has lines with its data, other ones, and ends with an empty one. One without its end does not
    /// count.
    async fn line(&mut self, line: &str) -> Result<(), AgentError> {
        if self.format == Format::Lines {
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
