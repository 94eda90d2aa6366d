//! `rejoinder tokens`: the operators' tokens of the running gateway.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{
    global::Global,
    listing::{items, table, text},
    options::{Printing, Reason},
    running::RunningGateway,
};
use crate::{
    console::{failure::Failure, output},
    http::RoleName,
};

/// Said of a token that opens nothing yet.
const NO_API: &str = "It opens nothing yet: the gateway has no /v1. Add a section [channels.api.main] to its configuration, and \
                      restart it (docs/completions.md).";

#[derive(Debug, Subcommand)]
pub(super) enum TokensCommand {
    /// Make a token for the admin API, or for chat clients; it is shown once
    #[command(after_help = "Example:\n  rejoinder tokens create --role viewer --name grafana")]
    Create(Create),
    /// List the tokens
    List(Printing),
    /// Revoke a token: it and its sessions open nothing any more
    Revoke(Revoke),
    /// List the open sessions of the operator's page
    Sessions(Printing),
    /// End a session of the operator's page
    EndSession(EndSession),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// What it allows: viewer reads, operator also mends, admin also manages tokens; chat only talks to agents, at /v1
    #[arg(long, value_enum)]
    role: RoleName,
    /// The name that the audit shows; if not given: the role and a number
    #[arg(long)]
    name: Option<String>,
    /// A channel that it is limited to, for example telegram.main; may be given several times
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// From when on it opens nothing: RFC 3339
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The id or the name of the token
    token: String,
    #[command(flatten)]
    why: Reason,
}

#[derive(Debug, Args)]
pub(super) struct EndSession {
    /// The id of the session
    session: String,
    #[command(flatten)]
    why: Reason,
}

impl TokensCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        match self {
            Self::Create(create) => {
                create.perform(&gateway).await?;
                let has_api = global.load()?.config.channels.iter().any(|(channel, _)| channel.platform() == "api");
                if !has_api && matches!(create.role, RoleName::Chat) {
                    output::remark(NO_API);
                }
                Ok(())
            }
            Self::List(printing) => printing.print_from(&gateway, "tokens", lines).await,
            Self::Revoke(Revoke { token, why }) => {
                gateway.remove("tokens", token, why).await?;
                output::print(format!("The token {token} is revoked."))
            }
            Self::Sessions(printing) => printing.print_from(&gateway, "sessions", session_lines).await,
            Self::EndSession(EndSession { session, why }) => {
                gateway.remove("sessions", session, why).await?;
                output::print(format!("The session {session} is over."))
            }
        }
    }
}

impl Create {
    async fn perform(&self, gateway: &RunningGateway) -> Result<(), Failure> {
        let channels = (!self.channels.is_empty()).then_some(&self.channels);
        let body = json!({ "name": self.name, "role": self.role, "channels": channels, "expires_at": self.expires });
        let made = gateway.post("tokens", &body).await?;
        if self.printing.json {
            return output::print_json(&made);
        }
        let [name, token] = ["name", "token"].map(|key| text(&made[key]));
        output::remark(format_args!("The token {name}, which is shown only now:"));
        output::print(token)
    }
}

fn session_lines(sessions: &Value) -> String {
    let row =
        |session: &Value| ["id", "name", "role", "opened_at", "expires_at", "browser"].map(|key| text(&session[key]));
    let heads = ["ID", "TOKEN", "ROLE", "OPENED", "ENDS", "BROWSER"];
    table(sessions, ("No session is open.", ""), heads, row)
}

fn lines(tokens: &Value) -> String {
    let row = |token: &Value| {
        let channels: Vec<_> = items(&token["channels"]).map(text).collect();
        let channels = if token["channels"].is_null() { "all".to_owned() } else { channels.join(", ") };
        let expires = token["expires_at"].as_str().unwrap_or("never").to_owned();
        [text(&token["name"]), text(&token["role"]), channels, text(&token["created_at"]), expires]
    };
    let heads = ["NAME", "ROLE", "CHANNELS", "CREATED", "EXPIRES"];
    table(tokens, ("No tokens but the configured one.", ""), heads, row)
}
