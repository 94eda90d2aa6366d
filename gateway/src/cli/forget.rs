//! `rejoinder forget`: erases what is stored about a person.

use std::{
    fs::DirEntry,
    io::{self, IsTerminal},
    path::Path,
};

use anyhow::anyhow;
use clap::Args;
use rejoinder_core::Identity;
use serde_json::json;

use super::{
    global::Global,
    listing::items,
    options::Reason,
    people,
    running::{RunningGateway, path_part},
};
use crate::{
    console::{
        ask::{Ask, Terminal},
        failure::Failure,
        output,
    },
    wiring,
};

/// How often the gateway is asked again although nothing changes: ten seconds pass each time.
const TRIES: u32 = 6;

#[derive(Debug, Args)]
pub(super) struct Forget {
    /// The person as CHANNEL/ID, the id on this channel, as in telegram.main/7; or the name of somebody who is known
    person: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    why: Reason,
}

pub(super) const HELP: &str = "\
The gateway must run. What is still owed to the person is given up. Their turns go with all that belongs to them: messages, answers,
runs, deliveries, attempts. In chats with others, what models were shown and what messages quote goes as well; what others wrote,
and what was answered to them, stays. `rejoinder turns list --person NAME --json` shows the id of a person (sender_id).

Then an SQLite database is written anew, so that no deleted byte is left in its files: writes wait for that, about a second for each
100 MB, and it needs as much free space as the database has. PostgreSQL keeps deleted bytes until it uses their room again. Backups
that were made before still have the person's words, and so do copies of an SQLite database from before an update, which are named.

Examples:
  rejoinder forget telegram.main/7
  rejoinder forget matrix.main/@ada:example.org --yes --reason \"asked for by mail\"";

impl Forget {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let identities = self.identities(&gateway).await?;
        let person = identities.join(" and ");
        if !self.yes {
            confirm(&person)?;
        }
        let (mut turns, mut again) = (0, None);
        for identity in &identities {
            let (erased, known_again) = self.erase(&gateway, identity).await?;
            turns += erased;
            again = again.or(known_again);
        }
        output::print(match turns {
            0 => format!("Nothing is stored about {person}."),
            1 => format!("{person} is forgotten: one turn was erased."),
            _ => format!("{person} is forgotten: {turns} turns were erased."),
        })?;
        if let Some(again) = again {
            output::print(again)?;
        }
        match wiring::database(&global.load()?.config, &global.data_dir()?).file() {
            Some(database) => name_copies(database),
            None => Ok(()),
        }
    }

    /// Everything by which channels know the person.
    async fn identities(&self, gateway: &RunningGateway) -> Result<Vec<String>, Failure> {
        let found = gateway.get(&format!("people?person={}", path_part(&self.person))).await?;
        let found: Vec<_> = items(&found["items"]).collect();
        Ok(match &found[..] {
            [person] if Identity::parse(&self.person).is_none() => {
                items(&person["identities"]).map(people::identity).collect()
            }
            _ => vec![self.person.clone()],
        })
    }

    /// Erases what is stored about one identity; returns how many turns were, and whether the configuration names it.
    async fn erase(&self, gateway: &RunningGateway, identity: &str) -> Result<(u64, Option<String>), Failure> {
        let (mut turns, mut tries) = (0, 0);
        loop {
            let body = json!({ "person": identity, "reason": self.why.reason });
            let answer = gateway.post("people/forget", &body).await?;
            let count = |name: &str| answer[name].as_u64().unwrap_or_default();
            turns += count("turns");
            if answer["done"] == true {
                return Ok((turns, people::known_again(&answer)));
            }
            tries = if count("turns") > 0 { 0 } else { tries + 1 };
            if tries >= TRIES {
                let unended = count("unended");
                return Err(anyhow!(
                    "{turns} turns of {identity} were erased, and {unended} are still in work: run this again later"
                )
                .into());
            }
            output::remark(format_args!("{turns} turns erased so far"));
        }
    }
}

/// Names the copies of the database from before updates: what they hold is not erased.
fn name_copies(database: &Path) -> Result<(), Failure> {
    let name = database.file_name().unwrap_or_default().to_string_lossy();
    let beside = database.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let is_copy = |file: &DirEntry| file.file_name().to_string_lossy().starts_with(&format!("{name}.schema-"));
    for copy in beside.filter(is_copy) {
        let copy = copy.path();
        output::print(format!(
            "{} was made before an update and is left as it was: remove it when you will not go back.",
            copy.display()
        ))?;
    }
    Ok(())
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
