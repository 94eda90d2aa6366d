//! Interactions that still can be answered as such
//! (<https://discord.com/developers/docs/interactions/receiving-and-responding>).
//!
//! An interaction has to be acknowledged within three seconds, which is done as soon as it is stored, and can
//! be answered for fifteen minutes with the token that came with it. The tokens are kept in the channel's
//! cursor `interactions`, in the transaction that stores the event, for as long as they are of use.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rejoinder_core::{Timestamp, TurnId};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    api::{Api, Body},
    errors::code,
    snowflake::Snowflake,
};

/// The name of the cursor.
pub(crate) const CURSOR: &str = "interactions";

/// How long an interaction may wait for its acknowledgement.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(3);

/// How long a token is of use: fifteen minutes, less what a call may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(14 * 60 + 30);

/// How many tokens are kept; with more of them, the oldest are answered in their channels.
const KEPT: usize = 500;

/// The pause between two tries to acknowledge.
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// The flag of what only one person sees.
pub(crate) const EPHEMERAL: u64 = 1 << 6;

/// An interaction.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: Snowflake,
    pub(crate) application: Snowflake,
    token: String,
    pub(crate) user: Snowflake,
    /// The chat that it belongs to: its channel, or the one that its thread is in.
    chat: Snowflake,
    /// Only the person sees what is answered.
    pub(crate) is_private: bool,
    /// A command: the answer takes the place of the notice. Else a button, whose message the answer stands below.
    pub(crate) is_command: bool,
    at: Timestamp,
    /// The turn that it became.
    turn: Option<TurnId>,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("id", &self.id).field("turn", &self.turn).finish_non_exhaustive()
    }
}

impl Record {
    #[expect(clippy::too_many_arguments, reason = "they are the fields, each once")]
    pub(crate) const fn new(
        id: Snowflake,
        application: Snowflake,
        token: String,
        user: Snowflake,
        chat: Snowflake,
        is_private: bool,
        is_command: bool,
        at: Timestamp,
    ) -> Self {
        Self { id, application, token, user, chat, is_private, is_command, at, turn: None }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Where what is answered to it is made.
    pub(crate) fn followups(&self) -> String {
        format!("webhooks/{}/{}", self.application, self.token)
    }

    /// One of the messages answered to it.
    pub(crate) fn message(&self, message: &str) -> String {
        format!("webhooks/{}/{}/messages/{message}", self.application, self.token)
    }

    fn is_alive(&self, now: Timestamp) -> bool {
        now.since(self.at) < ANSWERED_WITHIN
    }
}

/// Whether an interaction was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    NotYet,
    Yes,
    /// It was too late, or is not known any more.
    Never,
}

struct Entry {
    record: Arc<Record>,
    acknowledged: watch::Sender<Acknowledged>,
}

/// The interactions that still can be answered.
#[derive(Default)]
pub(crate) struct Interactions(Mutex<HashMap<Snowflake, Entry>>);

impl Interactions {
    /// Takes in what was stored before a restart; returns those that may still wait for their acknowledgement.
    pub(crate) fn load(&self, stored: &str, now: Timestamp) -> Vec<Arc<Record>> {
        let records: Vec<Record> = serde_json::from_str(stored).unwrap_or_default();
        let mut entries = self.lock();
        let mut waiting = Vec::new();
        for record in records.into_iter().filter(|record| record.is_alive(now)) {
            let may_wait = now.since(record.at) < ACKNOWLEDGED_WITHIN;
            let state = if may_wait { Acknowledged::NotYet } else { Acknowledged::Yes };
            let record = Arc::new(record);
            if may_wait {
                waiting.push(Arc::clone(&record));
            }
            entries.entry(record.id).or_insert_with(|| Entry { record, acknowledged: watch::Sender::new(state) });
        }
        waiting
    }

