//! `/history`: what was said last. `/export`: everything that was said in the session, as a file.

use rejoinder_guard::{Attachment, Reply};

use super::command::{Answer, Call, Command, Words};
use crate::{
    model::agent::{HistoryLine, Speaker},
    outbox::render::text_file,
    ports::store::StoreError,
};

/// How many lines `/history` shows, and how many characters of each.
const SHOWN: (u32, usize) = (10, 300);

/// How many lines a file holds at most: the last ones.
const EXPORTED: u32 = 20_000;

pub(super) const HISTORY: Command = Command {
    name: "history",
    texts: &["/history"],
    takes_argument: false,
    description: "What was said last",
    act: |call| Box::pin(history(call)),
};

pub(super) const EXPORT: Command = Command {
    name: "export",
    texts: &["/export"],
    takes_argument: false,
    description: "Everything that was said, as a file",
    act: |call| Box::pin(export(call)),
};

async fn history(call: &Call<'_>) -> Result<Answer, StoreError> {
    let lines = call.store.transcript(call.turn.session, SHOWN.0).await?;
    if lines.is_empty() {
        return Ok(Answer::of("history_empty"));
    }
    let shown: Vec<String> = lines.iter().map(|line| line_of(line, call, Some(SHOWN.1))).collect();
    Ok(Answer { words: Words::Own(Reply::text(shown.join("\n\n"))), ..Answer::of("history_empty") })
}

async fn export(call: &Call<'_>) -> Result<Answer, StoreError> {
    let lines = call.store.transcript(call.turn.session, EXPORTED).await?;
    if lines.is_empty() {
        return Ok(Answer::of("history_empty"));
    }
    let text: Vec<String> = lines.iter().map(|line| format!("{}\n", line_of(line, call, None))).collect();
    let file: Attachment = text_file("conversation.md", "text/markdown", &text.join("\n"));
    let reply = Reply { text: String::new(), attachments: vec![file] };
    Ok(Answer { words: Words::Own(reply), ..Answer::of("history_empty") })
}

/// A line of the transcript in Markdown, with at most so many characters of the text.
fn line_of(line: &HistoryLine, call: &Call<'_>, most: Option<usize>) -> String {
    let sender = &call.turn.event.sender;
    let who = match line.speaker {
        Speaker::Person => {
            let author = line.author.as_ref().and_then(|author| author.name.as_deref().or(author.id.as_deref()));
            author.or(sender.name.as_deref()).unwrap_or(&sender.id).to_owned()
        }
        Speaker::Agent | Speaker::Gateway => call.agent().to_owned(),
    };
    let cut = most.and_then(|most| line.text.char_indices().nth(most));
    let text = cut.map_or_else(|| line.text.clone(), |(end, _)| format!("{}…", &line.text[..end]));
    // A name is chosen by a person, who may mean harm.
    let who: String = who.chars().filter(|char| !matches!(char, '*' | '_' | '`' | '[' | ']' | '<' | '\\')).collect();
    format!("**{who}**: {text}")
}
