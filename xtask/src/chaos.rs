//! `cargo xtask chaos`: builds the binary and the soak, then runs it with several nodes on one PostgreSQL.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{
    counterparts,
    process::{self, add},
    soak,
    workspace::Workspace,
};

/// The exit code of a run that cannot be made here: PostgreSQL is not installed.
const NOT_POSSIBLE: i32 = 2;

/// Run several nodes on one PostgreSQL under trouble, and judge what people saw.
///
/// People write on all platforms. One trouble after the other is made to a node, to its ways, or to the database, which the command starts
/// from /usr/lib/postgresql. Prints the progress, then tables as Markdown.
///
/// Fails if a message is lost, silent, doubled without a label or overdue, if a channel stands still for too long, if a node ends by
/// itself, or if a node sends something when it cannot have a lease. The database and the logs are then kept in target/chaos. Without
/// PostgreSQL the exit code is 2.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many nodes there are.
    #[arg(long, default_value_t = 3)]
    nodes: u8,
    /// The troubles, separated by commas; all if not given: node-kill, node-freeze, node-cut-database, node-cut-platform,
    /// node-cut-both, clock, rolling-upgrade, db-restart, db-backend-kill, db-pool-exhausted, db-crash, db-repeated-kills,
    /// db-idle-in-transaction, db-active-readers, db-event-burst, db-freeze, db-switchover.
    #[arg(long)]
    trouble: Option<String>,
    /// Make each trouble once, and judge after each; otherwise they come at random.
    #[arg(long)]
    each: bool,
    /// With --each: how often each trouble is made.
    #[arg(long, requires = "each")]
    rounds: Option<usize>,
    /// How long troubles come at random.
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Decides what is said and which trouble comes; random if not given.
    #[arg(long)]
    seed: Option<u64>,
    /// The platforms that take part: telegram, discord, webhook, webchat and example, separated by commas; all if not given.
    #[arg(long)]
    channels: Option<String>,
    /// Run three PostgreSQL servers under Patroni, or a primary and a synchronous standby if Patroni or etcd is not installed.
    #[arg(long)]
    patroni: bool,
    /// The binary; the one that the tests use if not given. Without the feature `example`, leave that platform out.
    #[arg(long)]
    rejoinder: Option<PathBuf>,
    /// The binary of a later version, with which rolling-upgrade starts nodes; the same one if not given. After each node, both versions
    /// are beside each other for ten seconds.
    #[arg(long)]
    upgrade_to: Option<PathBuf>,
    /// Write the result to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut chaos = soak::prepare(workspace, arguments.channels.as_deref(), arguments.rejoinder.as_deref())?;
    if let Some(library) = counterparts::faketime() {
        chaos.env("REJOINDER_FAKETIME", library);
    }
    add(&mut chaos, "--nodes", Some(arguments.nodes.to_string()));
    add(&mut chaos, "--trouble", arguments.trouble.as_ref());
    add(&mut chaos, "--rounds", arguments.rounds.map(|rounds| rounds.to_string()));
    add(&mut chaos, "--minutes", Some(arguments.minutes.to_string()));
    add(&mut chaos, "--seed", arguments.seed.map(|seed| seed.to_string()));
    add(&mut chaos, "--channels", arguments.channels.as_ref());
    add(&mut chaos, "--json", arguments.json.as_ref().map(std::path::absolute).transpose()?);
    add(&mut chaos, "--upgrade-to", arguments.upgrade_to.as_ref().map(std::path::absolute).transpose()?);
    add(&mut chaos, "--keep", Some(workspace.target().join("chaos")));
    let flags = [("--each", arguments.each), ("--patroni", arguments.patroni)];
    chaos.args(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name));
    let status = chaos.status().map_err(|error| process::not_started(&chaos, error))?;
    if status.code() == Some(NOT_POSSIBLE) {
        // It has said why.
        std::process::exit(NOT_POSSIBLE);
    }
    if status.success() { Ok(()) } else { Err(process::failed(&chaos, status)) }
}
