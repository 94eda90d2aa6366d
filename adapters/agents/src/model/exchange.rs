//! One request and its answer: HTTP, timeouts, and which errors are retried.

use std::time::Duration;

use rejoinder_config::Secret;
use rejoinder_core::{AgentError, AgentTurn, TraceHeaders};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    answer::{Answer, AnswerError},
    protocol::Protocol,
    server::Model,
};
use crate::{
    events::{Events, EventsError},
    file_kind::essence,
    report::Report,
    response::{MAX_EVENT, chain, error_body, error_detail, error_text, is_hidden, read_body, too_large},
    section::ModelSettings,
};

/// The longest `Retry-After` that is waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);

/// How long to wait for the usage after the end of the answer.
const USAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for the end of the stream after its last event. Reading it allows the connection to be reused.
const END_TIMEOUT: Duration = Duration::from_millis(20);

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// No response arrived.
    Unreachable(String),
    /// The response has an error status.
    Refused { status: StatusCode, message: String, retry_after: Option<Duration> },
    /// The model refuses to answer.
    Declined(String),
    /// The answer itself reports a failure.
    Failed(String),
    /// The answer ended before it was finished.
    Cut(String),
    /// No data arrived for too long.
    Stalled(String),
    /// The answer cannot be parsed.
    Broken(String),
}

impl ExchangeError {
    /// The label in metrics.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Refused { .. } | Self::Declined(_) => "refused",
            Self::Failed(_) => "failed",
            Self::Cut(_) => "cut",
            Self::Stalled(_) => "stalled",
            Self::Broken(_) => "broken",
        }
    }

    /// How long to wait before a retry; `usual` if the server does not say. `None`: a retry would not help.
    pub(super) fn pause(&self, usual: Duration) -> Option<Duration> {
        match self {
            Self::Unreachable(_) | Self::Failed(_) | Self::Cut(_) => Some(usual),
            Self::Refused { status, retry_after, .. } if is_passing(*status) => {
                let pause = retry_after.unwrap_or(usual);
                (pause <= MAX_RETRY_AFTER).then_some(pause)
            }
            Self::Refused { .. } | Self::Declined(_) | Self::Stalled(_) | Self::Broken(_) => None,
        }
    }

    /// The error that ends the run, after `shown` characters of this answer were shown.
    pub(super) fn into_error(self, shown: usize) -> AgentError {
        let after = if shown == 0 { String::new() } else { format!(" after {shown} characters") };
        match self {
            Self::Unreachable(why) => AgentError::Unreachable(why),
            Self::Refused { status, message, .. } => AgentError::Refused { status: status.to_string(), message },
            Self::Declined(message) => AgentError::Refused { status: format!("refusal{after}"), message },
            Self::Failed(why) => AgentError::Failed(format!("{why}{after}")),
            Self::Cut(why) if shown == 0 => {
                AgentError::Broken(format!("the stream was cut off before any text: {why}"))
            }
            Self::Cut(why) => AgentError::Broken(format!("the stream was cut off{after}: {why}")),
            Self::Stalled(why) => AgentError::Stalled(format!("{why}{after}")),
            Self::Broken(why) => AgentError::Broken(format!("{why}{after}")),
        }
    }
}

impl From<AnswerError> for ExchangeError {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Failed(why) => Self::Failed(why),
            AnswerError::Broken(why) => Self::Broken(why),
            AnswerError::Refused(why) => Self::Declined(why),
        }
    }
}

/// Whether the status is transient. 529 means overloaded (Anthropic).
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504 | 529)
}

