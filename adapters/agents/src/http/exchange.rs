//! The request of a turn and its response.

use rejoinder_core::{
    AgentError, AgentTurn, Clock as _, Outcome, Reply, RunEvents, SessionNotice, SystemClock, Timestamp, TraceHeaders,
};
use reqwest::{
    RequestBuilder, Response, StatusCode, Version,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING},
};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP};
use tokio::time::timeout;

use super::Http;
use crate::{
    response::{chain, error_body},
    wire::{Body, Format, Said, WireSession, WireTurn, short_error},
};

/// What the service may answer with.
const ACCEPTED: &str = "application/x-ndjson, text/event-stream, application/json, text/plain";

impl Http {
    pub(super) async fn exchange(&self, mut turn: AgentTurn, events: &RunEvents) -> Result<Outcome, AgentError> {
        events.shown(WireTurn::input(&turn)).await;
        let body = WireTurn::take_json(&mut turn);
        let (limit, request) = (self.settings.response_timeout, self.post(&turn, body)?);
        let response = match timeout(limit, request.send()).await {
            Err(_) => return Err(AgentError::Stalled(format!("no response for {limit:?}"))),
            Ok(Err(error)) if error.is_connect() => return Err(AgentError::Unreachable(chain(error))),
            Ok(Err(error)) => return Err(AgentError::Broken(format!("no response: {}", chain(error)))),
            Ok(Ok(response)) => response,
        };
        match response.status() {
            StatusCode::NO_CONTENT => return Ok(Outcome::Reply(Reply::text(""))),
            status if !status.is_success() => return Err(refusal(response).await),
            _ => {}
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let Some(format) = content_type.and_then(Format::of) else {
            let content_type = content_type.map_or("no content type", |value| &value[..value.len().min(100)]);
            return Err(AgentError::Broken(format!("the response has {content_type}, and none of {ACCEPTED}")));
        };
        if format == Format::Text && !shows_its_end(&response) {
            return Err(AgentError::Broken(
                "the response is text that only the end of the connection ends, which a service that dies ends, too: \
                 send it with a `Content-Length` or chunked (`Transfer-Encoding`), or answer with JSON"
                    .to_owned(),
            ));
        }
        let mut body = Body::new(Some(format), Said::of(&self.name, &turn, events));
        self.read(response, &mut body).await?;
        body.outcome().await
    }

    fn post(&self, turn: &AgentTurn, body: Vec<u8>) -> Result<RequestBuilder, AgentError> {
        let mut request =
            self.signed(&format!("{}-{}", turn.turn, turn.attempt), turn.now, body)?.header(ACCEPT, ACCEPTED);
        for (name, value) in turn.trace.iter().flat_map(TraceHeaders::pairs) {
            request = request.header(name, value);
        }
        Ok(request)
    }

    fn signed(&self, id: &str, now: Timestamp, body: Vec<u8>) -> Result<RequestBuilder, AgentError> {
        let seconds = now.as_millis().div_euclid(1000);
        let request = self.client.post(self.settings.url.clone()).header(CONTENT_TYPE, "application/json");
        let mut request = request.header(HEADER_WEBHOOK_ID, id);
        if let Some(signer) = &self.signer {
            let signature = signer.sign(id, seconds, &body);
            let signature = signature.map_err(|_| AgentError::Failed("the request cannot be signed".to_owned()))?;
            request = request.header(HEADER_WEBHOOK_SIGNATURE, signature);
        }
        Ok(request.header(HEADER_WEBHOOK_TIMESTAMP, seconds).body(body))
    }

    /// Tells the service what happened to a session.
    pub(super) async fn tell(&self, notice: &SessionNotice) -> Result<(), AgentError> {
        let changed = WireSession::of(notice);
        let request = self.signed(&changed.id(), SystemClock.now(), changed.json())?;
        match request.send().await {
            Err(error) if error.is_connect() => Err(AgentError::Unreachable(chain(error))),
            Err(error) => Err(AgentError::Broken(format!("no response: {}", chain(error)))),
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(refusal(response).await),
        }
    }

    async fn read(&self, mut response: Response, body: &mut Body<'_>) -> Result<(), AgentError> {
        let limit = self.settings.idle_timeout;
        while !body.has_ended() {
            match timeout(limit, response.chunk()).await {
                Err(_) => return Err(AgentError::Stalled(format!("no data for {limit:?}{}", body.after()))),
                Ok(Err(error)) => {
                    let why = chain(error);
                    return Err(AgentError::Broken(format!("the response was cut off{}: {why}", body.after())));
                }
                Ok(Ok(Some(piece))) => body.push(&piece).await?,
                Ok(Ok(None)) => return body.end().await,
            }
        }
        Ok(())
    }
}

/// Whether a body that is cut off can be told from a whole one. One of HTTP/1 without a length that is not chunked ends with the
/// connection (RFC 9112, 6.3).
fn shows_its_end(response: &Response) -> bool {
    let headers = response.headers();
    let is_chunked = || {
        let codings = headers.get_all(TRANSFER_ENCODING).iter().next_back();
        codings.is_some_and(|codings| codings.as_bytes().to_ascii_lowercase().trim_ascii_end().ends_with(b"chunked"))
    };
    response.version() > Version::HTTP_11 || headers.contains_key(CONTENT_LENGTH) || is_chunked()
}

async fn refusal(mut response: Response) -> AgentError {
    let status = response.status().to_string();
    let body = error_body(&mut response).await;
    AgentError::Refused { status, message: short_error(&String::from_utf8_lossy(&body)) }
}
