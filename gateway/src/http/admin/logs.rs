//! The lines of the gateway's own log that are kept (`[log] keep`).

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
};
use clap::ValueEnum;
use rejoinder_core::{
    Store, StoreError,
    store::{LineLevel, LogLineFilter, LogLineRecord},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::responses::Reading;
use crate::{
    callers::Caller,
    http::{Shared, error::ApiError, paging},
    time::rfc3339,
};

/// The filter of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Filter {
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

/// How important a line is.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LevelName {
    Error,
    Warn,
    Info,
    Debug,
}

impl From<LineLevel> for LevelName {
    fn from(level: LineLevel) -> Self {
        match level {
            LineLevel::Error => Self::Error,
            LineLevel::Warn => Self::Warn,
            LineLevel::Info => Self::Info,
            LineLevel::Debug => Self::Debug,
        }
    }
}

impl From<LevelName> for LineLevel {
    fn from(level: LevelName) -> Self {
        match level {
            LevelName::Error => Self::Error,
            LevelName::Warn => Self::Warn,
            LevelName::Info => Self::Info,
            LevelName::Debug => Self::Debug,
        }
    }
}

impl Filter {
    fn read(self, caller: &Caller) -> Result<LogLineFilter, ApiError> {
        let limit = paging::limit(self.limit)?;
        let wrong = |_| ApiError::BadRequest("`turn` must be a turn id".to_owned());
        Ok(LogLineFilter {
            level: self.level.map(Into::into),
            channels: caller.channels(self.channel.as_deref()),
            turn: self.turn.map(|id| id.parse().map_err(wrong)).transpose()?,
            text: self.text,
            before: self.before,
            limit,
        })
    }
}

/// A page of lines, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogLineList {
    pub(crate) items: Vec<LogLineItem>,
    /// The value of `before` for the next page; null on the last page.
    pub(crate) next: Option<String>,
}

/// A line of the log.
#[derive(Debug, Serialize, ToSchema)]
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
#[utoipa::path(get, path = "/admin/api/logs", tag = "admin", operation_id = "list_logs",
    params(Filter),
    responses((status = 200, description = "A page of lines", body = LogLineList), Reading),
    security(("admin_token" = [])))]
pub(in crate::http) async fn list(
    State(app): Shared,
    Extension(caller): Extension<Caller>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<LogLineList>, ApiError> {
    let Query(filter) = filter?;
    Ok(Json(page(app.store.as_ref(), filter.read(&caller)?).await?))
}

/// One page of lines, and where the next one begins.
pub(crate) async fn page(store: &dyn Store, filter: LogLineFilter) -> Result<LogLineList, StoreError> {
    let limit = filter.limit;
    let mut found = store.log_lines(&LogLineFilter { limit: limit + 1, ..filter }).await?;
    let next = paging::cut(&mut found, limit, |record| record.id.to_string());
    Ok(LogLineList { items: found.into_iter().map(LogLineItem::from).collect(), next })
}
