//! Serves connections: accepts them, limits the heads of their requests, and closes them.

use std::{
    convert::Infallible,
    io,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, Version, header},
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, StreamExt};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use rejoinder_kit::{Format, Peer, Via, problem_in_words};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use super::{
    connection_permits::{ConnectionPermit, ConnectionPermits, RequestPermit},
    error::ApiError,
    proxies::Proxies,
};

/// How long the head of a request may take, from the connection's opening or the end of the previous request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// How much of a connection is buffered in each direction, in bytes.
const MAX_BUFFER: usize = 64 * 1024;

/// The pause after a failed accept, for example when all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Connections {
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Connections {
    /// Closes each connection after its current response. Returns when all are closed.
    pub(crate) async fn close(self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Serves `router` on `listener` until `shutdown` is cancelled. Returns the connections that are still open. All listeners
/// share `permits`.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    permits: Arc<ConnectionPermits>,
    proxies: Arc<Proxies>,
    shutdown: &CancellationToken,
) -> Connections {
    let connections = Connections { tasks: TaskTracker::new(), closing: CancellationToken::new() };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_header_size(MAX_HEAD).max_buf_size(MAX_BUFFER);
    // A caller may close its sending side after its request. Such a caller cannot be told from one that has gone, so a
    // request of the latter goes on until its response: a hook's, for its wait at most.
    http.half_close(true);
    loop {
        // Nothing else is waited for here: one peer would keep all others waiting.
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return connections,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if !is_peer_error(&error) {
                    warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        let bounded = (!proxies.trust(peer.ip())).then_some(Peer(peer.ip()));
        let Some(permit) = permits.take(bounded) else { continue };
        // Fails if the connection is closed already.
        let _ = stream.set_nodelay(true);
        let permit = Arc::new(permit);
        let socket = Socket { stream, _permit: Arc::clone(&permit) };
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn({
            let (permit, proxies) = (Arc::clone(&permit), Arc::clone(&proxies));
            move |mut request: Request<Incoming>| {
                let caller = proxies.caller(peer.ip(), request.headers());
                request.extensions_mut().insert(caller);
                request.extensions_mut().insert(Via(peer.ip()));
                answer(router.clone(), Arc::clone(&permit), caller, request)
            }
        });
        let connection = http.serve_connection(TokioIo::new(socket), service).with_upgrades();
        let closing = connections.closing.clone();
        connections.tasks.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                biased;
                // First, so that a request that has arrived begins before its connection must close.
                ended = connection.as_mut() => ended,
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
                () = permit.evicted() => Ok(()),
            };
            if let Err(error) = ended {
                debug!(%peer, %error, "connection failed");
            }
        });
    }
}

/// Answers every request. A caller who prefers text or sound reads a problem as a sentence.
async fn answer(
    router: TowerToHyperService<Router>,
    permit: Arc<ConnectionPermit>,
    caller: Peer,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let format = Format::read(request.headers());
    let response = respond(router, permit, caller, request).await?;
    Ok(if format == Format::Json { response } else { problem_in_words(response) })
}

/// Responds with 503 when there are too many requests, with 500 when a handler panics.
async fn respond(
    router: TowerToHyperService<Router>,
    permit: Arc<ConnectionPermit>,
    caller: Peer,
    mut request: Request<Incoming>,
) -> Result<Response, Infallible> {
    if !has_one_host(&request) {
        return Ok(([(header::CONNECTION, "close")], ApiError::NoHost).into_response());
    }
    let permit = match request.uri().path() {
        "/healthz" | "/readyz" => {
            permit.restart_idle_time();
            None
        }
        _ => match permit.begin_request(caller) {
            Some(permit) => Some(permit),
            None => return Ok(([(header::CONNECTION, "close")], ApiError::Busy).into_response()),
        },
    };
    if let Some(place) = permit.as_ref().and_then(RequestPermit::place) {
        request.extensions_mut().insert(place);
    }
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
    let response = answered.unwrap_or_else(|_| Ok(ApiError::Internal.into_response()))?;
    let Some(permit) = permit else { return Ok(response) };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        permit.keep_until_closed();
        return Ok(response);
    }
    let streams = response.headers().get(header::CONTENT_TYPE).is_some_and(|media| media == "text/event-stream");
    Ok(if streams { response.map(|body| with_permit(body, permit)) } else { response })
}

