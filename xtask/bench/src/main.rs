//! Measures speed and memory of the real `rejoinder` binary, compared with a bare echo and a bare proxy.
//!
//! Run by `cargo xtask bench`. The servers, the load generator and the measured binary are separate processes, so that
//! they share no memory or threads. All use the same cores, and talk over loopback on free ports. The bench uses only the
//! gateway's documented interface and does not depend on its crates.
//!
//! To add a figure, return another [`Sample`](figures::Sample) from a function in [`measure`]. To add a measurement, write
//! a module there with a function for one round, and list it in [`Measurement`].

mod client;
mod copies;
mod cores;
mod cpu;
mod disk;
mod figures;
mod gateway;
mod helper;
mod load;
mod measure;
mod memory;
mod peer;
mod serve;

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use tokio::sync::OnceCell;

use crate::{
    figures::Figures,
    measure::{Bench, Measurement},
};

/// Measure speed and memory of the real binary, compared with a bare echo and a bare proxy
#[derive(Parser)]
#[command(bin_name = "rejoinder-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Run),
    Serve(serve::Arguments),
    Load(load::Plan),
}

/// Measure, print a table and write the results to a file.
#[derive(clap::Args)]
struct Run {
    /// What to measure; everything if not given.
    measurement: Option<Measurement>,
    /// Path of the binary to measure.
    #[arg(long)]
    rejoinder: PathBuf,
    /// Folder for results, logs and databases; must be on a disk, because commits in memory cost nothing.
    #[arg(long)]
    folder: PathBuf,
    /// Number of rounds; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Number of cores that all processes share.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: u32,
    /// Duration of each load in seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Number of turns that wait in the store.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2000..=10_000_000))]
    waiting: u64,
    /// Number of settled turns in the store.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    settled: u64,
    /// Number of conversations of the waiting and the settled turns.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    conversations: u32,
    #[command(flatten)]
    peer: peer::Arguments,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(run) => cores::restrict_to(run.cores).and_then(|cores| block_on(run_all(&run, cores))),
        Command::Serve(arguments) => block_on(serve::run(arguments)),
        Command::Load(plan) => block_on(load::run(plan)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(work)
}

async fn run_all(run: &Run, cores: usize) -> Result<()> {
    let bench = Bench {
        rejoinder: run.rejoinder.canonicalize().with_context(|| format!("no binary at {}", run.rejoinder.display()))?,
        folder: run.folder.clone(),
        length: Duration::from_secs(run.seconds),
        waiting: run.waiting,
        settled: run.settled,
        conversations: run.conversations,
        peer: run.peer.endpoint()?,
        agent_port: run.peer.agent_port,
        settled_store: OnceCell::new(),
    };
    if bench.peer.is_some() && !Measurement::chosen(run.measurement).contains(&Measurement::Hooks) {
        bail!("a peer is measured beside the hooks: leave the measurement out, or choose `hooks`");
    }
    std::fs::create_dir_all(&bench.folder)?;
    let mut figures = Figures::default();
    for round in 1..=run.rounds {
        for measurement in Measurement::chosen(run.measurement) {
            let started = Instant::now();
            let samples = measurement.round(&bench).await.with_context(|| format!("cannot measure `{measurement}`"))?;
            figures.add(samples);
            eprintln!("round {round}/{}: {measurement} took {:.0} s", run.rounds, started.elapsed().as_secs_f64());
        }
    }
    println!("\nmedians; rounds: {}, cores: {cores}\n\n{}", run.rounds, figures.table());
    let name = run.measurement.map_or_else(|| "all".to_owned(), |one| one.to_string());
    let results = bench.folder.join(format!("{name}.json"));
    std::fs::write(&results, serde_json::to_vec_pretty(&figures.report(cores))?)?;
    println!("every round: {}", results.display());
    Ok(())
}
