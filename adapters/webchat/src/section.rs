//! `[channels.webchat.<name>]`: the configuration of a chat page.

use rejoinder_config::{ChannelSection, Checks, Common, DirectKeys, Section, Token, text};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebchatSection {
    pub access: AccessKind,
    /// The token that visitors enter. Set exactly if access is [`AccessKind::Token`].
    pub token: Option<Token>,
    #[serde(deserialize_with = "text::filled")]
    pub title: String,
    /// The text that an empty conversation shows; empty: none.
    pub greeting: String,
    #[serde(rename = "..common")]
    pub common: DirectKeys,
}

/// Who may open a chat page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// Anybody on this machine.
    #[default]
    Loopback,
    /// Anybody with the token, from anywhere.
    Token,
}

impl Default for WebchatSection {
    fn default() -> Self {
        Self {
            access: AccessKind::default(),
            token: None,
            title: "Rejoinder".to_owned(),
            greeting: "Hello. What can I do for you?".to_owned(),
            common: DirectKeys::default(),
        }
    }
}

impl Section for WebchatSection {
    fn check(&self, checks: &mut Checks<'_>) {
        match (self.access, &self.token) {
            (AccessKind::Token, None) => {
                let what = "must be set: access is \"token\" (`{ generate = true }` creates one)";
                checks.wrong(checks.key(&["token"]), what);
            }
            (AccessKind::Loopback, Some(_)) => {
                let what = "is not used while access is \"loopback\": set access = \"token\", or remove this token";
                checks.wrong(checks.key(&["token"]), what);
            }
            (AccessKind::Loopback, None) if checks.has_public_url() => {
                let key = checks.key(&["access"]);
                let what = "is \"loopback\" while server.public_url is set: behind a proxy everybody seems to be on this machine. \
                            Set access = \"token\" and token = { generate = true }, or remove this chat page or server.public_url";
                let built_in = ". With its first channel, a file loses the built-in ones: write [channels.webhook.default] as \
                                well if you use it";
                let more = if checks.is_default(&key) { built_in } else { "" };
                checks.wrong(key, format!("{what}{more}"));
            }
            (AccessKind::Token, Some(_)) | (AccessKind::Loopback, None) => {}
        }
    }
}

impl ChannelSection for WebchatSection {
    const PLATFORM: &'static str = "webchat";
    const MANUAL: &'static str = include_str!("../section.toml");
    /// Routes below `/chat/` use these names.
    const RESERVED_NAMES: &'static [&'static str] = &["assets", "messages", "ws"];

    fn common(&self) -> Common {
        self.common.common()
    }
}

#[cfg(test)]
mod tests;
