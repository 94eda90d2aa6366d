//! `kill -9` at every step, however updates come in: nothing is lost, nobody is answered twice; only where a
//! response may have been lost is there a second message, and it says so.

use crate::promise::{Mode, Telegram};

rejoinder_tests::crash_tests!(
    Telegram,
    places: [Mode::Polling, Mode::Webhook],
    drafts_in: [Mode::Polling],
    kills_in: [Mode::Polling, Mode::Webhook],
    between_parts: ["attempt_started:2"]
);
