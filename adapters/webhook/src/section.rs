//! `[channels.webhook.<name>]`: a hook at `/hooks/<name>`, as the operator configured it.

use std::time::Duration;

use rejoinder_config::{
    ChannelSection, Checks, Common, Secret, Section, Size, Token,
    duration::{self, MINUTE},
    text,
};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::auth;

/// One hook. A caller is let in by any one of `token`, `signing_secret` and `hub_secret` that is set.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSection {
    /// What a caller shows as `Authorization: Bearer …`.
    pub token: Option<Token>,
    /// The key of Standard Webhooks signatures: `whsec_` and base64.
    pub signing_secret: Option<Secret>,
    /// The key of `X-Hub-Signature-256`, as GitHub and Meta sign.
    pub hub_secret: Option<Secret>,
    /// How long a caller is kept waiting at most, and when it does not say; zero: nobody waits.
    #[serde(serialize_with = "duration::write", deserialize_with = "duration::between::<_, 0, { 10 * MINUTE }>")]
    pub wait: Duration,
    /// The conversation of callers that name neither one nor a sender. Without one each such call is a
    /// conversation of its own.
    #[serde(deserialize_with = "text::filled_option")]
    pub conversation: Option<String>,
    /// Who answers, where it is not the default agent.
    #[serde(deserialize_with = "text::filled_option")]
    pub agent: Option<String>,
    /// Where answers are posted as well.
    #[serde(deserialize_with = "text::http_url_option")]
    pub callback_url: Option<Url>,
    /// The key that callbacks are signed with: `whsec_` and base64. There when `callback_url` is.
    pub callback_secret: Option<Secret>,
    /// The largest body, where it is not `server.body_limit`.
    pub body_limit: Option<Size>,
}

impl Default for WebhookSection {
    fn default() -> Self {
        Self {
            token: None,
            signing_secret: None,
            hub_secret: None,
            wait: Duration::from_secs(25),
            conversation: None,
            agent: None,
            callback_url: None,
            callback_secret: None,
            body_limit: None,
        }
    }
}

impl Section for WebhookSection {
    fn check(&self, checks: &mut Checks<'_>) {
        if self.token.is_none() && self.signing_secret.is_none() && self.hub_secret.is_none() {
            let what = "must be set, or `signing_secret`, or `hub_secret`: a hook is never open \
                        (`token = { generate = true }` makes a token)";
            checks.wrong(checks.key(&["token"]), what);
        }
        for (name, secret) in [("signing_secret", &self.signing_secret), ("callback_secret", &self.callback_secret)] {
            if secret.as_ref().is_some_and(|secret| !is_signing_key(secret)) {
                checks.wrong(
                    checks.key(&[name]),
                    "must be \"whsec_\" and a key in base64, as Standard Webhooks has them",
                );
            }
        }
        match (&self.callback_url, &self.callback_secret) {
            (Some(_), None) => {
                checks.wrong(
                    checks.key(&["callback_secret"]),
                    "must be set: what is posted to callback_url is signed with it",
                );
            }
            (None, Some(_)) => {
                checks.wrong(
                    checks.key(&["callback_secret"]),
                    "is not used without `callback_url`: set that, or take this out",
                );
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

impl ChannelSection for WebhookSection {
    const PLATFORM: &'static str = "webhook";
    const MANUAL: &'static str = include_str!("../section.toml");

    fn common(&self) -> Common {
        Common { agent: self.agent.clone(), ..Common::default() }
    }
}

fn is_signing_key(secret: &Secret) -> bool {
    secret.expose().starts_with("whsec_") && auth::signer(secret.expose(), "").is_ok()
}

#[cfg(test)]
mod tests;
