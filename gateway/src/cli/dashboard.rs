//! `rejoinder dashboard`: a link that opens the operator's page.

use clap::Args;
use serde_json::json;

use super::{Global, running::RunningGateway};
use crate::console::{failure::Failure, output};

#[derive(Debug, Args)]
pub(super) struct Dashboard {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Dashboard {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let made = gateway.post("links", &json!({})).await?;
        let url = format!("{}{}", gateway.url(), made["path"].as_str().unwrap_or_default());
        if self.json {
            return output::print_json(&json!({ "url": url, "expires_at": made["expires_at"] }));
        }
        output::remark("Open this link in a browser on this machine. It works once, for ten minutes:");
        output::print(url)
    }
}
