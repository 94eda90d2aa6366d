//! `cargo xtask bench`: builds the release binary, measures it, and writes down what it measured.
//!
//! The bench is a package of its own (`xtask/bench`), so that test runs do not compile it.

mod history;

use std::{ffi::OsString, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value};

use self::history::History;
use crate::{
    counterparts,
    document::{Document, Origin},
    process,
    workspace::Workspace,
};

/// The figures that `--quick` compares with.
const RECORDED: &str = "xtask/bench/recorded.json";

const DOCUMENT: &str = "docs/performance.md";

/// All files that a recorded run writes.
const GENERATED: [&str; 3] = [RECORDED, DOCUMENT, history::FILE];

/// Measure speed and memory, and print a table of figures and targets.
///
/// Builds with the release profile, then measures for some twenty-five minutes. The figures of every round are also written to
/// target/bench/all.json, or target/bench/NAME.json for a single measurement.
#[derive(Args)]
#[group(id = "bench")]
pub(crate) struct Arguments {
    /// What to measure: hooks, agents, start, waiting, settled, strangers, telegram, discord, matrix, drafts, postgres or
    /// postgres-backlog; everything if not given. Those of PostgreSQL are left out if it is not installed.
    #[arg(conflicts_with_all = ["quick", "record", "report"])]
    name: Option<String>,
    /// Measure only hooks with 16 and 64 callers, in about a minute. Fails if throughput or CPU time beside the proxy's, memory, or
    /// what a turn writes to the disk is worse than 0.9 of the median in xtask/bench/recorded.json, in each of up to three
    /// measurements.
    #[arg(long)]
    quick: bool,
    /// Measure as with --quick, and write the result to xtask/bench/recorded.json, and to the history in docs/performance.md.
    #[arg(long, conflicts_with = "quick")]
    record: bool,
    /// Measure everything, and write the result into docs/performance.md and its history.
    #[arg(long, conflicts_with_all = ["quick", "record"])]
    report: bool,
    #[command(flatten)]
    peer: Peer,
    /// The binary to measure; built here if not given.
    #[arg(long, value_name = "FILE")]
    rejoinder: Option<PathBuf>,
    /// More options for the bench; `cargo xtask bench -- --help` lists them.
    #[arg(last = true)]
    options: Vec<OsString>,
}

/// Another server that is measured in the same run.
#[derive(Args)]
#[group(id = "peer_options")]
struct Peer {
    /// Measure the server at this URL, too: with 1, 16 and 64 callers, beside the hooks. It must answer each POST with 2xx
    /// once it has the agent's answer. Only http://.
    #[arg(long = "peer", value_name = "URL", conflicts_with_all = ["quick", "record"])]
    url: Option<String>,
    /// A header of every request to the peer; can be repeated.
    #[arg(long = "peer-header", value_name = "NAME: VALUE", requires = "url", allow_hyphen_values = true)]
    headers: Vec<String>,
    /// A file with the body of every request to the peer, in which {text} and {conversation} are replaced. If not given,
    /// the peer gets the body that the gateway gets: {"message": …, "conversation": …}.
    #[arg(long = "peer-body", value_name = "FILE", requires = "url")]
    body: Option<PathBuf>,
    /// The port of the agent that answers at once, on 127.0.0.1 while the hooks are measured. Let the peer ask it, too:
    /// http://127.0.0.1:PORT/v1, compatible with OpenAI. Any port if not given.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["quick", "record"])]
    agent_port: Option<u16>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    if arguments.quick {
        let mut bench = arguments.command(workspace)?;
        process::show(bench.arg("--quick").arg("--recorded").arg(workspace.root().join(RECORDED)))
    } else if arguments.record {
        record(workspace, arguments)
    } else if arguments.report {
        report(workspace, arguments)
    } else {
        process::show(&mut arguments.command(workspace)?)
    }
}

/// Writes the results of a quick run into [`RECORDED`] and the history.
fn record(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let (history, origin) = (History::find(workspace, DOCUMENT)?, Origin::now(workspace, &GENERATED)?);
    process::show(arguments.command(workspace)?.arg("--quick"))?;
    let mut recorded = results(workspace, "quick.json")?;
    recorded.insert("commit".to_owned(), origin.commit.as_str().into());
    recorded.insert("date".to_owned(), origin.date.as_str().into());
    let path = workspace.root().join(RECORDED);
    fs::write(&path, format!("{:#}\n", Value::from(recorded.clone())))
        .with_context(|| format!("cannot write {RECORDED}"))?;
    println!("written to {RECORDED}");
    history.add(workspace, &recorded, &origin)
}

