//! Requests to an agent: its card, calls and streams, within bounds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rejoinder_agents::{
    events::{Events, EventsError},
    response::{MAX_EVENT, chain, error_body, error_detail, is_hidden, read_body},
};
use rejoinder_core::{AgentError, TraceHeaders};
use rejoinder_kit::secret_headers;
use reqwest::{
    RequestBuilder, Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use crate::{
    A2aSection,
    binding::{Binding, JSON_TYPES, Request},
    call_error::CallError,
    card::{Endpoint, short},
    protocol::{Card, Event, Method, RpcError, VERSION},
};

/// The largest card, in bytes.
const MAX_CARD: usize = 256 * 1024;

/// How long a card, the state of a task, and its cancellation are waited for.
const BRIEF: Duration = Duration::from_secs(10);

/// What an agent says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAgent {
    /// Its name and version.
    pub name: String,
    /// The binding of the protocol with which it is asked, as its card calls it.
    pub binding: &'static str,
    /// Whether it streams its answers.
    pub streams: bool,
    /// How long it took to answer.
    pub took: Duration,
}

/// Reads the card of an agent.
///
/// # Errors
/// Says why the agent cannot be used, for the operator.
pub async fn find(settings: &A2aSection, http: reqwest::Client) -> Result<FoundAgent, String> {
    let connection = Connection::new(settings, http)?;
    let began = Instant::now();
    let (card, endpoint) = connection.read_card().await.map_err(|error| error.to_string())?;
    let name = connection.told(&short(&format!("{} {}", card.name, card.version))).trim().to_owned();
    let name = if name.is_empty() { "an agent without a name".to_owned() } else { name };
    Ok(FoundAgent { name, binding: endpoint.binding.name(), streams: endpoint.streams, took: began.elapsed() })
}

/// The requests to one agent.
pub(crate) struct Connection {
    http: reqwest::Client,
    card_url: Url,
    headers: HeaderMap,
    /// What errors must not contain.
    secrets: Vec<SecretString>,
    response_timeout: Duration,
    idle_timeout: Duration,
    endpoint: Mutex<Option<Arc<Endpoint>>>,
}

impl Connection {
    /// # Errors
    /// Says which header cannot be sent.
    pub(crate) fn new(settings: &A2aSection, http: reqwest::Client) -> Result<Self, String> {
        let bearer = settings.token.as_ref().map(|token| format!("Bearer {}", token.expose()));
        let token = bearer.iter().map(|bearer| ("authorization", &**bearer));
        let added = settings.headers.iter().map(|(name, value)| (&**name, value.expose()));
        let headers = secret_headers(token.chain(added).chain([("a2a-version", VERSION)]));
        let headers = headers.map_err(|name| format!("the header {name} cannot be sent"))?;
        let secrets = settings.token.iter().chain(settings.headers.values()).map(|secret| secret.get().clone());
        let secrets = secrets.filter(|secret| is_hidden(secret.expose_secret())).collect();
        let A2aSection { response_timeout, idle_timeout, .. } = *settings;
        let (card_url, endpoint) = (settings.card_url(), Mutex::default());
        Ok(Self { http, card_url, headers, secrets, response_timeout, idle_timeout, endpoint })
    }

    /// Where the agent is asked: as its latest card says.
    pub(crate) async fn endpoint(&self) -> Result<Arc<Endpoint>, AgentError> {
        let known = self.endpoint.lock().clone();
        match known {
            Some(endpoint) => Ok(endpoint),
            None => self.read_card().await.map(|(_, endpoint)| endpoint),
        }
    }

    /// Reads the card again. Without one the agent is not asked at all.
    pub(crate) async fn read_card(&self) -> Result<(Card, Arc<Endpoint>), AgentError> {
        let request =
            self.http.get(self.card_url.clone()).headers(self.headers.clone()).header(ACCEPT, "application/json");
        let read = async {
            let response = self.send(request, None, BRIEF).await?;
            let body = self.body(response, MAX_CARD, BRIEF).await?;
            serde_json::from_slice::<Card>(&body).map_err(|error| CallError::Broken(self.told(&error.to_string())))
        };
        let card = read.await.map_err(|error| {
            AgentError::Unreachable(match AgentError::from(error) {
                AgentError::Unreachable(why) => why,
                AgentError::Refused { status, message } => format!("its card is refused: {status}: {message}"),
                error => format!("its card cannot be read: {error}"),
            })
        })?;
        let endpoint =
            Arc::new(Endpoint::of(&card, &self.card_url).map_err(|why| AgentError::Unreachable(self.told(&why)))?);
        *self.endpoint.lock() = Some(Arc::clone(&endpoint));
        Ok((card, endpoint))
    }

    /// Sends a message, and waits until the response is there.
    pub(crate) async fn send_message(
        &self,
        to: &Endpoint,
        params: Value,
        trace: Option<&TraceHeaders>,
    ) -> Result<Event, CallError> {
        self.result(to, Method::SendMessage, params, (self.response_timeout, trace)).await
    }

    /// Asks for the state of a task, or cancels it.
    pub(crate) async fn about_task<T: DeserializeOwned>(
        &self,
        to: &Endpoint,
        method: Method,
        task: &str,
    ) -> Result<T, CallError> {
        let mut params = json!({ "id": task });
        if method == Method::GetTask {
            params["historyLength"] = 0.into();
        }
        self.result(to, method, params, (BRIEF, None)).await
    }

