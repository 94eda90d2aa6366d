//! The bodies of a hook, as echo and proxy serve them.

use serde::{Deserialize, Serialize};

/// The request body of the hooks of echo and proxy.
#[derive(Deserialize)]
pub(super) struct HookRequest {
    pub(super) message: String,
}

/// The response body: the fields that a caller of the real gateway reads.
#[derive(Serialize)]
pub(super) struct HookAnswer {
    status: &'static str,
    pub(super) reply: String,
}

impl HookAnswer {
    pub(super) const fn with(reply: String) -> Self {
        Self { status: "answered", reply }
    }
}
