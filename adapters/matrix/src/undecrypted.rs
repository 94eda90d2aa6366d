//! Encrypted events that wait for their decryption keys.
//!
//! The intake stores them as received. A cursor stores their list, so that it survives a restart. Whenever keys arrive,
//! all of them are tried again. When the patience of one ends, its sender is informed.

use std::time::Duration;

use futures_util::StreamExt;
use matrix_sdk::{
    Room,
    deserialized_responses::{TimelineEvent, TimelineEventKind},
    ruma::{EventId, RoomId, serde::Raw},
};
use rejoinder_core::{InboundEvent, Timestamp};
use rejoinder_kit::RunEnd;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, Notify};

use crate::{
    errors::{self, Failure},
    inbound,
    payload::Event,
    room,
    run::Run,
};

/// The cursor that stores the list.
const LIST: &str = "locked";

/// How many events may wait. Beyond that, the oldest are given up, as if their patience had ended.
const MAX_WAITING: usize = 1000;

/// How often events are tried even if no keys arrive: a key may arrive without a notification (from the backup, for
/// example).
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Shortest pause between two tries of all events.
const MIN_PAUSE: Duration = Duration::from_millis(100);

/// An event that waits for its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UndecryptedEvent {
    room: String,
    pub(crate) event: String,
    /// When it began to wait, in milliseconds. 0: its patience has ended.
    since: i64,
    /// The event as received; `None` after a restart, until it is requested again.
    #[serde(skip)]
    raw: Option<String>,
}

impl UndecryptedEvent {
    pub(crate) fn new(room: &RoomId, event: &Event, raw: &str, now: Timestamp) -> Self {
        let (room, event) = (room.to_string(), event.id.clone());
        Self { room, event, since: now.as_millis(), raw: Some(raw.to_owned()) }
    }

    fn deadline(&self, patience: Duration) -> Timestamp {
        Timestamp::from_millis(self.since) + patience
    }
}

#[derive(Debug, Default)]
pub(crate) struct UndecryptedEvents {
    events: Mutex<Vec<UndecryptedEvent>>,
    more: Notify,
}

