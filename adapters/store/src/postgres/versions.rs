//! The versions of people, schedules, sessions and tokens: a decision is stored only on the version that it was made on.

use rejoinder_core::{
    StoreError,
    store::{Noun, Version},
};

use super::{connections::Connections, values::statement};
use crate::records::columns::Columns;

/// What does not exist has version 0.
pub(super) async fn version(readers: &Connections, noun: Noun) -> Result<Version, StoreError> {
    let query = match noun {
        Noun::SessionsIn(conversation) => statement!(SELECT_IN, conversation),
        Noun::SessionsOf(person) => statement!(SELECT_OF, person),
        Noun::People => statement!(SELECT, "people"),
        Noun::Schedules => statement!(SELECT, "schedules"),
        Noun::Tokens => statement!(SELECT, "tokens"),
    };
    Ok(readers.one(query, |row| row.value("version")).await?.unwrap_or_default())
}

const SELECT: &str = "select version from versions where noun = $1";

const SELECT_IN: &str = "select sessions_version as version from conversations where id = $1";

const SELECT_OF: &str = "select sessions_version as version from people where id = $1";
