//! `rejoinder route`: how the running gateway would route a message, and why.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{global::Global, listing::items, options::Printing, running::RunningGateway};
use crate::{
    console::{failure::Failure, output},
    time::span,
};

#[derive(Debug, Subcommand)]
pub(super) enum RouteCommand {
    /// Say which rule a message meets and why, which agent would answer it, and how
    #[command(after_help = HELP)]
    Explain(Explain),
}

const HELP: &str = "\
Nothing is sent or stored. In a group the message counts as one that mentions the agent.

Examples:
  rejoinder route explain --channel telegram.main --person 42
  rejoinder route explain --channel telegram.main --chat -1001234 --group --person 42 --text '/code fix it'
  rejoinder route explain --channel webhook.siri --person ada --at 2026-05-01T23:30:00+02:00";

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The channel, as in telegram.main
    #[arg(long)]
    channel: String,
    /// The platform's id of the chat; if not given: that of the person
    #[arg(long, allow_hyphen_values = true, required_unless_present = "person")]
    chat: Option<String>,
    /// The platform's id of the thread or topic
    #[arg(long)]
    thread: Option<String>,
    /// The person: the platform's id, or the name of somebody who is known; if not given: the id of the chat
    #[arg(long)]
    person: Option<String>,
    /// The chat is a group
    #[arg(long, requires = "chat")]
    group: bool,
    /// What the person writes
    #[arg(long)]
    text: Option<String>,
    /// When it comes, as in 2026-05-01T23:30:00Z; if not given: now
    #[arg(long)]
    at: Option<String>,
    #[command(flatten)]
    printing: Printing,
}

impl RouteCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let Self::Explain(Explain { channel, chat, thread, person, group, text, at, printing }) = self;
        let body = json!({
            "channel": channel, "chat": chat, "thread": thread, "person": person, "group": group, "text": text, "at": at,
        });
        printing.print(&RunningGateway::find(global)?.post("route/explain", &body).await?, explanation)
    }
}

fn explanation(route: &Value) -> String {
    let text = |key: &str| route[key].as_str();
    let mut lines = String::new();
    let rules: Vec<_> = items(&route["rules"]).map(rule).collect();
    if rules.is_empty() {
        lines.push_str("There are no rules.");
    } else {
        lines.push_str(&output::table(["RULE", "", "WHY"], &rules));
    }
    let from = match (text("person"), text("role")) {
        (Some(name), Some(role)) => format!("{name} ({role})"),
        _ => "somebody who is not known".to_owned(),
    };
    let access = match text("access") {
        Some("granted") => "they may write",
        Some("denied_with_notice") => "they may not write, and are told so",
        Some("denied_with_code") => "they may not write, and are given a code to be let in with",
        _ => "they may not write here, and are told nothing",
    };
    let goes_to = match (text("agent"), text("command")) {
        (Some(agent), _) => {
            let by_hand = if text("chosen_agent").is_some() { ", which was chosen for the session" } else { "" };
            let model = text("chosen_model").map(|model| format!(", with the model {model}")).unwrap_or_default();
            format!("the agent {agent}{by_hand}{model}")
        }
        (None, Some(command)) => format!("the gateway's own /{command}"),
        (None, None) => "nobody".to_owned(),
    };
    let soft = match route["soft_deadline_ms"].as_u64() {
        Some(soft) => format!("a deferral after {}", span(soft)),
        None => "no deferral".to_owned(),
    };
    let hard = span(route["hard_deadline_ms"].as_u64().unwrap_or_default());
    let fields = [
        ("At", text("at").unwrap_or_default().to_owned()),
        ("From", from),
        ("Access", access.to_owned()),
        ("Goes to", goes_to),
        ("Owed", if route["owed"] == true { "an answer" } else { "nothing" }.to_owned()),
        ("Language", text("language").unwrap_or("not known").to_owned()),
        ("Queue", text("queue").unwrap_or_default().to_owned()),
        ("Deadlines", format!("{soft}, the ladder after {hard}")),
    ];
    lines.push_str("\n\n");
    for (name, value) in fields {
        let _ = writeln!(lines, "{name:<11} {value}");
    }
    let mut name = "Ladder";
    for (cause, rungs) in route["ladder"].as_object().into_iter().flatten() {
        let rungs: Vec<_> = items(rungs).filter_map(Value::as_str).collect();
        let _ = writeln!(lines, "{name:<11} {cause}: {}", rungs.join(", "));
        name = "";
    }
    lines.trim_end().to_owned()
}

fn rule(rule: &Value) -> [String; 3] {
    let text = |key: &str| rule[key].as_str().unwrap_or_default();
    let (verdict, why) = match text("verdict") {
        "holds" => ("holds", "all its conditions are met".to_owned()),
        "fails" => ("no", format!("{}, but it {}", text("condition"), text("found"))),
        _ => ("-", "an earlier rule holds".to_owned()),
    };
    [text("name").to_owned(), verdict.to_owned(), why]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_explained_in_lines() {
        let route = json!({
            "at": "2026-05-01T12:00:00.000Z", "person": "Ada", "role": "owner", "access": "granted", "agent": "cheap",
            "command": null, "owed": true, "language": "de", "queue": "followup", "soft_deadline_ms": null,
            "hard_deadline_ms": 60000, "ladder": { "error": ["say:failed"], "silent": ["handoff:big", "say:silent"] },
            "rules": [
                { "name": "group", "verdict": "fails", "condition": "chat = \"group\"", "found": "is in a direct chat" },
                { "name": "ada", "verdict": "holds" },
                { "name": "rest", "verdict": "not_reached" },
            ],
        });

        let expected = "RULE          WHY\n\
             group  no     chat = \"group\", but it is in a direct chat\n\
             ada    holds  all its conditions are met\n\
             rest   -      an earlier rule holds\n\n\
             At          2026-05-01T12:00:00.000Z\n\
             From        Ada (owner)\n\
             Access      they may write\n\
             Goes to     the agent cheap\n\
             Owed        an answer\n\
             Language    de\n\
             Queue       followup\n\
             Deadlines   no deferral, the ladder after 60.0 s\n\
             Ladder      error: say:failed\n            silent: handoff:big, say:silent";
        assert_eq!(explanation(&route), expected);
    }
}
