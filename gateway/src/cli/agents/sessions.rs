//! `rejoinder agents sessions`: the sessions that an agent with a memory of its own remembers.

use clap::Args;
use serde_json::Value;

use crate::{
    cli::{
        global::Global,
        listing::{table, text},
        options::Printing,
        running::{RunningGateway, path_part},
    },
    console::{failure::Failure, output},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Sessions {
    /// The agent, as in [agents.main]
    name: String,
    /// The largest number of sessions
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
    /// Only sessions older than the one with this id: for the next page
    #[arg(long, value_name = "ID")]
    before: Option<String>,
    #[command(flatten)]
    printing: Printing,
}

impl Sessions {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let before = self.before.as_deref().map(|id| format!("&before={}", path_part(id))).unwrap_or_default();
        let path = format!("agents/{}/sessions?limit={}{before}", path_part(&self.name), self.limit);
        self.printing.print_from(&RunningGateway::find(global)?, &path, lines).await
    }
}

fn lines(sessions: &Value) -> String {
    let row = |session: &Value| {
        let [id, name, person, began, used] =
            ["session_id", "name", "person", "started_at", "used_at"].map(|part| text(&session[part]));
        let title = text(&session["title"]);
        let title = if title.is_empty() { title } else { format!("“{}”", output::excerpt(&title, 60)) };
        let address = ["channel", "chat", "thread"].map(|part| text(&session[part]));
        let address = address.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let person = if person.is_empty() { address } else { format!("{person} ({address})") };
        let has_id = if session["has_own_id"] == true { "yes" } else { "no" }.to_owned();
        [id, output::excerpt(&name, 40), title, output::excerpt(&person, 60), began, used, has_id]
    };
    let next = text(&sessions["next"]);
    let more = if next.is_empty() { next } else { format!("\n\nThere are more: --before {next}") };
    let heads = ["ID", "NAME", "TITLE", "WHOSE", "BEGAN", "LAST USED", "ID OF ITS OWN"];
    table(sessions, ("The agent remembers no session by itself.", &more), heads, row)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A title is in quotes, as no name is.
    #[test]
    fn sessions_are_listed_with_how_to_see_more() {
        let session = json!({
            "session_id": "7", "name": null, "title": "Trip", "person": "Ada", "channel": "telegram.main", "chat": "1",
            "started_at": "10:00", "used_at": "12:00", "has_own_id": true,
        });

        assert_eq!(
            lines(&json!({ "items": [session], "next": "7" })),
            "ID  NAME  TITLE   WHOSE                  BEGAN  LAST USED  ID OF ITS OWN\n\
             7         “Trip”  Ada (telegram.main/1)  10:00  12:00      yes\n\n\
             There are more: --before 7"
        );
        assert_eq!(lines(&json!({ "items": [], "next": null })), "The agent remembers no session by itself.");
    }
}
