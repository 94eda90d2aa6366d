//! `rejoinder agents`: which agents there are, what each of them is told, and a question to one of them.

mod built;
mod sessions;
mod test;
mod turn;

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use rejoinder_agents::PieceName;
use rejoinder_config::Agent;
use rejoinder_core::{Clock as _, SystemClock};
use serde_json::{Value, json};

use self::built::{build, find};
use super::{
    global::Global,
    listing::{table, text},
    options::Printing,
    running::RunningGateway,
};
use crate::{
    agents,
    client::http_client,
    console::{failure::Failure, output},
    mcp_servers::{FoundServer, FoundTool, Tried},
};

#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// List the agents: those of the running gateway with their state, or those of the configuration
    List(Printing),
    /// Show the configuration of an agent without secrets, and what the gateway adds to its prompt in a direct chat
    #[command(after_help = "Example:\n  rejoinder agents show main")]
    Show(Show),
    /// List the sessions that an agent of the running gateway remembers by itself, newest first
    #[command(after_help = "Example:\n  rejoinder agents sessions main --limit 200")]
    Sessions(sessions::Sessions),
    /// Ask an agent one question outside of all chats, and print what comes
    #[command(after_help = test::HELP)]
    Test(test::Test),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The agent, as in [agents.main]
    name: String,
    #[command(flatten)]
    printing: Printing,
}

impl AgentsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::List(printing) => printing.print(&list(global).await?, lines),
            Self::Show(Show { name, printing }) => show(global, name, printing).await,
            Self::Sessions(sessions) => sessions.perform(global).await,
            Self::Test(test) => test.perform(global).await,
        }
    }
}

/// The agents of the gateway, if it runs and can be asked; otherwise those of the configuration.
async fn list(global: &Global) -> Result<Value, Failure> {
    let config = global.load()?.config;
    if let Ok(gateway) = RunningGateway::find(global) {
        return gateway.get("agents").await;
    }
    let data_dir = global.data_dir()?;
    let mut items = Vec::new();
    for (name, agent) in &config.agents {
        let description = build(&config, &data_dir, name, agent)?.runtime.describe();
        let is_default = *name == config.routing.default_agent;
        items.push(json!({ "name": name, "kind": agent.kind, "description": description, "is_default": is_default }));
    }
    Ok(json!({ "items": items }))
}

fn lines(list: &Value) -> String {
    let row = |agent: &Value| {
        let state = match agent["up"].as_bool() {
            Some(true) => {
                let [running, waiting] = ["running", "waiting"].map(|key| agent[key].as_u64().unwrap_or_default());
                let running = if running > 0 { format!(", {running} running") } else { String::new() };
                let waiting = if waiting > 0 { format!(", {waiting} waiting") } else { String::new() };
                format!("up{running}{waiting}")
            }
            Some(false) => format!("down: {}", output::excerpt(&text(&agent["error"]), 100)),
            None => "not running".to_owned(),
        };
        let default = if agent["is_default"] == true { "yes" } else { "" }.to_owned();
        [text(&agent["name"]), text(&agent["kind"]), default, text(&agent["description"]), state]
    };
    table(list, ("No agent is configured.", ""), ["AGENT", "KIND", "DEFAULT", "WHAT IT IS", "STATE"], row)
}

async fn show(global: &Global, name: &str, printing: &Printing) -> Result<(), Failure> {
    let config = global.load()?.config;
    let agent = find(&config, name)?;
    let built = build(&config, &global.data_dir()?, name, agent)?;
    let added = agents::factory_of(agent).added_to_prompt(agent, &turn::in_chat(SystemClock.now()));
    let servers = servers(agent).await?;
    let shown = json!({
        "name": name,
        "description": built.runtime.describe(),
        "is_default": name == config.routing.default_agent,
        "configuration": agent,
        "added_to_prompt": added,
        "mcp_servers": servers.iter().map(|(server, found)| match found {
            Ok(found) => json!({ "server": server, "is_up": true, "found": found }),
            Err(why) => json!({ "server": server, "is_up": false, "error": why }),
        }).collect::<Vec<_>>(),
    });
    printing.print(&shown, |_| {
        let mut text = config.agent_to_toml_redacted(name);
        let Some(added) = &added else { return text.trim_end().to_owned() };
        for (server, found) in &servers {
            text.push_str(&of_server(server, found));
        }
        let place = if agent.keeps_sessions() {
            "tells the agent at the beginning of a session"
        } else {
            "adds to the system prompt"
        };
        let _ = writeln!(text, "\n# What the gateway {place} in a direct chat:");
        for piece in &added.pieces {
            let _ = write!(text, "\n{}{}: {}\n", piece.name.as_str(), condition(piece.name), piece.text);
        }
        if !added.left_out.is_empty() {
            let names: Vec<_> = added.left_out.iter().map(|piece| piece.as_str()).collect();
            let _ = writeln!(text, "\n# Left out by leave_out: {}", names.join(", "));
        }
        if !added.tools.is_empty() {
            text.push_str("\n# The tools that the model is offered, if the chat has them:\n\n");
            for tool in &added.tools {
                let _ = writeln!(text, "{}: {}", tool.name, output::one_line(&tool.description));
            }
        }
        text.trim_end().to_owned()
    })
}

/// When the model gets a piece that it does not always get.
const fn condition(piece: PieceName) -> &'static str {
    match piece {
        PieceName::Place | PieceName::Legend | PieceName::Date => "",
        PieceName::Program => " (only if a program speaks for the person)",
        PieceName::Handoff => " (only in a turn that was handed over)",
        PieceName::Language => " (only if it is known, with its name)",
        PieceName::Budget => " (only if the agent has a budget of the day, with its amounts)",
    }
}

/// What the MCP servers of an agent offer, by name.
async fn servers(agent: &Agent) -> Result<Vec<Tried>, Failure> {
    let http = http_client().map_err(anyhow::Error::new)?;
    Ok(agents::factory_of(agent).mcp_servers(agent, &http).await)
}

fn of_server(server: &str, found: &Result<FoundServer, String>) -> String {
    match found {
        Ok(FoundServer { tools, left_out, .. }) => {
            let mut text = format!("\n# The tools of the MCP server {server}:\n\n");
            for FoundTool { name, description, asks } in tools {
                let asks = if *asks { " (asks for approval)" } else { "" };
                let _ = writeln!(text, "{name}{asks}: {}", output::excerpt(&output::one_line(description), 200));
            }
            for why in left_out {
                let _ = writeln!(text, "# Not offered: {why}");
            }
            text
        }
        Err(why) => format!("\n# The MCP server {server} is down: {}\n", output::one_line(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_listed_with_their_state() {
        let list = json!({ "items": [
            { "name": "main", "kind": "openai", "is_default": true, "description": "openai m at http://x", "up": true,
              "running": 2, "waiting": 0 },
            { "name": "far", "kind": "openai", "is_default": false, "description": "openai n at http://y", "up": false,
              "error": "the agent failed: 503" },
            { "name": "new", "kind": "front-desk", "is_default": false, "description": "front-desk" },
        ] });

        let expected = "AGENT  KIND        DEFAULT  WHAT IT IS            STATE\n\
             main   openai      yes      openai m at http://x  up, 2 running\n\
             far    openai               openai n at http://y  down: the agent failed: 503\n\
             new    front-desk           front-desk            not running";
        assert_eq!(lines(&list), expected);
    }
}
