//! Measures speed and memory of the real `rejoinder` binary, compared with a bare echo and a bare proxy.
//!
//! Run by `cargo xtask bench`. The servers, the load generator and the measured binary are separate processes, so that
//! they share no memory or threads; only Telegram's server and the agent of drafts are in the process that measures. All use
//! the same cores, and talk over loopback on free ports. The bench uses only the gateway's documented interface and does not
//! depend on its crates; only [`copies`] and the measurement of a backlog on PostgreSQL know tables of its database.
//!
//! To add a figure, return another [`Sample`](figures::Sample) from a function in [`measure`]. To add a measurement, write
//! a module there with a function for one round, and list it in [`Measurement`](measure::Measurement).

mod acp;
mod bench;
mod client;
mod copies;
mod cores;
mod cpu;
mod disk;
mod figures;
mod gateway;
mod helper;
mod load;
mod machine;
mod measure;
mod memory;
mod open_files;
mod peer;
mod postgres;
mod recorded;
mod run;
mod serve;
mod written;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measure speed and memory of the real binary, compared with a bare echo and a bare proxy
#[derive(Parser)]
#[command(bin_name = "rejoinder-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
    Serve(serve::Arguments),
    Load(load::Plan),
    /// Answer prompts of the Agent Client Protocol on standard input and output.
    Acp,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(run) => cores::restrict_to(run.cores).and_then(|cores| block_on(run::run(&run, cores))),
        Command::Serve(arguments) => block_on(serve::run(arguments)),
        Command::Load(plan) => block_on(load::run(plan)),
        Command::Acp => acp::answer_prompts(),
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
