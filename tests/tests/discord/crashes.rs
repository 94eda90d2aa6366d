//! `kill -9` at every step: nothing is lost, and nobody is answered twice. A message that may have been sent is sent again
//! with the same nonce, and Discord shows it once.

use crate::promise::{Discord, Place};

rejoinder_tests::crash_tests!(
    Discord,
    places: [Place::DirectChat, Place::DirectChatForgotten, Place::Server, Place::ServerForgotten],
    drafts_in: [Place::DirectChat],
    kills_in: [Place::DirectChat, Place::DirectChatForgotten],
    between_parts: ["attempt_started:2", "attempt_ended:2"]
);

/// D1, K1: the sound is stored before it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_spoken_answer_is_shown_once_over_kills() {
    rejoinder_tests::promise::a_spoken_answer_is_shown_once_over_kills::<Discord>().await;
}
