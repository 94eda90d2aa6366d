//! The text of a document while it is read, of bounded size.

use std::io;

use rejoinder_core::Unread;

/// How many bytes of text a document gives at most: as many as a text file may have that an agent reads.
pub(crate) const MOST_TEXT: usize = 256 << 10;

#[derive(Debug, Default)]
pub(crate) struct Output {
    text: String,
    is_full: bool,
}

impl Output {
    /// Whether what comes now is left out.
    pub(crate) const fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn push(&mut self, part: &str) {
        if self.is_full {
            return;
        }
        let end = part.floor_char_boundary(MOST_TEXT - self.text.len());
        self.is_full = end < part.len();
        self.text.push_str(&part[..end]);
    }

    /// Adds a text whose white space only parts words.
    pub(crate) fn flow(&mut self, part: &str) {
        for (index, word) in part.split(char::is_whitespace).enumerate() {
            if index > 0 {
                self.space();
            }
            self.push(word);
        }
    }

    /// Parts words, unless they are.
    pub(crate) fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\t', '\n']) {
            self.push(" ");
        }
    }

    pub(crate) fn end_cell(&mut self) {
        self.trim(&[' ']);
        self.push("\t");
    }

    /// Begins a line, unless it is empty.
    pub(crate) fn end_line(&mut self) {
        self.trim(&[' ', '\t']);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
    }

    fn trim(&mut self, what: &[char]) {
        self.text.truncate(self.text.trim_end_matches(what).len());
    }

    /// The text, without characters that show nothing.
    pub(crate) fn finish(mut self) -> Result<String, Unread> {
        self.text.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
        let text = self.text.trim();
        if text.is_empty() { Err(Unread::Empty) } else { Ok(text.to_owned()) }
    }
}

impl io::Write for Output {
    /// Fails when there is no room, so that the writer stops.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(&String::from_utf8_lossy(bytes));
        if self.is_full { Err(io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_a_whole_character() {
        let mut output = Output::default();
        output.push("x");
        output.push(&"ä".repeat(MOST_TEXT));
        output.push("y");

        let text = output.finish().expect("a text");
        assert_eq!((text.len(), text.ends_with('ä')), (MOST_TEXT - 1, true));
    }

    #[test]
    fn lines_and_cells_have_no_white_space_at_their_ends() {
        let mut output = Output::default();
        output.end_line();
        output.flow("  a \n b ");
        output.end_cell();
        output.push("c\0\u{1b} \t");
        output.end_line();
        output.end_line();
        output.push("d ");

        assert_eq!(output.finish(), Ok("a b\tc\nd".to_owned()));
    }

    #[test]
    fn nothing_is_no_text() {
        let mut output = Output::default();
        output.push(" \0\n");

        assert_eq!(output.finish(), Err(Unread::Empty));
    }
}
