//! `[routing]`: which agent gets a turn.

use serde::{Deserialize, Serialize};

use crate::{
    check::{Checks, Section},
    number, text,
};

/// Which agent gets a turn, and how many turns are with agents at once.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// The agent of every channel that names none.
    #[serde(deserialize_with = "text::filled")]
    pub default_agent: String,
    /// How many turns are with agents at once; the rest wait as rows.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent_turns: u32,
}

impl Section for Routing {
    fn check(&self, checks: &mut Checks<'_>) {
        let key = checks.key(&["default_agent"]);
        checks.refers_to_agent(key, &self.default_agent);
    }
}
