//! A client of HTTP that pauses before it opens a stream again, whatever the server asks for.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use reqwest::{
    Client, Error,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::{
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
        },
    },
};
use tokio::time::{Instant, sleep};

/// The pauses: the first, and the longest.
pub(crate) const SHORTEST: Duration = Duration::from_secs(1);
pub(crate) const LONGEST: Duration = Duration::from_mins(1);

/// From when on a stream counts as one that lasted.
const LASTED: Duration = Duration::from_secs(10);

type Headers = HashMap<HeaderName, HeaderValue>;
type Outcome<T> = Result<T, StreamableHttpError<Error>>;

/// A client for one connection.
#[derive(Clone)]
pub(crate) struct Paced {
    http: Client,
    pace: Arc<Mutex<Pace>>,
}

impl Paced {
    pub(crate) fn new(http: Client) -> Self {
        Self { http, pace: Arc::default() }
    }

    /// How long to wait before a stream is opened. One that goes on after another event may be that of a call: it waits for the shortest
    /// pause.
    fn pause(&self, last_event: Option<&str>) -> Duration {
        let (mut pace, now) = (self.pace.lock(), Instant::now());
        if last_event.is_none() || pace.last_event.as_deref() == last_event {
            return pace.pause(now);
        }
        *pace = Pace { opened: Some(now + SHORTEST), short: 1, last_event: last_event.map(ToOwned::to_owned) };
        SHORTEST
    }
}

#[derive(Debug, Default)]
struct Pace {
    /// When the last stream was opened.
    opened: Option<Instant>,
    /// How many streams before it did not last.
    short: u32,
    /// After which event the last one went on that did.
    last_event: Option<String>,
}

impl Pace {
    /// How long to wait before a stream is opened: not at all before the first one.
    fn pause(&mut self, now: Instant) -> Duration {
        let pause = self.opened.map_or(Duration::ZERO, |opened| {
            if now.saturating_duration_since(opened) >= LASTED {
                self.short = 0;
            }
            let pause = SHORTEST.saturating_mul(2_u32.saturating_pow(self.short)).min(LONGEST);
            self.short = self.short.saturating_add(1);
            pause
        });
        self.opened = Some(now + pause);
        pause
    }
}

impl StreamableHttpClient for Paced {
    type Error = Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        self.http.post_message(uri, message, session, token, headers).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Outcome<StreamableHttpPostResponse> {
        self.http.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Outcome<()> {
        self.http.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Outcome<BoxedSseResponse> {
        sleep(self.pause(last_event.as_deref())).await;
        self.http.get_stream(uri, session, last_event, token, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Outcome<BoxedSseResponse> {
        sleep(self.pause(last_event.as_deref())).await;
        self.http.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one stream does costs no call.
    #[test]
    fn a_stream_that_goes_on_waits_for_the_shortest_pause() {
        let paced = Paced::new(Client::builder().build().expect("a client"));

        let anew = [0; 3].map(|_| paced.pause(None));
        let on = ["7", "8", "9"].map(|event| paced.pause(Some(event)));

        assert!(anew[2] > SHORTEST, "{anew:?}");
        assert_eq!(on, [SHORTEST; 3]);
        assert!(paced.pause(Some("9")) > SHORTEST, "nothing has come since");
    }

    #[test]
    fn pauses_grow_until_a_stream_lasts() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let mut pauses = |count: usize, lasts: Duration| {
            let next = |_| {
                let pause = pace.pause(now);
                now += pause + lasts;
                pause.as_secs()
            };
            (0..count).map(next).collect::<Vec<_>>()
        };

        assert_eq!(pauses(9, Duration::ZERO), [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pauses(3, LASTED), [60, 1, 1]);
    }
}
