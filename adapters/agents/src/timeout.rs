//! A key for how long a run may take at most, which may be missing.

use std::time::Duration;

use rejoinder_config::duration::{self, HOUR};
use serde::{Deserializer, Serializer};

pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration::between::<D, 100, { 24 * HOUR }>(deserializer).map(Some)
}

#[expect(clippy::ref_option, reason = "serde hands a reference to the field")]
pub(crate) fn write<S: Serializer>(timeout: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match timeout {
        Some(timeout) => duration::write(timeout, serializer),
        None => serializer.serialize_none(),
    }
}
