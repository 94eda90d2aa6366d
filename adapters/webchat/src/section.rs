//! `[channels.webchat.<name>]`: a chat page, as the operator configured it.

use rejoinder_config::{ChannelSection, Checks, Common, Section, Token, text};
use serde::{Deserialize, Serialize};

/// One chat page.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebchatSection {
    /// Who may open it.
    pub access: AccessKind,
    /// What a visitor shows. There when access is [`AccessKind::Token`], and only then.
    pub token: Option<Token>,
    /// The page's title.
    #[serde(deserialize_with = "text::filled")]
    pub title: String,
    /// What the page says before anything was said. Empty: nothing.
    pub greeting: String,
    /// Who answers, where it is not the default agent.
    #[serde(deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
}

/// Who may open a chat page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// Whoever is on this machine.
    #[default]
    Loopback,
    /// Whoever has the token, from anywhere.
    Token,
}

impl Default for WebchatSection {
    fn default() -> Self {
        Self {
            access: AccessKind::default(),
            token: None,
            title: "Rejoinder".to_owned(),
            greeting: "Hello. What can I do for you?".to_owned(),
            agent: None,
        }
    }
}

impl Section for WebchatSection {
    fn check(&self, checks: &mut Checks<'_>) {
        match (self.access, &self.token) {
            (AccessKind::Token, None) => {
                let what = "must be set: access is \"token\" (`{ generate = true }` makes one)";
                checks.wrong(checks.key(&["token"]), what);
            }
            (AccessKind::Loopback, Some(_)) => {
                let what =
                    "is not asked for while access is \"loopback\": set access = \"token\", or take the token out";
                checks.wrong(checks.key(&["token"]), what);
            }
            (AccessKind::Token, Some(_)) | (AccessKind::Loopback, None) => {}
        }
    }
}

impl ChannelSection for WebchatSection {
    const PLATFORM: &'static str = "webchat";
    const MANUAL: &'static str = include_str!("../section.toml");
    /// `/chat/<name>` is something else.
    const RESERVED_NAMES: &'static [&'static str] = &["assets", "ws"];

    fn common(&self) -> Common {
        Common { agent: self.agent.clone(), ..Common::default() }
    }
}

#[cfg(test)]
mod tests;
