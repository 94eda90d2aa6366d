//! A stream that fails when nobody reads it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::AsyncWrite,
    time::{Sleep, sleep},
};

/// How long a write may wait for its reader.
const LONGEST: Duration = Duration::from_secs(30);

/// A stream whose writes fail when they have waited for 30 seconds: a program that reads no longer would hold up all that is sent.
pub(crate) struct Impatient<W> {
    stream: W,
    waits: Option<Pin<Box<Sleep>>>,
}

impl<W> Impatient<W> {
    pub(crate) const fn new(stream: W) -> Self {
        Self { stream, waits: None }
    }

    /// What is polled, unless it has waited for too long.
    fn within<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waits = None;
            return polled;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(LONGEST)));
        ready!(waits.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "it does not read what it is sent")))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Impatient<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.within(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(polled, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_reads_fails() {
        let (ours, _theirs) = duplex(4);
        let mut stream = Impatient::new(ours);
        stream.write_all(b"four").await.expect("there is room");

        let error = stream.write_all(b"more").await.expect_err("nobody reads");

        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
