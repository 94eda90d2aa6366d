//! How an object ends the run.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::{AgentError, AgentTurn, Attachment, Outcome, Reply, Timestamp, is_blank};

use super::answer::{Defer, File, Message, WireEnd};
use crate::tools::{self, ASK, REQUEST_APPROVAL, STAY_SILENT, can_react, looks_like_emoji};

const MAX_FILES: usize = 10;

/// How many characters a file's name and its type have at most.
const MAX_NAME: usize = 200;

const MAX_URL: usize = 2_000;

/// How many characters of an agent's own error the operator gets.
const MAX_ERROR: usize = 1_000;

/// Why an object does not end the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WrongEnd {
    /// It is not as described.
    Invalid(String),
    /// The agent says that it failed.
    Failed(String),
}

impl From<WrongEnd> for AgentError {
    fn from(wrong: WrongEnd) -> Self {
        match wrong {
            WrongEnd::Invalid(why) => Self::Broken(why),
            WrongEnd::Failed(why) => Self::Failed(why),
        }
    }
}

fn invalid<T>(why: impl Into<String>) -> Result<T, WrongEnd> {
    Err(WrongEnd::Invalid(why.into()))
}

/// What the text said so far becomes where the end says nothing else.
pub(super) struct SaidSoFar {
    pub(super) text: String,
    /// Whether `send` became the turn's answer.
    pub(super) is_sent: bool,
}

impl SaidSoFar {
    fn visible(&self) -> Option<&str> {
        Some(&*self.text).filter(|text| !is_blank(text))
    }

    pub(super) fn outcome(self) -> Outcome {
        if self.is_sent && self.visible().is_none() {
            return Outcome::Silent("answered with `send`".to_owned());
        }
        Outcome::Reply(Reply::text(self.text))
    }
}

impl WireEnd {
    /// The outcome of the run. A reaction beside a text is dropped, and a question comes after it.
    pub(super) fn outcome(self, said: SaidSoFar, turn: &AgentTurn, now: Timestamp) -> Result<Outcome, WrongEnd> {
        let choose = |tool: &str, arguments: &str, said: &SaidSoFar| {
            let chosen = tools::chosen(tool, arguments, said.visible(), turn, now);
            chosen.map_err(|why| WrongEnd::Invalid(why.trim_start_matches("error: ").to_owned()))
        };
        match self {
            Self { reply: Some(message), .. } => Ok(Outcome::Reply(message.into_reply(said.text)?)),
            Self { react: Some(emoji), .. } => {
                let emoji = emoji.trim();
                if emoji.is_empty() || !looks_like_emoji(emoji) {
                    return invalid("`react` must be one emoji");
                }
                let allowed = turn.capabilities.allowed_reactions.as_ref();
                let is_shown = can_react(turn) && allowed.is_none_or(|allowed| allowed.iter().any(|one| one == emoji));
                Ok(match said.visible() {
                    Some(_) => said.outcome(),
                    None if is_shown => Outcome::React(emoji.to_owned()),
                    None => Outcome::Reply(Reply::text(emoji)),
                })
            }
            Self { ask: Some(question), .. } => choose(ASK, &question.to_string(), &said),
            Self { approval: Some(request), .. } => {
                if !turn.may_ask_approval {
                    return invalid("it asks for an approval, which nobody could give (see `may.approval`)");
                }
                choose(REQUEST_APPROVAL, &request.to_string(), &said)
            }
            Self { defer: Some(Defer { note, seconds }), .. } => {
                let after = Duration::try_from_secs_f64(seconds).ok().filter(|after| !after.is_zero());
                let Some(after) = after else { return invalid("`defer.seconds` must be a number above 0") };
                let note = note.or_else(|| said.visible().map(ToOwned::to_owned)).filter(|note| !is_blank(note));
                Ok(Outcome::Defer { note: note.as_deref().map(tools::shortened), due: now + after })
            }
            Self { silent: Some(reason), .. } => {
                let reason = serde_json::json!({ "reason": reason }).to_string();
                choose(STAY_SILENT, &reason, &said)
            }
            Self { error: Some(why), .. } => Err(WrongEnd::Failed(short_error(&why))),
            Self { end: Some(true), .. } => Ok(said.outcome()),
            _ => invalid("`end` must be true"),
        }
    }
}

/// An agent's own words about its failure, for the operator.
pub(crate) fn short_error(why: &str) -> String {
    let words = why.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MAX_ERROR) {
        _ if words.is_empty() => "it says no more".to_owned(),
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

impl Message {
    /// The message. Without a text of its own it has the text that was `said`.
    pub(super) fn into_reply(self, said: String) -> Result<Reply, WrongEnd> {
        let (text, files) = match self {
            Self::Text(text) => (text, Vec::new()),
            Self::WithFiles { text, attachments } => (text.unwrap_or(said), attachments),
        };
        if files.len() > MAX_FILES {
            return invalid(format!("a message has at most {MAX_FILES} attachments"));
        }
        let attachments = files.into_iter().map(File::into_attachment).collect::<Result<_, _>>()?;
        Ok(Reply { text, attachments, choices: None })
    }
}

impl File {
    fn into_attachment(self) -> Result<Attachment, WrongEnd> {
        let Self { name, media_type, data, url } = self;
        let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
        let is_short = |text: &str| (1..=MAX_NAME).contains(&text.chars().count());
        if !is_short(&name) || !is_short(&media_type) || media_type.contains([',', ' ']) {
            return invalid(format!(
                "an attachment needs a `name`, and a `type` without blanks, of 1 to {MAX_NAME} characters"
            ));
        }
        let url = match (data, url) {
            (Some(data), None) if BASE64_STANDARD.decode(&data).is_ok_and(|bytes| !bytes.is_empty()) => {
                format!("data:{media_type};base64,{data}")
            }
            (Some(_), None) => return invalid("the `data` of an attachment must be bytes in Base64"),
            (None, Some(url)) if url.starts_with("https://") && url.len() <= MAX_URL => url,
            _ => return invalid("an attachment needs either `data` or an https:// `url`"),
        };
        Ok(Attachment { name, media_type, url })
    }
}