/// Writes the table of a whole run into [`DOCUMENT`], and its figures into the history.
fn report(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let document = Document::find(workspace, DOCUMENT, "bench --report")?;
    let (history, origin) = (History::find(workspace, DOCUMENT)?, Origin::now(workspace, &GENERATED)?);
    let mut bench = arguments.command(workspace)?;
    let (table, status) = process::table(bench.arg("--markdown"))?;
    if !status.success() || table.is_empty() {
        return Err(process::failed(&bench, status));
    }
    let Origin { commit, date } = &origin;
    document.write(&format!("`{}` at commit {commit} on {date}:\n\n{table}", arguments.typed()))?;
    history.add(workspace, &results(workspace, "all.json")?, &origin)
}

/// Reads a file that the bench has written.
fn results(workspace: &Workspace, name: &str) -> Result<Map<String, Value>> {
    let path = results_folder(workspace).join(name);
    let read = || anyhow::Ok(serde_json::from_slice(&fs::read(&path)?)?);
    read().with_context(|| format!("cannot read {}", path.display()))
}

/// Where the bench writes its results.
fn results_folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("bench")
}

impl Arguments {
    /// The command of a report, as it is typed. Headers of a peer may be secret.
    fn typed(&self) -> String {
        let mut words = vec!["cargo xtask bench --report".to_owned()];
        words.extend(self.peer.url.as_ref().map(|url| format!("--peer {url}")));
        words.extend((!self.options.is_empty()).then(|| "--".to_owned()));
        words.extend(self.options.iter().map(|option| option.to_string_lossy().into_owned()));
        words.join(" ")
    }

    /// Builds the gateway and the bench, and returns the command that measures.
    fn command(&self, workspace: &Workspace) -> Result<Command> {
        let rejoinder = match &self.rejoinder {
            Some(path) => std::path::absolute(path)?,
            None => build(workspace)?,
        };
        let mut bench = workspace.cargo();
        bench.args(["run", "--release", "--locked", "--package", "rejoinder-bench", "--", "run"]);
        // The servers for Discord and Matrix are Python programs with third-party packages.
        let is_only_hooks = self.quick || self.record;
        if !is_only_hooks && self.name.as_deref().is_none_or(|name| matches!(name, "discord" | "matrix" | "drafts")) {
            bench.env("REJOINDER_PYTHON", counterparts::set_up_python(workspace)?);
        }
        bench.arg("--rejoinder").arg(rejoinder);
        bench.arg("--folder").arg(results_folder(workspace));
        bench.args(&self.name).args(self.peer.options()?).args(&self.options);
        Ok(bench)
    }
}

impl Peer {
    fn options(&self) -> Result<Vec<OsString>> {
        let absolute = |path: &PathBuf| std::path::absolute(path).map(OsString::from);
        let mut options = Vec::new();
        let mut add = |name: &str, value: Option<OsString>| {
            options.extend(value.into_iter().flat_map(|value| [OsString::from(name), value]));
        };
        add("--peer", self.url.as_ref().map(Into::into));
        for header in &self.headers {
            add("--peer-header", Some(header.into()));
        }
        add("--peer-body", self.body.as_ref().map(absolute).transpose()?);
        add("--agent-port", self.agent_port.map(|port| port.to_string().into()));
        Ok(options)
    }
}

/// Builds the gateway; returns the path of the binary.
///
/// It is built alone, with the features of `cargo run --release`: built together with the bench, Cargo would unify features,
/// and the measured binary would differ from the user's.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    process::show(workspace.cargo().args(["build", "--release", "--locked", "--package", "rejoinder"]))?;
    Ok(workspace.binary("release", "rejoinder"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn a_report_says_what_was_typed_and_no_secret() {
        let typed = ["bench", "--report", "--peer", "http://h/x", "--peer-header", "X: secret", "--", "--rounds", "5"];
        let arguments = Typed::try_parse_from(typed).unwrap().arguments;
        assert_eq!(arguments.typed(), "cargo xtask bench --report --peer http://h/x -- --rounds 5");
        assert_eq!(arguments.peer.options().unwrap(), ["--peer", "http://h/x", "--peer-header", "X: secret"]);
    }

    #[test]
    fn options_that_make_no_sense_together_are_refused() {
        for typed in [
            &["hooks", "--quick"][..],
            &["hooks", "--report"],
            &["--quick", "--record"],
            &["--quick", "--peer", "http://h/x"],
            &["--peer-header", "X: y"],
        ] {
            assert!(Typed::try_parse_from([&["bench"], typed].concat()).is_err(), "{typed:?}");
        }
    }
}
