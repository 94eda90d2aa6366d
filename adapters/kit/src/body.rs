//! Reads a request's body, limited in size and time.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::{Body, BodyDataStream, Bytes, HttpBody},
    http::{HeaderMap, StatusCode, header},
};
use futures_util::StreamExt;
use rejoinder_core::{FileShare, NoRoom};
use tokio::time::{Instant, timeout_at};

use crate::Problem;

/// The `Retry-After` when too many files are in memory.
const PAUSE: Duration = Duration::from_secs(5);

/// The room in memory that a body with files takes: what it has beyond the limit of other bodies. It is kept until the event is
/// accepted.
pub struct BodyRoom {
    share: FileShare,
    free: usize,
    read: usize,
}

impl BodyRoom {
    /// For a body that takes no room with up to `free` bytes.
    #[must_use]
    pub const fn new(share: FileShare, free: usize) -> Self {
        Self { share, free, read: 0 }
    }

    /// Takes room for the next part of the body.
    ///
    /// # Errors
    /// When too many files are in memory.
    pub fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        self.read += bytes;
        self.share.grow_to(self.read.saturating_sub(self.free)).map_err(|NoRoom| {
            let detail = "too many files are in memory; try again later";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Service unavailable: too many files", detail)
                .retry_after(PAUSE)
        })
    }
}

/// A body has more than `limit` bytes.
#[must_use]
pub fn body_too_large(limit: usize) -> Problem {
    let detail = format!("the body must have at most {limit} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Payload too large", detail)
}

/// The files of a message have more than `max` bytes.
#[must_use]
pub fn files_too_large(max: usize) -> Problem {
    let detail = format!("the files of a message must have at most {max} bytes together");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "files-too-large", "Payload too large: the files", detail)
}

/// Reads a body of at most `limit` bytes that arrives within `patience`, and shows `see` each part of it. Of a body that is refused,
/// as much again is read and thrown away: a client that still writes would see its connection reset, and not why.
///
/// # Errors
/// When it is too large, too slow, compressed or incomplete, or `see` refuses a part.
pub async fn read_body(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
    see: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<Bytes, Problem> {
    if headers.get(header::CONTENT_ENCODING).is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported-content-encoding",
            "Unsupported media type: the body is encoded",
            "send the body without a Content-Encoding",
        ));
    }
    let (expected, until) = (body.size_hint().lower(), Instant::now() + patience);
    let mut chunks = body.into_data_stream();
    let read = match usize::try_from(expected).ok().filter(|expected| *expected <= limit) {
        Some(expected) => timeout_at(until, collect(&mut chunks, expected, limit, see)).await.unwrap_or_else(|_| {
            let detail = format!("the body did not arrive within {patience:?}");
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow-body", "Request timeout: the body is too slow", detail))
        }),
        // Its client waits to be told whether to write at all.
        None if headers.contains_key(header::EXPECT) => return Err(body_too_large(limit)),
        None => Err(body_too_large(limit)),
    };
    if read.is_err() {
        // What is not read by then is not read at all.
        let _ = timeout_at(until, throw_away(chunks, limit)).await;
    }
    read
}

async fn throw_away(mut chunks: BodyDataStream, most: usize) {
    let mut bytes = 0;
    while let Some(Ok(chunk)) = chunks.next().await {
        bytes += chunk.len();
        if bytes > most {
            return;
        }
    }
}

