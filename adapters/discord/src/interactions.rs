//! Interactions whose tokens are still valid
//! (<https://discord.com/developers/docs/interactions/receiving-and-responding>).
//!
//! An interaction must be acknowledged within three seconds, which happens as soon as it is stored. Its token can answer it
//! for fifteen minutes. Valid tokens are stored in the channel's cursor `interactions`, in the transaction that stores the
//! event.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rejoinder_core::{DeliveryId, Timestamp, TurnId};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::{
    api::{Api, Body},
    errors::code,
    snowflake::Snowflake,
};

pub(crate) const CURSOR: &str = "interactions";

/// How long Discord waits for the acknowledgement.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a token is used: fifteen minutes, less the time of a call.
const TOKEN_LIFETIME: Duration = Duration::from_secs(14 * 60 + 30);

/// How many tokens are stored. The oldest above this are lost at a restart, and answered in their channels.
const MAX_STORED: usize = 500;

const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The flag of a message that only one person sees.
pub(crate) const EPHEMERAL: u64 = 1 << 6;

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InteractionRecord {
    pub(crate) id: Snowflake,
    pub(crate) application: Snowflake,
    pub(crate) token: String,
    pub(crate) user: Snowflake,
    /// Its channel; the parent channel if it is in a thread.
    pub(crate) chat: Snowflake,
    /// Only the person sees the answer.
    pub(crate) is_private: bool,
    /// A command, whose answer replaces the "thinking" notice. Otherwise a button, whose answer is a new message.
    pub(crate) is_command: bool,
    pub(crate) at: Timestamp,
    /// The turn that it opened.
    pub(crate) turn: Option<TurnId>,
    /// The delivery that replaced the "thinking" notice of a command.
    #[serde(default)]
    pub(crate) answered_by: Option<DeliveryId>,
}

impl fmt::Debug for InteractionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InteractionRecord").field("id", &self.id).field("turn", &self.turn).finish_non_exhaustive()
    }
}

impl InteractionRecord {
    /// The path to create messages in answer to it.
    pub(crate) fn followups(&self) -> String {
        format!("webhooks/{}/{}", self.application, self.token)
    }

    /// The path of a message that answers it.
    pub(crate) fn message(&self, message: &str) -> String {
        format!("webhooks/{}/{}/messages/{message}", self.application, self.token)
    }

    fn is_valid(&self, now: Timestamp) -> bool {
        now.since(self.at) < TOKEN_LIFETIME
    }

    /// Whether a delivery may replace the "thinking" notice: no other one has. The same one may do so again.
    pub(crate) fn has_notice_for(&self, delivery: DeliveryId) -> bool {
        self.is_command && self.answered_by.is_none_or(|by| by == delivery)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    NotYet,
    Yes,
    /// It was too late, or the token is no longer valid.
    Never,
}

struct Entry {
    record: Arc<InteractionRecord>,
    acknowledged: watch::Sender<Acknowledged>,
}

#[derive(Default)]
pub(crate) struct Interactions {
    entries: Mutex<HashMap<Snowflake, Entry>>,
    /// An interaction was answered, which is not stored yet.
    answered: Notify,
}

impl Interactions {
    /// Loads what an earlier run stored. Returns the interactions that may still need their acknowledgement.
    pub(crate) fn load(&self, stored: &str, now: Timestamp) -> Vec<Arc<InteractionRecord>> {
        let records: Vec<InteractionRecord> = serde_json::from_str(stored).unwrap_or_default();
        let mut entries = self.entries.lock();
        let mut waiting = Vec::new();
        for record in records.into_iter().filter(|record| record.is_valid(now)) {
            let may_wait = now.since(record.at) < ACKNOWLEDGE_TIMEOUT;
            let state = if may_wait { Acknowledged::NotYet } else { Acknowledged::Yes };
            let record = Arc::new(record);
            if may_wait {
                waiting.push(Arc::clone(&record));
            }
            entries.entry(record.id).or_insert_with(|| Entry { record, acknowledged: watch::Sender::new(state) });
        }
        waiting
    }

    /// Adds an interaction, before it is stored.
    pub(crate) fn note(&self, record: InteractionRecord, now: Timestamp) -> Arc<InteractionRecord> {
        let mut entries = self.entries.lock();
        entries.retain(|_, entry| entry.record.is_valid(now));
        let record = Arc::new(record);
        let entry = entries.entry(record.id).or_insert_with(|| Entry {
            record: Arc::clone(&record),
            acknowledged: watch::Sender::new(Acknowledged::NotYet),
        });
        Arc::clone(&entry.record)
    }