    /// Begins a stream.
    pub(crate) async fn stream(
        &self,
        to: &Endpoint,
        method: Method,
        params: Value,
        trace: Option<&TraceHeaders>,
    ) -> Result<EventStream<'_>, CallError> {
        let accept = format!("text/event-stream, {JSON_TYPES}");
        let request = self.request(to, method, params, trace)?.header(ACCEPT, accept);
        let response = self.send(request, Some(to.binding), self.response_timeout).await?;
        let content_type = response.headers().get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
        match content_type {
            Some(kind) if kind.starts_with(b"text/event-stream") => {
                Ok(EventStream { events: Events::of(response), binding: to.binding, connection: self })
            }
            // A request that is not done has one response.
            Some(kind) if JSON_TYPES.split(", ").any(|json| kind.starts_with(json.as_bytes())) => {
                let body = self.body(response, MAX_EVENT, self.response_timeout).await?;
                self.read::<Event>(to.binding, &body)?;
                Err(CallError::Broken("it answers with one object, though its card says that it streams".to_owned()))
            }
            _ => Err(CallError::Broken(
                "it answers with no event stream, though its card says that it streams".to_owned(),
            )),
        }
    }

    fn request(
        &self,
        to: &Endpoint,
        method: Method,
        params: Value,
        trace: Option<&TraceHeaders>,
    ) -> Result<RequestBuilder, CallError> {
        let Request { verb, url, body } = to.binding.request(&to.url, to.tenant.as_deref(), method, params)?;
        let mut request = self.http.request(verb, url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let trace = trace.into_iter().flat_map(TraceHeaders::pairs);
        Ok(trace.fold(request, |request, (name, value)| request.header(name, value)))
    }

    async fn result<T: DeserializeOwned>(
        &self,
        to: &Endpoint,
        method: Method,
        params: Value,
        (limit, trace): (Duration, Option<&TraceHeaders>),
    ) -> Result<T, CallError> {
        let request = self.request(to, method, params, trace)?.header(ACCEPT, JSON_TYPES);
        let response = self.send(request, Some(to.binding), limit).await?;
        self.read(to.binding, &self.body(response, MAX_EVENT, limit).await?)
    }

    /// Sends a request, and waits until its response begins. `binding`: that of its errors.
    async fn send(
        &self,
        request: RequestBuilder,
        binding: Option<Binding>,
        limit: Duration,
    ) -> Result<Response, CallError> {
        let mut response = match timeout(limit, request.send()).await {
            Err(_) => return Err(CallError::Stalled(format!("no response for {limit:?}"))),
            Ok(Err(error)) if error.is_connect() => return Err(CallError::Unreachable(self.told(&chain(error)))),
            Ok(Err(error)) => return Err(CallError::Cut(self.told(&chain(error)))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let message = "it redirects, which is not followed: set `url` to the address it redirects to".to_owned();
            return Err(CallError::Refused { status: status.to_string(), message });
        }
        let body = error_body(&mut response).await;
        let error = binding.and_then(|binding| binding.error(status, &body));
        Err(self.masked(error.unwrap_or_else(|| {
            let message = String::from_utf8_lossy(&body).into_owned();
            CallError::Refused { status: status.to_string(), message }
        })))
    }

    async fn body(&self, mut response: Response, most: usize, limit: Duration) -> Result<Vec<u8>, CallError> {
        match timeout(limit, read_body(&mut response, most + 1)).await {
            Err(_) => Err(CallError::Stalled(format!("the response has not ended within {limit:?}"))),
            Ok(Err(error)) => Err(CallError::Cut(self.told(&chain(error)))),
            Ok(Ok(body)) if body.len() > most => {
                Err(CallError::Broken(format!("a response has more than {most} bytes")))
            }
            Ok(Ok(body)) => Ok(body),
        }
    }

    fn read<T: DeserializeOwned>(&self, binding: Binding, json: &[u8]) -> Result<T, CallError> {
        binding.read(json).map_err(|error| self.masked(error))
    }

    /// An error with words of the server, for the operator.
    fn masked(&self, error: CallError) -> CallError {
        match error {
            CallError::Rpc(RpcError { code, message }) => {
                CallError::Rpc(RpcError { code, message: self.told(&message) })
            }
            CallError::Refused { status, message } => {
                CallError::Refused { status: self.told(&status), message: self.told(&message) }
            }
            CallError::Broken(why) => CallError::Broken(self.told(&why)),
            CallError::Unreachable(_) | CallError::Cut(_) | CallError::Stalled(_) => error,
        }
    }

    /// Words of the server, for the operator.
    pub(crate) fn told(&self, words: &str) -> String {
        error_detail(words, &self.secrets)
    }
}

/// The events of a task.
pub(crate) struct EventStream<'a> {
    events: Events,
    binding: Binding,
    connection: &'a Connection,
}

impl EventStream<'_> {
    /// The next event. `None`: the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, CallError> {
        let limit = self.connection.idle_timeout;
        match timeout(limit, self.events.next()).await {
            Err(_) => Err(CallError::Stalled(format!("nothing came for {limit:?} (`idle_timeout`)"))),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(data))) => self.connection.read(self.binding, data.as_bytes()).map(Some),
            Ok(Err(EventsError::Cut(why))) => Err(CallError::Cut(self.connection.told(&why))),
            Ok(Err(EventsError::Broken(why))) => Err(CallError::Broken(why)),
        }
    }
}
