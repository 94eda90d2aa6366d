//! Reads columns as values of the core.

use rejoinder_core::{AgentName, ConversationRef, Handler, Sender, StoreError, Timestamp, TurnId};
use serde::{Deserialize, de::DeserializeOwned};
use sqlx::{Decode, Row, Sqlite, Type, sqlite::SqliteRow};
use uuid::Uuid;

use crate::sqlite::{
    error::store_error,
    stored::{address, parse},
};

pub(super) trait Columns {
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

    /// A value that is stored as its bare serde name.
    fn name<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        parse_name(column, self.value(column)?)
    }

    fn name_maybe<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, StoreError> {
        self.value::<Option<String>>(column)?.map(|name| parse_name(column, name)).transpose()
    }

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
        let details: Option<Details> = self.json_maybe("details").ok().flatten();
        details.map(|details| details.sender)
    }

    /// The columns `channel`, `chat` and `thread`.
    fn conversation(&self) -> Result<ConversationRef, StoreError> {
        let (chat, thread): (String, String) = (self.value("chat")?, self.value("thread")?);
        Ok(address(&self.value::<String>("channel")?, &chat, &thread))
    }
}

impl Columns for SqliteRow {
    fn value<T: for<'r> Decode<'r, Sqlite> + Type<Sqlite>>(&self, column: &str) -> Result<T, StoreError> {
        self.try_get(column).map_err(store_error)
    }
}

/// The error of a row that cannot be read, with the turn in its column `turn`.
pub(super) fn of_turn(row: &SqliteRow, turn: &str, error: StoreError) -> StoreError {
    match (error, row.id(turn)) {
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
            let turn = row.id::<TurnId>(turn).ok().map(tracing::field::display);
            tracing::error!(turn, %error, "a stored row cannot be read, and is left out");
            None
        }
    };
    rows.iter().filter_map(read).collect()
}

fn parse_name<T: DeserializeOwned>(column: &str, name: String) -> Result<T, StoreError> {
    let name = serde_json::Value::String(name);
    serde_json::from_value(name).map_err(|error| StoreError::Corrupt(format!("{column}: {error}")))
}
