//! `kill -9` at every step, with polling and with webhooks: nothing is lost, and nobody is answered twice. Only a message
//! whose response may have been lost is sent again, with a label.

use crate::promise::{Mode, Telegram};

rejoinder_tests::crash_tests!(
    Telegram,
    places: [Mode::Polling, Mode::Webhook],
    drafts_in: [Mode::Polling],
    kills_in: [Mode::Polling, Mode::Webhook],
    between_parts: ["attempt_started:2"]
);
