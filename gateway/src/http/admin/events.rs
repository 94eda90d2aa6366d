//! The log as it is written, as server-sent events.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use rand::Rng;
use rejoinder_core::{
    ChannelId, StoreError,
    store::{LogFilter, LogSeq, Role},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tracing::warn;

use super::prelude::*;
use crate::feed::{Event, Frame};

/// How long a reader collects entries before they are sent together. With a random part, so that many readers do not all
/// write at the same moment.
const COLLECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

/// The longest pause without a byte: a reader then gets a comment, and notices when the connection is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The pause before a lost store is read again.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// The most entries of one chunk.
const PAGE: u32 = 1000;

/// What begins a stream: after how many milliseconds a client connects again.
const PREAMBLE: &[u8] = b"retry: 2000\n\n";

/// The most topics of one reader.
const MAX_TOPICS: usize = 32;

query! {
    Filter {
        /// Topics, separated by commas: `turn.settled`, or `turn.*` for all that begin with `turn.`. All if it is missing.
        #[param(max_length = 1000, example = "turn.*,delivery.dead")] topic: Option<String>,
        /// Only entries about this channel.
        #[param(max_length = 256)] channel: Option<String>,
        /// Begin after the entry with this number; without it, and without `Last-Event-ID`, with what happens from now on.
        #[param(minimum = 0)] after: Option<i64>,
    }
}

/// Follows the log: every entry is one event (`id`, `event`: the topic, `data`: JSON). With `Last-Event-ID` it goes on after
/// that entry, over restarts of the gateway, with nothing missing.
#[utoipa::path(get, path = "/events", operation_id = "follow_events",
    params(Filter, ("Last-Event-ID" = Option<i64>, Header, description = "The `id` of the last event that was received", minimum = 0)),
    responses((status = 200, description = "Events, without an end", body = Event, content_type = "text/event-stream")))]
pub(super) async fn follow(
    State(app): Shared,
    caller: Caller,
    Query(filter): Query<Filter>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let topics = topics(filter.topic.as_deref())?;
    let channels = caller.channels(filter.channel.as_deref());
    let last = match headers.get("last-event-id") {
        Some(id) => Some(
            id.to_str()
                .ok()
                .and_then(|id| id.trim().parse::<LogSeq>().ok())
                .filter(|id| *id >= 0)
                .ok_or_else(|| ApiError::BadRequest("`Last-Event-ID` must be the id of an event".to_owned()))?,
        ),
        None => filter.after,
    };
    let end = app.feed.end();
    // A later number is of another database: there, everything is new.
    let position = last.filter(|last| *last <= end).unwrap_or(if last.is_some() { 0 } else { end });
    let end = app.feed.subscribe();
    let reader = Reader { app, caller, topics, channels, position, end, has_begun: false };
    let body = Body::from_stream(stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<Bytes, Infallible>(chunk), reader))
    }));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, body).into_response())
}

fn topics(text: Option<&str>) -> Result<Vec<String>, ApiError> {
    let topics: Vec<String> = text.unwrap_or_default().split(',').map(str::trim).map(str::to_owned).collect();
    let topics: Vec<String> = topics.into_iter().filter(|topic| !topic.is_empty() && topic != "*").collect();
    let is_topic = |topic: &String| {
        let name = topic.strip_suffix(".*").unwrap_or(topic);
        !name.is_empty() && name.chars().all(|char| char.is_ascii_lowercase() || matches!(char, '.' | '_'))
    };
    if topics.len() > MAX_TOPICS || !topics.iter().all(is_topic) {
        let what = format!("`topic` must be up to {MAX_TOPICS} topics such as `turn.settled` or `turn.*`");
        return Err(ApiError::BadRequest(what));
    }
    Ok(topics)
}

/// One who follows the log.
struct Reader {
    app: Arc<App>,
    caller: Caller,
    topics: Vec<String>,
    channels: Option<Vec<ChannelId>>,
    /// The last entry that was sent or left out.
    position: LogSeq,
    /// Changes whenever there are new entries.
    end: watch::Receiver<LogSeq>,
    has_begun: bool,
}

impl Reader {
    /// The next chunk; `None` at the end of the stream: the gateway stops, the token was revoked, or the session
    /// is over.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(Bytes::from_static(PREAMBLE));
        }
        let keep_alive_at = Instant::now() + KEEP_ALIVE;
        while !self.app.stopping.is_cancelled() && self.app.sessions.is_valid(&self.caller, &self.app.tokens) {
            if *self.end.borrow_and_update() > self.position {
                let pause = rand::rng().random_range(COLLECT.0..COLLECT.1);
                tokio::select! {
                    () = sleep(pause) => {}
                    () = self.app.stopping.cancelled() => return None,
                }
                match self.collect().await {
                    Ok(chunk) if chunk.is_empty() => {}
                    Ok(chunk) => return Some(chunk),
                    Err(error) => {
                        warn!(%error, "cannot read the log for a reader, trying again");
                        sleep(READ_AGAIN).await;
                    }
                }
            }
            let left = keep_alive_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Bytes::from_static(b":\n\n"));
            }
            tokio::select! {
                changed = timeout(left, self.end.changed()) => {
                    if matches!(changed, Ok(Err(_))) {
                        return None;
                    }
                }
                () = self.app.stopping.cancelled() => return None,
            }
        }
        None
    }

    /// The entries since the last ones, as far as this reader wants them.
    async fn collect(&mut self) -> Result<Bytes, StoreError> {
        if let Some(recent) = self.app.feed.after(self.position) {
            return Ok(self.chunk(recent.iter().map(AsRef::as_ref)));
        }
        let filter = LogFilter { after: self.position, limit: PAGE, ..LogFilter::default() };
        let frames: Vec<Frame> = self.app.records.log.log(&filter).await?.iter().map(Frame::of).collect();
        Ok(self.chunk(&frames))
    }

    fn chunk<'a>(&mut self, frames: impl IntoIterator<Item = &'a Frame>) -> Bytes {
        let mut chunk = Vec::new();
        for frame in frames {
            self.position = frame.seq;
            if self.wants(frame) {
                chunk.extend_from_slice(&frame.text);
            }
        }
        chunk.into()
    }

    fn wants(&self, frame: &Frame) -> bool {
        let is_topic = |topic: &String| match topic.strip_suffix('*') {
            Some(prefix) => frame.topic.starts_with(prefix),
            None => frame.topic == *topic,
        };
        // As the audit: who did what is not for everybody.
        if frame.topic.starts_with("operator.") && (self.caller.role < Role::Admin || self.caller.channels.is_some()) {
            return false;
        }
        let is_wanted = self.topics.is_empty() || self.topics.iter().any(is_topic);
        is_wanted
            && self.channels.as_ref().is_none_or(|all| frame.channel.as_ref().is_some_and(|one| all.contains(one)))
    }
}
