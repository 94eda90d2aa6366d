//! A stream whose lines are bounded.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// A stream that fails when a line is longer than `most` bytes.
pub(crate) struct BoundedLines<R> {
    stream: R,
    most: usize,
    /// How many bytes of the present line were read.
    line: usize,
}

impl<R> BoundedLines<R> {
    pub(crate) const fn new(stream: R, most: usize) -> Self {
        Self { stream, most, line: 0 }
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
        let mut is_too_long = false;
        for part in buffer.filled()[before..].split_inclusive(|byte| *byte == b'\n') {
            line += part.len();
            is_too_long |= line > most;
            if part.ends_with(b"\n") {
                line = 0;
            }
        }
        if is_too_long {
            // What fails must have read nothing.
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(format!("a message is longer than {most} bytes"))));
        }
        self.line = line;
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
}