async fn collect(
    chunks: &mut BodyDataStream,
    expected: usize,
    limit: usize,
    mut see: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<Bytes, Problem> {
    let mut next = async || match chunks.next().await {
        None => Ok(None),
        Some(Ok(chunk)) if chunk.len() > limit => Err(body_too_large(limit)),
        Some(Ok(chunk)) => see(&chunk).map(|()| Some(chunk)),
        Some(Err(_)) => Err(broken("the body ended early")),
    };
    let Some(first) = next().await? else { return Ok(Bytes::new()) };
    // Nearly every body is a single chunk, which needs no copy.
    let Some(second) = next().await? else { return Ok(first) };
    // Reserved at once, because growing doubles what is held. Reserved memory is only in use once bytes have arrived.
    let mut whole = Vec::with_capacity(expected.max(first.len() + second.len()));
    whole.extend_from_slice(&first);
    let mut chunk = Some(second);
    while let Some(more) = chunk {
        if whole.len() + more.len() > limit {
            return Err(body_too_large(limit));
        }
        whole.extend_from_slice(&more);
        chunk = next().await?;
    }
    Ok(whole.into())
}

fn broken(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "broken-body", "Bad request: the body cannot be read", detail)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use axum::http::HeaderValue;
    use futures_util::stream;
    use rejoinder_core::FileBudget;

    use super::*;

    fn chunked(chunks: &[&'static str]) -> Body {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok::<_, std::io::Error>(*chunk)).collect();
        Body::from_stream(stream::iter(chunks))
    }

    const PATIENCE: Duration = Duration::from_secs(3);

    async fn status_of(body: Body, limit: usize) -> Result<Bytes, StatusCode> {
        read_body(&HeaderMap::new(), body, limit, PATIENCE, |_| Ok(())).await.map_err(|problem| problem.status())
    }

    #[tokio::test]
    async fn a_body_is_read_however_it_arrives() {
        assert_eq!(status_of(Body::empty(), 4).await.unwrap(), "");
        assert_eq!(status_of(Body::from("four"), 4).await.unwrap(), "four");
        assert_eq!(status_of(chunked(&["f", "", "ou", "r"]), 4).await.unwrap(), "four");
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused_as_soon_as_that_shows() {
        let endless = Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>("more")));

        assert_eq!(status_of(Body::from("fives"), 4).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        assert_eq!(status_of(chunked(&["fi", "ves"]), 4).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        assert_eq!(status_of(chunked(&["fives"]), 4).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        assert_eq!(status_of(endless, 4096).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
    }

    #[tokio::test]
    async fn of_a_body_that_is_refused_as_much_again_is_read() {
        for (length, expected) in [(7, 7), (100, 10)] {
            let read = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&read);
            let parts = stream::iter(0..length).map(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok::<_, std::io::Error>("x")
            });

            assert_eq!(status_of(Body::from_stream(parts), 4).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
            assert_eq!(read.load(Ordering::Relaxed), expected);
        }
    }

    #[tokio::test]
    async fn a_body_is_refused_as_soon_as_its_files_have_no_room() {
        let budget = FileBudget::new(4096);
        let mut room = BodyRoom::new(budget.share(), 100);
        let endless = Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>("more")));

        let see = |part: &[u8]| room.add(part.len());
        let problem = read_body(&HeaderMap::new(), endless, 1 << 20, PATIENCE, see).await.unwrap_err();

        assert_eq!((problem.status(), problem.name()), (StatusCode::SERVICE_UNAVAILABLE, "busy"));
        assert_eq!(room.read, 100 + 3072 + 4);
        drop(room);
        assert!(BodyRoom::new(budget.share(), 0).add(3072).is_ok());
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_refused() {
        let breaking = Body::from_stream(stream::iter([Ok("a"), Err(std::io::Error::other("reset"))]));

        assert_eq!(status_of(breaking, 4).await, Err(StatusCode::BAD_REQUEST));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_in_time_is_refused() {
        let slow = || Body::from_stream(stream::iter([Ok::<_, std::io::Error>("a")]).chain(stream::pending()));
        let begun = tokio::time::Instant::now();

        let problem = read_body(&HeaderMap::new(), slow(), 4, PATIENCE, |_| Ok(())).await.unwrap_err();

        assert_eq!((problem.status(), begun.elapsed()), (StatusCode::REQUEST_TIMEOUT, PATIENCE));
        assert!(problem.detail().contains("3s"), "{}", problem.detail());
    }

    #[tokio::test]
    async fn a_compressed_body_is_refused() {
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))]);

        let problem = read_body(&headers, Body::from("…"), 4, PATIENCE, |_| Ok(())).await.unwrap_err();

        assert_eq!(problem.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}
