//! Posts a copy of each answer to a hook's callback: one signed POST per delivery.

use std::sync::Arc;

use rejoinder_core::{Action, Delivery, DeliveryError, Receipt, SignalKind};
use rejoinder_kit::SignedPost;

use crate::{SettingsError, WebhookSettings, answer::Answer};

/// Posts the copies of a hook's answers.
pub(crate) struct Callback(SignedPost);

impl Callback {
    /// `None` if the hook has no callback.
    pub(crate) fn of(settings: &WebhookSettings) -> Result<Option<Self>, SettingsError> {
        let WebhookSettings { section, clock, http, .. } = settings;
        let Some((url, secret)) = section.callback_url.as_ref().zip(section.callback_secret.as_ref()) else {
            return Ok(None);
        };
        let post = SignedPost::new(url.clone(), secret.expose(), Arc::clone(clock), http.clone());
        post.map(|post| Some(Self(post))).ok_or(SettingsError::NotASigningKey("callback_secret"))
    }

    pub(crate) async fn deliver(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        self.0.send(delivery, body(delivery)?).await
    }
}

/// The JSON to post: the same kind of object as at the result's URL.
fn body(delivery: &Delivery) -> Result<Vec<u8>, DeliveryError> {
    let unsupported = |what: &str| Err(DeliveryError::Unsupported(format!("a callback carries answers, not {what}")));
    let signal = delivery.signal().unwrap_or(SignalKind::Reply);
    let answer = Answer::for_callback(delivery.turn(), signal, delivery.via());
    let answer = match delivery.action() {
        Action::Send { content, .. } => answer.with_content(content),
        Action::React { emoji, .. } => answer.with_emoji(emoji),
        Action::Edit { .. } => return unsupported("edits"),
        Action::Draft { .. } => return unsupported("drafts"),
        Action::Typing { .. } => return unsupported("typing notices"),
        Action::Mark { .. } => return unsupported("marks"),
        Action::Delete { .. } => return unsupported("deletions"),
    };
    Ok(answer.to_json())
}
