//! `[log]`: what the gateway writes to standard error.

use serde::{Deserialize, Serialize};

use crate::check::Section;

/// What the gateway writes about its work.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// For whom.
    pub format: LogFormat,
    /// How much.
    pub level: LogLevel,
}

impl Section for Log {}

/// For whom lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For a person.
    Text,
    /// One JSON object a line.
    Json,
}

/// The least important line that is still written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What a person must look at.
    Error,
    /// What may become that.
    Warn,
    /// One line for each thing of note.
    Info,
    /// Every decision.
    Debug,
    /// Everything, message text included.
    Trace,
}

impl LogLevel {
    /// As `tracing` names it.
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
