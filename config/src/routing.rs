//! `[routing]`: which agent handles a turn.

use serde::{Deserialize, Serialize};

use crate::{
    check::{Checks, Section},
    number, text,
};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// The agent for channels that do not name one.
    #[serde(deserialize_with = "text::filled")]
    pub default_agent: String,
    /// How many turns run at once; the others wait in the store.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent_turns: u32,
}

impl Section for Routing {
    fn check(&self, checks: &mut Checks<'_>) {
        let key = checks.key(&["default_agent"]);
        checks.refers_to_agent(key, &self.default_agent);
    }
}
