//! `[admin]`: who may look inside.

use serde::{Deserialize, Serialize};

use crate::{Token, check::Section};

/// Who may look inside.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// What callers of `/admin` show.
    pub token: Token,
}

impl Section for Admin {}
