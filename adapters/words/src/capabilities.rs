//! What a place for words can do. All is our own, but for the receiver of a URL.

use rejoinder_core::{Capabilities, Resend, Support};

pub(crate) fn capabilities() -> Capabilities {
    // The emoji of a reaction is the text, the core writes choices as a numbered list, and nothing is edited or typed. The file is
    // written, or the receiver has answered: that is the receipt.
    Capabilities {
        // An entry of a file holds the delivery's id; a post has it as its `webhook-id`.
        resend: Resend::Idempotent,
        // A file holds links; a post has them as they are.
        attachments: Support::Degraded,
        ..Capabilities::minimal()
    }
}
