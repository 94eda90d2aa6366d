//! A proxy in front of the homeserver that fails on demand.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
};
use futures_util::stream;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::JoinHandle,
};

use crate::{PATIENCE, client};

/// The largest body that is forwarded, in bytes.
const MAX_BODY: usize = 64 << 20;

/// How a call fails.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Not forwarded; this is the response.
    Answer {
        /// The HTTP status.
        status: u16,
        /// Sent as JSON.
        body: Value,
    },
    /// Forwarded; this is the response.
    AnswerAfter {
        /// The HTTP status.
        status: u16,
        /// Sent as JSON.
        body: Value,
    },
    /// Forwarded; the connection ends without a response.
    LoseAnswer,
    /// Forwarded; the response is sent after this time.
    SlowAnswer(Duration),
    /// Forwarded; no response.
    KeepAnswer,
    /// Answered as a success at once, and forwarded only by [`Proxy::release`].
    Hold,
    /// Not forwarded; no response.
    Stall,
    /// Not forwarded; the connection ends without a response.
    Reset,
}

/// A recorded call.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    /// The path and query.
    pub path: String,
    /// The request body; null if it is not JSON.
    pub body: Value,
    /// The status of the response; 0 if there was none.
    pub status: u16,
    /// The response body; null if it is not JSON.
    pub answer: Value,
}

struct Rule {
    method: String,
    path: String,
    body_text: String,
    fault: Fault,
    first: usize,
    times: usize,
}

impl Rule {
    fn is_for(&self, call: &HeldCall) -> bool {
        (self.method.is_empty() || self.method == call.method.as_str())
            && call.path.contains(&self.path)
            && String::from_utf8_lossy(&call.body).contains(&self.body_text)
    }
}

struct HeldCall {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

#[derive(Default)]
struct Inner {
    rules: Vec<Rule>,
    held: Vec<HeldCall>,
}

struct Shared {
    upstream: String,
    client: reqwest::Client,
    inner: Mutex<Inner>,
    calls: watch::Sender<Vec<Call>>,
    is_open: watch::Sender<bool>,
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the fault of a call, if one applies.
    fn fault(&self, call: &HeldCall) -> Option<Fault> {
        let mut inner = self.inner();
        let rule = inner.rules.iter_mut().find(|rule| rule.times > 0 && rule.is_for(call))?;
        if rule.first > 0 {
            rule.first -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    async fn forward(&self, held: &HeldCall) -> Result<(StatusCode, HeaderMap, Bytes), reqwest::Error> {
        let mut headers = held.headers.clone();
        headers.remove(header::HOST);
        // Without compression, so that recorded responses are readable.
        headers.remove(header::ACCEPT_ENCODING);
        let url = format!("{}{}", self.upstream, held.path);
        let sent =
            self.client.request(held.method.clone(), url).headers(headers).body(held.body.clone()).send().await?;
        let (status, headers) = (sent.status(), sent.headers().clone());
        Ok((status, headers, sent.bytes().await?))
    }
}

/// A proxy in front of the homeserver. Dropping it stops it.
pub struct Proxy {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Proxy {
    pub(crate) async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            client: client(),
            inner: Mutex::default(),
            calls: watch::Sender::new(Vec::new()),
            is_open: watch::Sender::new(true),
        });
        let task = tokio::spawn(serve(Arc::clone(&shared), address, listener));
        Self { url: format!("http://{address}"), shared, task }
    }

    /// The base URL in place of the homeserver's.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes the next `times` calls of `method` (any, if empty) whose path contains `path` fail.
    pub fn fail(&self, method: &str, path: &str, times: usize, fault: Fault) {
        self.add_rule(method, path, "", 0, times, fault);
    }

    /// As [`fail`](Self::fail), after the first `first` matching calls succeed.
    pub fn fail_after(&self, first: usize, method: &str, path: &str, times: usize, fault: Fault) {
        self.add_rule(method, path, "", first, times, fault);
    }

    /// As [`fail`](Self::fail), for calls whose body contains `body_text`.
    pub fn fail_on(&self, body_text: &str, method: &str, path: &str, times: usize, fault: Fault) {
        self.add_rule(method, path, body_text, 0, times, fault);
    }

