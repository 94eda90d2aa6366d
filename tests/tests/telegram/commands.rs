//! Every command, as it is written on Telegram.

use rejoinder_tests::promise::{Platform, every_command_is_answered};

use crate::promise::Telegram;

/// A11, B3, D18, N1.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_is_answered_in_a_chat() {
    every_command_is_answered("", async |telegram: &Telegram, ada, said| telegram.says(ada, said).await).await;
}
