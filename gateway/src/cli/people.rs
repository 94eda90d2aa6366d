//! `rejoinder people`: who is known to the running gateway.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::{items, table, text},
    options::{Printing, Reason},
    running::RunningGateway,
};
use crate::console::{failure::Failure, output};

#[derive(Debug, Subcommand)]
pub(super) enum PeopleCommand {
    /// List the people who are known, and who they are on which channel
    List(Printing),
    /// Make a link with which a known person makes a passkey for a chat page
    #[command(after_help = INVITE_HELP)]
    Invite(Invite),
    /// End the sessions of a person on chat pages
    #[command(after_help = SIGN_OUT_HELP)]
    SignOut(SignOut),
}

const INVITE_HELP: &str = "\
The chat page has access = \"people\". The link opens once, within a day; another one takes its place. Give it to the person alone: who
opens it is that person from then on. After all devices are lost, another link lets them in again.

Examples:
  rejoinder people invite Ada
  rejoinder people invite telegram.main/42 --channel webchat.home";

const SIGN_OUT_HELP: &str = "\
Open pages notice it within half a minute. With --passkeys, the person needs another invitation to sign in again.

Example:
  rejoinder people sign-out Ada --passkeys";

#[derive(Debug, Args)]
pub(super) struct Invite {
    /// The name of somebody who is known, or CHANNEL/ID
    person: String,
    /// The chat page, as in webchat.main, if people sign in to several
    #[arg(long)]
    channel: Option<String>,
    #[command(flatten)]
    why: Reason,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct SignOut {
    /// The name of somebody who is known, or CHANNEL/ID of a chat page
    person: String,
    /// Remove their passkeys as well
    #[arg(long)]
    passkeys: bool,
    #[command(flatten)]
    why: Reason,
}

impl PeopleCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        match self {
            Self::List(printing) => printing.print_from(&gateway, "people", lines).await,
            Self::Invite(Invite { person, channel, why, printing }) => {
                let body = json!({ "person": person, "channel": channel, "reason": why.reason });
                let made = gateway.post("people/invite", &body).await?;
                let config = global.load()?.config;
                let url = config.server.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
                // Passkeys belong to a name, and this machine's is one that browsers take.
                let url = url.unwrap_or_else(|| format!("http://localhost:{}", config.server.listen.port()));
                printing.print(&made, |made| invited(&url, made))
            }
            Self::SignOut(SignOut { person, passkeys, why }) => {
                let body = json!({ "person": person, "passkeys": passkeys, "reason": why.reason });
                gateway.post("people/sign-out", &body).await?;
                output::print(format!("{person} is signed out."))
            }
        }
    }
}

fn invited(url: &str, made: &Value) -> String {
    let [path, identity, expires] = ["path", "identity", "expires_at"].map(|part| text(&made[part]));
    format!("{url}{path}\n\nThis link is for {identity}. It opens once, until {expires}.")
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

    #[test]
    fn a_link_is_printed_whole() {
        let made = json!({ "path": "/chat#invitation=x", "identity": "webchat.main/ada", "expires_at": "2026-01-01" });

        let printed = invited("https://chat.example.org", &made);

        assert_eq!(printed.lines().next(), Some("https://chat.example.org/chat#invitation=x"));
    }
}
