//! `rejoinder config`.

use std::fmt::Write as _;

use clap::Subcommand;
use rejoinder_config::ConfigErrors;
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::items,
    options::{Printing, Reason},
    running::RunningGateway,
};
use crate::{
    console::{failure::Failure, output},
    wiring,
};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the configuration and list its problems
    #[command(after_help = "Exit code: 0 if it is valid, 2 if not. Nothing is started or written.")]
    Check(Printing),
    /// Print the effective configuration, without secrets
    Show(Printing),
    /// Print the manual: every key, its default and what it does
    #[command(after_help = "Example:\n  rejoinder config default > rejoinder.toml")]
    Default,
    /// Have the running gateway read its configuration again
    #[command(
        after_help = "Prints what has changed, and what waits for a restart. A wrong configuration changes nothing."
    )]
    Reload {
        #[command(flatten)]
        why: Reason,
        #[command(flatten)]
        printing: Printing,
    },
}

impl ConfigCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::Check(printing) => check(global, printing.json),
            Self::Show(Printing { json: false }) => {
                output::print_as_is(global.load()?.config.to_toml_redacted().trim_end())
            }
            Self::Show(Printing { json: true }) => output::print_json(&global.load()?.config),
            Self::Default => output::print_as_is(crate::build().manual().trim_end()),
            Self::Reload { why, printing } => {
                printing.print(&RunningGateway::find(global)?.post("configuration/reload", why).await?, reloaded)
            }
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

fn reloaded(reloaded: &Value) -> String {
    let keys = |name: &str| items(&reloaded[name]).filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    let mut text = match &*keys("changed") {
        "" => "Nothing has changed that holds at once.".to_owned(),
        keys => format!("Changed: {keys}."),
    };
    for (name, words) in [
        ("at_restart", "Waits for a restart"),
        ("let_in", "Let in"),
        ("still_known", "No longer configured, and known until `rejoinder pairing revoke`"),
        ("replaced_schedules", "Schedules replaced by those of the configuration"),
    ] {
        let named = keys(name);
        if !named.is_empty() {
            let _ = write!(text, "\n{words}: {named}.");
        }
    }
    text
}

fn problems(errors: &ConfigErrors) -> Vec<Value> {
    let problem = |problem: &rejoinder_config::Problem| json!({ "key": problem.key().map(ToString::to_string), "message": problem.to_string() });
    errors.problems().iter().map(problem).collect()
}
