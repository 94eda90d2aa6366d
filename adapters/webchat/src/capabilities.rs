//! What the page can do, with the source of each number.

use std::time::Duration;

use rejoinder_core::{Capabilities, Receipts, Resend, Support};

/// A frame every 50 ms reads as flowing text (20 a second); a socket that cannot keep up skips some, see
/// `rooms.rs`.
const DRAFT_INTERVAL: Duration = Duration::from_millis(50);

/// The page takes a typing notice down 25 s after its last renewal (`TYPING_LASTS` in `assets/conversation.js`).
const TYPING_INTERVAL: Duration = Duration::from_secs(10);

/// The same in every conversation.
pub(crate) const fn table() -> Capabilities {
    Capabilities {
        // The page reads our rows: the signal is there when its row is committed.
        receipts: Receipts::Row,
        resend: Resend::Idempotent,
        // The page replaces what it shows of a turn by the turn's id.
        edit: Support::Full,
        // Shown on the person's words; any text that a browser can draw.
        reactions: Support::Full,
        allowed_reactions: None,
        choices: Support::Full,
        // As links: the page fetches nothing from anywhere else (its content security policy).
        attachments: Support::Degraded,
        drafts: Support::Full,
        drafts_are_messages: false,
        draft_interval: DRAFT_INTERVAL,
        typing: Support::Full,
        typing_interval: TYPING_INTERVAL,
        typing_ends_by_itself: false,
        text_limit: None,
        conversation_rate: None,
        account_rate: None,
    }
}
