//! The lines of a stream, and its text in pieces.

use rejoinder_core::AgentError;

use super::said::MAX_OBJECT;

/// A line is longer than [`MAX_OBJECT`], or is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WrongLine {
    #[error("a line is longer than {MAX_OBJECT} bytes")]
    TooLong,
    #[error("it is not UTF-8")]
    NotUtf8,
}

/// Cuts a stream into its lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// How many bytes of it were returned.
    returned: usize,
    /// How many of them hold no line break.
    searched: usize,
    has_begun: bool,
}

impl Lines {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.returned);
        self.searched -= self.returned;
        self.returned = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, also if it is empty and `with_empty`.
    pub(super) fn next_line(&mut self, with_empty: bool) -> Result<Option<String>, WrongLine> {
        while let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.returned..self.searched + end;
            (self.returned, self.searched) = (line.end + 1, line.end + 1);
            let line = read_line(&self.buffer[line], &mut self.has_begun)?;
            if with_empty || !line.is_empty() {
                return Ok(Some(line));
            }
        }
        self.searched = self.buffer.len();
        if self.searched - self.returned > MAX_OBJECT { Err(WrongLine::TooLong) } else { Ok(None) }
    }

    /// The last line, if it has no line break.
    pub(super) fn rest(mut self) -> Result<Option<String>, WrongLine> {
        let line = read_line(&self.buffer[self.returned..], &mut self.has_begun)?;
        Ok((!line.is_empty()).then_some(line))
    }
}

impl From<WrongLine> for AgentError {
    fn from(wrong: WrongLine) -> Self {
        Self::Broken(wrong.to_string())
    }
}

/// Text that comes in pieces which may end within a character. What is no UTF-8 is replaced.
#[derive(Debug, Default)]
pub(super) struct TextPieces {
    has_begun: bool,
    /// The beginning of a character.
    half: Vec<u8>,
}

impl TextPieces {
    pub(super) fn push(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.half);
        bytes.extend_from_slice(piece);
        let mut rest = if std::mem::replace(&mut self.has_begun, true) { &bytes[..] } else { without_mark(&bytes) };
        let mut text = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(invalid) = error.error_len() else {
                        self.half = after.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &after[invalid..];
                }
            }
        }
    }

    pub(super) fn rest(self) -> String {
        String::from_utf8_lossy(&self.half).into_owned()
    }
}

/// A line without its white space, and without the byte order mark at the beginning of the stream.
fn read_line(line: &[u8], has_begun: &mut bool) -> Result<String, WrongLine> {
    if line.len() > MAX_OBJECT {
        return Err(WrongLine::TooLong);
    }
    let line = if std::mem::replace(has_begun, true) { line } else { without_mark(line) };
    std::str::from_utf8(line.trim_ascii()).map(ToOwned::to_owned).map_err(|_| WrongLine::NotUtf8)
}

/// The byte order mark of UTF-8.
pub(super) const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The bytes after a byte order mark.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}
