//! `kind = "http"`: the configuration of a service that answers.

use std::time::Duration;

use rejoinder_config::{
    AgentSection, Checks, Secret, Section,
    duration::{self, HOUR},
    number, text,
};
use rejoinder_core::Price;
use rejoinder_kit::signing_key;
use serde::{Deserialize, Serialize};
use standardwebhooks::Webhook;
use url::Url;

use crate::{section::PriceSection, timeout};

/// A service that gets one request for each turn.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSection {
    /// Where the turn is posted.
    #[serde(deserialize_with = "text::http_url")]
    pub url: Url,
    /// Signs the requests, as Standard Webhooks.
    pub secret: Option<Secret>,
    /// How long the service may take until its response begins.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, { 24 * HOUR }>")]
    pub response_timeout: Duration,
    /// How long it may pause after that.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 10, { 24 * HOUR }>")]
    pub idle_timeout: Duration,
    /// How long the whole answer may take; `None`: as long as the gateway lets any agent.
    #[serde(serialize_with = "timeout::write", deserialize_with = "timeout::read")]
    pub timeout: Option<Duration>,
    /// The most earlier messages that it gets.
    #[serde(deserialize_with = "number::between::<_, 0, 10_000>")]
    pub history_messages: u32,
    /// How many turns it works on at once; the others wait.
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

impl Default for HttpSection {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:8080/".parse().expect("a valid constant"),
            secret: None,
            response_timeout: Duration::from_mins(5),
            idle_timeout: Duration::from_mins(1),
            timeout: None,
            history_messages: 40,
            max_concurrent: 32,
            show_activity: false,
            price: None,
            sessions: false,
            mcp: false,
        }
    }
}

impl HttpSection {
    /// What signs the requests. `None` if the secret is no key.
    pub(super) fn signer(secret: &Secret) -> Option<Webhook> {
        let secret = Some(secret.expose()).filter(|secret| secret.starts_with("whsec_"))?;
        Webhook::from_bytes(signing_key(secret)?).ok()
    }
}

impl Section for HttpSection {
    const REQUIRED: &'static [&'static str] = &["url"];

    fn check(&self, checks: &mut Checks<'_>) {
        if self.secret.as_ref().is_some_and(|secret| Self::signer(secret).is_none()) {
            let what = "must be \"whsec_\" followed by a base64 key of 24 to 64 bytes, as Standard Webhooks requires";
            checks.wrong(checks.key(&["secret"]), what);
        }
    }
}

impl AgentSection for HttpSection {
    const KIND: &'static str = "http";
    const MANUAL: &'static str = include_str!("../../http.toml");

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
    use rejoinder_config::testing::{Machine, check_agent_manual};
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_manual_holds() {
        let secret = "whsec_dGhlLWtleS1vZi10aGUtdGVzdHMtb2YtYS1yZWxvYWQ=";
        check_agent_manual::<HttpSection>(&[("SERVICE_SECRET", secret)], &["url", "secret", "timeout", "price"]);
    }

    #[rstest]
    #[case::no_url("", "agents.main.url` must be set")]
    #[case::no_key("url = \"http://x\"\nsecret = \"hunter2\"", "agents.main.secret` must be \"whsec_\" followed by")]
    fn a_mistake_is_named(#[case] keys: &str, #[case] said: &str) {
        let machine = Machine::with_agent::<HttpSection>(&format!("[agents.main]\nkind = \"http\"\n{keys}"));

        let errors = machine.errors();
        assert!(errors.starts_with(&format!("config key `{said}")) && !errors.contains("hunter2"), "{errors}");
    }
}
