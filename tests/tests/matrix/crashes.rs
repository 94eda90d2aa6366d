//! `kill -9` at every step: nothing is lost, and nobody is answered twice: what may have been sent is sent again as
//! the same transaction, which the homeserver shows once.

use crate::promise::{Matrix, Rooms};

rejoinder_tests::crash_tests!(
    Matrix,
    places: [Rooms::Direct, Rooms::Group, Rooms::Encrypted],
    drafts_in: [Rooms::Direct, Rooms::Encrypted],
    kills_in: [Rooms::OneEncrypted],
    between_parts: ["attempt_started:2", "attempt_ended:2"]
);
