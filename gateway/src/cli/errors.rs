//! `rejoinder errors`: the errors and warnings of the running gateway's own log, and what the operator says of them.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    global::Global,
    listing::{table, text},
    options::{Printing, Reason},
    running::RunningGateway,
};
use crate::console::{failure::Failure, output};

#[derive(Debug, Subcommand)]
pub(super) enum ErrorsCommand {
    /// List them, equal ones together, first those that happened last
    List(Printing),
    /// Say that you have seen them: they are told no more, except panics that happen again
    Acknowledge(Mark),
    /// Never hear of them, also when they happen again
    Mute(Mark),
    /// Hear of them again
    Unmute(Mark),
}

#[derive(Debug, Args)]
pub(super) struct Mark {
    /// Their ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    why: Reason,
}

impl ErrorsCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let (Mark { ids, why }, what, done) = match self {
            Self::List(printing) => return printing.print_from(&gateway, "errors", lines).await,
            Self::Acknowledge(mark) => (mark, "acknowledge", "Acknowledged."),
            Self::Mute(mark) => (mark, "mute", "Muted."),
            Self::Unmute(mark) => (mark, "unmute", "Unmuted."),
        };
        for id in ids {
            gateway.act("errors", id, what, why).await?;
        }
        output::print(done)
    }
}

fn lines(errors: &Value) -> String {
    let row = |error: &Value| {
        let state = match (error["muted"] == true, error["acknowledged_at"].is_string()) {
            (true, _) => "muted",
            (false, true) => "seen",
            (false, false) => "new",
        };
        let why = ["error", "reason"].into_iter().find_map(|name| error["fields"][name].as_str());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let message = output::excerpt(&format!("{}{why}", text(&error["message"])), 80);
        let [level, channel, last] = ["level", "channel", "last_seen_at"].map(|name| text(&error[name]));
        [error["id"].to_string(), state.to_owned(), level, error["count"].to_string(), last, channel, message]
    };
    let hint = "\n\nNo more news: rejoinder errors acknowledge ID, or mute ID";
    let heads = ["ID", "STATE", "LEVEL", "TIMES", "LAST", "CHANNEL", "MESSAGE"];
    table(errors, ("No error and no warning was written.", hint), heads, row)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_shown_with_its_cause_and_what_was_said_of_it() {
        let error = json!({
            "id": 7, "level": "error", "message": "the store rejected an event", "channel": null, "count": 2,
            "last_seen_at": "12:00", "fields": { "error": "no room" }, "acknowledged_at": null, "muted": false,
        });

        assert_eq!(
            lines(&json!({ "items": [error] })),
            "ID  STATE  LEVEL  TIMES  LAST   CHANNEL  MESSAGE\n\
             7   new    error  2      12:00           the store rejected an event: no room\n\n\
             No more news: rejoinder errors acknowledge ID, or mute ID"
        );
        assert_eq!(lines(&json!({ "items": [] })), "No error and no warning was written.");
    }
}