    fn add_rule(&self, method: &str, path: &str, body_text: &str, first: usize, times: usize, fault: Fault) {
        let (method, path, body_text) = (method.to_owned(), path.to_owned(), body_text.to_owned());
        self.shared.inner().rules.push(Rule { method, path, body_text, fault, first, times });
    }

    /// Closes all connections and refuses new ones.
    pub fn close(&self) {
        self.shared.is_open.send_replace(false);
    }

    /// Undoes [`close`](Self::close).
    pub fn reopen(&self) {
        self.shared.is_open.send_replace(true);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.shared.inner().rules.clear();
    }

    /// Forwards the held calls.
    ///
    /// # Panics
    /// If the homeserver rejects one.
    pub async fn release(&self) {
        let held = std::mem::take(&mut self.shared.inner().held);
        for held in held {
            let (status, ..) = self.shared.forward(&held).await.expect("the homeserver responds");
            assert!(status.is_success(), "a held call was rejected: {status}");
        }
    }

    /// The recorded calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.borrow().clone()
    }

    /// Waits until there is a call for which `is_it` holds, and returns all calls so far.
    ///
    /// # Panics
    /// If there is none within [`PATIENCE`].
    pub async fn until(&self, about: &str, mut is_it: impl FnMut(&Call) -> bool) -> Vec<Call> {
        let mut calls = self.shared.calls.subscribe();
        let waiting = calls.wait_for(|calls| calls.iter().any(&mut is_it));
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(Ok(calls)) => calls.clone(),
            _ => panic!("waited {PATIENCE:?} in vain: {about}"),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens while the proxy is open, until the task is aborted.
async fn serve(shared: Arc<Shared>, address: SocketAddr, mut listener: TcpListener) {
    let mut is_open = shared.is_open.subscribe();
    loop {
        let router = Router::new().fallback(handle).with_state(Arc::clone(&shared));
        tokio::select! {
            _ = axum::serve(listener, router) => {}
            _ = is_open.wait_for(|open| !open) => {}
        }
        // A bound socket that does not listen keeps the port, and the system refuses connections to it.
        let holder = loop {
            match bound(address) {
                Ok(holder) => break holder,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        // An error means that the sender is gone, and then this task ends too.
        let _ = is_open.wait_for(|open| *open).await;
        listener = holder.listen(1024).expect("the port is still bound");
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Responds to a call, or ends its connection when the proxy is closed.
async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let mut is_open = shared.is_open.subscribe();
    tokio::select! {
        biased;
        _ = is_open.wait_for(|open| !open) => broken(),
        response = answered(Arc::clone(&shared), request) => response,
    }
}

async fn answered(shared: Arc<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let body = to_bytes(body, MAX_BODY).await.unwrap_or_default();
    let held = HeldCall { method: parts.method, path, headers: parts.headers, body };
    let json = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or_default();
    let record = |held: &HeldCall, status: u16, answer: Value| {
        let (method, path) = (held.method.to_string(), held.path.clone());
        let call = Call { method, path, body: json(&held.body), status, answer };
        shared.calls.send_modify(|calls| calls.push(call));
    };
    let fault = shared.fault(&held);
    match fault {
        Some(Fault::Answer { status, body }) => {
            record(&held, status, body.clone());
            answer(status, body.to_string())
        }
        Some(Fault::Hold) => {
            record(&held, 200, Value::Null);
            shared.inner().held.push(held);
            answer(200, "{}".to_owned())
        }
        Some(Fault::Stall) => {
            record(&held, 0, Value::Null);
            std::future::pending().await
        }
        Some(Fault::Reset) => {
            record(&held, 0, Value::Null);
            broken()
        }
        fault => match shared.forward(&held).await {
            Err(error) => answer(502, error.to_string()),
            Ok((status, headers, bytes)) => {
                record(&held, status.as_u16(), json(&bytes));
                match fault {
                    None => {}
                    Some(Fault::SlowAnswer(time)) => tokio::time::sleep(time).await,
                    Some(Fault::AnswerAfter { status, body }) => return answer(status, body.to_string()),
                    Some(Fault::KeepAnswer) => std::future::pending().await,
                    Some(_) => return broken(),
                }
                let mut response = Response::new(Body::from(bytes));
                *response.status_mut() = status;
                for name in [header::CONTENT_TYPE, header::RETRY_AFTER, header::CONTENT_DISPOSITION] {
                    if let Some(value) = headers.get(&name) {
                        response.headers_mut().insert(name, value.clone());
                    }
                }
                response
            }
        },
    }
}

fn answer(status: u16, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// Ends the connection before the first byte of a response.
fn broken() -> Response {
    Response::new(Body::from_stream(stream::once(async { Err::<Bytes, _>(std::io::Error::other("broken")) })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy to a server that responds "hello", and the number of calls that the server got.
    async fn proxy() -> (Proxy, watch::Receiver<usize>) {
        let asked = watch::Sender::new(0);
        let (listener, counted) =
            (TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port"), asked.subscribe());
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let says_hello = async move || {
            asked.send_modify(|asked| *asked += 1);
            "hello"
        };
        let router = Router::new().fallback(says_hello);
        tokio::spawn(async move { axum::serve(listener, router).await });
        (Proxy::start(&url).await, counted)
    }

    #[tokio::test]
    async fn a_reset_is_a_call_that_was_not_passed_on() {
        let ((proxy, asked), client) = (proxy().await, client());
        proxy.fail("GET", "/a", 2, Fault::Reset);
        for _ in 0..2 {
            let error = client.get(format!("{}/a", proxy.url())).send().await.expect_err("there is no response");
            assert!(!error.is_connect(), "{error:?}");
        }
        assert_eq!(*asked.borrow(), 0);
        let answer = client.get(format!("{}/a", proxy.url())).send().await.expect("there is a response");
        assert_eq!(answer.text().await.expect("a text"), "hello");
    }

    #[tokio::test]
    async fn a_lost_answer_is_no_answer_at_all() {
        let ((proxy, asked), client) = (proxy().await, client());
        proxy.fail("GET", "/a", 1, Fault::LoseAnswer);
        client.get(format!("{}/a", proxy.url())).send().await.expect_err("there is no response");
        assert_eq!(*asked.borrow(), 1);
    }

    #[tokio::test]
    async fn an_answer_can_be_another_one_or_late() {
        let ((proxy, asked), client) = (proxy().await, client());
        let late = Duration::from_millis(200);
        proxy.fail("GET", "/a", 1, Fault::AnswerAfter { status: 502, body: "Bad Gateway".into() });
        proxy.fail("GET", "/a", 1, Fault::SlowAnswer(late));
        let get = async || client.get(format!("{}/a", proxy.url())).send().await.expect("there is a response");
        assert_eq!(get().await.status(), 502);
        assert_eq!(*asked.borrow(), 1);
        let begun = std::time::Instant::now();
        assert_eq!(get().await.text().await.expect("a text"), "hello");
        assert!(begun.elapsed() >= late);
    }

    #[tokio::test]
    async fn a_proxy_that_is_closed_refuses_and_is_found_again() {
        let ((proxy, asked), client) = (proxy().await, client());
        proxy.fail("GET", "/stalls", 1, Fault::Stall);
        let stalled = tokio::spawn(client.get(format!("{}/stalls", proxy.url())).send());
        proxy.until("the stalled call", |call| call.path == "/stalls").await;
        proxy.close();
        stalled.await.expect("the task ends").expect_err("a call under way ends");
        // The listener closes a moment later.
        let refused = loop {
            match client.get(proxy.url()).send().await {
                Err(error) if error.is_connect() => break error,
                other => assert!(other.is_err(), "a call succeeded"),
            }
        };
        assert!(format!("{refused:?}").contains("refused"), "{refused:?}");
        assert_eq!(*asked.borrow(), 0);
        proxy.reopen();
        while client.get(proxy.url()).send().await.is_err() {}
        assert_eq!(*asked.borrow(), 1);
    }
}
