//! `[retention]`: how long rows are kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;

/// How long rows are kept; `None`: forever.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    #[serde(serialize_with = "duration::write_or_forever", deserialize_with = "duration::kept_or_forever")]
    pub turns: Option<Duration>,
    #[serde(serialize_with = "duration::write_or_forever", deserialize_with = "duration::kept_or_forever")]
    pub dead_letters: Option<Duration>,
    #[serde(serialize_with = "duration::write_or_forever", deserialize_with = "duration::kept_or_forever")]
    pub payloads: Option<Duration>,
    /// Zero: not at all.
    #[serde(serialize_with = "duration::write_kept_or_off", deserialize_with = "duration::kept_or_off")]
    pub voice: Duration,
}
