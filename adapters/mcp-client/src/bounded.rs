//! A stream whose lines are bounded, and how many come.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    time::Instant,
};

/// How many lines may come in a second. Each may be a request that is to be answered.
const MOST_A_SECOND: usize = 1_000;

/// A stream that fails when a line is longer than `most` bytes, or when more than 1,000 come in a second.
pub(crate) struct BoundedLines<R> {
    stream: R,
    most: usize,
    /// How many bytes of the present line were read.
    line: usize,
    /// The second that goes on, and how many lines have come in it.
    second: (Instant, usize),
}

impl<R> BoundedLines<R> {
    pub(crate) fn new(stream: R, most: usize) -> Self {
        Self { stream, most, line: 0, second: (Instant::now(), 0) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let (mut line, most) = (self.line, self.most);
        let (mut is_too_long, mut lines) = (false, 0);
        for part in buffer.filled()[before..].split_inclusive(|byte| *byte == b'\n') {
            line += part.len();
            is_too_long |= line > most;
            if part.ends_with(b"\n") {
                (line, lines) = (0, lines + 1);
            }
        }
        if is_too_long {
            // What fails must have read nothing.
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(format!("a message is longer than {most} bytes"))));
        }
        self.line = line;
        if self.second.0.elapsed() >= Duration::from_secs(1) {
            self.second = (Instant::now(), 0);
        }
        self.second.1 += lines;
        if self.second.1 > MOST_A_SECOND {
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(format!("more than {MOST_A_SECOND} messages came in a second"))));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_stream() {
        let read = async |text: &'static str| {
            let mut read = String::new();
            BoundedLines::new(text.as_bytes(), 4).read_to_string(&mut read).await.map(|_| read)
        };
        assert_eq!(read("one\ntwo\nthr").await.ok().as_deref(), Some("one\ntwo\nthr"));
        let error = read("one\nthree\n").await.expect_err("the second line is too long");
        assert_eq!(error.to_string(), "a message is longer than 4 bytes");
    }

    #[tokio::test]
    async fn a_flood_of_lines_ends_the_stream() {
        let (few, many) = ("a\n".repeat(MOST_A_SECOND), "a\n".repeat(MOST_A_SECOND + 1));
        let read = async |text: String| {
            let mut read = String::new();
            BoundedLines::new(text.as_bytes(), 4).read_to_string(&mut read).await
        };

        assert_eq!(read(few).await.ok(), Some(2 * MOST_A_SECOND));
        assert!(read(many).await.is_err());
    }
}
