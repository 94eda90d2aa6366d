//! A [`Delivery`] → `say` → its [`Receipt`].

use rejoinder_core::{Action, Attachment, Content, Delivery, DeliveryError, Receipt};
use rejoinder_kit::files::is_on_the_web;

use crate::{Example, format, payload::Line};

impl Example {
    pub(crate) async fn perform(&self, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
        let text = match delivery.action() {
            Action::Send { content, .. } => format::labelled(delivery, &shown(content)?),
            other => return Err(DeliveryError::Unsupported(format!("{other:?}"))),
        };
        let (key, chat) = (delivery.id().to_string(), &delivery.conversation().chat);
        match self.api.say(&key, chat, &text).await? {
            Line::Sent(message) => Ok(Receipt::of(message)),
            Line::Failed(failure) => Err(failure.into()),
            other => Err(DeliveryError::Unknown(format!("the server answered {other:?}"))),
        }
    }
}

/// The text that shows a content.
fn shown(content: &Content) -> Result<String, DeliveryError> {
    match &content.attachments[..] {
        [] => Ok(content.text.clone()),
        [Attachment { name, url, .. }] if is_on_the_web(url) => Ok(format!("{name}: {url}")),
        [_] => Err(DeliveryError::Refused("the chat shows no files".to_owned())),
        _ => Err(DeliveryError::Unsupported("several files in one message".to_owned())),
    }
}
