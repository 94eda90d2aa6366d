//! `[log]`: what the gateway writes to standard error, and what it keeps of that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub format: LogFormat,
    pub level: LogLevel,
    /// How long lines are kept in the store; zero: not at all.
    #[serde(serialize_with = "duration::write_days", deserialize_with = "duration::kept")]
    pub keep: Duration,
    pub keep_level: KeepLevel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The least important lines that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// The operator must act.
    Error,
    /// The operator may have to act.
    Warn,
    /// One line for each notable event.
    Info,
    /// Every decision.
    Debug,
    /// Everything, message text included.
    Trace,
}

/// The least important lines that are kept in the store. There is no `trace`: those lines have message text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepLevel {
    Error,
    Warn,
    Info,
    Debug,
}

impl From<KeepLevel> for LogLevel {
    fn from(level: KeepLevel) -> Self {
        match level {
            KeepLevel::Error => Self::Error,
            KeepLevel::Warn => Self::Warn,
            KeepLevel::Info => Self::Info,
            KeepLevel::Debug => Self::Debug,
        }
    }
}
