//! `kill -9` at every step: nothing is lost, and nobody is answered twice. A message that may have been sent is sent again
//! with the same transaction id, and the homeserver shows it once.

use crate::promise::{Matrix, Rooms};

rejoinder_tests::crash_tests!(
    Matrix,
    places: [Rooms::Direct, Rooms::Group, Rooms::Encrypted],
    drafts_in: [Rooms::Direct, Rooms::Encrypted],
    kills_in: [Rooms::OneEncrypted],
    between_parts: ["attempt_started:2", "attempt_ended:2"]
);

/// D1, K1: the sound is stored before it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_spoken_answer_is_shown_once_over_kills() {
    rejoinder_tests::promise::a_spoken_answer_is_shown_once_over_kills::<Matrix>().await;
}
