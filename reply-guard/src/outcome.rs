//! How an agent ends a run.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, shim};

/// A file that belongs to a message. It is structured data, never a marker inside the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attachment {
    /// File name as the sender gave it; it may be a path.
    pub name: String,
    /// IANA media type, `application/octet-stream` when unknown.
    pub media_type: String,
    /// Where the bytes are, as the sender gave it. Only the adapter of a platform may open it.
    pub url: String,
}

/// The choices of a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Choices {
    /// The choices, 2 to 8 of them; none if only words answer the question.
    pub options: Vec<String>,
    /// Whether the person may also answer in their own words.
    pub free_text: bool,
    /// Until when one may be picked; `None`: at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// A message for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reply {
    /// Markdown; may be empty when there are attachments.
    pub text: String,
    /// Files sent with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The choices, if the text is a question. The question answers the turn; a pick opens a turn of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Choices>,
    /// The answer, encrypted for the asker alone: an armoured age file. `text` is then [`SEALED`], which is what everybody else reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
}

/// What stands in place of a sealed answer where others read.
pub const SEALED: &str = "(a sealed answer)";

impl Reply {
    /// A reply without attachments and choices.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// An answer for the asker alone: an armoured age file, which is not changed.
    pub fn sealed(armour: impl Into<String>) -> Self {
        Self { sealed: Some(armour.into()), ..Self::text(SEALED) }
    }

    /// A question.
    pub fn question(text: impl Into<String>, choices: Choices) -> Self {
        Self { choices: Some(choices), ..Self::text(text) }
    }
}

/// Something that an agent wants to do and may do only if somebody approves it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// What it wants to do, in a few words.
    pub action: String,
    /// What the approver should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The kind of action, such as `email.send`, for rules that decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// If it is a question to the person who wrote, the answers: `action` is the question then, nobody has to approve it, and there may
    /// be no choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Choices>,
    /// What an approver may choose beside a plain yes and a plain no, in this order. Of an agent that names none, nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ApprovalOption>,
}

/// A way to decide on a request, in the agent's words.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApprovalOption {
    /// What the agent calls it.
    pub name: String,
    /// Whether it is a yes.
    pub allows: bool,
}

impl ApprovalRequest {
    /// A request to approve an action, of which nothing more is said.
    pub fn action(action: impl Into<String>) -> Self {
        Self { action: action.into(), details: None, kind: None, choices: None, options: Vec::new() }
    }

    /// A question to the person who wrote, for whose answer a run waits.
    pub fn question(text: impl Into<String>, choices: Choices) -> Self {
        Self { choices: Some(choices), ..Self::action(text) }
    }
}

/// How an agent ended its run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An answer.
    Reply(Reply),
    /// An emoji on the person's message, meant as the answer.
    React(String),
    /// The agent answers later.
    Defer {
        /// Text for the person meanwhile; `None` for the operator's template.
        note: Option<String>,
        /// When the answer is due.
        due: Timestamp,
    },
    /// The agent cannot go on before somebody has decided this. It runs again then.
    Approval(ApprovalRequest),
    /// The agent chose to send nothing; the text says why.
    Silent(String),
}

/// An outcome after normalisation: without markers, reasoning and outer white space.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NormalisedOutcome {
    Reply(Reply),
    React(String),
    Defer { note: Option<String>, due: Timestamp },
    Approval(ApprovalRequest),
    Silent(String),
}

impl NormalisedOutcome {
    /// What no agent says: nothing is taken out of it.
    pub(crate) fn of_own(reply: Reply) -> Self {
        match shim::is_blank(&reply.text) {
            false => Self::Reply(reply),
            true if reply.attachments.is_empty() => Self::Silent("empty".to_owned()),
            true => Self::Reply(Reply { text: String::new(), choices: None, ..reply }),
        }
    }
}

impl Outcome {
    /// Normalises the outcome. A reply without attachments is silence when it holds nothing but white space,
    /// reasoning or silence markers, also if it has choices: without a question they mean nothing.
    pub(crate) fn normalise(self) -> NormalisedOutcome {
        match self {
            Self::Reply(Reply { sealed: Some(armour), .. }) => NormalisedOutcome::Reply(Reply::sealed(armour)),
            Self::Reply(reply) => match shim::normalise(&reply.text) {
                shim::Normal::Text(text) => NormalisedOutcome::Reply(Reply { text, ..reply }),
                _ if !reply.attachments.is_empty() => {
                    NormalisedOutcome::Reply(Reply { text: String::new(), choices: None, ..reply })
                }
                shim::Normal::Empty => NormalisedOutcome::Silent("empty".to_owned()),
                shim::Normal::Marker(marker) => NormalisedOutcome::Silent(format!("marker {marker}")),
            },
            Self::React(emoji) => match shim::normalise(&emoji) {
                shim::Normal::Text(emoji) => NormalisedOutcome::React(emoji),
                shim::Normal::Empty => NormalisedOutcome::Silent("empty reaction".to_owned()),
                shim::Normal::Marker(marker) => NormalisedOutcome::Silent(format!("marker {marker}")),
            },
            Self::Defer { note, due } => {
                let note = note.and_then(|note| match shim::normalise(&note) {
                    shim::Normal::Text(text) => Some(text),
                    shim::Normal::Empty | shim::Normal::Marker(_) => None,
                });
                NormalisedOutcome::Defer { note, due }
            }
            Self::Approval(request) => match shim::normalise(&request.action) {
                shim::Normal::Text(action) => NormalisedOutcome::Approval(ApprovalRequest { action, ..request }),
                shim::Normal::Empty | shim::Normal::Marker(_) => {
                    NormalisedOutcome::Silent("it asked for approval of nothing".to_owned())
                }
            },
            Self::Silent(reason) => NormalisedOutcome::Silent(reason),
        }
    }
}
