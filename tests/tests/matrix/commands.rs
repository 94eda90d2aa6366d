//! Every command, with either sign.

use rejoinder_tests::promise::{Platform, every_command_is_answered};
use rstest::rstest;

use crate::{Chat, promise::Matrix};

/// A11, B3, D18, N1. Many clients keep what begins with a slash.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_command_is_answered_with_either_sign(#[values("/", "!")] sign: &str) {
    let says = async |matrix: &Matrix, ada: &Chat, said: &str| {
        let said = said.strip_prefix('/').map_or_else(|| said.to_owned(), |rest| format!("{sign}{rest}"));
        matrix.says(ada, &said).await;
    };
    every_command_is_answered("auto_join = \"always\"", says).await;
}
