//! `rejoinder send`: has the running gateway send a message.

use std::{
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;
use rejoinder_terminal::MAX_WAIT;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    global::Global,
    listing::{items, text},
    options::{Printing, Reason},
    running::RunningGateway,
};
use crate::console::{failure::Failure, output};

/// How long it takes at most to see what has become of a message, unless --wait says otherwise.
const WAIT: u64 = 20;

/// The pause before looking again.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) const HELP: &str = "\
TARGET is a conversation (CHANNEL/CHAT or CHANNEL/CHAT/THREAD), the name of somebody who is known (`rejoinder people list`), or
everybody with a role (role:owner). People get it in the direct chat in which they are reached. A conversation of the chat page is
named as `rejoinder people list` and /whoami name it.

The command ends when the platform has acknowledged the message. Exit code 1: it cannot be delivered, or somebody with the role
cannot be reached; the lines say who, and why. If it takes longer than
--wait, the gateway goes on with it, and the exit code is 0.

Examples:
  rejoinder send telegram.main/42 \"We are back.\"
  rejoinder send ada \"The report is ready.\" --file report.pdf
  df -h | rejoinder send role:owner -";

#[derive(Debug, Args)]
pub(super) struct Send {
    /// For whom
    target: String,
    /// The text, as Markdown; `-` reads it from standard input
    #[arg(required_unless_present = "file")]
    text: Option<String>,
    /// A file to send with it; may be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Send it in the person's quiet hours as well
    #[arg(long)]
    urgent: bool,
    /// A request with the same key is done once
    #[arg(long)]
    key: Option<String>,
    /// How many seconds to wait for the platform's acknowledgement; 0: only until it is stored
    #[arg(long, default_value_t = WAIT, value_parser = clap::value_parser!(u64).range(..=MAX_WAIT))]
    wait: u64,
    #[command(flatten)]
    why: Reason,
    #[command(flatten)]
    printing: Printing,
}

impl Send {
    pub(super) async fn perform(&self, global: &Global) -> Result<(), Failure> {
        let gateway = RunningGateway::find(global)?;
        let attachments = self.file.iter().map(|path| attachment(path)).collect::<Result<Vec<_>, _>>()?;
        let body = json!({ "to": self.target, "text": self.text()?, "attachments": attachments, "urgent": self.urgent, "reason": self.why.reason });
        let sent = gateway.post_once("messages", self.key.as_deref(), &body).await?;
        let until = Instant::now() + Duration::from_secs(self.wait);
        let mut turns = Vec::new();
        for message in items(&sent["messages"]) {
            turns.push((message, ended(&gateway, &text(&message["id"]), until).await?));
        }
        let missed: Vec<&Value> = items(&sent["not_reached"]).collect();
        if self.printing.json {
            let messages: Vec<_> = turns.iter().map(|(message, turn)| with_status(message, turn)).collect();
            output::print_json(&json!({ "messages": messages, "not_reached": missed }))?;
        } else {
            for (message, turn) in &turns {
                output::print(told(message, turn))?;
            }
            for one in &missed {
                output::print(not_reached(one))?;
            }
        }
        let failed = turns.iter().map(|(_, turn)| u64::from(status(turn) == "undeliverable")).sum::<u64>();
        let missed: u64 = missed.iter().filter_map(|one| one["count"].as_u64()).sum();
        match (failed, missed) {
            (0, 0) => Ok(()),
            (failed, 0) => Err(anyhow!("{failed} of {} could not be delivered", turns.len()).into()),
            (failed, missed) => {
                Err(anyhow!("{} of {} were not reached", failed + missed, turns.len() as u64 + missed).into())
            }
        }
    }

    fn text(&self) -> Result<String, Failure> {
        match self.text.as_deref() {
            Some("-") => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read the text from standard input")?;
                Ok(text)
            }
            text => Ok(text.unwrap_or_default().to_owned()),
        }
    }
}

/// What is sent of a file.
fn attachment(path: &Path) -> Result<Value, Failure> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let media_type = media_type(path);
    Ok(json!({ "name": name, "media_type": media_type, "data": BASE64_STANDARD.encode(bytes) }))
}

/// The media type of a file, by its ending: of the kinds that platforms show in a way of their own.
fn media_type(path: &Path) -> &'static str {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("png") => "image/png",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("mp4") => "video/mp4",
        Some("mp3") => "audio/mpeg",
        Some("m4a") => "audio/mp4",
        Some("ogg" | "oga" | "opus") => "audio/ogg",
        Some("pdf") => "application/pdf",
        Some("txt" | "log") => "text/plain",
        Some("md") => "text/markdown",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        Some("html") => "text/html",
        _ => "application/octet-stream",
    }
}

/// A message's turn, once it has ended or the time is up.
async fn ended(gateway: &RunningGateway, id: &str, until: Instant) -> Result<Value, Failure> {
    loop {
        let turn = gateway.get(&format!("turns/{id}")).await?;
        if status(&turn) != "accepted" || Instant::now() >= until {
            return Ok(turn);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn status(turn: &Value) -> &str {
    turn["status"].as_str().unwrap_or_default()
}

fn with_status(message: &Value, turn: &Value) -> Value {
    json!({ "id": message["id"], "to": message["to"], "status": status(turn) })
}

fn told(message: &Value, turn: &Value) -> String {
    let [id, to] = ["id", "to"].map(|key| text(&message[key]));
    match status(turn) {
        "answered" => format!("Sent to {to}."),
        "undeliverable" => {
            let why = turn["reason"].as_str().unwrap_or("see its turn");
            format!("Not delivered to {to}: {why}\nrejoinder turns explain {id}")
        }
        "accepted" => format!("Not sent to {to} yet. The gateway goes on: rejoinder turns show {id}"),
        other => format!("Not sent to {to}: {other}"),
    }
}

/// Who of a role gets no message.
pub(super) fn not_reached(one: &Value) -> String {
    let [who, why] = ["who", "why"].map(|key| text(&one[key]));
    format!("Not sent to {who}: {why}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_it_is_told() {
        let message = json!({ "id": "019c", "to": "telegram.main/42" });
        let turn = |status: &str| json!({ "status": status, "reason": "the chat was not found" });

        assert_eq!(told(&message, &turn("answered")), "Sent to telegram.main/42.");
        assert_eq!(
            told(&message, &turn("undeliverable")),
            "Not delivered to telegram.main/42: the chat was not found\nrejoinder turns explain 019c"
        );
        assert!(told(&message, &turn("accepted")).contains("goes on"));
    }

    #[test]
    fn a_files_kind_is_known_by_its_ending() {
        assert_eq!(media_type(Path::new("a/photo.JPG")), "image/jpeg");
        assert_eq!(media_type(Path::new("archive.tar.gz")), "application/octet-stream");
        assert_eq!(media_type(Path::new("README")), "application/octet-stream");
    }
}