    pub(crate) fn set_turn(&self, id: Snowflake, turn: TurnId) {
        if let Some(entry) = self.entries.lock().get_mut(&id) {
            Arc::make_mut(&mut entry.record).turn = Some(turn);
        }
    }

    /// Notes that a delivery replaced the "thinking" notice of a command.
    pub(crate) fn set_answered(&self, id: Snowflake, by: DeliveryId) {
        if let Some(entry) = self.entries.lock().get_mut(&id) {
            Arc::make_mut(&mut entry.record).answered_by = Some(by);
        }
        self.answered.notify_one();
    }

    /// Returns when an interaction was answered since this was called last.
    pub(crate) async fn until_answered(&self) {
        self.answered.notified().await;
    }

    /// The latest valid ones as JSON, for the cursor.
    pub(crate) fn to_text(&self, now: Timestamp) -> String {
        let entries = self.entries.lock();
        let mut records: Vec<Arc<InteractionRecord>> =
            entries.values().map(|entry| Arc::clone(&entry.record)).collect();
        drop(entries);
        records.retain(|record| record.is_valid(now));
        records.sort_unstable_by_key(|record| std::cmp::Reverse(record.id));
        records.truncate(MAX_STORED);
        let records: Vec<&InteractionRecord> = records.iter().map(AsRef::as_ref).collect();
        serde_json::to_string(&records).expect("records serialise to JSON")
    }

    /// The interaction that opened a turn, if it can still be answered.
    pub(crate) async fn of_turn(&self, turn: TurnId, now: Timestamp) -> Option<Arc<InteractionRecord>> {
        let id =
            self.entries.lock().values().find(|entry| entry.record.turn == Some(turn)).map(|entry| entry.record.id)?;
        self.valid(id, now).await
    }

    /// The latest interaction that can answer a person in private.
    pub(crate) async fn private_to(
        &self,
        user: Snowflake,
        chat: &str,
        now: Timestamp,
    ) -> Option<Arc<InteractionRecord>> {
        let of_the_user = |entry: &&Entry| {
            let record = &entry.record;
            record.is_private && record.user == user && record.chat.to_string() == chat
        };
        let id = self.entries.lock().values().filter(of_the_user).map(|entry| entry.record.id).max()?;
        self.valid(id, now).await
    }

    /// The interaction with this id, if it can still be answered. Waits until its acknowledgement has succeeded or failed.
    pub(crate) async fn valid(&self, id: Snowflake, now: Timestamp) -> Option<Arc<InteractionRecord>> {
        let (record, mut acknowledged) = {
            let entries = self.entries.lock();
            let entry = entries.get(&id).filter(|entry| entry.record.is_valid(now))?;
            (Arc::clone(&entry.record), entry.acknowledged.subscribe())
        };
        let settled = acknowledged.wait_for(|state| *state != Acknowledged::NotYet);
        let state = tokio::time::timeout(ACKNOWLEDGE_TIMEOUT, settled).await;
        let is_usable = matches!(state, Ok(Ok(state)) if *state == Acknowledged::Yes);
        is_usable.then_some(record)
    }

    /// Notes that an interaction can no longer be answered.
    pub(crate) fn mark_expired(&self, id: Snowflake) {
        self.set_acknowledged(id, Acknowledged::Never);
    }

