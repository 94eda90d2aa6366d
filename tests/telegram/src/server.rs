//! The Bot API over HTTP: finds the method, applies faults, and responds.

use std::{
    fmt::Write as _,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, DefaultBodyLimit, Request, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use tokio::{
    sync::futures::Notified,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    calls::CallNumber,
    control,
    error::{Answer, ApiError},
    fault::Effect,
    listener::ConnectionHandle,
    methods::{self, MethodKind, Poll},
    params::Params,
    shared::Shared,
};

/// The largest request in bytes: a file and its multipart envelope.
const MAX_BODY: usize = 60 << 20;

/// All paths of the server.
pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    let limit = DefaultBodyLimit::max(MAX_BODY);
    let api = Router::new().fallback(serve).with_state(Arc::clone(&shared));
    Router::new().nest("/__control", control::routes(shared)).fallback_service(api).layer(limit)
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    request: Request,
) -> Response {
    if shared.is_unavailable() {
        return status(503);
    }
    // Some clients escape the colon of a token.
    let path = request.uri().path().replace("%3A", ":").replace("%3a", ":");
    let (download, rest) = match path.strip_prefix("/file/bot") {
        Some(rest) => (true, rest),
        None => match path.strip_prefix("/bot") {
            Some(rest) => (false, rest),
            None => return error(&ApiError::new(404, "Not Found")),
        },
    };
    let Some((token, name)) = rest.split_once('/') else { return error(&ApiError::new(404, "Not Found")) };
    if !shared.accepts_token(token) {
        return error(&ApiError::new(401, "Unauthorized"));
    }
    if download {
        return Exchange { shared: &shared, connection: &connection, name: "file" }.download(name).await;
    }
    let params = match Params::read(request).await {
        Ok(params) => params,
        Err(refused) => return error(&refused),
    };
    let name = name.trim_end_matches('/');
    match methods::find(name) {
        Some(MethodKind::Method(name, method)) => {
            let exchange = Exchange { shared: &shared, connection: &connection, name };
            exchange.run(&params, |world| method(world, &params)).await
        }
        Some(MethodKind::GetUpdates) => {
            Exchange { shared: &shared, connection: &connection, name: "getUpdates" }.poll(&params).await
        }
        None => {
            let missing = ApiError::new(404, "Not Found: method not found");
            Exchange { shared: &shared, connection: &connection, name }.run(&params, |_| Err(missing)).await
        }
    }
}

/// One call on one connection.
struct Exchange<'a> {
    shared: &'a Shared,
    connection: &'a ConnectionHandle,
    name: &'a str,
}

/// What a fault does to the response.
enum ResponseEffect {
    Answer,
    Slow(Duration),
    Lose,
    Status(u16),
}

