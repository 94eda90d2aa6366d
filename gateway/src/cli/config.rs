//! `rejoinder config`.

use std::fmt::Write as _;

use clap::Subcommand;
use rejoinder_config::ConfigErrors;
use serde_json::json;

use super::Global;
use crate::{
    console::{failure::Failure, output},
    wiring,
};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the configuration and list its problems
    #[command(after_help = "Exit code: 0 if it is valid, 2 if not. Nothing is started or written.")]
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the effective configuration, without secrets
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the manual: every key, its default and what it does
    #[command(after_help = "Example:\n  rejoinder config default > rejoinder.toml")]
    Default,
}

impl ConfigCommand {
    pub(super) fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::Check { json } => check(global, *json),
            Self::Show { json: false } => output::print(global.load()?.config.to_toml_redacted().trim_end()),
            Self::Show { json: true } => output::print_json(&global.load()?.config),
            Self::Default => output::print(crate::build().manual().trim_end()),
        }
    }
}

fn check(global: &Global, as_json: bool) -> Result<(), Failure> {
    let loaded = match global.load() {
        Ok(loaded) => loaded,
        Err(Failure::Config(errors)) if as_json => {
            output::print_json(&json!({ "ok": false, "problems": problems(&errors) }))?;
            return Err(errors.into());
        }
        Err(failure) => return Err(failure),
    };
    let remarks = wiring::remarks(&loaded.config);
    if as_json {
        let source = loaded.source.to_string();
        return output::print_json(
            &json!({ "ok": true, "source": source, "overrides": loaded.overrides, "problems": [], "remarks": remarks }),
        );
    }
    let mut text = format!("The configuration is valid: {}", loaded.source);
    if !loaded.overrides.is_empty() {
        let _ = write!(text, ", with {}", loaded.overrides.join(", "));
    }
    for remark in remarks {
        let _ = write!(text, "\nnote: {remark}");
    }
    output::print(text)
}

fn problems(errors: &ConfigErrors) -> Vec<serde_json::Value> {
    let problem = |problem: &rejoinder_config::Problem| json!({ "key": problem.key().map(ToString::to_string), "message": problem.to_string() });
    errors.problems().iter().map(problem).collect()
}
