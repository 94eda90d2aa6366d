//! The developer's commands: `cargo xtask test`, `cargo xtask check-layers`, `cargo xtask deny`, `cargo xtask bench`,
//! `cargo xtask soak`, `cargo xtask chaos`, `cargo xtask report`, `cargo xtask dist`.
//!
//! A test run compiles this package first, so it has few dependencies and none on the rest of the workspace. It writes
//! only to the target directory, except that it installs the Debian packages that the tests need, and says so, and that
//! `report` writes `docs/reliability.md`.
//!
//! To add a command, write a module with a `run` function and add a variant of [`Command`]. To add a server or tool that
//! the tests need, see [`counterparts`].

mod bench;
mod chaos;
mod counterparts;
mod deny;
mod dist;
mod docs;
mod document;
mod forks;
mod homeserver;
mod layers;
mod process;
mod report;
mod sbom;
mod service;
mod soak;
mod tally;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The developer's commands
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
    Docs(docs::Arguments),
    Bench(bench::Arguments),
    Soak(soak::Arguments),
    Chaos(chaos::Arguments),
    Report(report::Arguments),
    Dist(dist::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = Workspace::find().and_then(|workspace| match &arguments.command {
        Command::Test(arguments) => test::run(&workspace, arguments),
        Command::CheckLayers(arguments) => layers::run(&workspace, arguments),
        Command::Docs(docs::Arguments {}) => docs::run(&workspace),
        Command::Deny(arguments) => deny::run(&workspace, arguments),
        Command::Bench(arguments) => bench::run(&workspace, arguments),
        Command::Soak(arguments) => soak::run(&workspace, arguments),
        Command::Chaos(arguments) => chaos::run(&workspace, arguments),
        Command::Report(arguments) => report::run(&workspace, arguments),
        Command::Dist(arguments) => dist::run(&workspace, arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_has_valid_arguments() {
        Arguments::command().debug_assert();
    }
}
