//! Speed and memory of the real `rejoinder` binary, beside a bare echo and a bare proxy.
//!
//! Run by `cargo xtask bench`. Servers, load generator and the measured binary are processes of their
//! own, so that none lends another its memory or its threads; all share the same cores and speak
//! over loopback on ports that are free. It knows the gateway only by its documented surface, and
//! depends on nothing of it.
//!
//! To add a figure: return one more [`Sample`](figures::Sample) from a function in [`measure`]. To add
//! a measurement: a module there with a function that does one round, listed in
//! [`Measurement`].

mod client;
mod cores;
mod figures;
mod gateway;
mod helper;
mod load;
mod measure;
mod memory;
mod serve;

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::{
    figures::Figures,
    measure::{Bench, Measurement},
};

/// Speed and memory of the real binary, beside a bare echo and a bare proxy.
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

/// Measure, print the table and write the figures down.
#[derive(clap::Args)]
struct Run {
    /// What to measure; everything when left out.
    measurement: Option<Measurement>,
    /// The binary to measure.
    #[arg(long)]
    rejoinder: PathBuf,
    /// Where the results, logs and databases go: on a disk, because a commit in memory costs nothing.
    #[arg(long)]
    folder: PathBuf,
    /// How often everything is measured; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// How many cores all processes share.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cores: u32,
    /// How long each load lasts, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// How many turns wait in the store.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2000..=10_000_000))]
    waiting: u64,
    /// How many conversations they wait in.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    conversations: u32,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(run) => cores::share(run.cores).and_then(|cores| block_on(run_all(&run, cores))),
        Command::Serve(arguments) => block_on(serve::run(arguments)),
        Command::Load(plan) => block_on(load::run(plan)),
    };
    match done {
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
        conversations: run.conversations,
    };
    std::fs::create_dir_all(&bench.folder)?;
    let mut figures = Figures::default();
    for round in 1..=run.rounds {
        for measurement in Measurement::chosen(run.measurement) {
            let started = Instant::now();
            let samples = measurement.round(&bench).await.with_context(|| format!("cannot measure `{measurement}`"))?;
            figures.take(samples);
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
