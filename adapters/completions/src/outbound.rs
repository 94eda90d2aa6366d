//! Shows drafts to callers that stream an answer. Signals are not delivered here: the caller reads their rows.

use rejoinder_core::{Action, Delivery, DeliveryError, Receipt};

use crate::drafts::Drafts;

/// Shows a draft. Succeeds even if nobody streams the answer: a draft settles nothing.
/// All other actions are `Unsupported`.
pub(crate) fn deliver(drafts: &Drafts, delivery: &Delivery) -> Result<Receipt, DeliveryError> {
    match delivery.action() {
        Action::Draft { text, .. } => {
            drafts.show(delivery.turn(), text);
            Ok(Receipt::of(delivery.id().to_string()))
        }
        Action::Typing { .. } => Err(unsupported("typing notices")),
        Action::Send { .. } => Err(unsupported("sending a message: the caller reads its row")),
        Action::Edit { .. } => Err(unsupported("editing a message: the caller reads its row")),
        Action::React { .. } => Err(unsupported("sending a reaction: the caller reads its row")),
        Action::Mark { .. } => Err(unsupported("marking a message")),
        Action::Delete { .. } => Err(unsupported("deleting a message")),
    }
}

fn unsupported(what: &str) -> DeliveryError {
    DeliveryError::Unsupported(what.to_owned())
}
