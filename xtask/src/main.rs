//! The developer's commands: `cargo xtask test`, `cargo xtask check-layers`, `cargo xtask deny`, `cargo xtask bench`.
//!
//! Compiled before anything else by whoever runs the tests, so it depends on next to nothing and
//! never on the rest of the workspace. It leaves nothing behind outside the target directory, but
//! for the Debian packages that the tests need and that it says it installs.
//!
//! To add a command: a module with a `run` function, and a variant of [`Command`]. To add something
//! the tests talk to: see [`counterparts`].

mod bench;
mod counterparts;
mod deny;
mod homeserver;
mod layers;
mod process;
mod tally;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The developer's commands.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Test(test::Arguments),
    CheckLayers(layers::Arguments),
    Deny(deny::Arguments),
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = Workspace::find().and_then(|workspace| match &arguments.command {
        Command::Test(arguments) => test::run(&workspace, arguments),
        Command::CheckLayers(arguments) => layers::run(&workspace, arguments),
        Command::Deny(arguments) => deny::run(&workspace, arguments),
        Command::Bench(arguments) => bench::run(&workspace, arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