/// A body that counts as a request until its end: who reads a stream is not idle.
fn with_permit(body: Body, permit: RequestPermit) -> Body {
    Body::from_stream(body.into_data_stream().inspect(move |_| _ = &permit))
}

/// Whether the request names one host, as HTTP/1.1 requires (RFC 9112, section 3.2). HTTP/1.0 knows no `Host`.
fn has_one_host(request: &Request<Incoming>) -> bool {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    hosts == 1 || (hosts == 0 && request.version() == Version::HTTP_10)
}

/// A connection with its permit. It keeps the permit when it becomes a WebSocket.
struct Socket {
    stream: TcpStream,
    _permit: Arc<ConnectionPermit>,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Whether accepting failed because the peer had already closed the connection.
fn is_peer_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::{
        body::Bytes,
        extract::WebSocketUpgrade,
        routing::{any, get},
    };
    use futures_util::stream;
    use rstest::rstest;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::{Instant, sleep, timeout},
    };

    use super::*;
    use crate::http::Bounds;

    async fn handler_that_panics() -> &'static str {
        panic!("this handler always panics")
    }

    /// Reads the body, and answers only after the caller has had the time to close its side.
    async fn slow(_body: Bytes) -> &'static str {
        sleep(Duration::from_millis(50)).await;
        "at last"
    }

    /// Events without an end.
    async fn events() -> impl IntoResponse {
        let events = stream::unfold((), async |()| {
            sleep(Duration::from_millis(5)).await;
            Some((Ok::<_, Infallible>("data: 1\n\n"), ()))
        });
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events))
    }

    async fn echo(upgrade: WebSocketUpgrade) -> Response {
        upgrade.on_upgrade(async |mut socket| while socket.recv().await.is_some() {})
    }

    /// Serves with `permits` permits while `calls` runs.
    async fn serving<T>(permits: u64, calls: impl AsyncFnOnce(SocketAddr) -> T) -> T {
        serving_twice(permits, async |address, _| calls(address).await).await
    }

    /// As [`serving`], at two addresses.
    async fn serving_twice<T>(permits: u64, calls: impl AsyncFnOnce(SocketAddr, SocketAddr) -> T) -> T {
        let router = Router::new()
            .route("/", get(async || "here"))
            .route("/healthz", get(async || "well"))
            .route("/slow", any(slow))
            .route("/panics", get(handler_that_panics))
            .route("/events", get(events))
            .route("/socket", get(echo));
        let permits = ConnectionPermits::new(Bounds::new(2 * permits, Some(8192)));
        let shutdown = CancellationToken::new();
        let serve = async || {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (shutdown, permits, router) = (shutdown.clone(), Arc::clone(&permits), router.clone());
            let proxies = Arc::new(Proxies::new(Vec::new()));
            (address, tokio::spawn(async move { accept(listener, router, permits, proxies, &shutdown).await }))
        };
        let ((one, serving), (other, serving_too)) = (serve().await, serve().await);
        let called = calls(one, other).await;
        shutdown.cancel();
        serving.await.unwrap().close().await;
        serving_too.await.unwrap().close().await;
        called
    }

    async fn connection(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.unwrap()
    }

    /// Requests `path` and reads the response: all of it with [`CLOSE`], else at least its head.
    async fn ask(stream: &mut TcpStream, path: &str, headers: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut answer, mut buffer) = (String::new(), [0; 1024]);
        while !answer.contains("\r\n\r\n") || headers == CLOSE {
            let read = stream.read(&mut buffer).await.unwrap();
            if read == 0 {
                break;
            }
            answer.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        answer
    }

    const CLOSE: &str = "Connection: close\r\n";

    const TO_A_SOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                               Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_for() {
        let answer = serving(8, async |address| ask(&mut connection(address).await, "/panics", CLOSE).await).await;

        assert!(answer.starts_with("HTTP/1.1 500 ") && answer.contains("urn:rejoinder:problem:internal"), "{answer}");
    }

    #[rstest]
    #[case("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400 ")]
    #[case("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", "HTTP/1.1 400 ")]
    #[case("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 ")]
    #[case("GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ")]
    #[tokio::test]
    async fn a_request_names_one_host(#[case] request: &str, #[case] status: &str) {
        let answer = serving(8, async |address| said(address, request).await).await;

        assert!(answer.starts_with(status), "{answer}");
    }

    /// `nc -N` does this.
    #[tokio::test]
    async fn a_caller_that_closes_its_side_gets_its_response() {
        let answer = serving(8, async |address| said(address, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await).await;

        assert!(answer.ends_with("at last"), "{answer}");
    }

    #[rstest]
    #[case::in_the_head("POST / HTTP/1.1\r\nHost: a\r\n")]
    #[case::in_the_body("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")]
    #[tokio::test]
    async fn a_caller_that_goes_before_its_request_is_complete_frees_its_place(#[case] request: &str) {
        let answer = serving(2, async |address| {
            said(address, request).await;
            ask(&mut connection(address).await, "/", CLOSE).await
        })
        .await;

        assert!(answer.ends_with("here"), "{answer}");
    }

    /// Sends this, closes the sending side, and reads until the end.
    async fn said(address: SocketAddr, request: &str) -> String {
        let mut stream = connection(address).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[rstest]
    #[case::a_socket("/socket", TO_A_SOCKET, "HTTP/1.1 101 ")]
    #[case::events("/events", "", "HTTP/1.1 200 ")]
    #[tokio::test]
    async fn what_lasts_counts_as_a_request_until_it_is_closed(
        #[case] path: &str,
        #[case] headers: &str,
        #[case] status: &str,
    ) {
        let (socket, refused, health, at_last) = serving(2, async |address| {
            let mut socket = connection(address).await;
            let opened = ask(&mut socket, path, headers).await;
            let refused = ask(&mut connection(address).await, "/", CLOSE).await;
            let health = ask(&mut connection(address).await, "/healthz", CLOSE).await;
            drop(socket);
            loop {
                let answer = ask(&mut connection(address).await, "/", CLOSE).await;
                if !answer.starts_with("HTTP/1.1 503 ") {
                    break (opened, refused, health, answer);
                }
            }
        })
        .await;

        assert!(socket.starts_with(status), "{socket}");
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: "), "{refused}");
        assert!(health.ends_with("well"), "{health}");
        assert!(at_last.ends_with("here"), "{at_last}");
    }

    #[tokio::test]
    async fn two_addresses_share_the_places() {
        let refused = serving_twice(2, async |one, other| {
            let mut socket = connection(one).await;
            ask(&mut socket, "/socket", TO_A_SOCKET).await;
            ask(&mut connection(other).await, "/", CLOSE).await
        })
        .await;

        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    }

    #[tokio::test]
    async fn whoever_comes_when_all_places_are_taken_is_let_in_for_the_one_who_says_nothing() {
        let (silent, answer) = serving(2, async |address| {
            let (mut silent, mut kept) = (connection(address).await, connection(address).await);
            ask(&mut kept, "/", "").await;
            let mut next = connection(address).await;
            let answer = timeout(HEAD_TIMEOUT / 2, ask(&mut next, "/", CLOSE)).await.expect("it is accepted");
            // The connection is closed, or reset.
            (silent.read(&mut [0]).await.unwrap_or(0), answer)
        })
        .await;

        assert!(answer.ends_with("here"), "{answer}");
        assert_eq!(silent, 0);
    }

    #[rstest]
    #[case::one_that_says_nothing("", "")]
    #[case::one_that_says_it_byte_by_byte("", "GET / HTTP/1.1\r\nHost: localhost\r\n")]
    #[case::one_that_is_kept_alive("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "")]
    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_whole_head_is_closed_after_ten_seconds(#[case] said: &str, #[case] slowly: &str) {
        let lasted = serving(8, async |address| {
            let mut stream = connection(address).await;
            stream.write_all(said.as_bytes()).await.unwrap();
            let (mut reader, mut writer) = stream.into_split();
            let (begun, mut answers) = (Instant::now(), Vec::new());
            let slowly = async {
                for byte in slowly.as_bytes() {
                    sleep(Duration::from_secs(1)).await;
                    // Fails when the connection is closed.
                    let _ = writer.write_all(&[*byte]).await;
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = slowly => {}
                ended = reader.read_to_end(&mut answers) => drop(ended),
            }
            begun.elapsed()
        })
        .await;

        assert_eq!(lasted.as_secs(), 10, "{lasted:?}");
    }
}
