//! `[admin]`: access to `/admin`.

use serde::{Deserialize, Serialize};

use crate::{Token, check::Section};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// Sent by callers of `/admin`.
    pub token: Token,
}

impl Section for Admin {}
