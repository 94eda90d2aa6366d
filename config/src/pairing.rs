//! `[pairing]`: people who ask to be let in.

use serde::{Deserialize, Serialize};

/// How requests to be let in are handled.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pairing {
    /// Whether owners are told of each request, in their chats.
    pub notify_owners: bool,
}
