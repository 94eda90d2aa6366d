//! Reads lines of a bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::outline::Outline;

/// A line, or what was in its place.
#[derive(Debug)]
pub(crate) enum Line {
    /// Without its line break.
    Whole(Vec<u8>),
    /// It was too long to be kept.
    TooLong(Outline),
    /// The stream has ended.
    End,
}

/// Reads the next line of at most `most` bytes. A last line without a line break is not whole, and is skipped.
pub(crate) async fn next_line(input: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Line> {
    let (mut line, mut outline) = (Vec::new(), None::<Outline>);
    loop {
        let read = input.fill_buf().await?;
        if read.is_empty() {
            return Ok(Line::End);
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        match &mut outline {
            Some(outline) => outline.push(part),
            None if line.len() + part.len() > most => {
                let outline = outline.insert(Outline::default());
                outline.push(&std::mem::take(&mut line));
                outline.push(part);
            }
            None => line.extend_from_slice(part),
        }
        let used = end.map_or(read.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(outline.map_or(Line::Whole(line), Line::TooLong));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_has_an_outline() {
        let mut input = BufReader::with_capacity(3, &b"one\n\n{\"far\":{}}\nfive5\nhalf"[..]);
        let mut lines = Vec::new();
        loop {
            lines.push(match next_line(&mut input, 5).await.expect("it can be read") {
                Line::End => break,
                Line::Whole(line) => (line, true),
                Line::TooLong(outline) => (outline.as_bytes().to_vec(), false),
            });
        }
        let line = |text: &str, is_whole| (text.as_bytes().to_vec(), is_whole);
        assert_eq!(lines, [line("one", true), line("", true), line("{\"far\":{}}", false), line("five5", true)]);
    }
}
