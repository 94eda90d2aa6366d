//! `[metrics]`: access to `/metrics`.

use serde::{Deserialize, Serialize};

use crate::Token;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// The token of a reader on another machine. Without it, only the admin token opens them.
    pub token: Option<Token>,
}
