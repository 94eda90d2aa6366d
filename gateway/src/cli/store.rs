//! `rejoinder store`: the size of the database, and its move to another one.

#[cfg(feature = "postgres")]
mod copy;

use std::{collections::BTreeMap, fmt::Write as _, path::Path, time::Duration};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use rejoinder_core::{
    Clock, Lifetimes, SystemClock,
    store::{Cutoffs, ExpiredRows, StoreStats},
};
use rejoinder_store::OpenError;
use serde::Serialize;

use super::{
    global::Global,
    options::{Database, Reading},
};
use crate::{
    console::{failure::Failure, output},
    location::StoreLocation,
    time::rfc3339,
    wiring,
};

/// How often `vacuum` says that it still works.
const TICK: Duration = Duration::from_secs(10);

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Show the size of the database, its rows, and what [retention] removes next
    Stats(Stats),
    /// Compact an SQLite database, so that it takes no more space than its rows need; the gateway must be stopped
    #[command(after_help = VACUUM_HELP)]
    Vacuum(Vacuum),
    /// Copy the store from SQLite to PostgreSQL, or back
    #[cfg(feature = "postgres")]
    #[command(after_help = copy::HELP)]
    Copy(copy::CopyStore),
}

const VACUUM_HELP: &str = "\
A running gateway gives back most of the space of removed rows by itself. Compacting writes the database anew: it needs
up to twice its size of free disk space, and about a second for each 100 MB.";

#[derive(Debug, Args)]
pub(super) struct Stats {
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Args)]
pub(super) struct Vacuum {
    #[command(flatten)]
    database: Database,
}

impl StoreCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::Stats(stats) => stats.perform(global).await,
            Self::Vacuum(vacuum) => vacuum.perform(global).await,
            #[cfg(feature = "postgres")]
            Self::Copy(copy) => copy.perform(global).await,
        }
    }
}

/// The output of `stats --json`.
#[derive(Debug, Serialize)]
struct StatsItem {
    database: String,
    bytes: u64,
    free_bytes: u64,
    rows: BTreeMap<String, u64>,
    oldest_turn: Option<String>,
    expired: ExpiredRows,
}

impl Stats {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let options = global.options()?;
        let (retention, log) = (rejoinder_config::load_retention(&options)?, rejoinder_config::load_log(&options)?);
        let lifetimes = wiring::lifetimes(retention, log);
        let Reading { printing, database } = &self.reading;
        let (location, store) = (database.location(global)?, database.open(global).await?);
        let stats = store.stats(&Cutoffs::at(SystemClock.now(), &lifetimes)).await.context("cannot read the rows")?;
        if printing.json {
            output::print_json(&item(&location, stats))
        } else {
            output::print(text(&location, &stats, &lifetimes))
        }
    }
}

fn item(location: &StoreLocation, stats: StoreStats) -> StatsItem {
    let StoreStats { bytes, free_bytes, rows, oldest_turn, expired } = stats;
    let database = location.to_string();
    StatsItem { database, bytes, free_bytes, rows, oldest_turn: oldest_turn.map(rfc3339), expired }
}

fn text(location: &StoreLocation, stats: &StoreStats, lifetimes: &Lifetimes) -> String {
    let mut text = format!("{location}: {}", size(stats.bytes));
    if stats.free_bytes > 0 {
        let _ = write!(text, ", of which {} are free for new rows", size(stats.free_bytes));
    }
    if let Some(oldest) = stats.oldest_turn {
        let _ = write!(text, "\nThe oldest turn is of {}.", rfc3339(oldest));
    }
    let ExpiredRows { turns, payloads, contents, keys, log, lines, sounds } = stats.expired;
    let _ = match (turns + payloads + contents + keys + log + lines + sounds, lifetimes.turns) {
        (0, None) => write!(text, "\nTurns are kept forever: see [retention]."),
        (0, Some(_)) => write!(text, "\nNothing is past its time."),
        _ => write!(
            text,
            "\nPast their time: {turns} turns, {payloads} payloads, {contents} contents of runs, {keys} keys of events, {log} \
             entries of the log, {lines} lines of the gateway's own log, {sounds} sounds of spoken words. A \
             running gateway removes them within an hour."
        ),
    };
    let rows: Vec<_> = stats.rows.iter().map(|(table, rows)| [table.clone(), rows.to_string()]).collect();
    let _ = write!(text, "\n\n{}", output::table(["TABLE", "ROWS"], &rows));
    text
}

impl Vacuum {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let location = self.database.location(global)?;
        let Some(path) = location.file() else {
            return Err(anyhow!(
                "{location} is compacted by PostgreSQL itself (autovacuum), which keeps the room of removed rows for new ones"
            )
            .into());
        };
        let before = file_size(path);
        output::remark(format_args!("compacting {} ({})", path.display(), size(before)));
        let vacuum = rejoinder_store::vacuum(path);
        tokio::pin!(vacuum);
        let started = tokio::time::Instant::now();
        let mut ticks = tokio::time::interval_at(started + TICK, TICK);
        let vacuumed = loop {
            tokio::select! {
                vacuumed = &mut vacuum => break vacuumed,
                _ = ticks.tick() => output::remark(format_args!("compacting for {} s", started.elapsed().as_secs())),
            }
        };
        match vacuumed {
            Ok(()) => {
                output::print(format!("{} had {}, and has {}.", path.display(), size(before), size(file_size(path))))
            }
            Err(error @ OpenError::InUse { .. }) => Err(anyhow::Error::new(error)
                .context("stop the gateway first: it cannot run while the database is compacted")
                .into()),
            Err(error) => Err(anyhow::Error::new(error).into()),
        }
    }
}

/// The size of a file in bytes; 0 if there is none.
pub(super) fn file_size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// A size for people, such as `12.3 MB`.
pub(super) fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let number = bytes as f64;
    match bytes {
        0..1_000_000 => format!("{:.0} kB", number / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", number / 1e6),
        _ => format!("{:.2} GB", number / 1e9),
    }
}
