//! `[admin]`: access to `/admin`.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Token, text};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// Whether `/admin` is served at all.
    pub enabled: bool,
    /// Sent by callers of `/admin`.
    pub token: Token,
    /// Where `/admin` is served, and what else is for the operator only. `None`: where everything is.
    #[serde(default, deserialize_with = "text::socket_address_option")]
    pub listen: Option<SocketAddr>,
}
