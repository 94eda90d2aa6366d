//! Reads a request's body, limited in size and time.

use std::{
    borrow::Cow,
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderMap, StatusCode, header},
};
use futures_util::StreamExt;
use rejoinder_kit::{Peer, Problem};

/// How many bytes of bodies may be in memory before their signature is checked, in all and of one peer.
const MAX_UNPROVED: usize = 64 << 20;
const MAX_UNPROVED_PER_PEER: usize = 16 << 20;

/// The largest body with a signature, in bytes: half of what may be in memory in all, so that one peer does not take it all.
pub(crate) const MAX_SIGNED: usize = MAX_UNPROVED / 2;

/// The `Retry-After` when too many bodies are being read.
const PAUSE: Duration = Duration::from_secs(5);

/// The bodies of all hooks whose signature is not checked yet. Their size is bounded, in all and per peer: anybody can send
/// them.
#[derive(Debug, Default)]
pub struct Bodies {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// The bytes of one body; freed on drop.
pub(crate) struct UnprovedBody {
    bodies: Arc<Bodies>,
    peer: IpAddr,
    bytes: usize,
}

impl Bodies {
    pub(crate) fn of(self: &Arc<Self>, peer: Peer) -> UnprovedBody {
        UnprovedBody { bodies: Arc::clone(self), peer: peer.network(), bytes: 0 }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnprovedBody {
    /// Counts further bytes. One body alone may be larger than its peer's share, up to [`MAX_SIGNED`].
    ///
    /// # Errors
    /// When there are too many bytes in memory already.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        let mut held = self.bodies.held();
        let of_peer = held.by_peer.get(&self.peer).copied().unwrap_or_default();
        let is_alone = of_peer == self.bytes;
        let most_of_peer = if is_alone { MAX_SIGNED } else { MAX_UNPROVED_PER_PEER };
        if held.all + bytes > MAX_UNPROVED || of_peer + bytes > most_of_peer {
            let detail = "too many bodies are being read before their signature can be checked; try again later";
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "Service unavailable: too many bodies",
                detail,
            )
            .retry_after(PAUSE));
        }
        held.all += bytes;
        held.by_peer.insert(self.peer, of_peer + bytes);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for UnprovedBody {
    fn drop(&mut self) {
        let mut held = self.bodies.held();
        held.all -= self.bytes;
        let of_peer = held.by_peer.entry(self.peer).or_default();
        *of_peer -= self.bytes;
        if *of_peer == 0 {
            held.by_peer.remove(&self.peer);
        }
    }
}

/// Reads a body of at most `limit` bytes that arrives within `patience`, and shows `see` each part of it.
///
/// # Errors
/// When it is too large, too slow, compressed or incomplete, or `see` refuses a part.
pub(crate) async fn read(
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
    // A Content-Length over the limit is refused before anything is read.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    tokio::time::timeout(patience, collect(body, limit, see)).await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {patience:?}");
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow-body", "Request timeout: the body is too slow", detail))
    })
}

async fn collect(
    body: Body,
    limit: usize,
    mut see: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<Bytes, Problem> {
    // Reserved at once, because growing doubles what is held. Reserved memory is only in use once bytes have arrived.
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
    let mut chunks = body.into_data_stream();
    let mut next = async || match chunks.next().await {
        None => Ok(None),
        Some(Ok(chunk)) if chunk.len() > limit => Err(too_large(limit)),
        Some(Ok(chunk)) => see(&chunk).map(|()| Some(chunk)),
        Some(Err(_)) => Err(broken("the body ended early")),
    };
    let Some(first) = next().await? else { return Ok(Bytes::new()) };
    // Nearly every body is a single chunk, which needs no copy.
    let Some(second) = next().await? else { return Ok(first) };
    let mut whole = Vec::with_capacity(expected.max(first.len() + second.len()));
    whole.extend_from_slice(&first);
    let mut chunk = Some(second);
    while let Some(more) = chunk {
        if whole.len() + more.len() > limit {
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&more);
        chunk = next().await?;
    }
    Ok(whole.into())
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body must have at most {limit} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Payload too large", detail)
}

fn broken(detail: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "broken-body", "Bad request: the body cannot be read", detail)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use futures_util::stream;

    use super::*;

    fn chunked(chunks: &[&'static str]) -> Body {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok::<_, std::io::Error>(*chunk)).collect();
        Body::from_stream(stream::iter(chunks))
    }

    const PATIENCE: Duration = Duration::from_secs(3);

    async fn status_of(body: Body, limit: usize) -> Result<Bytes, StatusCode> {
        read(&HeaderMap::new(), body, limit, PATIENCE, |_| Ok(())).await.map_err(|problem| problem.status())
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
    async fn a_body_that_breaks_off_is_refused() {
        let breaking = Body::from_stream(stream::iter([Ok("a"), Err(std::io::Error::other("reset"))]));

        assert_eq!(status_of(breaking, 4).await, Err(StatusCode::BAD_REQUEST));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_in_time_is_refused() {
        let slow = || Body::from_stream(stream::iter([Ok::<_, std::io::Error>("a")]).chain(stream::pending()));
        let begun = tokio::time::Instant::now();

        let problem = read(&HeaderMap::new(), slow(), 4, PATIENCE, |_| Ok(())).await.unwrap_err();

        assert_eq!((problem.status(), begun.elapsed()), (StatusCode::REQUEST_TIMEOUT, PATIENCE));
        assert!(problem.detail().contains("3s"), "{}", problem.detail());
    }

    #[tokio::test]
    async fn a_compressed_body_is_refused() {
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))]);

        let problem = read(&headers, Body::from("…"), 4, PATIENCE, |_| Ok(())).await.unwrap_err();

        assert_eq!(problem.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }

    fn peer(number: u32) -> Peer {
        Peer(std::net::Ipv4Addr::from_bits(number).into())
    }

    /// How many mebibytes of bodies these peers can have read at once, each in bodies of one.
    fn mebibytes(bodies: &Arc<Bodies>, peers: impl IntoIterator<Item = u32>) -> usize {
        let held: Vec<_> = peers.into_iter().map(|number| bodies.of(peer(number))).collect();
        held.into_iter()
            .map(|mut body| body.add(1 << 20).map(|()| body))
            .filter_map(Result::ok)
            .collect::<Vec<_>>()
            .len()
    }

    #[test]
    fn bodies_without_proof_are_bounded_in_all_and_per_peer() {
        let bodies = Arc::default();

        assert_eq!((mebibytes(&bodies, [1; 100]), mebibytes(&bodies, 0..100)), (16, 64));
        let held = bodies.held();
        assert_eq!((held.all, held.by_peer.len()), (0, 0));
    }

    #[test]
    fn one_large_body_may_be_larger_than_its_peers_share() {
        let bodies = Arc::default();
        let mut large = Bodies::of(&bodies, peer(1));

        assert!((0..32).all(|_| large.add(1 << 20).is_ok()));
        assert!(large.add(1).is_err());
        assert_eq!(mebibytes(&bodies, [2; 16]), 16);
    }
}
