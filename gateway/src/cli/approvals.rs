//! `rejoinder approvals`: what agents of the running gateway ask approval for, and the operator's yes or no.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::{table, text},
    options::Printing,
    running::RunningGateway,
};
use crate::console::{failure::Failure, output};

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List what agents ask approval for
    List(List),
    /// Approve it: the agent runs again, and is told so
    #[command(after_help = APPROVE_HELP)]
    Approve(Decide),
    /// Decline it: the agent runs again, and is told so
    Decline(Decide),
}

const APPROVE_HELP: &str = "\
Example:
  rejoinder approvals approve 0190a1b2-… --note \"but not before Monday\"";

#[derive(Debug, Args)]
pub(super) struct List {
    /// Also those that do not wait any more, newest first
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct Decide {
    /// The approval's id
    id: String,
    /// What the agent is told about it; it is in the audit as well
    #[arg(long)]
    note: Option<String>,
}

impl ApprovalsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let (Decide { id, note }, what, done) = match self {
            Self::List(List { all, printing }) => {
                let path = if *all { "approvals?state=all" } else { "approvals" };
                return printing.print_from(&gateway, path, lines).await;
            }
            Self::Approve(it) => (it, "approve", "Approved: the agent runs again."),
            Self::Decline(it) => (it, "decline", "Declined: the agent runs again, and is told so."),
        };
        gateway.act("approvals", id, what, &json!({ "note": note })).await?;
        output::print(done)
    }
}

fn lines(approvals: &Value) -> String {
    let row = |approval: &Value| {
        let [id, state, agent, channel] = ["id", "state", "agent", "channel"].map(|part| text(&approval[part]));
        let person = format!("{} ({channel})", text(&approval["person"]));
        let (action, until) = (output::excerpt(&text(&approval["action"]), 60), text(&approval["expires_at"]));
        [id, state, agent, output::excerpt(&person, 40), action, until]
    };
    let hint = "\n\nTo decide: rejoinder approvals approve ID, or decline ID";
    let heads = ["ID", "STATE", "AGENT", "FOR", "ACTION", "UNTIL"];
    table(approvals, ("No agent asks for approval.", hint), heads, row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_shown_with_how_to_decide_it() {
        let approval = json!({
            "id": "7", "state": "waiting", "agent": "main", "person": "Ada", "channel": "telegram.main",
            "action": "Send\nthe mail", "expires_at": "12:00",
        });

        assert_eq!(
            lines(&json!({ "items": [approval] })),
            "ID  STATE    AGENT  FOR                  ACTION         UNTIL\n\
             7   waiting  main   Ada (telegram.main)  Send the mail  12:00\n\n\
             To decide: rejoinder approvals approve ID, or decline ID"
        );
        assert_eq!(lines(&json!({ "items": [] })), "No agent asks for approval.");
    }
}
