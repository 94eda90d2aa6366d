//! `rejoinder dead-letters`: lists the turns that could not be answered and the callbacks that were given up, and mends them.
//!
//! The list is read from the running gateway, or from the database if none runs. Changes are made by the running gateway.

use std::fmt::Write as _;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    global::Global,
    ids,
    listing::{self, items},
    options::{Database, Reading, Reason},
    records::Page,
    running::RunningGateway,
};
use crate::{
    console::{failure::Failure, output},
    view::DeadLetterItem,
};

#[derive(Debug, Subcommand)]
pub(super) enum DeadLettersCommand {
    /// List what could not be delivered, newest first
    List(List),
    /// Show one: who waits, what was asked, what could not be delivered and why
    Show(Show),
    /// Send it again, as the same delivery; if there was nothing to send, run the agent again
    Retry(Retry),
    /// Send it to another conversation
    #[command(
        after_help = "Example:\n  rejoinder dead-letters redirect 0199a1c2-7d3e-7aaa-8bbb-0123456789ab telegram.main/42"
    )]
    Redirect(Redirect),
    /// Give it up
    Discard(Discard),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only those of this channel, for example telegram.main
    #[arg(long)]
    channel: Option<String>,
    /// Only those after this one in the list: the "next" of --json
    #[arg(long, value_name = "ID")]
    before: Option<Uuid>,
    /// Largest number to list
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// Its id or that of its turn, or the first twelve or so characters of one
    id: String,
    #[command(flatten)]
    reading: Reading,
}

/// One, or all that match.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Which {
    /// Its id or that of its turn, or the first twelve or so characters of one
    #[arg(conflicts_with_all = ["all", "channel", "error"])]
    id: Option<String>,
    /// All of them, at most 1,000 at once
    #[arg(long)]
    all: bool,
    /// All of this channel
    #[arg(long)]
    channel: Option<String>,
    /// All whose reason or last error contains this text
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Retry {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    why: Reason,
    /// Only say how many there are
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct Redirect {
    /// Its id or that of its turn, or the first twelve or so characters of one
    id: String,
    /// The conversation: CHANNEL/CHAT or CHANNEL/CHAT/THREAD
    to: String,
    #[command(flatten)]
    why: Reason,
}

#[derive(Debug, Args)]
pub(super) struct Discard {
    #[command(flatten)]
    which: Which,
    /// Why, for the audit
    #[arg(long)]
    reason: String,
    /// Only say how many there are
    #[arg(long)]
    dry_run: bool,
}

impl DeadLettersCommand {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.perform(global).await,
            Self::Show(show) => show.perform(global).await,
            Self::Retry(Retry { which, why, dry_run }) => {
                which.change(global, "retry", why.reason.as_deref(), *dry_run, "sent again").await
            }
            Self::Discard(Discard { which, reason, dry_run }) => {
                which.change(global, "discard", Some(reason), *dry_run, "given up").await
            }
            Self::Redirect(Redirect { id, to, why }) => {
                let gateway = RunningGateway::find(global)?;
                let id = whole_id(global, id).await?;
                gateway.act("dead-letters", &id, "redirect", &json!({ "to": to, "reason": why.reason })).await?;
                output::print(format!("It is sent to {to} now."))
            }
        }
    }
}

/// The whole id of a dead letter. One that was typed whole is not looked up: the gateway says what became of it.
async fn whole_id(global: &Global, id: &str) -> Result<String, Failure> {
    match id.parse::<Uuid>() {
        Ok(id) => Ok(id.to_string()),
        Err(_) => Ok(ids::dead_letter(&Database::default().records(global).await?, id).await?.id),
    }
}

impl Which {
    async fn change(
        &self,
        global: &Global,
        action: &str,
        reason: Option<&str>,
        dry_run: bool,
        done: &str,
    ) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        if let Some(id) = &self.id {
            if dry_run {
                return Err(Failure::Usage("--dry-run is for several: pass --all, --channel or --error".to_owned()));
            }
            let id = whole_id(global, id).await?;
            gateway.act("dead-letters", &id, action, &json!({ "reason": reason })).await?;
            return output::print(format!("It is {done} now."));
        }
        let body = json!({ "channel": self.channel, "error": self.error, "dry_run": dry_run, "reason": reason });
        let changed = gateway.post(&format!("dead-letters/{action}"), &body).await?;
        let count = |name: &str| items(&changed[name]).count();
        let (verb, more) = (if dry_run { "would be" } else { "are" }, changed["more"] == true);
        let mut text = format!("{} {verb} {done}.", count("ids"));
        for failed in items(&changed["failed"]) {
            let _ = write!(text, "\n{}: {}", listing::text(&failed["id"]), listing::text(&failed["detail"]));
        }
        if more {
            text.push_str("\nThere are more: run it again.");
        }
        output::print(text)?;
        if count("failed") > 0 { Err(anyhow!("{} could not be changed", count("failed")).into()) } else { Ok(()) }
    }
}

impl List {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let records = self.reading.database.records(global).await?;
        let (channel, before) = (self.channel.clone(), self.before.map(|id| id.to_string()));
        let list = records.list("dead-letters", &[("channel", channel)], before, self.limit).await?;
        self.reading.printing.print(&list, lines)
    }
}

fn lines(list: &Page<DeadLetterItem>) -> String {
    let row = |letter: &DeadLetterItem| {
        let ended = letter.ended_at.clone().unwrap_or_default();
        let who = letter.sender_name.clone().or_else(|| letter.sender_id.clone()).unwrap_or_default();
        let what = output::excerpt(letter.text.as_deref().unwrap_or("(the agent gave no answer)"), 32);
        [letter.id.clone(), ended, letter.address.channel.clone(), who, what, output::excerpt(&letter.reason, 60)]
    };
    list.text("No dead letters found.", "More dead letters", |letters| {
        let rows: Vec<_> = letters.iter().map(row).collect();
        output::table(["ID", "GIVEN UP", "CHANNEL", "WHO", "WHAT", "WHY"], &rows)
    })
}

impl Show {
    async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let Reading { printing, database } = &self.reading;
        printing.print(&ids::dead_letter(&database.records(global).await?, &self.id).await?, detail)
    }
}

fn detail(letter: &DeadLetterItem) -> String {
    let fields = serde_json::to_value(letter).unwrap_or_default();
    let line = |(name, value): (&str, &str)| match &fields[value] {
        Value::Null => None,
        Value::String(text) => Some(format!("  {name:<14}{}", text.replace('\n', "\n                "))),
        other => Some(format!("  {name:<14}{other}")),
    };
    let shown = [
        ("turn", "turn_id"),
        ("channel", "channel"),
        ("chat", "chat"),
        ("person", "sender_name"),
        ("person's id", "sender_id"),
        ("asked", "question"),
        ("undelivered", "text"),
        ("kind", "kind"),
        ("reason", "reason"),
        ("last error", "error"),
        ("attempts", "attempts"),
        ("accepted", "accepted_at"),
        ("given up", "ended_at"),
    ];
    let lines: Vec<String> = shown.into_iter().filter_map(line).collect();
    format!("Dead letter {}\n{}", letter.id, lines.join("\n"))
}
