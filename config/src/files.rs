//! `[files]`: the limits on files, and how long links open them.

use std::time::Duration;

use rejoinder_core::FileLimits;
use serde::{Deserialize, Serialize};

use crate::{
    Size,
    check::{Checks, Section},
    duration::{self, DAY, MINUTE},
    number, size,
};

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// How many bytes the files may have together that come with a request.
    pub max: Size,
    /// How many files may come with a request.
    #[serde(deserialize_with = "number::between::<_, 1, 50>")]
    pub per_message: u32,
    /// How many bytes of files may be in memory at once.
    #[serde(deserialize_with = "size::between_mib::<_, 2, 2048>")]
    pub in_flight: Size,
    /// How long a link opens a file.
    #[serde(
        serialize_with = "duration::write_days",
        deserialize_with = "duration::between_with_days::<_, MINUTE, { 365 * DAY }>"
    )]
    pub link_for: Duration,
}

impl Files {
    pub const fn limits(self) -> FileLimits {
        let Self { max, per_message, in_flight, .. } = self;
        FileLimits { max: max.bytes(), per_message: per_message as usize, in_flight: in_flight.bytes() }
    }
}

impl Section for Files {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.in_flight.bytes() < 2 * self.max.bytes() {
            checks.wrong(
                checks.key(&["in_flight"]),
                "must be at least twice `files.max`: one turn has half of it at most",
            );
        }
    }
}