    fn set_acknowledged(&self, id: Snowflake, state: Acknowledged) {
        if let Some(entry) = self.entries.lock().get(&id) {
            entry.acknowledged.send_replace(state);
        }
    }
}

/// Acknowledges an interaction, retrying for up to three seconds. After that, Discord shows the person that it failed.
/// `answer` replaces the default acknowledgement.
pub(crate) async fn acknowledge(
    api: &Api,
    interactions: &Interactions,
    record: &InteractionRecord,
    answer: Option<Value>,
) {
    // Type 5: the answer follows later. Type 6: the message does not change.
    let answer = answer.unwrap_or_else(|| match (record.is_command, record.is_private) {
        (true, true) => json!({"type": 5, "data": {"flags": EPHEMERAL}}),
        (true, false) => json!({"type": 5}),
        (false, _) => json!({"type": 6}),
    });
    let path = format!("interactions/{}/{}/callback", record.id, record.token);
    let trying = async {
        loop {
            match api.call(Method::POST, &path, Body::Json(answer.clone())).await {
                Ok(_) => return Acknowledged::Yes,
                Err(error) if error.refusal().is_some_and(|it| it.code == code::ALREADY_ACKNOWLEDGED) => {
                    return Acknowledged::Yes;
                }
                Err(error) if !error.is_transient() => {
                    let id = record.id;
                    tracing::warn!(%id, %error, "an interaction could not be acknowledged, answering in its channel");
                    return Acknowledged::Never;
                }
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    };
    let state = tokio::time::timeout(ACKNOWLEDGE_TIMEOUT, trying).await.unwrap_or(Acknowledged::Never);
    interactions.set_acknowledged(record.id, state);
}

/// Removes the "thinking" notice of a command.
pub(crate) async fn delete_notice(api: &Api, record: &InteractionRecord) {
    if record.is_command
        && let Err(error) = api.call(Method::DELETE, &record.message("@original"), Body::Empty).await
    {
        // The notice ends when the token expires, after fifteen minutes.
        tracing::debug!(id = %record.id, %error, "the notice of a command could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, at: i64) -> InteractionRecord {
        let id = Snowflake::parse(&id.to_string()).expect("an id");
        InteractionRecord {
            id,
            application: id,
            token: format!("token-{id}"),
            user: id,
            chat: id,
            is_private: false,
            is_command: true,
            at: Timestamp::from_millis(at),
            turn: None,
            answered_by: None,
        }
    }

    #[test]
    fn a_notice_is_replaced_by_one_delivery_over_a_restart() {
        let now = Timestamp::from_millis(0);
        let (before, after) = (Interactions::default(), Interactions::default());
        let [first, next] = [1, 2].map(|at| DeliveryId::new(Timestamp::from_millis(at)));
        let id = before.note(record(1, 0), now).id;

        before.set_answered(id, first);
        let stored = before.to_text(now);

        let restored = after.load(&stored, now).pop().expect("it is valid");
        assert!(restored.has_notice_for(first), "an attempt is repeated");
        assert!(!restored.has_notice_for(next));
    }

    #[test]
    fn a_record_that_an_earlier_version_stored_has_its_notice() {
        let now = Timestamp::from_millis(0);
        let interactions = Interactions::default();
        interactions.note(record(1, 0), now);
        let stored = interactions.to_text(now).replace(",\"answered_by\":null", "");
        assert!(!stored.contains("answered_by"));

        let restored = Interactions::default().load(&stored, now).pop().expect("it is read");

        assert!(restored.has_notice_for(DeliveryId::new(now)));
    }

    #[tokio::test]
    async fn an_interaction_can_be_answered_for_fifteen_minutes_and_over_a_restart() {
        let before = Interactions::default();
        let noted = before.note(record(1, 0), Timestamp::from_millis(0));
        let stored = before.to_text(Timestamp::from_millis(0));

        let after = Interactions::default();
        let waiting = after.load(&stored, Timestamp::from_millis(60_000));

        assert!(waiting.is_empty());
        assert_eq!(after.valid(noted.id, Timestamp::from_millis(60_000)).await, Some(noted.clone()));
        assert_eq!(after.valid(noted.id, Timestamp::from_millis(15 * 60_000)).await, None);
    }

    #[tokio::test]
    async fn an_answer_waits_for_the_acknowledgement() {
        let interactions = Interactions::default();
        let noted = interactions.note(record(1, 0), Timestamp::from_millis(0));

        let (found, ()) = tokio::join!(interactions.valid(noted.id, Timestamp::from_millis(0)), async {
            interactions.set_acknowledged(noted.id, Acknowledged::Yes);
        });

        assert_eq!(found, Some(noted.clone()));
        interactions.mark_expired(noted.id);
        assert_eq!(interactions.valid(noted.id, Timestamp::from_millis(0)).await, None);
    }

    #[test]
    fn one_that_was_stored_and_not_acknowledged_is_acknowledged_after_the_restart() {
        let interactions = Interactions::default();
        interactions.note(record(1, 0), Timestamp::from_millis(0));
        let stored = interactions.to_text(Timestamp::from_millis(0));

        let waiting = Interactions::default().load(&stored, Timestamp::from_millis(2_000));

        assert_eq!(waiting.len(), 1);
    }

    #[test]
    fn a_token_is_never_shown() {
        assert!(!format!("{:?}", record(1, 0)).contains("token-1"));
    }
}