impl Run<'_> {
    pub(crate) async fn load_undecrypted(&self) -> Result<(), RunEnd> {
        let stored = self.receiver.cursor(LIST).await?.unwrap_or_default();
        let mut stored: Vec<UndecryptedEvent> = serde_json::from_str(&stored).unwrap_or_default();
        let mut events = self.matrix.undecrypted.events.lock().await;
        // Another node may have changed the list.
        for event in &mut stored {
            event.raw = events.iter_mut().find(|known| known.event == event.event).and_then(|known| known.raw.take());
        }
        *events = stored;
        Ok(())
    }

    pub(crate) async fn add_undecrypted(&self, new: Vec<UndecryptedEvent>) -> Result<(), RunEnd> {
        let mut events = self.matrix.undecrypted.events.lock().await;
        for event in new {
            if !events.iter().any(|known| known.event == event.event) {
                tracing::info!(channel = %self.matrix.channel, room = event.room, event = event.event, "waiting for a key");
                self.count("waiting");
                self.matrix.decryption.note(false);
                events.push(event);
            }
        }
        let too_many = events.len().saturating_sub(MAX_WAITING);
        for event in &mut events[..too_many] {
            // Their patience ends now.
            event.since = 0;
        }
        self.store_undecrypted(&events).await?;
        drop(events);
        self.matrix.undecrypted.more.notify_one();
        Ok(())
    }

    pub(crate) async fn remove_undecrypted(&self, event: &str) -> Result<(), RunEnd> {
        let mut events = self.matrix.undecrypted.events.lock().await;
        let before = events.len();
        events.retain(|known| known.event != event);
        if events.len() == before { Ok(()) } else { self.store_undecrypted(&events).await }
    }

    async fn store_undecrypted(&self, events: &[UndecryptedEvent]) -> Result<(), RunEnd> {
        let list = serde_json::to_string(events).unwrap_or_default();
        Ok(self.receiver.move_cursor(LIST, &list).await?)
    }

    /// Reads events when their keys come, until the run ends.
    pub(crate) async fn decrypt_waiting(&self) {
        let keys = self.session.client.encryption().room_keys_received_stream().await;
        let mut keys = match keys {
            Some(keys) => keys.map(|_| ()).boxed(),
            None => futures_util::stream::pending().boxed(),
        };
        let mut pause = MIN_PAUSE;
        loop {
            let next = self.next_retry(pause).await;
            tokio::select! {
                _ = keys.next() => {}
                () = self.matrix.undecrypted.more.notified() => {}
                () = self.matrix.clock.sleep_until(next) => {}
                () = self.receiver.shutdown.cancelled() => return,
            }
            pause = match self.retry_all().await {
                Ok(RetryResult::All) => MIN_PAUSE,
                Ok(RetryResult::CutOff) => RETRY_INTERVAL,
                Err(_) => return,
            };
        }
    }

    /// When to try again: when the first patience ends, after `RETRY_INTERVAL`, but not before `pause`.
    async fn next_retry(&self, pause: Duration) -> Timestamp {
        let now = self.matrix.clock.now();
        let events = self.matrix.undecrypted.events.lock().await;
        let first = events.iter().map(|event| event.deadline(self.matrix.options.decrypt_patience)).min();
        match first {
            Some(first) => first.min(now + RETRY_INTERVAL).max(now + pause),
            None => now + Duration::from_hours(1),
        }
    }

    async fn retry_all(&self) -> Result<RetryResult, RunEnd> {
        let waiting = self.matrix.undecrypted.events.lock().await.clone();
        let (mut done, mut tried) = (Vec::new(), RetryResult::All);
        for entry in &waiting {
            let room = RoomId::parse(&entry.room).ok().and_then(|room| self.session.client.get_room(&room));
            let is_late = self.matrix.clock.now() >= entry.deadline(self.matrix.options.decrypt_patience);
            let Some(room) = room else {
                done.extend(is_late.then_some(&entry.event));
                continue;
            };
            let event = match decrypt(&room, entry).await {
                Ok(event) => event,
                // We are no longer allowed to read it.
                Err(Failure::Refused(_)) => {
                    done.extend(is_late.then_some(&entry.event));
                    continue;
                }
                // The homeserver is away: the sender is informed once it is back.
                Err(_) => {
                    tried = RetryResult::CutOff;
                    continue;
                }
            };
            let raw = event.raw().json().get();
            let Some(parsed) = room::read(&event) else {
                // The decrypted content is not an event.
                done.push(&entry.event);
                continue;
            };
            let is_read = !matches!(event.kind, TimelineEventKind::UnableToDecrypt { .. });
            let normalised = if is_read {
                self.count("read_late");
                self.matrix.decryption.note_late();
                self.read_event(&room, &parsed, raw).await?
            } else if is_late {
                tracing::warn!(channel = %self.matrix.channel, room = entry.room, event = entry.event, "no key arrived in time, the event stays unreadable");
                self.count("unreadable");
                Some(self.with_context(&room, &parsed, raw, inbound::unreadable).await?)
            } else {
                if entry.raw.is_none() {
                    self.keep_raw(&entry.event, raw).await;
                }
                continue;
            };
            let normalised: Vec<InboundEvent> = normalised.into_iter().collect();
            let accepted = self.receiver.accept(&normalised, None).await?;
            self.after_stored(&room, &normalised, &accepted);
            done.push(&entry.event);
        }
        if !done.is_empty() {
            let mut events = self.matrix.undecrypted.events.lock().await;
            events.retain(|event| !done.contains(&&event.event));
            self.store_undecrypted(&events).await?;
        }
        Ok(tried)
    }

    /// Keeps an event as received, so that it is not requested again.
    async fn keep_raw(&self, event: &str, raw: &str) {
        let mut events = self.matrix.undecrypted.events.lock().await;
        if let Some(known) = events.iter_mut().find(|known| known.event == event) {
            known.raw = Some(raw.to_owned());
        }
    }

    fn count(&self, result: &'static str) {
        metrics::counter!("rejoinder_matrix_locked_total", "channel" => self.matrix.channel.to_string(), "result" => result)
            .increment(1);
    }
}

enum RetryResult {
    All,
    /// The homeserver did not answer for some.
    CutOff,
}

/// The event, decrypted if its key is there.
async fn decrypt(room: &Room, entry: &UndecryptedEvent) -> Result<TimelineEvent, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let read = match &entry.raw {
        Some(raw) => {
            let raw = Raw::from_json_string(raw.clone()).map_err(|error| refused(&error))?;
            room.decrypt_event(&raw, None).await
        }
        None => room.event(&EventId::parse(&entry.event).map_err(|error| refused(&error))?, None).await,
    };
    let read = read.map_err(|error| errors::sdk(&error));
    read.inspect_err(|failure| tracing::debug!(room = entry.room, %failure, "cannot read a waiting event"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_back_without_what_was_said() {
        let entry = UndecryptedEvent {
            room: "!room:example.org".to_owned(),
            event: "$1".to_owned(),
            since: 7,
            raw: Some("secret".to_owned()),
        };

        let list = serde_json::to_string(&[entry]).expect("it is written");
        let read: Vec<UndecryptedEvent> = serde_json::from_str(&list).expect("it is read");

        assert!(!list.contains("secret"));
        assert_eq!((&*read[0].event, read[0].since, &read[0].raw), ("$1", 7, &None));
        assert_eq!(read[0].deadline(Duration::from_millis(3)), Timestamp::from_millis(10));
    }
}
