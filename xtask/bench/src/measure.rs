//! The measurements. Each does one round and gives that round's figures.

mod discord;
mod hooks;
mod matrix;
mod platform;
mod start;
mod telegram;
mod waiting;

use std::{fmt, path::PathBuf, time::Duration};

use anyhow::Result;
use clap::ValueEnum;

use crate::figures::Sample;

/// What all measurements need to know.
pub(crate) struct Bench {
    /// The binary.
    pub(crate) rejoinder: PathBuf,
    /// Where databases and logs go.
    pub(crate) folder: PathBuf,
    /// How long a load lasts.
    pub(crate) length: Duration,
    /// How many turns wait.
    pub(crate) waiting: u64,
    /// In how many conversations.
    pub(crate) conversations: u32,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measurement {
    /// Throughput, latency and memory of synchronous hooks, beside echo and proxy.
    Hooks,
    /// From the start of the process to the first answered turn.
    Start,
    /// Memory and recovery with many waiting turns.
    Waiting,
    /// Conversations on Telegram, beside a bare bot.
    Telegram,
    /// Conversations on Discord, beside a bare bot.
    Discord,
    /// Conversations on Matrix, beside a bare bot.
    Matrix,
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hooks => "hooks",
            Self::Start => "start",
            Self::Waiting => "waiting",
            Self::Telegram => "telegram",
            Self::Discord => "discord",
            Self::Matrix => "matrix",
        })
    }
}

impl Measurement {
    /// The chosen one, or all.
    pub(crate) fn chosen(choice: Option<Self>) -> Vec<Self> {
        choice.map_or_else(|| Self::value_variants().to_vec(), |one| vec![one])
    }

    /// Does one round.
    ///
    /// # Errors
    ///
    /// When something cannot be started, or the gateway does not do what its documents say.
    pub(crate) async fn round(self, bench: &Bench) -> Result<Vec<Sample>> {
        match self {
            Self::Hooks => hooks::round(bench).await,
            Self::Start => start::round(bench).await,
            Self::Waiting => waiting::round(bench).await,
            Self::Telegram => telegram::round(bench).await,
            Self::Discord => discord::round(bench).await,
            Self::Matrix => matrix::round(bench).await,
        }
    }
}
