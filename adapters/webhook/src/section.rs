//! `[channels.webhook.<name>]`: the configuration of the hook at `/hooks/<name>`.

use std::time::Duration;

use rejoinder_config::{
    ChannelSection, Checks, Common, DirectKeys, MIN_TOKEN, Secret, Section, Size, Token,
    duration::{self, MINUTE},
    text,
};
use rejoinder_core::{PromptSession, Target, WordsTo};
use rejoinder_kit::signing_key;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::template::EventTemplate;

/// A caller is accepted by any one of `token`, `signing_secret` and `hub_secret` that is set.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSection {
    /// Sent by callers as `Authorization: Bearer …`.
    pub token: Option<Token>,
    /// The key of Standard Webhooks signatures: `whsec_` and 24 to 64 bytes in base64.
    pub signing_secret: Option<Secret>,
    /// The key of `X-Hub-Signature-256`, as GitHub and Meta sign: at least 20 characters.
    pub hub_secret: Option<Secret>,
    /// How long a caller waits: the upper limit, and the default if it does not ask for a wait. Zero: not at all.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 0, { 10 * MINUTE }>")]
    pub wait: Duration,
    /// The conversation of calls that name neither a conversation nor a sender. Without it each such call is a
    /// conversation of its own.
    #[serde(deserialize_with = "text::filled_option")]
    pub conversation: Option<String>,
    /// Whether answers are read aloud, as the agent is told: a few plain sentences. Otherwise it may use Markdown.
    pub spoken: bool,
    #[serde(rename = "..common")]
    pub common: DirectKeys,
    /// Receives a copy of each answer.
    #[serde(serialize_with = "text::write_origin", deserialize_with = "text::http_url_option")]
    pub callback_url: Option<Url>,
    /// Signs the callbacks: `whsec_` and 24 to 64 bytes in base64. Set if and only if `callback_url` is.
    pub callback_secret: Option<Secret>,
    /// The largest body, if not `server.body_limit`.
    pub body_limit: Option<Size>,
    /// What the agent owes for a call.
    pub owes: Owes,
    /// Makes the hook one for events: they are put before the agent, and what it says goes here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_to: Option<Target>,
    /// What the agent does with an event.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text::filled_option")]
    pub prompt: Option<String>,
    /// What an event says, made of its body.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "text::filled_option")]
    pub template: Option<String>,
    /// Whether an event is sent as it is, without an agent.
    pub deliver_only: bool,
    /// Where the agent's words about an event go, if not to `deliver_to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_to: Option<WordsTo>,
    /// Whether the agent gets a copy of the session of `deliver_to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<PromptSession>,
}

/// What is owed for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owes {
    /// An answer.
    #[default]
    Answer,
    /// Nothing: the agent speaks only if it has something to say.
    Nothing,
}

impl Default for WebhookSection {
    fn default() -> Self {
        Self {
            token: None,
            signing_secret: None,
            hub_secret: None,
            wait: Duration::from_secs(25),
            conversation: None,
            spoken: true,
            common: DirectKeys::default(),
            callback_url: None,
            callback_secret: None,
            body_limit: None,
            owes: Owes::default(),
            deliver_to: None,
            prompt: None,
            template: None,
            deliver_only: false,
            words_to: None,
            session: None,
        }
    }
}

impl Section for WebhookSection {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.token.is_none() && self.signing_secret.is_none() && self.hub_secret.is_none() {
            let what = "must be set, unless `signing_secret` or `hub_secret` is: a hook is never open \
                        (`token = { generate = true }` makes a token)";
            checks.wrong(checks.key(&["token"]), what);
        }
        for (name, secret) in [("signing_secret", &self.signing_secret), ("callback_secret", &self.callback_secret)] {
            if secret.as_ref().is_some_and(|secret| !is_signing_key(secret)) {
                checks.wrong(
                    checks.key(&[name]),
                    "must be \"whsec_\" followed by a base64 key of 24 to 64 bytes, as Standard Webhooks requires",
                );
            }
        }
        if self.hub_secret.as_ref().is_some_and(|secret| secret.expose().trim().chars().count() < MIN_TOKEN) {
            let what = format!(
                "has less than {MIN_TOKEN} characters, so it could be guessed: use what `openssl rand -hex 24` prints"
            );
            checks.wrong(checks.key(&["hub_secret"]), what);
        }
        match (&self.callback_url, &self.callback_secret) {
            (Some(_), None) => {
                checks.wrong(
                    checks.key(&["callback_secret"]),
                    "must be set: the posts to callback_url are signed with it",
                );
            }
            (None, Some(_)) => {
                checks.wrong(
                    checks.key(&["callback_secret"]),
                    "is not used without `callback_url`: set that, or remove this key",
                );
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        self.check_events(checks);
    }
}

impl WebhookSection {
    fn check_events(&self, checks: &mut Checks<'_>) {
        let Some(to) = &self.deliver_to else {
            let unused = [
                ("owes", self.owes == Owes::Nothing),
                ("prompt", self.prompt.is_some()),
                ("template", self.template.is_some()),
                ("deliver_only", self.deliver_only),
                ("words_to", self.words_to.is_some()),
                ("session", self.session.is_some()),
            ];
            for (key, _) in unused.into_iter().filter(|(_, is_set)| *is_set) {
                checks.wrong(checks.key(&[key]), "needs `deliver_to`: whom is it for?");
            }
            return;
        };
        checks.refers_to_channel(&checks.key(&["deliver_to"]), to.channel());
        let words_to = self.words_to.as_ref().and_then(WordsTo::channel);
        checks.refers_to_channel(&checks.key(&["words_to"]), words_to);
        let unused = [
            ("callback_url", self.callback_url.is_some(), "the answers go to `deliver_to`"),
            ("conversation", self.conversation.is_some(), "events belong to the conversation of `deliver_to`"),
            ("spoken", !self.spoken, "events belong to the conversation of `deliver_to`"),
            ("queue", self.common.queue.is_some(), "events belong to the conversation of `deliver_to`"),
            ("prompt", self.deliver_only && self.prompt.is_some(), "with `deliver_only` no agent is asked"),
            ("agent", self.deliver_only && self.common.agent.is_some(), "with `deliver_only` no agent is asked"),
            ("words_to", self.deliver_only && self.words_to.is_some(), "with `deliver_only` no agent is asked"),
            ("session", self.deliver_only && self.session.is_some(), "with `deliver_only` no agent is asked"),
            ("owes", self.deliver_only && self.owes == Owes::Nothing, "with `deliver_only` no agent is asked"),
        ];
        for (key, _, why) in unused.into_iter().filter(|(_, is_set, _)| *is_set) {
            checks.wrong(checks.key(&[key]), format!("is not used: {why}"));
        }
        if let Some(Err(error)) = self.template.as_deref().map(EventTemplate::check) {
            checks.wrong(checks.key(&["template"]), format!("is no template: {error}"));
        }
    }
}

impl ChannelSection for WebhookSection {
    const PLATFORM: &'static str = "webhook";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        self.common.common()
    }
}

fn is_signing_key(secret: &Secret) -> bool {
    secret.expose().starts_with("whsec_") && signing_key(secret.expose()).is_some()
}

#[cfg(test)]
mod tests;
