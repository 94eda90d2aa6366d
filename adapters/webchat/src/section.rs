//! `[channels.webchat.<name>]`: the configuration of a chat page.

use axum::http::HeaderName;
use rejoinder_config::{ChannelSection, Checks, Common, DirectKeys, Network, People, Section, Token, text};
use rejoinder_core::DirectPolicy;
use serde::{Deserialize, Serialize};
use url::Url;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebchatSection {
    pub access: AccessKind,
    /// The token that visitors enter. Set exactly if access is [`AccessKind::Token`].
    pub token: Option<Token>,
    /// How a proxy says who is signed in there. Only used if access is [`AccessKind::People`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<PersonHeader>,
    /// Further origins whose pages may use the chat.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    #[serde(deserialize_with = "text::filled")]
    pub title: String,
    /// The text that an empty conversation shows; empty: none.
    pub greeting: String,
    pub push: PushKind,
    /// The operator's own push services: URLs that may lead into this network, and need no TLS.
    pub push_services: Vec<Url>,
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
    /// People who are known, once they have signed in, from anywhere.
    People,
}

/// The header in which a proxy names who is signed in there.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PersonHeader {
    pub name: String,
    /// The addresses of the proxy.
    pub from: Vec<Network>,
}

/// What a browser that wants it is told of an answer while no page is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PushKind {
    /// Its first words.
    #[default]
    Words,
    /// That there is one.
    Notice,
    /// Nothing.
    Off,
}

impl Default for WebchatSection {
    fn default() -> Self {
        Self {
            access: AccessKind::default(),
            token: None,
            header: None,
            origins: Vec::new(),
            title: "Rejoinder".to_owned(),
            greeting: "Hello. What can I do for you?".to_owned(),
            push: PushKind::default(),
            push_services: vec![],
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
            (AccessKind::People, Some(_)) => {
                let what = "is not used while access is \"people\", who sign in: remove this token";
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
            (AccessKind::Token, Some(_)) | (AccessKind::Loopback | AccessKind::People, None) => {}
        }
        self.check_header(checks);
        for (index, origin) in self.origins.iter().enumerate() {
            if !is_origin(origin) {
                let what = "must be the origin of a page, such as \"https://home.example.org\"";
                checks.wrong(checks.key(&["origins"]).index(index), what);
            }
        }
    }
}

impl WebchatSection {
    fn check_header(&self, checks: &mut Checks<'_>) {
        let Some(PersonHeader { name, from }) = &self.header else { return };
        if self.access != AccessKind::People {
            let what = "is only used while access is \"people\": set that, or remove this header";
            checks.wrong(checks.key(&["header"]), what);
        }
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            checks.wrong(checks.key(&["header", "name"]), "is not the name of a header");
        }
        if from.is_empty() {
            let what = "must name the addresses of the proxy: nobody else is believed";
            checks.wrong(checks.key(&["header", "from"]), what);
        }
        for (index, network) in from.iter().enumerate() {
            if network.is_everything() {
                let what = "is everybody: anybody could then say who they are. Name the addresses of the proxy";
                checks.wrong(checks.key(&["header", "from"]).index(index), what);
            }
        }
    }
}

/// Whether a text is an origin of a page, as browsers write it.
fn is_origin(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text
}

impl ChannelSection for WebchatSection {
    const PLATFORM: &'static str = "webchat";
    const MANUAL: &'static str = include_str!("../section.toml");
    /// Routes below `/chat/` use these names.
    const RESERVED_NAMES: &'static [&'static str] = &["assets", "messages", "session", "share", "ws"];

    fn common(&self) -> Common {
        // The page lets in nobody who is not known.
        let signed_in = || People { dm_policy: DirectPolicy::Open, ..People::default() };
        let people = (self.access == AccessKind::People).then(signed_in);
        Common { people, ..self.common.common() }
    }
}

#[cfg(test)]
mod tests;
