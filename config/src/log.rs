//! `[log]`: what the gateway writes to standard error.

use serde::{Deserialize, Serialize};

use crate::check::Section;

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub format: LogFormat,
    pub level: LogLevel,
}

impl Section for Log {}

/// The format of log lines.
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

impl LogLevel {
    /// The level's name in `tracing`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}
