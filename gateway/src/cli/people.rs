//! `rejoinder people`: who is known to the running gateway.

use clap::Subcommand;
use serde_json::Value;

use super::{
    global::Global,
    listing::{items, table, text},
    options::Printing,
    running::RunningGateway,
};
use crate::console::{failure::Failure, output};

#[derive(Debug, Subcommand)]
pub(super) enum PeopleCommand {
    /// List the people who are known, and who they are on which channel
    List(Printing),
}

impl PeopleCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let Self::List(printing) = self;
        printing.print_from(&RunningGateway::find(global)?, "people", lines).await
    }
}

fn lines(people: &Value) -> String {
    let row = |person: &Value| [name(person), text(&person["role"]), known_as(person), text(&person["created_at"])];
    table(people, ("Nobody is known.", ""), ["NAME", "ROLE", "KNOWN AS", "SINCE"], row)
}

/// A person's name, on one line.
pub(super) fn name(person: &Value) -> String {
    output::excerpt(&text(&person["name"]), 100)
}

/// Who a person is on channels: `telegram.main/42 (home), discord.main/7`.
pub(super) fn known_as(person: &Value) -> String {
    let known = |item: &Value| {
        let mark = if item["is_home"] == true { " (home)" } else { "" };
        format!("{}{mark}", identity(item))
    };
    items(&person["identities"]).map(known).collect::<Vec<_>>().join(", ")
}

/// `CHANNEL/ID`, of anything with both.
pub(super) fn identity(item: &Value) -> String {
    format!("{}/{}", text(&item["channel"]), text(&item["id"]))
}

/// What the configuration does about somebody who was revoked or forgotten, by the gateway's answer.
pub(super) fn known_again(answer: &Value) -> Option<String> {
    let name = answer["configured_as"].as_str()?;
    Some(format!(
        "The configuration names them in [people.{name}]: remove them there too, or they are known again after the next \
         start, and when that entry changes."
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_person_has_one_line() {
        let identity = |channel: &str, id: &str| json!({ "channel": channel, "id": id, "is_home": id == "7", "added_by": "admin" });
        let identities = [identity("telegram.main", "42"), identity("discord.main", "7")];
        let ada = json!({ "name": "Ada\nL.", "role": "owner", "created_at": "2026-01-01", "identities": identities });

        assert_eq!(
            lines(&json!({ "items": [ada] })),
            "NAME    ROLE   KNOWN AS                                 SINCE\n\
             Ada L.  owner  telegram.main/42, discord.main/7 (home)  2026-01-01"
        );
        assert_eq!(lines(&json!({ "items": [] })), "Nobody is known.");
    }
}