impl Exchange<'_> {
    /// A call that responds immediately.
    async fn run(self, params: &Params, execute: impl FnOnce(&mut crate::world::World) -> Answer) -> Response {
        let faults_cleared = pin!(self.shared.signals.faults_cleared.notified());
        let (number, effect) = {
            let mut world = self.shared.lock();
            let chat = world.named_chat(params);
            let number = world.calls.began(self.name, || params.record(), chat);
            match world.faults.take(self.name, chat, &params.text("text").unwrap_or_default()) {
                // The common case, under a single lock.
                None => {
                    let answer = execute(&mut world);
                    world.calls.ended(number, self.name, || params.record(), &answer);
                    world.signals.changed.notify_waiters();
                    drop(world);
                    return respond(&answer);
                }
                Some(effect) => {
                    world.calls.faulted(number, effect.name());
                    world.signals.changed.notify_waiters();
                    (number, effect)
                }
            }
        };
        let after = match self.before(effect, number, params, faults_cleared).await {
            Ok(after) => after,
            Err(stopped) => return stopped,
        };
        let answer = {
            let mut world = self.shared.lock();
            let answer = execute(&mut world);
            self.ended(&mut world, number, params, &answer);
            answer
        };
        self.after(after, || respond(&answer)).await
    }

    fn ended(&self, world: &mut crate::world::World, number: CallNumber, params: &Params, answer: &Answer) {
        world.calls.ended(number, self.name, || params.record(), answer);
        world.signals.changed.notify_waiters();
    }

    /// Applies the part of a fault that comes before the execution.
    ///
    /// `faults_cleared` was created before the fault was taken, so that a stall cannot miss its end.
    async fn before(
        &self,
        effect: Effect,
        number: CallNumber,
        params: &Params,
        faults_cleared: Pin<&mut Notified<'_>>,
    ) -> Result<ResponseEffect, Response> {
        match effect {
            Effect::LostAnswer => Ok(ResponseEffect::Lose),
            Effect::ErrorAfter(code) => Ok(ResponseEffect::Status(code)),
            Effect::SlowAnswer(millis) => Ok(ResponseEffect::Slow(Duration::from_millis(millis))),
            Effect::Late(millis) => {
                sleep(Duration::from_millis(millis)).await;
                Ok(ResponseEffect::Answer)
            }
            Effect::ErrorBefore(code) => Err(status(code)),
            Effect::PageBefore(code) => Err(page(code)),
            Effect::Reset => {
                self.connection.reset();
                Err(status(500))
            }
            Effect::Refuse(refused) => {
                self.ended(&mut self.shared.lock(), number, params, &Err(refused.clone()));
                Err(error(&refused))
            }
            Effect::Stall => {
                faults_cleared.await;
                self.connection.close();
                Err(status(500))
            }
        }
    }

    /// Applies the part of a fault that comes after the execution.
    async fn after(&self, after: ResponseEffect, respond: impl FnOnce() -> Response) -> Response {
        match after {
            ResponseEffect::Answer => respond(),
            ResponseEffect::Slow(time) => {
                sleep(time).await;
                respond()
            }
            ResponseEffect::Lose => {
                self.connection.close();
                status(500)
            }
            ResponseEffect::Status(code) => status(code),
        }
    }

    /// `getUpdates`: waits for the first update.
    async fn poll(self, params: &Params) -> Response {
        let faults_cleared = pin!(self.shared.signals.faults_cleared.notified());
        let (number, effect) = {
            let mut world = self.shared.lock();
            let number = world.calls.began(self.name, || params.record(), None);
            let effect = world.faults.take(self.name, None, "");
            if let Some(effect) = &effect {
                world.calls.faulted(number, effect.name());
            }
            world.signals.changed.notify_waiters();
            (number, effect)
        };
        let after = match effect {
            None => ResponseEffect::Answer,
            Some(effect) => match self.before(effect, number, params, faults_cleared).await {
                Ok(after) => after,
                Err(stopped) => return stopped,
            },
        };
        let updates = self.updates(params).await;
        if self.shared.is_unavailable() {
            return status(503);
        }
        {
            let mut world = self.shared.lock();
            if world.calls.wanted() {
                let parsed = |update: &Arc<str>| serde_json::from_str::<Value>(update).expect("updates are JSON");
                let answer = updates.as_ref().map(|them| them.iter().map(parsed).collect()).map_err(Clone::clone);
                self.ended(&mut world, number, params, &answer);
            }
        }
        let answer = || match &updates {
            Ok(updates) => ok(&format!("[{}]", updates.join(","))),
            Err(refused) => error(refused),
        };
        self.after(after, answer).await
    }

    async fn updates(&self, params: &Params) -> Result<Vec<Arc<str>>, ApiError> {
        let poll = Poll::begin(&mut self.shared.lock(), params)?;
        let end = Instant::now() + poll.timeout;
        loop {
            let mut notified = pin!(self.shared.signals.poll.notified());
            notified.as_mut().enable();
            let updates = poll.updates(&self.shared.lock())?;
            if !updates.is_empty() || self.shared.is_unavailable() || timeout_at(end, notified).await.is_err() {
                return Ok(updates);
            }
        }
    }

    /// Downloads a file.
    async fn download(self, path: &str) -> Response {
        let params = Params::of(json!({ "path": path }));
        let faults_cleared = pin!(self.shared.signals.faults_cleared.notified());
        let (number, effect) = {
            let mut world = self.shared.lock();
            let number = world.calls.began(self.name, || params.record(), None);
            let effect = world.faults.take(self.name, None, "");
            if let Some(effect) = &effect {
                world.calls.faulted(number, effect.name());
            }
            (number, effect)
        };
        let after = match effect {
            None => ResponseEffect::Answer,
            Some(effect) => match self.before(effect, number, &params, faults_cleared).await {
                Ok(after) => after,
                Err(stopped) => return stopped,
            },
        };
        let found: Result<Bytes, ApiError> = {
            let mut world = self.shared.lock();
            let found = world.file_at(path).map(|file| file.bytes.clone());
            let found = found.ok_or_else(|| ApiError::new(404, "Not Found"));
            let result = found.as_ref().map(|bytes| json!({ "bytes": bytes.len() })).map_err(Clone::clone);
            // Downloads are not written to the log, as its validator knows only methods.
            world.calls.settle(number, &result);
            world.signals.changed.notify_waiters();
            found
        };
        let answer = || match found {
            Ok(bytes) => ([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response(),
            Err(refused) => error(&refused),
        };
        self.after(after, answer).await
    }
}

fn respond(answer: &Answer) -> Response {
    match answer {
        Ok(result) => ok(result),
        Err(refused) => error(refused),
    }
}

fn ok(result: &impl std::fmt::Display) -> Response {
    let mut body = String::with_capacity(512);
    write!(body, "{{\"ok\":true,\"result\":{result}}}").expect("writing to a string succeeds");
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

pub(crate) fn error(refused: &ApiError) -> Response {
    let code = StatusCode::from_u16(refused.code).unwrap_or(StatusCode::BAD_REQUEST);
    (code, [(CONTENT_TYPE, "application/json")], Body::from(refused.to_body().to_string())).into_response()
}

/// The page of a proxy that cannot reach the server.
fn page(code: u16) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
    let title = format!("<title>{status}</title>");
    let body = format!("<html>\r\n<head>{title}</head>\r\n<body><center><h1>{status}</h1></center></body>\r\n</html>");
    (status, [(CONTENT_TYPE, "text/html")], body).into_response()
}

/// An error with an HTTP status, in the server's format.
fn status(code: u16) -> Response {
    let reason = StatusCode::from_u16(code).ok().and_then(|code| code.canonical_reason()).unwrap_or("Error");
    error(&ApiError::new(code, reason))
}
