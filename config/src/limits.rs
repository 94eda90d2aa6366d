//! `[limits]`: what one person may do.

use serde::{Deserialize, Serialize};

use crate::{check::Section, number};

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How many turns one person may open within a minute. `None`: no limit.
    #[serde(serialize_with = "number::write_or_off", deserialize_with = "number::between_or_off::<_, 1, 100_000>")]
    pub turns_per_minute: Option<u32>,
    /// How many turns of one person may wait for their agent at once. `None`: no limit.
    #[serde(serialize_with = "number::write_or_off", deserialize_with = "number::between_or_off::<_, 1, 100_000>")]
    pub waiting_turns: Option<u32>,
}

impl Section for Limits {}
