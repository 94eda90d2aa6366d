//! `rejoinder alerts`.

use anyhow::anyhow;
use clap::Subcommand;
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::{items, text},
    options::Printing,
    running::RunningGateway,
};
use crate::console::failure::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum AlertsCommand {
    /// Send a test to everybody in [alerts], through the running gateway; the exit code is 1 if somebody cannot be reached
    Test(Printing),
}

impl AlertsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let Self::Test(printing) = self;
        let tested = RunningGateway::find(global)?.post("alerts/test", &json!({})).await?;
        printing.print(&tested, lines)?;
        let items: Vec<_> = items(&tested["items"]).collect();
        let failed = items.iter().filter(|item| item["ok"] != true).count();
        if failed > 0 { Err(anyhow!("{failed} of {} could not be reached", items.len()).into()) } else { Ok(()) }
    }
}

fn lines(tested: &Value) -> String {
    let line = |item: &Value| {
        let became = if item["ok"] == true { "sent".to_owned() } else { text(&item["error"]) };
        format!("{}: {became}", text(&item["target"]))
    };
    items(&tested["items"]).map(line).collect::<Vec<_>>().join("\n")
}
