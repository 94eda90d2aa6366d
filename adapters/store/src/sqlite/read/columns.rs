//! Reads columns as values of the core.

use std::sync::Arc;

use rejoinder_core::{
    Action, AgentName, ApprovalId, ApprovalOption, ApprovalState, ChannelId, Choices, Class, ConversationId,
    ConversationRef, Currency, DeliveryId, EventId, Handler, InboundEvent, Language, NotReached, Obligation, PersonId,
    PersonRole, Reaction, ScheduleId, Sender, SessionId, SignalKind, StoreError, Timestamp, ToolUse, TurnId, Usage,
    Via,
    store::{DeliveryState, Label, LineLevel, PairingState, Role, Schedule},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sqlx::{
    Row, Sqlite, SqliteExecutor, ValueRef,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};
use uuid::Uuid;

use crate::{
    shared::stored::{address, parse},
    sqlite::error::store_error,
};

pub(super) trait Columns {
    fn value<T: Column>(&self, column: &str) -> Result<T, StoreError>;

    /// The columns `agent` and `command`.
    fn handler(&self) -> Result<Handler, StoreError> {
        let agent: Option<String> = self.value("agent")?;
        let command: Option<String> = self.value("command")?;
        match (agent, command) {
            (Some(agent), _) => Ok(Handler::Agent(AgentName::from(agent))),
            (None, Some(command)) => Ok(Handler::Gateway(command.into())),
            (None, None) => Err(StoreError::Corrupt("a turn has neither an agent nor a command".to_owned())),
        }
    }

    /// The sender of an event, if it is stored and can be read.
    fn sender(&self) -> Option<Sender> {
        #[derive(Deserialize)]
        struct Details {
            sender: Sender,
        }
        let details: Option<String> = self.value("details").ok()?;
        parse("details", &details?).ok().map(|Details { sender }| sender)
    }

    /// The columns `channel`, `chat` and `thread`.
    fn conversation(&self) -> Result<ConversationRef, StoreError> {
        let (chat, thread): (String, String) = (self.value("chat")?, self.value("thread")?);
        Ok(address(&self.value::<String>("channel")?, &chat, &thread))
    }
}

impl Columns for SqliteRow {
    fn value<T: Column>(&self, column: &str) -> Result<T, StoreError> {
        T::read(self, column)
    }
}

/// A record whose fields are columns: `field`, or `field: column`. After a semicolon come its other fields.
macro_rules! record {
    ($row:ident => $record:ident {
        $($field:ident $(: $column:ident)?),* $(; $($other:ident $(: $value:expr)?),*)? $(,)?
    }) => {
        $record {
            $($field: $row.value(record!(@column $field $($column)?))?,)*
            $($($other $(: $value)?,)*)?
        }
    };
    (@column $field:ident) => { stringify!($field) };
    (@column $field:ident $column:ident) => { stringify!($column) };
}
pub(super) use record;

/// A type with one way in which it is stored in a column.
pub(super) trait Column: Sized {
    fn read(row: &SqliteRow, column: &str) -> Result<Self, StoreError>;
}

impl<T: Column> Column for Option<T> {
    fn read(row: &SqliteRow, column: &str) -> Result<Self, StoreError> {
        let is_null = row.try_get_raw(column).map_err(store_error)?.is_null();
        (!is_null).then(|| T::read(row, column)).transpose()
    }
}

/// Types that are read as `from`, and made of it by `made`.
macro_rules! columns {
    ($made:expr; $from:ty => $($type:ty),*) => {
        $(impl Column for $type {
            fn read(row: &SqliteRow, column: &str) -> Result<Self, StoreError> {
                let stored: $from = row.try_get(column).map_err(store_error)?;
                $made(column, stored)
            }
        })*
    };
}

columns!(|_, stored| Ok(stored); Self => bool, i64, u16, u32, String, Vec<u8>, Uuid);
columns!(|_, stored: i64| Ok(u64::try_from(stored).unwrap_or(0)); i64 => u64);
columns!(|_, stored| Ok(Self::from_millis(stored)); i64 => Timestamp);
columns!(|_, stored: String| Ok(Self::from(stored)); String => Arc<str>);
columns!(|_, stored: String| Ok(Self::from_stored(&stored)); String => ChannelId);
columns!(|_, stored: Uuid| Ok(Self::from(stored)); Uuid =>
    ApprovalId, ConversationId, DeliveryId, EventId, PersonId, ScheduleId, SessionId, TurnId);
// Bare names.
columns!(parse_name; String =>
    ApprovalState, Class, Currency, DeliveryState, Label, Language, LineLevel, PairingState, PersonRole, Role, SignalKind);
columns!(|column, stored: String| parse(column, &stored); String =>
    Action, Choices, InboundEvent, Map<String, Value>, Obligation, Schedule, Usage, Value, Vec<ApprovalOption>,
    Vec<ChannelId>, Vec<NotReached>, Vec<PersonId>, Vec<Reaction>, Vec<String>, Vec<ToolUse>, Vec<TurnId>, Via);

/// Reads the rows that a query finds.
pub(super) async fn all<T>(
    reader: impl SqliteExecutor<'_>,
    query: Query<'_, Sqlite, SqliteArguments>,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    query.fetch_all(reader).await.map_err(store_error)?.iter().map(read).collect()
}

/// Reads the first row that a query finds, if there is one.
pub(super) async fn one<T>(
    reader: impl SqliteExecutor<'_>,
    query: Query<'_, Sqlite, SqliteArguments>,
    read: impl FnOnce(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    query.fetch_optional(reader).await.map_err(store_error)?.as_ref().map(read).transpose()
}

/// The error of a row that cannot be read, with the turn in its column `turn`.
pub(super) fn of_turn(row: &SqliteRow, turn: &str, error: StoreError) -> StoreError {
    match (error, row.value(turn)) {
        (StoreError::Corrupt(reason), Ok(turn)) => StoreError::CorruptTurn { turn, reason },
        (error, _) => error,
    }
}

/// The rows that can be read, as `read` does it. Of any other the operator hears; `turn` is the column with the turn that it
/// belongs to.
pub(super) fn readable<T>(
    rows: &[SqliteRow],
    turn: &str,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Vec<T> {
    let read = |row| match read(row) {
        Ok(value) => Some(value),
        Err(error) => {
            let turn = row.value::<TurnId>(turn).ok().map(tracing::field::display);
            tracing::error!(turn, %error, "a stored row cannot be read, and is left out");
            None
        }
    };
    rows.iter().filter_map(read).collect()
}

fn parse_name<T: DeserializeOwned>(column: &str, name: String) -> Result<T, StoreError> {
    let name = Value::String(name);
    serde_json::from_value(name).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}
