//! `/history`: the last lines. `/export`: all lines of the session, as a file of Markdown or JSON.

use rejoinder_guard::Reply;
use serde_json::json;

use super::command::{Answer, Call, Command, Filled, Words};
use crate::{
    base::words::{excerpt, rfc3339},
    model::{HistoryLine, SenderKind, Speaker},
    ports::StoreError,
    shown::render::text_file,
};

/// How many lines `/history` shows, and how many characters of each.
const SHOWN: (usize, usize) = (10, 300);

/// How many of the last lines are looked at for that: some are not for people.
const LOOKED_AT: u32 = 40;

/// How many lines a file holds at most: the last ones.
const MAX_LINES: u16 = 20_000;

/// How large a file is at most. The last line is in it in any case.
const MAX_BYTES: usize = 1 << 20;

/// What is between two lines: they are paragraphs of Markdown.
const GAP: &str = "\n\n";

/// What may follow `/export`. The first is the default.
pub(super) const FORMATS: [&str; 2] = ["md", JSON];

const JSON: &str = "json";

pub(super) const HISTORY: Command =
    Command::new("history", &["/history"], 0, "What was said last", |call| Box::pin(history(call)));

pub(super) const EXPORT: Command =
    Command::new("export", &["/export"], 1, "Everything that was said, as a file", |call| Box::pin(export(call)));

async fn history(call: &Call<'_>) -> Result<Answer, StoreError> {
    let lines = call.sessions.store.transcript(call.turn.session, LOOKED_AT).await?;
    let mut lines: Vec<_> = lines.into_iter().filter(|line| is_for_people(line)).collect();
    if lines.is_empty() {
        return Ok(Answer::of("history_empty"));
    }
    lines.drain(..lines.len().saturating_sub(SHOWN.0));
    let shown: Vec<String> = lines.iter().map(|line| told(line, &excerpt(&line.text, SHOWN.1), call)).collect();
    Ok(Answer::saying(Words::Own(Reply::text(shown.join(GAP)))))
}

async fn export(call: &Call<'_>) -> Result<Answer, StoreError> {
    if !call.can_send_files() {
        return Ok(Answer::of("export_unavailable"));
    }
    // One more, to know whether there are earlier ones.
    let lines = call.sessions.store.transcript(call.turn.session, u32::from(MAX_LINES) + 1).await?;
    let lines: Vec<_> = lines.into_iter().filter(|line| is_for_people(line)).collect();
    if lines.is_empty() {
        return Ok(Answer::of("history_empty"));
    }
    let say = |template| call.fill_in(Filled { template, values: Vec::new() }, None);
    let format = call.turn.event.text.split_whitespace().nth(1);
    let file = if format.is_some_and(|format| format.eq_ignore_ascii_case(JSON)) {
        let lines: Vec<String> = lines.iter().map(|line| as_json(line, call)).collect();
        let kept = that_fit(&lines);
        let text = format!("{{\"cut\":{},\"lines\":[\n{}\n]}}\n", kept.len() < lines.len(), kept.join(",\n"));
        text_file("conversation.json", "application/json", &text)
    } else {
        let lines: Vec<String> = lines.iter().map(|line| told(line, &line.text, call)).collect();
        let kept = that_fit(&lines);
        let notice = (kept.len() < lines.len()).then(|| say("export_cut") + GAP);
        let text = format!("{}{}\n", notice.unwrap_or_default(), kept.join(GAP));
        text_file("conversation.md", "text/markdown", &text)
    };
    Ok(Answer::saying(Words::Own(Reply { attachments: vec![file], ..Reply::text(say("export_ready")) })))
}

/// Whether people are shown a line: not what the gateway told the agent to do by itself, and not what they have not seen.
fn is_for_people(line: &HistoryLine) -> bool {
    line.state.is_said() && line.author.as_ref().is_none_or(|author| author.kind != SenderKind::Operator)
}

/// The last lines, as many as a file holds.
fn that_fit(lines: &[String]) -> &[String] {
    let mut bytes = 0;
    let fits = |line: &&String| {
        bytes += line.len() + GAP.len();
        bytes <= MAX_BYTES
    };
    let count = lines.iter().rev().take(usize::from(MAX_LINES)).take_while(fits).count().max(1);
    &lines[lines.len().saturating_sub(count)..]
}

/// A line of the transcript for programs.
fn as_json(line: &HistoryLine, call: &Call<'_>) -> String {
    let HistoryLine { speaker, text, spoken, .. } = line;
    json!({ "at": rfc3339(line.at), "speaker": speaker, "name": who(line, call), "text": text, "spoken": spoken })
        .to_string()
}

/// A line of the transcript in Markdown, with its text or a part of it.
fn told(line: &HistoryLine, text: &str, call: &Call<'_>) -> String {
    // A name is chosen by a person, who may mean harm.
    let who: String =
        who(line, call).chars().filter(|char| !matches!(char, '*' | '_' | '`' | '[' | ']' | '<' | '\\')).collect();
    let spoken = if line.spoken { "🎤 " } else { "" };
    format!("**{who}**: {spoken}{text}")
}

/// Who said a line.
fn who(line: &HistoryLine, call: &Call<'_>) -> String {
    let sender = &call.turn.event.sender;
    match line.speaker {
        Speaker::Person => {
            let author = line.author.as_ref().and_then(|author| author.name.as_deref().or(author.id.as_deref()));
            author.or(sender.name.as_deref()).unwrap_or(&sender.id).to_owned()
        }
        Speaker::Agent => call.agent().to_owned(),
        Speaker::Gateway => call.fill_in(Filled { template: "history_notice", values: Vec::new() }, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_the_last_lines_that_fit() {
        let half = |name: &str| format!("{name}{}", "x".repeat(MAX_BYTES / 2 - GAP.len() - name.len()));
        let lines = [half("a"), half("b"), half("c")];

        assert_eq!(that_fit(&lines[..2]), &lines[..2]);
        assert_eq!(that_fit(&lines), &lines[1..]);
        assert_eq!(that_fit(&["x".repeat(MAX_BYTES + 1)]).len(), 1);
        assert_eq!(that_fit(&vec![String::new(); usize::from(MAX_LINES) + 1]).len(), usize::from(MAX_LINES));
    }
}