impl<P: Protocol> Model<P> {
    /// Sends `body`, and reads and reports the answer while it arrives.
    pub(super) async fn exchange(
        &self,
        body: Vec<u8>,
        turn: &AgentTurn,
        answer: &mut P::Answer,
        report: &mut Report<'_>,
    ) -> Result<(), ExchangeError> {
        let sent = Instant::now();
        let first = self.protocol.settings().first_token_timeout;
        let response = match timeout_at(sent + first, self.post(body, turn).send()).await {
            Err(_) => return Err(ExchangeError::Stalled(format!("no response for {first:?}"))),
            Ok(Err(error)) if error.is_timeout() && !error.is_connect() => {
                return Err(ExchangeError::Stalled(self.error_detail(&chain(error))));
            }
            Ok(Err(error)) => {
                // A server that took the request and closed the connection was reached.
                let cause = if error.is_connect() { ExchangeError::Unreachable } else { ExchangeError::Cut };
                return Err(cause(self.error_detail(&chain(error))));
            }
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let media_type = media_type(response.headers());
        let read = match media_type.as_str() {
            "application/json" => self.read_whole(response, sent, answer, report).await,
            // Some servers send a stream by another name, but never by this one.
            "text/html" => Ok(()),
            _ => self.read_stream(response, sent, answer, report).await,
        };
        // What came with an error.
        report.usage(answer.text_mut().usage.take()).await;
        let read = match read {
            // A stream may say that it is over, and nothing else: that is silence.
            Ok(()) if answer.is_empty() && !answer.text().is_done() => Err(ExchangeError::Broken(format!(
                "the server answered with {} and no completion in it (is `base_url` right?)",
                if media_type.is_empty() { "no content type" } else { &media_type }
            ))),
            read => read,
        };
        read.map_err(|error| match error {
            ExchangeError::Failed(why) => ExchangeError::Failed(self.error_detail(&why)),
            ExchangeError::Broken(why) => ExchangeError::Broken(self.error_detail(&why)),
            ExchangeError::Declined(why) => ExchangeError::Declined(self.error_detail(&why)),
            other => other,
        })?;
        report.update(answer.text_mut().end()).await;
        Ok(())
    }

    /// The request has no idempotency key: every try and every round of a run needs its own answer, and a server that
    /// honoured the key would repeat the failure of the first try.
    fn post(&self, body: Vec<u8>, turn: &AgentTurn) -> reqwest::RequestBuilder {
        let request = self
            .http
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .header("x-rejoinder-turn-id", turn.turn.to_string())
            .header("x-rejoinder-attempt", turn.attempt)
            .body(body);
        let trace = turn.trace.iter().flat_map(TraceHeaders::pairs);
        trace.fold(request, |request, (name, value)| request.header(name, value))
    }

    async fn read_stream(
        &self,
        response: Response,
        sent: Instant,
        answer: &mut P::Answer,
        report: &mut Report<'_>,
    ) -> Result<(), ExchangeError> {
        let mut events = Events::of(response);

        let ModelSettings { first_token_timeout: first, idle_timeout: idle, .. } = self.protocol.settings();
        let mut patience = (sent + first, first);
        let mut begun = false;
        while !answer.text().is_done() {
            let data = match timeout_at(patience.0, events.next()).await {
                Ok(Ok(Some(data))) => data,
                // Only the usage can still be missing.
                Err(_) | Ok(Err(_) | Ok(None)) if answer.text().is_finished() => return Ok(()),
                Err(_) => return Err(ExchangeError::Stalled(format!("no data for {:?}", patience.1))),
                Ok(Ok(None)) if answer.is_empty() => return Ok(()),
                Ok(Ok(None)) => return Err(ExchangeError::Cut("the stream has no end marker".to_owned())),
                Ok(Err(EventsError::Cut(why))) => return Err(ExchangeError::Cut(why)),
                Ok(Err(EventsError::Broken(why))) => return Err(ExchangeError::Broken(why)),
            };
            let update = answer.event(data)?;
            if update.progress {
                if !std::mem::replace(&mut begun, true) {
                    self.record_first_token(sent);
                }
                let limit = if answer.text().is_finished() { idle.min(USAGE_TIMEOUT) } else { idle };
                patience = (Instant::now() + limit, limit);
            }
            report.update(update).await;
        }
        // Most often the end has arrived, and the task of the connection only has to pass it on: then no timer is set, which would
        // wake a thread.
        tokio::task::yield_now().await;
        // Data after the last event is ignored.
        let _ = timeout(END_TIMEOUT, events.next()).await;
        Ok(())
    }

    async fn read_whole(
        &self,
        mut response: Response,
        sent: Instant,
        answer: &mut P::Answer,
        report: &mut Report<'_>,
    ) -> Result<(), ExchangeError> {
        let first = self.protocol.settings().first_token_timeout;
        let body = match timeout_at(sent + first, read_body(&mut response, MAX_EVENT + 1)).await {
            Err(_) => return Err(ExchangeError::Stalled(format!("no answer for {first:?}"))),
            Ok(Err(error)) => return Err(ExchangeError::Cut(chain(error))),
            Ok(Ok(body)) if body.len() > MAX_EVENT => return Err(ExchangeError::Broken(too_large())),
            Ok(Ok(body)) => String::from_utf8(body).map_err(|_| ExchangeError::Broken("not UTF-8".to_owned()))?,
        };
        if body.trim().is_empty() {
            return Ok(());
        }
        let update = answer.whole(&body)?;
        self.record_first_token(sent);
        report.update(update).await;
        Ok(())
    }

    async fn refusal(&self, mut response: Response) -> ExchangeError {
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let body = error_body(&mut response).await;
        ExchangeError::Refused { status, message: self.error_detail(&error_text(&body)), retry_after }
    }

    fn error_detail(&self, message: &str) -> String {
        let ModelSettings { api_key, headers, .. } = self.protocol.settings();
        let headers = headers.values().filter(|value| is_hidden(value.expose()));
        error_detail(message, api_key.into_iter().chain(headers).map(Secret::get))
    }

    fn record_first_token(&self, sent: Instant) {
        metrics::histogram!("rejoinder_agent_first_token_seconds", "agent" => self.name.clone()).record(sent.elapsed());
    }
}

/// The media type of a response, in lower case and without parameters; empty if it has none.
fn media_type(headers: &HeaderMap) -> String {
    essence(headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(503, None, Some(500))]
    #[case(529, Some(2), Some(2_000))]
    #[case(429, Some(60), None)]
    #[case(400, None, None)]
    #[case(401, Some(1), None)]
    fn another_try_waits_as_the_server_says(
        #[case] status: u16,
        #[case] retry_after: Option<u64>,
        #[case] pause: Option<u64>,
    ) {
        let status = StatusCode::from_u16(status).expect("a status");
        let retry_after = retry_after.map(Duration::from_secs);
        let refused = ExchangeError::Refused { status, message: String::new(), retry_after };
        assert_eq!(refused.pause(Duration::from_millis(500)), pause.map(Duration::from_millis));
    }
}
