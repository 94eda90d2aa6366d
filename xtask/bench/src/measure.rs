//! The measurements. Each runs one round and returns its figures.

mod agents;
mod discord;
mod drafts;
mod hooks;
mod matrix;
mod peer;
mod plan;
mod platform;
mod postgres;
mod postgres_backlog;
mod settled;
mod start;
mod strangers;
mod telegram;
mod waiting;

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;
use rejoinder_postgres_server::Servers;

use crate::{bench::Bench, figures::Sample};

/// The measurements that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measurement {
    /// Throughput, latency and memory of synchronous hooks, compared with echo and proxy.
    Hooks,
    /// CPU time and latency of a turn by kind of agent, compared with the agent asked directly.
    Agents,
    /// Time from the start of the process to the first answered turn.
    Start,
    /// Memory and recovery time with many waiting turns.
    Waiting,
    /// Throughput and `turns list` with many settled turns in the store, compared with an empty store.
    Settled,
    /// Memory for strangers who write to a bot on Telegram.
    Strangers,
    /// Conversations on Telegram, compared with a bare bot.
    Telegram,
    /// Conversations on Discord, compared with a bare bot.
    Discord,
    /// Conversations on Matrix, compared with a bare bot.
    Matrix,
    /// Time from the agent's words until they are seen on Telegram and Discord.
    Drafts,
    /// Durable turns on PostgreSQL with one node and with three, compared with SQLite, and what they cost there.
    Postgres,
    /// Take-over, claims and the first page with many open and many settled turns on PostgreSQL, compared with a few.
    PostgresBacklog,
    /// The figures that are compared with recorded ones: a part of those of [`Measurement::Hooks`].
    #[value(skip)]
    Quick,
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hooks => "hooks",
            Self::Agents => "agents",
            Self::Start => "start",
            Self::Waiting => "waiting",
            Self::Settled => "settled",
            Self::Strangers => "strangers",
            Self::Telegram => "telegram",
            Self::Discord => "discord",
            Self::Matrix => "matrix",
            Self::Drafts => "drafts",
            Self::Postgres => "postgres",
            Self::PostgresBacklog => "postgres-backlog",
            Self::Quick => "quick",
        })
    }
}

impl Measurement {
    /// Why it cannot be made on this machine.
    pub(crate) fn lacks(self) -> Option<&'static str> {
        let is_on_postgres = matches!(self, Self::Postgres | Self::PostgresBacklog);
        (is_on_postgres && !Servers::are_installed())
            .then_some("there is no PostgreSQL 15 or newer in /usr/lib/postgresql")
    }

    /// The chosen measurement, or all.
    pub(crate) fn chosen(choice: Option<Self>) -> Vec<Self> {
        choice.map_or_else(|| Self::value_variants().to_vec(), |one| vec![one])
    }

    /// Runs one round.
    ///
    /// # Errors
    ///
    /// When a process cannot be started, or the gateway does not behave as documented.
    pub(crate) async fn round(self, bench: &Bench) -> Result<Vec<Sample>> {
        match self {
            Self::Hooks => hooks::round(bench).await,
            Self::Agents => agents::round(bench).await,
            Self::Start => start::round(bench).await,
            Self::Waiting => waiting::round(bench).await,
            Self::Settled => settled::round(bench).await,
            Self::Strangers => strangers::round(bench).await,
            Self::Telegram => telegram::round(bench).await,
            Self::Discord => discord::round(bench).await,
            Self::Matrix => matrix::round(bench).await,
            Self::Drafts => drafts::round(bench).await,
            Self::Postgres => postgres::round(bench).await,
            Self::PostgresBacklog => postgres_backlog::round(bench).await,
            Self::Quick => hooks::quick_round(bench).await,
        }
    }
}
