//! `rejoinder approvals`: what agents of the running gateway ask approval for, and the operator's yes or no.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::{table, text},
    options::Printing,
    running::{RunningGateway, path_part},
};
use crate::console::{failure::Failure, output};

#[derive(Debug, Subcommand)]
pub(super) enum ApprovalsCommand {
    /// List what agents ask approval for
    List(List),
    /// Show one, with the whole of what the agent asks
    #[command(after_help = "Example:\n  rejoinder approvals show 0190a1b2-…")]
    Show(Show),
    /// Approve it: the agent runs again, and is told so
    #[command(after_help = APPROVE_HELP)]
    Approve(Decide),
    /// Decline it: the agent runs again, and is told so
    Decline(Decide),
}

const APPROVE_HELP: &str = "\
Example:
  rejoinder approvals approve 0190a1b2-… --note \"but not before Monday\"
  rejoinder approvals approve 0190a1b2-… --option 1";

#[derive(Debug, Args)]
pub(super) struct List {
    /// Also those that do not wait any more, newest first
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The approval's id
    id: String,
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
    /// The number of the agent's own option to choose, as `show` lists them
    #[arg(long, value_name = "NUMBER")]
    option: Option<u16>,
}

impl ApprovalsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let (Decide { id, note, option }, what, done) = match self {
            Self::List(List { all, printing }) => {
                let path = if *all { "approvals?state=all" } else { "approvals" };
                return printing.print_from(&gateway, path, lines).await;
            }
            Self::Show(Show { id, printing }) => {
                let path = format!("approvals/{}", path_part(id));
                return printing.print_from(&gateway, &path, shown).await;
            }
            Self::Approve(it) => (it, "approve", "Approved: the agent runs again."),
            Self::Decline(it) => (it, "decline", "Declined: the agent runs again, and is told so."),
        };
        gateway.act("approvals", id, what, &json!({ "note": note, "option": option })).await?;
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

fn shown(approval: &Value) -> String {
    let whole = if approval["whole"].is_object() { &approval["whole"] } else { approval };
    let state = match (text(&approval["state"]), text(&approval["decided_by"])) {
        (state, by) if by.is_empty() => state,
        (state, by) => format!("{state} by {by}"),
    };
    let facts = [
        ("Agent", text(&approval["agent"])),
        ("For", format!("{} ({})", text(&approval["person"]), text(&approval["channel"]))),
        ("Turn", text(&approval["turn_id"])),
        ("Kind", text(&whole["kind"])),
        ("State", state),
        ("Chosen", text(&approval["chosen"])),
        ("Until", text(&approval["expires_at"])),
        ("Note", text(&approval["note"])),
    ];
    let facts = facts.iter().filter(|(_, value)| !value.is_empty());
    let facts: Vec<_> = facts.map(|(name, value)| format!("{name}: {}", output::excerpt(value, 200))).collect();
    // Set in, so that no line of it looks like one of the gateway's.
    let said = |part: &str, title: &str| {
        let lines: Vec<_> = text(&whole[part]).lines().map(|line| format!("  {line}")).collect();
        (!lines.is_empty()).then(|| format!("{title}:\n{}", lines.join("\n")))
    };
    let is_cut = approval["is_shortened"] == true && !approval["whole"].is_object();
    let cut = is_cut.then(|| {
        "The agent asked with more than that: it is too long to be kept or sealed, or was asked before an update."
            .to_owned()
    });
    let parts = [Some(facts.join("\n")), said("action", "Action"), said("details", "Details"), options(approval), cut];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// What may be chosen beside a plain yes and a plain no, with its numbers.
fn options(approval: &Value) -> Option<String> {
    let options = approval["options"].as_array().filter(|options| !options.is_empty())?;
    let line = |(number, option): (usize, &Value)| {
        let answer = if option["allows"] == true { "approve" } else { "decline" };
        format!("  {number}. {answer}: {}", output::excerpt(&text(&option["name"]), 100))
    };
    let lines: Vec<_> = (1..).zip(options).map(line).collect();
    Some(format!("Options (approve or decline with --option NUMBER):\n{}", lines.join("\n")))
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

    #[test]
    fn options_are_shown_with_their_numbers() {
        let approval = json!({
            "agent": "main", "person": "Ada", "channel": "telegram.main", "turn_id": "8", "state": "approved",
            "decided_by": "Bob", "chosen": "Always", "action": "rm a",
            "options": [{ "name": "Always", "allows": true }, { "name": "Never", "allows": false }],
        });

        assert_eq!(
            shown(&approval),
            "Agent: main\nFor: Ada (telegram.main)\nTurn: 8\nState: approved by Bob\nChosen: Always\n\nAction:\n  rm a\n\n\
            Options (approve or decline with --option NUMBER):\n  1. approve: Always\n  2. decline: Never"
        );
    }

    #[test]
    fn one_is_shown_whole_or_it_is_said_that_it_is_not() {
        let mut approval = json!({
            "id": "7", "state": "approved", "agent": "main", "person": "Ada", "channel": "telegram.main", "turn_id": "8",
            "action": "Send (abc)", "details": "cut", "kind": null, "expires_at": null, "note": null, "decided_by": "Bob",
            "is_shortened": true, "whole": { "action": "Send", "details": "all\nState: declined", "kind": "mail.send" },
        });
        let facts = "Agent: main\nFor: Ada (telegram.main)\nTurn: 8\n";
        assert_eq!(
            shown(&approval),
            format!(
                "{facts}Kind: mail.send\nState: approved by Bob\n\nAction:\n  Send\n\nDetails:\n  all\n  State: declined"
            )
        );

        approval["whole"] = Value::Null;
        assert_eq!(
            shown(&approval),
            format!(
                "{facts}State: approved by Bob\n\nAction:\n  Send (abc)\n\nDetails:\n  cut\n\n\
                The agent asked with more than that: it is too long to be kept or sealed, or was asked before an update."
            )
        );
    }
}
