//! Reads columns as values of the core.

use std::sync::Arc;

use rejoinder_core::{
    Action, ApprovalId, ApprovalOption, ApprovalState, ChannelId, Choices, Class, ConversationId, ConversationRef,
    Currency, DeliveryId, EventId, FileDigest, Handler, InboundEvent, Language, NotReached, Obligation, PersonId,
    PersonRole, Reaction, ScheduleId, Sender, SessionId, SignalKind, StoreError, Timestamp, ToolUse, TurnId, Usage,
    Via, Voice,
    store::{DeliveryState, Label, LineLevel, PairingState, Role, Schedule},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::shared::stored::{address, parse};

/// A row of a database. Each database reads these few types; all others are made of them.
pub(crate) trait Columns: Sized {
    fn is_null(&self, column: &str) -> Result<bool, StoreError>;
    fn flag(&self, column: &str) -> Result<bool, StoreError>;
    fn number(&self, column: &str) -> Result<i64, StoreError>;
    fn text(&self, column: &str) -> Result<String, StoreError>;
    /// JSON as text.
    fn json(&self, column: &str) -> Result<String, StoreError>;
    fn bytes(&self, column: &str) -> Result<Vec<u8>, StoreError>;
    fn uuid(&self, column: &str) -> Result<Uuid, StoreError>;

    fn value<T: Column>(&self, column: &str) -> Result<T, StoreError> {
        T::read(self, column)
    }

    /// The columns `agent` and `command`.
    fn handler(&self) -> Result<Handler, StoreError> {
        match (self.value("agent")?, self.value("command")?) {
            (Some(agent), _) => Ok(Handler::Agent(agent)),
            (None, Some(command)) => Ok(Handler::Gateway(command)),
            (None, None) => Err(StoreError::Corrupt("a turn has neither an agent nor a command".to_owned())),
        }
    }

    /// The sender of an event, if it is stored and can be read.
    fn sender(&self) -> Option<Sender> {
        #[derive(Deserialize)]
        struct Details {
            sender: Sender,
        }
        let details = self.json("details").ok()?;
        parse("details", &details).ok().map(|Details { sender }| sender)
    }

    /// Whether an event is a voice note, if it can be read.
    fn is_spoken(&self) -> bool {
        #[derive(Deserialize)]
        struct Details {
            #[serde(default)]
            voice: Option<Voice>,
        }
        let details = self.json("details").ok().and_then(|details| parse("details", &details).ok());
        details.is_some_and(|Details { voice }| voice.is_some())
    }

    /// The columns `channel`, `chat` and `thread`.
    fn conversation(&self) -> Result<ConversationRef, StoreError> {
        let (chat, thread): (String, String) = (self.value("chat")?, self.value("thread")?);
        Ok(address(&self.value::<String>("channel")?, &chat, &thread))
    }
}

/// Implements [`Columns`] for a row of SQLx. `$error` makes a store error of an error of SQLx; `$json` reads JSON as text.
macro_rules! columns_of {
    ($row:ty, $error:expr, $json:expr) => {
        columns_of! {
            @with $row, $error;
            flag: bool = sqlx::Row::try_get,
            number: i64 = sqlx::Row::try_get,
            text: String = sqlx::Row::try_get,
            json: String = $json,
            bytes: Vec<u8> = sqlx::Row::try_get,
            uuid: uuid::Uuid = sqlx::Row::try_get
        }
    };
    (@with $row:ty, $error:expr; $($name:ident: $type:ty = $read:expr),*) => {
        impl $crate::records::columns::Columns for $row {
            fn is_null(&self, column: &str) -> Result<bool, rejoinder_core::StoreError> {
                let value = sqlx::Row::try_get_raw(self, column).map_err($error)?;
                Ok(sqlx::ValueRef::is_null(&value))
            }

            $(fn $name(&self, column: &str) -> Result<$type, rejoinder_core::StoreError> {
                $read(self, column).map_err($error)
            })*
        }
    };
}
pub(crate) use columns_of;

/// A record whose fields are columns: `field`, or `field: column`. After a semicolon come its other fields.
macro_rules! record {
    ($row:ident => $record:ident {
        $($field:ident $(: $column:ident)?),* $(; $($other:ident $(: $value:expr)?),*)? $(,)?
    }) => {
        $record {
            $($field: $row.value($crate::records::columns::record!(@column $field $($column)?))?,)*
            $($($other $(: $value)?,)*)?
        }
    };
    (@column $field:ident) => { stringify!($field) };
    (@column $field:ident $column:ident) => { stringify!($column) };
}
pub(crate) use record;

/// Functions that read a row as a [`record!`].
macro_rules! records {
    ($($visibility:vis fn $name:ident($row:ident) -> $record:ident { $($field:tt)* })*) => {
        $($visibility fn $name(
            $row: &impl $crate::records::columns::Columns,
        ) -> Result<$record, rejoinder_core::StoreError> {
            Ok($crate::records::columns::record!($row => $record { $($field)* }))
        })*
    };
}
pub(super) use records;

/// A type with one way in which it is stored in a column.
pub(crate) trait Column: Sized {
    fn read(row: &impl Columns, column: &str) -> Result<Self, StoreError>;
}

impl<T: Column> Column for Option<T> {
    fn read(row: &impl Columns, column: &str) -> Result<Self, StoreError> {
        (!row.is_null(column)?).then(|| T::read(row, column)).transpose()
    }
}

/// Types that the method `$read` of a row reads, and types that `$made` makes of what it reads.
macro_rules! columns {
    ($($read:ident => $type:ty),*) => { $(columns!(|_, stored| Ok(stored); $read => $type);)* };
    ($made:expr; $read:ident => $($type:ty),*) => {
        $(impl Column for $type {
            fn read(row: &impl Columns, column: &str) -> Result<Self, StoreError> {
                $made(column, row.$read(column)?)
            }
        })*
    };
}

columns!(flag => bool, number => i64, text => String, bytes => Vec<u8>, uuid => Uuid);
columns!(narrow; number => u16, u32);
columns!(|_, stored: i64| Ok(u64::try_from(stored).unwrap_or(0)); number => u64);
columns!(|_, stored| Ok(Self::from_millis(stored)); number => Timestamp);
columns!(|_, stored: String| Ok(Self::from(stored)); text => Arc<str>);
columns!(|_, stored: String| Ok(Self::from_stored(&stored)); text => ChannelId);
columns!(digest; bytes => [u8; 32]);
columns!(|column, stored| digest(column, stored).map(Self::from); bytes => FileDigest);
columns!(|_, stored: Uuid| Ok(Self::from(stored)); uuid =>
    ApprovalId, ConversationId, DeliveryId, EventId, PersonId, ScheduleId, SessionId, TurnId);
// Bare names.
columns!(parse_name; text =>
    ApprovalState, Class, Currency, DeliveryState, Label, Language, LineLevel, PairingState, PersonRole, Role,
    SignalKind);
columns!(|column, stored: String| parse(column, &stored); json =>
    Action, Choices, InboundEvent, Map<String, Value>, Obligation, Schedule, Usage, Value, Vec<ApprovalOption>,
    Vec<ChannelId>, Vec<NotReached>, Vec<PersonId>, Vec<Reaction>, Vec<String>, Vec<ToolUse>, Vec<TurnId>, Via);

/// The error of a row that cannot be read, with the turn in its column `turn`.
pub(super) fn of_turn(row: &impl Columns, turn: &str, error: StoreError) -> StoreError {
    match (error, row.value(turn)) {
        (StoreError::Corrupt(reason), Ok(turn)) => StoreError::CorruptTurn { turn, reason },
        (error, _) => error,
    }
}

/// The rows that can be read, as `read` does it. Of any other the operator hears; `turn` is the column with the turn that it
/// belongs to.
pub(crate) fn readable<R: Columns, T>(rows: &[R], turn: &str, read: impl Fn(&R) -> Result<T, StoreError>) -> Vec<T> {
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

fn narrow<T: TryFrom<i64>>(column: &str, stored: i64) -> Result<T, StoreError> {
    T::try_from(stored).map_err(|_| StoreError::Corrupt(format!("{column}: {stored} is out of range")))
}

fn digest(column: &str, stored: Vec<u8>) -> Result<[u8; 32], StoreError> {
    stored.try_into().map_err(|_| StoreError::Corrupt(format!("{column}: it is not a digest")))
}

fn parse_name<T: DeserializeOwned>(column: &str, name: String) -> Result<T, StoreError> {
    let name = Value::String(name);
    serde_json::from_value(name).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}
