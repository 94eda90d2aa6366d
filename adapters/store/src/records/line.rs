//! Lines of the gateway's own log, the errors among them, and lines of turns that a search finds.

use rejoinder_core::{
    StoreError,
    store::{ErrorRecord, FoundLine, LogLine, LogLineRecord, SearchQuery},
};

use super::columns::{Columns, record, records};
use crate::shared::positions::speaker;

records! {
    pub(crate) fn record(row) -> LogLineRecord {
        id;
        line: record!(row => LogLine { at, level, target, message, channel, turn_id, fields }),
    }

    pub(crate) fn error(row) -> ErrorRecord {
        id, last_line, level, target, message, channel, count, first_at, last_at, fields, acknowledged_at,
        is_muted: muted
    }
}

pub(crate) fn found(row: &impl Columns, query: &SearchQuery) -> Result<FoundLine, StoreError> {
    let position = row.value("place")?;
    Ok(record!(row => FoundLine {
        turn, conversation_id, at;
        position,
        conversation: row.conversation()?,
        speaker: speaker(position),
        name: row.sender().and_then(|it| it.name.or(it.username)).or(row.value("agent")?),
        excerpt: query.excerpt(&row.value::<Option<String>>("text")?.unwrap_or_default()),
    }))
}
