//! Reading rows back as records.

mod deliveries;
mod lists;
pub(super) mod turns;
mod views;

use rejoinder_core::{ChannelId, ConversationRef, StoreError, Timestamp};
use serde::de::DeserializeOwned;
use sqlx::{Decode, Row, Sqlite, SqlitePool, Type, sqlite::SqliteRow};
use uuid::Uuid;

use super::error::store_error;

pub(super) use deliveries::{blocked, claim_deliveries, deliverable, interrupted, next_delivery};
pub(super) use lists::{backlog, list};
pub(super) use turns::{dossier, due, next_waiting, next_wake, open_turns, running, transcript, turn, waiting};
pub(super) use views::{view, views};

pub(super) async fn cursor(pool: &SqlitePool, channel: &ChannelId, name: &str) -> Result<Option<String>, StoreError> {
    sqlx::query_scalar("select position from channels_cursor where channel = ? and name = ?")
        .bind(channel.as_str())
        .bind(name)
        .fetch_optional(pool)
        .await
        .map_err(store_error)
}

/// Reading columns by name.
trait Columns {
    fn value<T: for<'r> Decode<'r, Sqlite> + Type<Sqlite>>(&self, column: &str) -> Result<T, StoreError>;

    fn id<T: From<Uuid>>(&self, column: &str) -> Result<T, StoreError> {
        self.value::<Uuid>(column).map(T::from)
    }

    fn at(&self, column: &str) -> Result<Timestamp, StoreError> {
        self.value(column).map(Timestamp::from_millis)
    }

    fn at_maybe(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.value::<Option<i64>>(column)?.map(Timestamp::from_millis))
    }

    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        parse(column, &self.value::<String>(column)?)
    }

    fn json_maybe<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, StoreError> {
        self.value::<Option<String>>(column)?.map(|text| parse(column, &text)).transpose()
    }

    /// A value that is stored as its bare name.
    fn name<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        let name = serde_json::Value::String(self.value(column)?);
        serde_json::from_value(name).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
    }

    /// The columns `channel`, `chat` and `thread`.
    fn conversation(&self) -> Result<ConversationRef, StoreError> {
        let channel = ChannelId::from_stored(&self.value::<String>("channel")?);
        let conversation = ConversationRef::new(channel, &self.value::<String>("chat")?);
        let thread: String = self.value("thread")?;
        Ok(if thread.is_empty() { conversation } else { conversation.in_thread(&thread) })
    }
}

impl Columns for SqliteRow {
    fn value<T: for<'r> Decode<'r, Sqlite> + Type<Sqlite>>(&self, column: &str) -> Result<T, StoreError> {
        self.try_get(column).map_err(store_error)
    }
}

fn parse<T: DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}

/// `thread` as it is stored.
fn thread(conversation: &ConversationRef) -> &str {
    conversation.thread.as_deref().unwrap_or("")
}
