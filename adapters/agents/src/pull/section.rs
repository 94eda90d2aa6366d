//! `kind = "pull"`: the configuration of an agent whose workers fetch their turns.

use std::{collections::BTreeMap, time::Duration};

use rejoinder_config::{
    AgentSection, Checks, Section, Token,
    duration::{self, HOUR},
    number,
};
use rejoinder_core::{ChannelId, Price};
use serde::{Deserialize, Serialize};

use crate::section::PriceSection;

/// Workers anywhere, which fetch turns over HTTP and post the answers.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PullSection {
    /// Sent by workers as `Authorization: Bearer …`.
    pub token: Option<Token>,
    /// Workers with a token of their own, by name: of a-z, 0-9, `_` and `-`, at most 64 characters.
    pub workers: BTreeMap<String, WorkerSection>,
    /// How long a worker has a turn unless it renews the lease.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 1000, HOUR>")]
    pub lease: Duration,
    /// How many leases of a run may end without an answer before the run fails.
    #[serde(deserialize_with = "number::between::<_, 1, 100>")]
    pub max_leases: u32,
    /// The most earlier messages that come with a turn.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// How many turns are offered or worked on at once; the others wait.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent: u32,
    /// Whether drafts show what it does.
    pub show_activity: bool,
    /// What its tokens cost. `None`: unknown.
    pub price: Option<PriceSection>,
    /// Whether it keeps sessions in a memory of its own, and is told what happens to them.
    pub sessions: bool,
    /// Whether it may call the tools of its runs over the Model Context Protocol.
    pub mcp: bool,
}

/// A worker, or several that share a token.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSection {
    /// As [`PullSection::token`].
    pub token: Token,
    /// The channels whose turns it gets, and `PLATFORM.*`. Empty: all.
    #[serde(default)]
    pub takes: Vec<String>,
}

impl WorkerSection {
    /// Whether it gets turns of this channel.
    pub(super) fn takes(&self, channel: &ChannelId) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix(".*") {
            Some(platform) => channel.platform() == platform,
            None => channel.as_str() == pattern,
        };
        self.takes.is_empty() || self.takes.iter().any(fits)
    }
}

impl Default for PullSection {
    fn default() -> Self {
        Self {
            token: None,
            workers: BTreeMap::new(),
            lease: Duration::from_secs(30),
            max_leases: 3,
            history_messages: 40,
            max_concurrent: 32,
            show_activity: false,
            price: None,
            sessions: false,
            mcp: false,
        }
    }
}

impl Section for PullSection {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.token.is_none() && self.workers.is_empty() {
            let what = "must be set, unless there are `workers` with tokens of their own: nobody fetches turns without one \
                        (`token = { generate = true }` makes a token)";
            checks.wrong(checks.key(&["token"]), what);
        }
        if self.sessions && self.token.is_none() && self.workers.values().all(|worker| !worker.takes.is_empty()) {
            let what = "needs a worker that takes the turns of all channels: only such a one is told of sessions";
            checks.wrong(checks.key(&["sessions"]), what);
        }
        for (name, worker) in &self.workers {
            checks.has_name(checks.key(&["workers", name]), name);
            for (index, pattern) in worker.takes.iter().enumerate() {
                let key = checks.key(&["workers", name, "takes"]).index(index);
                if !pattern.contains('.') {
                    checks.wrong(
                        key,
                        "must be a channel such as \"telegram.main\", or all of a platform: \"telegram.*\"",
                    );
                } else if !pattern.ends_with(".*") {
                    checks.refers_to_channel(&key, [&ChannelId::from_stored(pattern)]);
                }
            }
        }
    }
}

impl AgentSection for PullSection {
    const KIND: &'static str = "pull";
    const MANUAL: &'static str = include_str!("../../pull.toml");

    fn max_concurrent(&self) -> Option<u32> {
        Some(self.max_concurrent)
    }

    fn keeps_sessions(&self) -> bool {
        self.sessions
    }

    fn shows_activity(&self) -> bool {
        self.show_activity
    }

    fn price(&self) -> Option<Price> {
        self.price.map(Price::from)
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::{
        TokenValue,
        testing::{Machine, check_agent_manual},
    };
    use rstest::rstest;

    use super::*;

    const TOKEN: &str = "token-of-these-tests";

    #[test]
    fn the_manual_holds() {
        check_agent_manual::<PullSection>(
            &[("WORKERS_TOKEN", TOKEN), ("GPU_TOKEN", TOKEN)],
            &["token", "workers", "price"],
        );
    }

    #[rstest]
    #[case::open("", "agents.main.token` must be set, unless there are `workers` with tokens of their own")]
    #[case::a_short_token("token = \"short\"", "agents.main.token` has less than 20 characters")]
    #[case::a_short_lease(
        "token = \"token-of-these-tests\"\nlease = \"10ms\"",
        "agents.main.lease` must be from 1s to 1h, not 10ms (rejoinder.toml:4)"
    )]
    #[case::no_lease("token = \"token-of-these-tests\"\nmax_leases = 0", "must be a whole number from 1 to 100, not 0")]
    #[case::no_channel(
        "[agents.main.workers.gpu]\ntoken = \"token-of-these-tests\"\ntakes = [\"telegram\"]",
        "agents.main.workers.gpu.takes[0]` must be a channel such as"
    )]
    #[case::an_unknown_channel(
        "[agents.main.workers.gpu]\ntoken = \"token-of-these-tests\"\ntakes = [\"telegram.mian\"]",
        "agents.main.workers.gpu.takes[0]`"
    )]
    #[case::a_path(
        "[agents.main.workers.\"../gpu\"]\ntoken = \"token-of-these-tests\"",
        "has an invalid name: use a-z, 0-9, `_` and `-`, at most 64 characters"
    )]
    #[case::a_long_name(
        &format!("[agents.main.workers.{}]\ntoken = \"token-of-these-tests\"", "x".repeat(65)),
        "has an invalid name"
    )]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<PullSection>(&format!("[agents.main]\nkind = \"pull\"\n{keys}"));

        assert!(machine.errors().contains(said), "{}", machine.errors());
    }

    #[rstest]
    #[case(&[], true)]
    #[case(&["telegram.main"], true)]
    #[case(&["discord.main", "telegram.*"], true)]
    #[case(&["telegram.other", "tele.*", "main.*"], false)]
    fn a_worker_takes_the_channels_that_it_names(#[case] takes: &[&str], #[case] does: bool) {
        let takes = takes.iter().map(|&pattern| pattern.to_owned()).collect();
        let worker =
            WorkerSection { token: Token { current: TokenValue::Configured(TOKEN.into()), former: None }, takes };

        assert_eq!(worker.takes(&ChannelId::new("telegram", "main")), does);
    }
}
