//! `rejoinder alerts`.

use anyhow::anyhow;
use clap::Subcommand;
use serde_json::json;

use super::{global::Global, running::RunningGateway};
use crate::console::{failure::Failure, output};

#[derive(Debug, Subcommand)]
pub(super) enum AlertsCommand {
    /// Send a test to everybody in [alerts], through the running gateway; the exit code is 1 if somebody cannot be reached
    Test {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl AlertsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let Self::Test { json } = self;
        let tested = RunningGateway::find(global)?.post("alerts/test", &json!({})).await?;
        let items = tested["items"].as_array().map_or(&[][..], Vec::as_slice);
        if *json {
            output::print_json(&tested)?;
        } else {
            let line = |item: &serde_json::Value| {
                let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
                if item["ok"] == true {
                    format!("{}: sent", text("target"))
                } else {
                    format!("{}: {}", text("target"), text("error"))
                }
            };
            output::print(items.iter().map(line).collect::<Vec<_>>().join("\n"))?;
        }
        let failed = items.iter().filter(|item| item["ok"] != true).count();
        if failed > 0 { Err(anyhow!("{failed} of {} could not be reached", items.len()).into()) } else { Ok(()) }
    }
}
