//! `[files]`: how much files may be.

use rejoinder_core::FileLimits;
use serde::{Deserialize, Serialize};

use crate::{Size, size};

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// How many bytes of files may be in memory at once.
    #[serde(deserialize_with = "size::between_mib::<_, 2, 2048>")]
    pub in_flight: Size,
}

impl Files {
    pub const fn limits(self) -> FileLimits {
        FileLimits { in_flight: self.in_flight.bytes() }
    }
}
