//! The lines of the gateway's own log that are kept (`[log] keep`).

use clap::ValueEnum;
use rejoinder_core::store::{LineLevel, LogLineFilter, LogLineRecord};
use serde_json::{Map, Value};

use super::prelude::*;

/// The filter of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    /// Only lines at least as important as this: `error`, `warn`, `info` or `debug`.
    #[param(inline)]
    level: Option<LevelName>,
    /// Only lines about this channel, for example `telegram.main`.
    #[param(max_length = 256)]
    channel: Option<String>,
    /// Only lines about the turn with this id.
    #[param(format = "uuid")]
    turn: Option<String>,
    /// Only lines with this text in their message or fields.
    #[param(max_length = 256)]
    text: Option<String>,
    /// Only lines before this one: the `next` of the previous page.
    #[param(minimum = 1)]
    before: Option<i64>,
    /// The largest number of lines; 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
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

/// A line of the log.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct LogLineItem {
    id: i64,
    #[schema(format = DateTime)]
    pub(crate) at: String,
    #[schema(inline)]
    pub(crate) level: LevelName,
    /// The module that wrote it.
    pub(crate) target: String,
    pub(crate) message: String,
    pub(crate) channel: Option<String>,
    #[schema(format = "uuid")]
    pub(crate) turn_id: Option<String>,
    /// Its other fields, by name.
    #[schema(value_type = Object)]
    pub(crate) fields: Map<String, Value>,
}

impl From<LogLineRecord> for LogLineItem {
    fn from(LogLineRecord { id, line }: LogLineRecord) -> Self {
        Self {
            id,
            at: rfc3339(line.at),
            level: line.level.into(),
            target: line.target,
            message: line.message,
            channel: line.channel.map(|channel| channel.to_string()),
            turn_id: line.turn_id.map(|id| id.to_string()),
            fields: line.fields,
        }
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
    Ok(Json(LogLineList { items: found.into_iter().map(LogLineItem::from).collect(), next }))
}
