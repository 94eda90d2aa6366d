//! `rejoinder forget`: erases what is stored about a person.

use std::io::{self, IsTerminal};

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use super::{Global, running::RunningGateway};
use crate::console::{
    ask::{Ask, Terminal},
    failure::Failure,
    output,
};

/// How often the gateway is asked again although nothing changes: ten seconds pass each time.
const TRIES: u32 = 6;

#[derive(Debug, Args)]
pub(super) struct Forget {
    /// The person: CHANNEL/ID, whoever has this id on this channel, as in telegram.main/7
    person: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

pub(super) const HELP: &str = "\
The gateway must run. What is still owed to the person is given up. Their turns go with all that belongs to them: messages, answers,
runs, deliveries, attempts. In chats with others, what models were shown and what messages quote goes as well; what others wrote,
and what was answered to them, stays. `rejoinder turns list --person NAME --json` shows the id of a person (sender_id).

Then the database is written anew, so that no deleted byte is left in its files: writes wait for that, about a second for each
100 MB, and it needs as much free space as the database has. Backups that were made before still have the person's words.

Examples:
  rejoinder forget telegram.main/7
  rejoinder forget matrix.main/@ada:example.org --yes --reason \"asked for by mail\"";

impl Forget {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let person = output::printable(&self.person);
        if !self.yes {
            confirm(&person)?;
        }
        let (mut turns, mut tries) = (0, 0);
        loop {
            let body = json!({ "person": self.person, "reason": self.reason });
            let answer = gateway.post("people/forget", &body).await?;
            let count = |name: &str| answer[name].as_u64().unwrap_or_default();
            turns += count("turns");
            if answer["done"] == true {
                return output::print(match turns {
                    0 => format!("Nothing is stored about {person}."),
                    1 => format!("{person} is forgotten: one turn was erased."),
                    _ => format!("{person} is forgotten: {turns} turns were erased."),
                });
            }
            tries = if count("turns") > 0 { 0 } else { tries + 1 };
            if tries >= TRIES {
                let unended = count("unended");
                return Err(anyhow!(
                    "{turns} turns of {person} were erased, and {unended} are still in work: run this again later"
                )
                .into());
            }
            eprintln!("{turns} turns erased so far");
        }
    }
}

fn confirm(person: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage("pass --yes to erase without being asked: it cannot be undone".to_owned()));
    }
    let question = format!("Erase everything that is stored about {person}? It cannot be undone. Type yes:");
    match Terminal.line_or_nothing(&question)?.as_str() {
        "yes" => Ok(()),
        _ => Err(anyhow!("nothing was erased").into()),
    }
}