    /// Notes one, before it is stored.
    pub(crate) fn note(&self, record: Record, now: Timestamp) -> Arc<Record> {
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.record.is_alive(now));
        let record = Arc::new(record);
        let entry = entries.entry(record.id).or_insert_with(|| Entry {
            record: Arc::clone(&record),
            acknowledged: watch::Sender::new(Acknowledged::NotYet),
        });
        Arc::clone(&entry.record)
    }

    /// Notes the turn that one became.
    pub(crate) fn became(&self, id: Snowflake, turn: TurnId) {
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.record = Arc::new(Record { turn: Some(turn), ..Record::clone(&entry.record) });
        }
    }

    /// What is stored of them.
    pub(crate) fn to_text(&self, now: Timestamp) -> String {
        let entries = self.lock();
        let mut records: Vec<Arc<Record>> = entries.values().map(|entry| Arc::clone(&entry.record)).collect();
        drop(entries);
        records.retain(|record| record.is_alive(now));
        records.sort_unstable_by_key(|record| std::cmp::Reverse(record.id));
        records.truncate(KEPT);
        let records: Vec<&Record> = records.iter().map(AsRef::as_ref).collect();
        serde_json::to_string(&records).expect("records are JSON")
    }

    /// The one with this id, if it still can be answered.
    pub(crate) async fn alive(&self, id: Snowflake, now: Timestamp) -> Option<Arc<Record>> {
        self.settled(id, now).await
    }

    /// The one that a turn was, if it still can be answered.
    pub(crate) async fn of_turn(&self, turn: TurnId, now: Timestamp) -> Option<Arc<Record>> {
        let id = self.lock().values().find(|entry| entry.record.turn == Some(turn)).map(|entry| entry.record.id)?;
        self.settled(id, now).await
    }

    /// The latest one by which a person can be answered in private.
    pub(crate) async fn private_to(&self, user: Snowflake, chat: &str, now: Timestamp) -> Option<Arc<Record>> {
        let of_the_user = |entry: &&Entry| {
            let record = &entry.record;
            record.is_private && record.user == user && record.chat.to_string() == chat
        };
        let id = self.lock().values().filter(of_the_user).map(|entry| entry.record.id).max()?;
        self.settled(id, now).await
    }

    /// Waits until it is known whether it was acknowledged.
    async fn settled(&self, id: Snowflake, now: Timestamp) -> Option<Arc<Record>> {
        let (record, mut acknowledged) = {
            let entries = self.lock();
            let entry = entries.get(&id).filter(|entry| entry.record.is_alive(now))?;
            (Arc::clone(&entry.record), entry.acknowledged.subscribe())
        };
        let settled = acknowledged.wait_for(|state| *state != Acknowledged::NotYet);
        let state = tokio::time::timeout(ACKNOWLEDGED_WITHIN, settled).await;
        let is_usable = matches!(state, Ok(Ok(state)) if *state == Acknowledged::Yes);
        is_usable.then_some(record)
    }

    /// One cannot be answered any more.
    pub(crate) fn lost(&self, id: Snowflake) {
        self.settle(id, Acknowledged::Never);
    }

    fn settle(&self, id: Snowflake, state: Acknowledged) {
        if let Some(entry) = self.lock().get(&id) {
            entry.acknowledged.send_replace(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Snowflake, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells Discord that an interaction was noticed: until then the person sees that nothing happens, and after
/// three seconds that it failed. `answer` is what else it is told.
pub(crate) async fn acknowledge(api: &Api, interactions: &Interactions, record: &Record, answer: Option<Value>) {
    // 5: the answer comes later; 6: nothing changes on the message.
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
                Err(error) if !error.may_pass() => {
                    let id = record.id;
                    tracing::warn!(%id, %error, "an interaction was not acknowledged: it is answered in its channel");
                    return Acknowledged::Never;
                }
                Err(_) => tokio::time::sleep(BETWEEN_TRIES).await,
            }
        }
    };
    let state = tokio::time::timeout(ACKNOWLEDGED_WITHIN, trying).await.unwrap_or(Acknowledged::Never);
    interactions.settle(record.id, state);
}

/// Removes the notice that a command is thought over.
pub(crate) async fn take_back(api: &Api, record: &Record) {
    if record.is_command
        && let Err(error) = api.call(Method::DELETE, &record.message("@original"), Body::Nothing).await
    {
        // It ends with its token, a quarter of an hour later.
        tracing::debug!(id = %record.id, %error, "the notice of a command stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, at: i64) -> Record {
        let id = Snowflake::parse(&id.to_string()).expect("an id");
        Record::new(id, id, format!("token-{id}"), id, id, false, true, Timestamp::from_millis(at))
    }

    #[tokio::test]
    async fn an_interaction_can_be_answered_for_fifteen_minutes_and_over_a_restart() {
        let before = Interactions::default();
        let noted = before.note(record(1, 0), Timestamp::from_millis(0));
        let stored = before.to_text(Timestamp::from_millis(0));

        let after = Interactions::default();
        let waiting = after.load(&stored, Timestamp::from_millis(60_000));

        assert!(waiting.is_empty());
        assert_eq!(after.alive(noted.id, Timestamp::from_millis(60_000)).await, Some(noted.clone()));
        assert_eq!(after.alive(noted.id, Timestamp::from_millis(15 * 60_000)).await, None);
    }

    #[tokio::test]
    async fn an_answer_waits_for_the_acknowledgement() {
        let interactions = Interactions::default();
        let noted = interactions.note(record(1, 0), Timestamp::from_millis(0));

        let (found, ()) = tokio::join!(interactions.alive(noted.id, Timestamp::from_millis(0)), async {
            interactions.settle(noted.id, Acknowledged::Yes);
        });

        assert_eq!(found, Some(noted.clone()));
        interactions.lost(noted.id);
        assert_eq!(interactions.alive(noted.id, Timestamp::from_millis(0)).await, None);
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
