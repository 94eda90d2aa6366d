//! `rejoinder doctor`: checks everything that a running gateway needs, and says how to fix problems.
//!
//! It sends no message, fetches no update from a platform and gives no turn to an agent, so it can run beside a gateway. Only the servers
//! for speech are used, once each. It changes nothing, or with `--fix` what `doctor/fix.rs` lists. The checks of platforms and agents are in
//! `platforms/` and `agents/`. To add another check, write a function that returns findings in a file of `doctor/`, and call it in
//! `run_checks`.

mod data;
mod fix;
mod gateway;
mod settings;
mod voice;

use std::path::Path;

use anyhow::{Context, anyhow};
use clap::Args;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesOrdered};
use rejoinder_config::{Agent, Config};
use serde::Serialize;

use self::{data::Database, fix::Fixer};
use super::global::Global;
use crate::{
    agents, client,
    console::{
        failure::Failure,
        finding::{Finding, Verdict},
        output,
    },
    gateway::read_address,
    location::StoreLocation,
    platforms::{self, CheckContext},
    wiring,
};

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(super) struct Doctor {
    /// Close files to other users and remove a leftover address; change nothing at platforms, in the configuration or database
    #[arg(long)]
    fix: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn help() -> String {
    let names = platforms::names();
    format!(
        "\
Each line is a finding: ok, warning or wrong, what it is about, what was found and what to do. It checks the \
configuration, the data directory, the database, the gateway (running or not), the agents, the servers of [voice], and the \
accounts at {names}. It sends no message, and without --fix it changes nothing. Of the servers of [voice], one is given a \
second of silence, and the other speaks a word. A server has 10 seconds to answer, a homeserver 30.

With --fix, what it has fixed is marked as fixed and is no failure; what it did not fix says why. It changes only files \
of its own user, who must be the owner of the data directory.

Run it as the gateway's user, with the gateway's --config and --data, and with the variables that its configuration \
names.

Exit code: 0 if nothing is wrong (there may be warnings), 1 otherwise.

Examples:
  rejoinder doctor
  rejoinder doctor --fix
  rejoinder doctor --json | jq '.findings[] | select(.verdict != \"ok\")'"
    )
}

/// What `--json` prints.
#[derive(Serialize)]
struct Findings<'a> {
    /// Whether no finding is `wrong`.
    ok: bool,
    findings: &'a [Finding],
}

/// Prints each finding when it is added; for programs, all of them at the end.
struct Report {
    is_for_programs: bool,
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, findings: impl IntoIterator<Item = Finding>) -> Result<(), Failure> {
        for finding in findings {
            if !self.is_for_programs {
                output::print(finding.line())?;
            }
            self.findings.push(finding);
        }
        Ok(())
    }

    /// Prints the last line, or all findings for programs. An error when something is wrong.
    fn end(self) -> Result<(), Failure> {
        let count = |verdict| self.findings.iter().filter(|finding| finding.verdict == verdict).count();
        let (wrong, warnings) = (count(Verdict::Wrong), count(Verdict::Warning));
        if self.is_for_programs {
            output::print_json(&Findings { ok: wrong == 0, findings: &self.findings })?;
        }
        match (wrong, warnings) {
            (0, _) if self.is_for_programs => Ok(()),
            (0, 0) => output::print("Everything is fine."),
            (0, 1) => output::print("Nothing is wrong; there is one warning."),
            (0, _) => output::print(format!("Nothing is wrong; there are {warnings} warnings.")),
            (1, _) => Err(anyhow!("one thing is wrong").into()),
            _ => Err(anyhow!("{wrong} things are wrong").into()),
        }
    }
}

impl Doctor {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let data_dir = global.data_dir()?;
        let fixer = Fixer::new(self.fix, &data_dir);
        let mut report = Report { is_for_programs: self.json, findings: Vec::new() };
        match global.load() {
            Ok(loaded) => {
                report.add(settings::check(&loaded, &data_dir, fixer))?;
                run_checks(&loaded.config, &data_dir, fixer, &mut report).await?;
            }
            Err(Failure::Config(errors)) => {
                report.add(settings::problems(&errors))?;
                run_checks_without_config(global, &data_dir, fixer, &mut report).await?;
            }
            Err(failure) => return Err(failure),
        }
        report.end()
    }
}

/// Runs all checks at once, and reports their findings in a fixed order.
async fn run_checks(config: &Config, data_dir: &Path, fixer: Fixer, report: &mut Report) -> Result<(), Failure> {
    let http = client::http_client().context("cannot create the HTTP client")?;
    let database = Database::of(wiring::database(config, data_dir));
    let is_held = database.is_held();
    let has_workers = |(_, agent): &(&String, &Agent)| agents::factory_of(agent).has_workers();
    let fetched: Vec<_> = config.agents.iter().filter(has_workers).map(|(name, _)| name.as_str()).collect();
    let mut checks: FuturesOrdered<BoxFuture<'_, Vec<Finding>>> = FuturesOrdered::new();
    checks.push_back(async { data::check(data_dir, &database, fixer).await }.boxed());
    // Without the token only the details of its readiness are missing.
    let token = wiring::admin_token(config, data_dir).ok().flatten();
    // A running gateway writes its address down, as the environment may say otherwise.
    let written = read_address(data_dir).filter(|_| is_held);
    let written = written.and_then(|url| url.strip_prefix("http://")?.parse().ok());
    let address = written.unwrap_or_else(|| wiring::listen_for_operator(config));
    checks.push_back(gateway::check(address, token, is_held, &fetched).boxed());
    for (name, agent) in &config.agents {
        let is_default = *name == config.routing.default_agent;
        checks.push_back(agents::factory_of(agent).check(name, agent, is_default, &http));
    }
    checks.push_back(voice::check(&config.voice, &http).boxed());
    let context = CheckContext { config, data_dir, http: &http, is_running: is_held };
    for check in platforms::by_name().flat_map(|platform| platform.checks(context)) {
        checks.push_back(check);
    }
    while let Some(findings) = checks.next().await {
        report.add(findings)?;
    }
    Ok(())
}

async fn run_checks_without_config(
    global: &Global,
    data_dir: &Path,
    fixer: Fixer,
    report: &mut Report,
) -> Result<(), Failure> {
    let Ok(store) = rejoinder_config::load_store(&global.options()?) else { return Ok(()) };
    let database = Database::of(StoreLocation::of(&store, data_dir));
    report.add(data::check(data_dir, &database, fixer).await)
}
