//! `rejoinder logs`: the lines of the gateway's own log that are kept in the database.

use std::fmt::Write as _;

use super::{
    global::Global,
    ids::turn_id,
    options::Reading,
    records::{Page, named},
};
use crate::{
    console::failure::Failure,
    http::{LevelName, LogLineItem},
};
use clap::Args;
use rejoinder_core::store::LineLevel;
use serde_json::Value;

#[derive(Debug, Args)]
pub(super) struct Logs {
    /// Only lines at least as important as this
    #[arg(long, value_enum)]
    level: Option<LevelName>,
    /// Only lines about this channel, for example telegram.main
    #[arg(long)]
    channel: Option<String>,
    /// Only lines about this turn: its id, or the first twelve or so characters
    #[arg(long, value_name = "ID")]
    turn: Option<String>,
    /// Only lines with this text in their message or details
    #[arg(long)]
    text: Option<String>,
    /// Only lines before this one: the "next" of --json
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// Largest number of lines
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    reading: Reading,
}

impl Logs {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let records = self.reading.database.records(global).await?;
        let turn = match &self.turn {
            Some(id) => Some(turn_id(&records, id).await?),
            None => None,
        };
        let filter = [
            ("level", named(self.level)),
            ("channel", self.channel.clone()),
            ("turn", turn),
            ("text", self.text.clone()),
        ];
        let before = self.before.map(|id| id.to_string());
        let list = records.list("logs", &filter, before, self.limit).await?;
        self.reading.printing.print(&list, text)
    }
}

/// The latest line comes last, as in a terminal that follows a log.
fn text(list: &Page<LogLineItem>) -> String {
    list.text("No lines found.", "Earlier lines", |items| items.iter().rev().map(line).collect::<Vec<_>>().join("\n"))
}

fn line(item: &LogLineItem) -> String {
    let level = LineLevel::from(item.level).as_str().to_uppercase();
    let mut line = format!("{} {level:>5} {}", item.at, item.message);
    let about = [("channel", &item.channel), ("turn", &item.turn_id)];
    for (name, id) in about.into_iter().filter_map(|(name, id)| Some((name, id.as_deref()?))) {
        let _ = write!(line, " {name}={id}");
    }
    for (name, value) in &item.fields {
        let _ = match value {
            // A text of several lines stays on one.
            Value::String(text) if text.chars().all(|char| !char.is_whitespace() && !char.is_control()) => {
                write!(line, " {name}={text}")
            }
            value => write!(line, " {name}={value}"),
        };
    }
    line
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{
        ChannelId, Timestamp,
        store::{LogLine, LogLineRecord},
    };

    use super::*;

    #[test]
    fn a_line_is_on_one_line() {
        let fields = serde_json::json!({ "agent": "main", "attempt": 1, "error": "no\nroom" });
        let failed = LogLine {
            at: Timestamp::from_millis(1_700_000_000_123),
            level: LineLevel::Warn,
            target: "rejoinder_core::worker".to_owned(),
            message: "a run failed".to_owned(),
            channel: Some(ChannelId::new("telegram", "main")),
            turn_id: None,
            fields: serde_json::from_value(fields).unwrap(),
        };

        let line = line(&LogLineItem::of(LogLineRecord { id: 1, line: failed }));

        let said = "a run failed channel=telegram.main agent=main attempt=1 error=\"no\\nroom\"";
        assert_eq!(line, format!("2023-11-14T22:13:20.123Z  WARN {said}"));
    }
}
