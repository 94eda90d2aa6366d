//! `kind = "a2a"`: the configuration of an agent with the Agent2Agent protocol.

use std::{collections::BTreeMap, path::Path, time::Duration};

use rejoinder_agents::PriceSection;
use rejoinder_config::{
    AgentSection, Checks, Secret, Section,
    duration::{self, HOUR},
    headers, number, text,
};
use rejoinder_core::Price;
use serde::{Deserialize, Serialize};
use url::Url;

/// The headers of every request that the protocol sets, each with the key that sets it.
const OWN_HEADERS: [(&str, Option<&str>); 5] = [
    ("accept", None),
    ("a2a-version", None),
    ("authorization", Some("token")),
    ("traceparent", None),
    ("tracestate", None),
];

/// An agent behind a server with the Agent2Agent protocol.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct A2aSection {
    /// The agent's base URL, or the URL of its card.
    #[serde(deserialize_with = "text::http_url")]
    pub url: Url,
    /// Sent as `Authorization: Bearer …`.
    pub token: Option<Secret>,
    /// Sent with every request as well. The values are secrets.
    pub headers: BTreeMap<String, Secret>,
    /// Whether a new context begins with the instructions and what was said before.
    pub introduction: bool,
    /// The instructions at the beginning of each context.
    #[serde(deserialize_with = "text::filled")]
    pub system_prompt: String,
    /// The most earlier messages that a new context is told.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// How many turns the agent works on at once; the others wait.
    #[serde(deserialize_with = "number::between::<_, 1, 4096>")]
    pub max_concurrent: u32,
    /// Whether drafts show what it does.
    pub show_activity: bool,
    /// What its tokens cost. `None`: unknown.
    pub price: Option<PriceSection>,
    /// How long the server may take until its response begins.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, { 24 * HOUR }>")]
    pub response_timeout: Duration,
    /// How long a stream may pause.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, { 24 * HOUR }>")]
    pub idle_timeout: Duration,
}

impl Default for A2aSection {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:41241/".parse().expect("a valid constant"),
            token: None,
            headers: BTreeMap::new(),
            introduction: true,
            system_prompt: "You answer messages in a chat. Answer briefly, in the language of the person.".to_owned(),
            history_messages: 40,
            max_concurrent: 32,
            show_activity: false,
            price: None,
            response_timeout: Duration::from_mins(5),
            idle_timeout: Duration::from_mins(10),
        }
    }
}

impl Section for A2aSection {
    const REQUIRED: &'static [&'static str] = &["url"];

    fn check(&self, checks: &mut Checks<'_>) {
        if self.token.as_ref().is_some_and(|token| token.expose().bytes().any(|byte| byte.is_ascii_control())) {
            let what = "contains a character that is not allowed in a header (a line break, perhaps)";
            checks.wrong(checks.key(&["token"]), what);
        }
        // Without a token the operator may write the whole header.
        let own: Vec<_> = OWN_HEADERS.into_iter().filter(|(_, key)| key.is_none() || self.token.is_some()).collect();
        headers::check(&self.headers, &checks.key(&["headers"]), &own, checks);
    }
}

impl AgentSection for A2aSection {
    const KIND: &'static str = "a2a";
    const MANUAL: &'static str = include_str!("../a2a.toml");

    fn max_concurrent(&self) -> Option<u32> {
        Some(self.max_concurrent)
    }

    fn shows_activity(&self) -> bool {
        self.show_activity
    }

    fn price(&self) -> Option<Price> {
        self.price.map(Price::from)
    }

    fn keeps_sessions(&self) -> bool {
        true
    }
}

impl A2aSection {
    /// Where the agent's card is.
    pub(crate) fn card_url(&self) -> Url {
        let mut url = self.url.clone();
        let is_card = Path::new(url.path()).extension().is_some_and(|kind| kind.eq_ignore_ascii_case("json"));
        if !is_card && let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend([".well-known", "agent-card.json"]);
        }
        url
    }

    /// Whether its requests hold a secret.
    #[must_use]
    pub fn sends_secrets(&self) -> bool {
        self.token.is_some() || !self.headers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_config::testing::{Machine, check_agent_manual};
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_holds() {
        let variables = [("HELPER_TOKEN", "token-of-these-tests"), ("HELPER_TENANT", "tests")];
        check_agent_manual::<A2aSection>(&variables, &["url", "token", "headers", "price"]);
    }

    #[rstest]
    #[case::no_url("", "agents.main.url` must be set")]
    #[case::two_tokens(
        "url = \"http://x\"\ntoken = \"hunter2\"\nheaders = { Authorization = \"hunter2\" }",
        "agents.main.headers.Authorization` is set by the gateway itself: set `token`"
    )]
    #[case::a_line_break(
        "url = \"http://x\"\ntoken = \"hunter2\\n\"",
        "agents.main.token` contains a character that is not"
    )]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<A2aSection>(&format!("[agents.main]\nkind = \"a2a\"\n{keys}"));

        let errors = machine.errors();
        assert!(errors.starts_with(&format!("config key `{said}")) && !errors.contains("hunter2"), "{errors}");
    }

    #[rstest]
    #[case("https://x", "https://x/.well-known/agent-card.json")]
    #[case("https://x/agents/one/", "https://x/agents/one/.well-known/agent-card.json")]
    #[case("https://x/agents/one.json?v=1", "https://x/agents/one.json?v=1")]
    fn a_card_is_found(#[case] url: &str, #[case] card: &str) {
        let url = url.parse().expect("a URL");
        assert_eq!(A2aSection { url, ..A2aSection::default() }.card_url().as_str(), card);
    }
}
