//! Responses of scripted servers, byte for byte.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    body::{Body, Bytes},
    http::Response,
};
use futures_util::{StreamExt, stream};

/// A piece of a response's body.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Sent as one chunk.
    Bytes(Vec<u8>),
    /// The connection breaks.
    Cut,
    /// Nothing more is sent, but the connection stays open.
    Stall,
}

/// A chunk.
pub fn raw(bytes: impl Into<Vec<u8>>) -> Piece {
    Piece::Bytes(bytes.into())
}

/// Counts the requests that have no whole answer yet.
#[derive(Clone, Debug, Default)]
pub struct AtWork(Arc<AtomicUsize>);

/// A request for as long as its answer is being sent, and somebody reads it.
#[derive(Debug)]
pub struct Work(Arc<AtomicUsize>);

impl AtWork {
    /// A request has come.
    #[must_use]
    pub fn begin(&self) -> Work {
        self.0.fetch_add(1, Ordering::SeqCst);
        Work(Arc::clone(&self.0))
    }

    /// The number of requests.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A response of these pieces, with which `work` ends.
///
/// # Panics
/// When a header or the status is none.
pub fn response<'h>(
    status: u16,
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    pieces: Vec<Piece>,
    work: Work,
) -> Response<Body> {
    let response = headers
        .into_iter()
        .fold(Response::builder().status(status), |response, (name, value)| response.header(name, value));
    let pieces = stream::iter(pieces).then(sent).map(move |piece| {
        // The work ends with the stream.
        let _ = &work;
        piece
    });
    response.body(Body::from_stream(pieces)).expect("a response")
}

async fn sent(piece: Piece) -> io::Result<Bytes> {
    // Lets the previous piece go out in its own packet.
    tokio::task::yield_now().await;
    match piece {
        Piece::Bytes(bytes) => Ok(Bytes::from(bytes)),
        Piece::Cut => Err(io::Error::other("cut")),
        Piece::Stall => std::future::pending().await,
    }
}
