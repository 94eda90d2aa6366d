//! `[outbox]`: how long deliveries are retried, and into how many messages an answer is split.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    duration::{self, HOUR, SECOND},
    number,
};

/// A failing delivery becomes a dead letter once it is older than `lifetime` and has had `min_attempts`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outbox {
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 720 * HOUR }>")]
    pub lifetime: Duration,
    #[serde(deserialize_with = "number::between::<_, 1, 1000>")]
    pub min_attempts: u32,
    #[serde(deserialize_with = "number::between::<_, 1, 100>")]
    pub max_parts: u32,
}
