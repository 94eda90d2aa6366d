//! A prompt on which the agent works.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    connection::Connection,
    elicitation::Response,
    event::{CallError, Event},
    feed::FeedReader,
    protocol::{CANCELLED, Call},
    requests::Asked,
};

/// A prompt on which the agent works. It is cancelled when this is dropped, and what it has asked for.
pub(crate) struct Prompt {
    connection: Arc<Connection>,
    session: Arc<str>,
    events: FeedReader,
    /// Its requests that are not answered yet, with their shares of the feed.
    asked: Vec<(Asked, Option<OwnedSemaphorePermit>)>,
    is_suspended: Arc<AtomicBool>,
    has_ended: bool,
}

impl Prompt {
    /// Sends it. `permit` is held until the agent has ended its work on it.
    pub(crate) fn send(
        connection: Arc<Connection>,
        session: Arc<str>,
        params: impl Serialize,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, CallError> {
        let (events, is_suspended) = connection.send_prompt(Arc::clone(&session), params, permit)?;
        Ok(Self { connection, session, events, asked: Vec::new(), is_suspended, has_ended: false })
    }

    /// The next event; the last one is [`Event::Ended`].
    pub(crate) async fn next(&mut self) -> Event {
        let event = self.events.next().await;
        let (event, share) =
            event.unwrap_or_else(|| (Event::Ended(Err(CallError::Closed(self.connection.end()))), None));
        if let Some(asked) = Asked::by(&event) {
            self.asked.push((asked, share));
        }
        self.has_ended |= matches!(event, Event::Ended(_));
        event
    }

    /// What the agent says, for errors: without its secrets, and of a long text the beginning.
    pub(crate) fn told(&self, words: String) -> String {
        self.connection.told(words)
    }

    /// Answers a request for permission. `None`: the request is cancelled.
    pub(crate) fn permit(&mut self, request: &Value, option: Option<&str>) {
        self.asked.retain(|(asked, _)| asked.id() != request);
        self.connection.permit(request, option);
    }

    /// Answers a request for what the person is to say.
    pub(crate) fn respond(&mut self, request: &Value, response: &Response) {
        self.asked.retain(|(asked, _)| asked.id() != request);
        self.connection.respond(request, response);
    }

    /// Answers a request that the agent takes back, unless that was answered before. The protocol wants an answer all the same:
    /// <https://agentclientprotocol.com/protocol/v1/cancellation>.
    pub(crate) fn end_request(&mut self, request: &Value) {
        let before = self.asked.len();
        self.asked.retain(|(asked, _)| asked.id() != request);
        if self.asked.len() < before {
            self.connection.refuse(request, CANCELLED, "the request was cancelled");
        }
    }

    /// Says whether its run waits for a decision.
    pub(crate) fn suspend(&self, waits: bool) {
        self.is_suspended.store(waits, Ordering::Relaxed);
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        if !self.has_ended {
            let params = json!({ "sessionId": self.session });
            self.connection.write(&Call { jsonrpc: "2.0", id: None, method: "session/cancel", params });
        }
        let waiting = self.events.close().filter_map(|event| Asked::by(&event));
        for asked in self.asked.drain(..).map(|(asked, _)| asked).chain(waiting) {
            self.connection.cancel(&asked);
        }
    }
}
