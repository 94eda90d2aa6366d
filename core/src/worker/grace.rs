//! How long a cancelled run may take to end.

use std::time::Duration;

/// The grace period of a cancelled run before it is dropped.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
