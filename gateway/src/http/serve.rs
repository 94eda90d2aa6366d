//! Connections: how many, how long a request's head may take, and their end.

use std::{io, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use axum::{Router, extract::ConnectInfo, http::Request, response::IntoResponse};
use futures_util::FutureExt;
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use super::error::ApiError;

/// How many connections are open at once; the next ones wait to be accepted.
const MAX_CONNECTIONS: usize = 8192;

/// How long the head of a request may take, from the connection's opening or the end of the request before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// How much of a connection is kept in memory each way, in bytes.
const MAX_BUFFER: usize = 64 * 1024;

/// How long to wait when no connection can be accepted: all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The connections that are open.
pub(crate) struct Connections {
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Connections {
    /// Ends each connection after the response that it is busy with; returns when all have ended.
    pub(crate) async fn close(self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Serves `router` on `listener` until `shutdown` is cancelled; returns the connections that are still open.
pub(crate) async fn accept(listener: TcpListener, router: Router, shutdown: &CancellationToken) -> Connections {
    let connections = Connections { tasks: TaskTracker::new(), closing: CancellationToken::new() };
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_header_size(MAX_HEAD).max_buf_size(MAX_BUFFER);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            next = next => next,
            () = shutdown.cancelled() => return connections,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if !is_the_callers(&error) {
                    warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        // Fails on a connection that is closed already.
        let _ = stream.set_nodelay(true);
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let answered = AssertUnwindSafe(router.call(request)).catch_unwind();
            async { answered.await.unwrap_or_else(|_| Ok(ApiError::Internal.into_response())) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let closing = connections.closing.clone();
        connections.tasks.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                debug!(%peer, %error, "a connection broke");
            }
            drop(place);
        });
    }
}

/// Whether accepting failed because the caller had gone already.
fn is_the_callers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    async fn handler_that_panics() -> &'static str {
        panic!("as it was told to")
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_for() {
        let router = Router::new().route("/", get(handler_that_panics));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { accept(listener, router, &shutdown).await }
        });

        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        shutdown.cancel();
        serving.await.unwrap().close().await;

        assert!(answer.starts_with("HTTP/1.1 500 ") && answer.contains("urn:rejoinder:problem:internal"), "{answer}");
    }
}
