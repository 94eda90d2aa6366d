//! `rejoinder pairing`: who asks the running gateway to be let in, and the operator's yes or no.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::{table, text},
    options::{Printing, Reason},
    people,
    running::RunningGateway,
};
use crate::{
    console::{failure::Failure, output},
    http::PersonRoleName,
};

#[derive(Debug, Subcommand)]
pub(super) enum PairingCommand {
    /// List who asks to be let in, with their codes
    List(Printing),
    /// Let somebody in who was given this code; they are told
    #[command(after_help = APPROVE_HELP)]
    Approve(Approve),
    /// Do not let somebody in who was given this code; they are told nothing, and cannot ask again for seven days
    Decline(Decline),
    /// Revoke an approval: the person is not known any more
    #[command(after_help = REVOKE_HELP)]
    Revoke(Revoke),
}

const APPROVE_HELP: &str = "\
After ten codes that do not exist, codes are refused for the rest of an hour, to this token.

Examples:
  rejoinder pairing approve ABCD-EFGH
  rejoinder pairing approve abcdefgh --name Ada --role owner";

const REVOKE_HELP: &str = "\
The configuration stays as it is: who is on allow_from may still write, and who is in [people] is known again after the next
start. `rejoinder people list` shows who is known.

Example:
  rejoinder pairing revoke telegram.main/42";

#[derive(Debug, Args)]
pub(super) struct Approve {
    /// The code, in any case, with or without its dash
    code: String,
    /// What you call them; if not given: the name that the platform gave
    #[arg(long)]
    name: Option<String>,
    /// What they may do: guest and member talk to the agent (rules and limits tell them apart), owner also lets others in with /approve
    #[arg(long, value_enum, default_value_t = PersonRoleName::Member)]
    role: PersonRoleName,
    #[command(flatten)]
    why: Reason,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct Decline {
    /// The code, in any case, with or without its dash
    code: String,
    #[command(flatten)]
    why: Reason,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The person as CHANNEL/ID, the id on this channel, as in telegram.main/42
    person: String,
    #[command(flatten)]
    why: Reason,
}

impl PairingCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        match self {
            Self::List(printing) => printing.print_from(&gateway, "pairings", lines).await,
            Self::Approve(Approve { code, name, role, why, printing }) => {
                let body = json!({ "name": name, "role": role, "reason": why.reason });
                printing.print(&gateway.act("pairings", code, "approve", &body).await?, let_in)
            }
            Self::Decline(Decline { code, why }) => {
                gateway.act("pairings", code, "decline", why).await?;
                output::print("They are not let in, and cannot ask again for seven days.")
            }
            Self::Revoke(Revoke { person, why }) => {
                let body = json!({ "person": person, "reason": why.reason });
                let revoked = gateway.post("people/revoke", &body).await?;
                let again = people::known_again(&revoked).map(|again| format!(" {again}")).unwrap_or_default();
                output::print(format!("{person} is not known any more.{again}"))
            }
        }
    }
}

fn let_in(person: &Value) -> String {
    format!("{} ({}) is let in.", people::name(person), people::known_as(person))
}

fn lines(pairings: &Value) -> String {
    let row = |pairing: &Value| {
        let [code, asked, expires] = ["code", "asked_at", "expires_at"].map(|part| text(&pairing[part]));
        [code, people::identity(pairing), name(pairing), asked, expires]
    };
    let hint = "\n\nTo let somebody in: rejoinder pairing approve CODE";
    table(pairings, ("Nobody asks to be let in.", hint), ["CODE", "WHO", "NAME", "ASKED", "EXPIRES"], row)
}

/// The names that the platform gave: `Ada (@ada_l)`.
fn name(pairing: &Value) -> String {
    let name = match (pairing["name"].as_str(), pairing["username"].as_str()) {
        (Some(name), Some(username)) => format!("{name} (@{username})"),
        (Some(name), None) => name.to_owned(),
        (None, username) => username.map(|username| format!("@{username}")).unwrap_or_default(),
    };
    output::excerpt(&name, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairing(name: Option<&str>, username: Option<&str>) -> Value {
        json!({
            "code": "ABCD-EFGH", "channel": "telegram.main", "id": "42", "name": name, "username": username,
            "conversation": "telegram.main/42", "asked_at": "12:00", "expires_at": "13:00",
        })
    }

    #[test]
    fn who_asks_is_shown_with_how_to_let_them_in() {
        assert_eq!(
            lines(&json!({ "items": [pairing(Some("Ada\nL."), Some("ada_l"))] })),
            "CODE       WHO               NAME             ASKED  EXPIRES\n\
             ABCD-EFGH  telegram.main/42  Ada L. (@ada_l)  12:00  13:00\n\n\
             To let somebody in: rejoinder pairing approve CODE"
        );
        assert_eq!(lines(&json!({ "items": [] })), "Nobody asks to be let in.");
    }

    #[test]
    fn who_has_no_name_is_shown_without_one() {
        assert_eq!(name(&pairing(None, Some("ada_l"))), "@ada_l");
        assert_eq!(name(&pairing(Some("Ada"), None)), "Ada");
        assert_eq!(name(&pairing(None, None)), "");
    }

    #[test]
    fn who_is_let_in_is_named() {
        let person = json!({ "name": "Ada", "identities": [{ "channel": "telegram.main", "id": "42" }] });

        assert_eq!(let_in(&person), "Ada (telegram.main/42) is let in.");
    }
}
