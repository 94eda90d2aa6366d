//! `[outbox]`: how long it is tried to deliver what was cleared.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    check::Section,
    duration::{self, HOUR, SECOND},
    number,
};

/// When a delivery that nobody takes becomes a dead letter: once it is old enough and was tried often enough.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outbox {
    /// How long a delivery is tried at least.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, SECOND, { 720 * HOUR }>")]
    pub lifetime: Duration,
    /// How many attempts a delivery gets at least, whatever its age.
    #[serde(deserialize_with = "number::between::<_, 1, 1000>")]
    pub min_attempts: u32,
}

impl Section for Outbox {}
