//! How an object ends the run.

use std::time::Duration;

use rejoinder_core::{AgentError, AgentTurn, Attachment, Outcome, Reply, Timestamp, is_blank};

use super::{
    answer::{Defer, File, Message, Silent, WireEnd},
    files::CheckedFiles,
    sealed,
};
use crate::{
    attachments::{MAX_FILES, attachment},
    tools::{self, ASK, Choice, REQUEST_APPROVAL, STAY_SILENT, can_react, looks_like_emoji},
};

/// How many characters of an agent's own error the operator gets.
const MAX_ERROR: usize = 1_000;

/// What the text said so far becomes where the end says nothing else.
#[derive(Default)]
pub(super) struct SaidSoFar {
    pub(super) text: String,
    /// Those that the text embedded.
    pub(super) files: Vec<Attachment>,
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
        Outcome::Reply(Reply { attachments: self.files, ..Reply::text(self.text) })
    }
}

/// How an object ends the run, once it was read and found to be as described.
pub(super) enum End {
    Reply(CheckedMessage),
    /// An armoured age file.
    Sealed(String),
    /// The emoji, and whether the platform shows it as a reaction.
    React(String, bool),
    Choice(Box<Choice>),
    /// Its note and when it is due.
    Defer(Option<String>, Timestamp),
    /// The agent says that it failed: why.
    Failed(String),
    Said,
}

impl WireEnd {
    /// How the object ends the run, if it does.
    pub(super) fn check(self, turn: &AgentTurn, now: Timestamp) -> Result<Option<End>, String> {
        let choice = |tool: &str, arguments: &str| {
            let choice = Choice::read(tool, arguments, turn, now);
            choice
                .map(|choice| End::Choice(Box::new(choice)))
                .map_err(|why| why.trim_start_matches("error: ").to_owned())
        };
        Ok(Some(match self {
            Self { reply: Some(message), .. } => End::Reply(message.check()?),
            Self { sealed: Some(_), .. } if turn.person.seal_to.is_none() => {
                return Err("nobody asked for a sealed answer: the turn has no `seal_to`".to_owned());
            }
            Self { sealed: Some(armour), .. } => {
                sealed::check(&armour)?;
                End::Sealed(armour)
            }
            Self { react: Some(emoji), .. } => {
                let emoji = emoji.trim();
                if emoji.is_empty() || !looks_like_emoji(emoji) {
                    return Err("`react` must be one emoji".to_owned());
                }
                let allowed = turn.place.capabilities.allowed_reactions.as_ref();
                let is_shown = can_react(turn) && allowed.is_none_or(|allowed| allowed.iter().any(|one| one == emoji));
                End::React(emoji.to_owned(), is_shown)
            }
            Self { ask: Some(question), .. } => choice(ASK, &question.to_string())?,
            Self { approval: Some(request), .. } => {
                if !turn.rights.may_ask_approval {
                    return Err("it asks for an approval, which nobody could give (see `may.approval`)".to_owned());
                }
                choice(REQUEST_APPROVAL, &request.to_string())?
            }
            Self { defer: Some(defer), .. } => {
                let (note, seconds) = match defer {
                    Defer::Seconds(seconds) => (None, seconds),
                    Defer::WithNote { note, seconds } => (note, seconds),
                };
                let after = Duration::try_from_secs_f64(seconds).ok().filter(|after| !after.is_zero());
                End::Defer(note, now + after.ok_or("`defer.seconds` must be a number above 0")?)
            }
            Self { silent: Some(Silent::OnPurpose(false)), .. } => {
                return Err("`silent` must be a text or true".to_owned());
            }
            Self { silent: Some(Silent::OnPurpose(true)), .. } => choice(STAY_SILENT, "{}")?,
            Self { silent: Some(Silent::Why(reason)), .. } => {
                choice(STAY_SILENT, &serde_json::json!({ "reason": reason }).to_string())?
            }
            Self { error: Some(why), .. } => End::Failed(short_error(&why)),
            Self { end: Some(true), .. } => End::Said,
            Self { end: Some(false), .. } => return Err("`end` must be true".to_owned()),
            _ => return Ok(None),
        }))
    }
}

impl End {
    /// The outcome of the run, with the `files` that can be sent with it. A reaction beside a text is dropped, and a question comes
    /// after it.
    ///
    /// # Errors
    /// When the agent says that it failed, and when there is nothing in its answer but files that cannot be sent.
    pub(super) fn outcome(self, said: SaidSoFar, files: &mut CheckedFiles) -> Result<Outcome, AgentError> {
        let mut outcome = match self {
            Self::Reply(message) => Outcome::Reply(message.into_reply(said)),
            Self::Sealed(armour) => Outcome::Reply(Reply::sealed(armour)),
            Self::React(emoji, is_shown) => match said.visible() {
                Some(_) => said.outcome(),
                None if is_shown => Outcome::React(emoji),
                None => Outcome::Reply(Reply::text(emoji)),
            },
            Self::Choice(choice) => match choice.outcome(said.visible()) {
                Outcome::Reply(reply) => Outcome::Reply(Reply { attachments: said.files, ..reply }),
                other => other,
            },
            Self::Defer(note, due) => {
                let note = note.or_else(|| said.visible().map(ToOwned::to_owned)).filter(|note| !is_blank(note));
                Outcome::Defer { note: note.as_deref().map(tools::shortened), due }
            }
            Self::Failed(why) => return Err(AgentError::Failed(why)),
            Self::Said => said.outcome(),
        };
        let Outcome::Reply(reply) = &mut outcome else {
            files.leave_out_all("files go with a reply or a question only");
            return Ok(outcome);
        };
        files.join(&mut reply.attachments);
        match files.left_out() {
            [(_, why), ..] if is_blank(&reply.text) && reply.attachments.is_empty() => {
                Err(AgentError::Broken(format!("a file of the answer cannot be sent: {why}")))
            }
            _ => Ok(outcome),
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

/// A message whose files can be sent.
pub(super) struct CheckedMessage {
    text: Option<String>,
    attachments: Vec<Attachment>,
}

impl Message {
    pub(super) fn check(self) -> Result<CheckedMessage, String> {
        let (text, files) = match self {
            Self::Text(text) => (Some(text), Vec::new()),
            Self::WithFiles { text, attachments } => (text, attachments),
        };
        if files.len() > MAX_FILES {
            return Err(format!("a message has at most {MAX_FILES} attachments"));
        }
        let attachments = files.into_iter().map(File::into_attachment).collect::<Result<_, _>>()?;
        Ok(CheckedMessage { text, attachments })
    }
}

impl CheckedMessage {
    /// The message. Without a text of its own it has what was `said`.
    pub(super) fn into_reply(self, said: SaidSoFar) -> Reply {
        let Self { text, mut attachments } = self;
        let text = text.unwrap_or_else(|| {
            attachments.extend(said.files);
            said.text
        });
        attachments.truncate(MAX_FILES);
        Reply { text, attachments, ..Reply::default() }
    }
}

impl File {
    fn into_attachment(self) -> Result<Attachment, String> {
        let Self { name, media_type, data, url } = self;
        attachment(name, media_type, data, url)
    }
}
