//! Reads lines of a bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line, or what was in its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Without its line break.
    Whole(Vec<u8>),
    /// It was too long. Only its beginning was kept.
    TooLong(Vec<u8>),
    /// The stream has ended.
    End,
}

/// How much is kept of a line that is too long, in bytes.
const KEPT: usize = 4 << 10;

/// Reads the next line of at most `most` bytes. A last line without a line break is not whole, and is skipped.
pub(crate) async fn next_line(input: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Line> {
    let (mut line, mut is_too_long) = (Vec::new(), false);
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            return Ok(Line::End);
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        if !is_too_long && line.len() + part.len() > most {
            is_too_long = true;
            line.truncate(KEPT);
            line.extend_from_slice(&part[..part.len().min(KEPT - line.len())]);
            line.shrink_to_fit();
        } else if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(read.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(if is_too_long { Line::TooLong(line) } else { Line::Whole(line) });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped() {
        let mut input = BufReader::with_capacity(3, &b"one\n\nfar too long\nfive5\nhalf"[..]);
        let mut lines = Vec::new();
        loop {
            match next_line(&mut input, 5).await.expect("it can be read") {
                Line::End => break,
                line => lines.push(line),
            }
        }
        let whole = |text: &[u8]| Line::Whole(text.to_vec());
        assert_eq!(lines, [whole(b"one"), whole(b""), Line::TooLong(b"far too".to_vec()), whole(b"five5")]);
    }
}
