//! `[channels.webchat.<name>]`: the chat page.

use serde::{Deserialize, Serialize};

use crate::{
    Token,
    check::{Checks, Section},
    text,
};

/// Names that a chat page cannot have, because `/chat/<name>` is something else.
pub(super) const RESERVED_NAMES: [&str; 2] = ["assets", "ws"];

/// One chat page.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WebChat {
    /// Who may open it.
    #[serde(default = "default_access")]
    pub access: Access,
    /// What a visitor shows. There when access is [`Access::Token`], and only then.
    pub token: Option<Token>,
    /// The page's title.
    #[serde(default = "default_title", deserialize_with = "text::filled")]
    pub title: String,
    /// What the page says before anything was said. Empty: nothing.
    #[serde(default = "default_greeting")]
    pub greeting: String,
    /// Who answers, where it is not the default agent.
    #[serde(default, deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
}

/// Who may open a chat page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Whoever is on this machine.
    Loopback,
    /// Whoever has the token, from anywhere.
    Token,
}

fn default_access() -> Access {
    Access::Loopback
}

fn default_title() -> String {
    "Rejoinder".to_owned()
}

fn default_greeting() -> String {
    "Hello. What can I do for you?".to_owned()
}

impl Section for WebChat {
    fn check(&self, checks: &mut Checks<'_>) {
        match (self.access, &self.token) {
            (Access::Token, None) => {
                let what = "must be set: access is \"token\" (`{ generate = true }` makes one)";
                checks.wrong(checks.key(&["token"]), what);
            }
            (Access::Loopback, Some(_)) => {
                let what =
                    "is not asked for while access is \"loopback\": set access = \"token\", or take the token out";
                checks.wrong(checks.key(&["token"]), what);
            }
            (Access::Token, Some(_)) | (Access::Loopback, None) => {}
        }
        if let Some(agent) = &self.agent {
            checks.refers(checks.key(&["agent"]), "agent", agent, &checks.names.agents);
        }
    }
}
