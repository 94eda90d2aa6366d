//! Lines on the wire.
//!
//! `LinesCodec` does not fit. It returns an unfinished line when a connection breaks, and fails at a line that is too long or
//! not UTF-8; the server would send that line again on each connection.

use std::io;

use tokio_util::{
    bytes::{Buf, BufMut, BytesMut},
    codec::{Decoder, Encoder},
};

/// The longest line that is kept, in bytes. The rest of a longer one is skipped.
const MAX_LINE: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    is_skipping: bool,
}

impl Decoder for Lines {
    type Item = String;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<String>> {
        if self.is_skipping {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                bytes.clear();
                return Ok(None);
            };
            bytes.advance(end + 1);
            self.is_skipping = false;
        }
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) if end <= MAX_LINE => {
                let line = bytes.split_to(end + 1);
                let line = String::from_utf8_lossy(&line[..end]);
                Ok(Some(line.strip_suffix('\r').unwrap_or(&line).to_owned()))
            }
            None if bytes.len() <= MAX_LINE => Ok(None),
            _ => {
                self.is_skipping = true;
                Ok(Some(String::from_utf8_lossy(&bytes.split_to(MAX_LINE)).into_owned()))
            }
        }
    }
}

impl Encoder<&str> for Lines {
    type Error = io::Error;

    fn encode(&mut self, line: &str, bytes: &mut BytesMut) -> io::Result<()> {
        bytes.reserve(line.len() + 1);
        bytes.put(line.as_bytes());
        bytes.put_u8(b'\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (Vec<String>, bool) {
        let (mut lines, mut buffer, mut decoded) = (Lines::default(), BytesMut::from(bytes), Vec::new());
        loop {
            match lines.decode_eof(&mut buffer) {
                Ok(Some(line)) => decoded.push(line),
                end => return (decoded, end.is_ok()),
            }
        }
    }

    #[test]
    fn a_line_ends_with_a_line_break() {
        assert_eq!(decoded(b"one\ntwo\r\n"), (vec!["one".to_owned(), "two".to_owned()], true));
        assert_eq!(
            decoded(b"one\ntw"),
            (vec!["one".to_owned()], false),
            "the connection broke in the middle of a line"
        );
    }

    #[test]
    fn a_line_that_is_too_long_or_not_text_blocks_nothing() {
        let mut bytes = vec![b'x'; 3 * MAX_LINE];
        bytes.extend(b"\nnext \xff\n");

        let (lines, _) = decoded(&bytes);

        assert_eq!((lines.len(), lines[0].len(), &*lines[1]), (2, MAX_LINE, "next \u{fffd}"));
    }
}
