//! The lines of the gateway's own log that are kept (`[log] keep`).

use clap::ValueEnum;
use rejoinder_core::store::{LineLevel, LogLineFilter, LogLineRecord};
use serde_json::{Map, Value};

use super::prelude::*;

query! {
    /// The filter of the list.
    Filter {
        /// Only lines at least as important as this: `error`, `warn`, `info` or `debug`.
        #[param(inline)] level: Option<LevelName>,
        /// Only lines about this channel, for example `telegram.main`.
        #[param(max_length = 256)] channel: Option<String>,
        /// Only lines about the turn with this id.
        #[param(format = "uuid")] turn: Option<String>,
        /// Only lines with this text in their message or fields.
        #[param(max_length = 256)] text: Option<String>,
        /// Only lines before this one: the `next` of the previous page.
        #[param(minimum = 1)] before: Option<i64>,
        /// The largest number of lines; 50 by default.
        #[param(minimum = 1, maximum = 200)] limit: Option<u32>,
    }
}

names! {
    /// How important a line is.
    #[derive(ValueEnum)]
    LevelName of LineLevel { Error, Warn, Info, Debug }
}

impl Filter {
    fn read(self, caller: &Caller) -> Result<LogLineFilter, ApiError> {
        let limit = paging::limit(self.limit)?;
        Ok(LogLineFilter {
            level: self.level.map(Into::into),
            channels: caller.channels(self.channel.as_deref()),
            turn: paging::id("turn", "a turn id", self.turn)?,
            text: self.text,
            before: self.before,
            limit,
        })
    }
}

page! {
    /// A page of lines, newest first.
    LogLineList of LogLineItem
}

item! {
    /// A line of the log.
    #[derive(Deserialize)]
    pub(crate) LogLineItem of (record: LogLineRecord) {
        let LogLineRecord { id, line } = record;
    } with {
        id: i64 = id,
        #[schema(format = DateTime)] at: String = rfc3339(line.at),
        #[schema(inline)] level: LevelName = line.level.into(),
        /// The module that wrote it.
        target: String = line.target,
        message: String = line.message,
        channel: Option<String> = line.channel.map(|channel| channel.to_string()),
        #[schema(format = "uuid")] turn_id: Option<String> = line.turn_id.map(|id| id.to_string()),
        /// Its other fields, by name.
        #[schema(value_type = Object)] fields: Map<String, Value> = line.fields,
    }
}

/// Lists the lines of the gateway's own log, newest first. `[log]` says which are kept, and for how long.
#[utoipa::path(get, path = "/logs", operation_id = "list_logs", params(Filter),
    responses((status = 200, description = "A page of lines", body = LogLineList)))]
pub(super) async fn list(
    State(records): State<Records>,
    caller: Caller,
    Query(filter): Query<Filter>,
) -> Answer<LogLineList> {
    let filter = filter.read(&caller)?;
    let limit = filter.limit;
    let mut found = records.lines.log_lines(&LogLineFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut found, limit, |record| record.id.to_string());
    Ok(Json(LogLineList { items: found.into_iter().map(LogLineItem::of).collect(), next }))
}
