//! What an agent made of a turn.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, shim};

/// Something that travels with a text, structured, never as a marker inside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attachment {
    /// File name as the sender gave it.
    pub name: String,
    /// IANA media type, `application/octet-stream` when unknown.
    pub media_type: String,
    /// Where the bytes are. Given by whoever sent it: never fetched by the gateway on its own.
    pub url: String,
}

/// Words (and files) for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reply {
    /// Markdown.
    pub text: String,
    /// Files that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

impl Reply {
    /// A reply of words alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), attachments: Vec::new() }
    }
}

/// How an agent ended its run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It answered.
    Reply(Reply),
    /// It put an emoji on the person's message, and means that as its answer.
    React(String),
    /// It will answer later.
    Defer {
        /// What the person is told meanwhile; the operator's template when there is none.
        note: Option<String>,
        /// When the answer is due.
        due: Timestamp,
    },
    /// It chose to say nothing, and why.
    Silent(String),
}

/// An outcome after normalisation: what is left when markers, reasoning and white space are gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Judged {
    Reply(Reply),
    React(String),
    Defer { note: Option<String>, due: Timestamp },
    Silent(String),
}

impl Outcome {
    /// Judges emptiness after normalisation. A reply of white space, of reasoning alone or of a
    /// silence marker is silence.
    pub(crate) fn judge(self) -> Judged {
        match self {
            Self::Reply(reply) => match shim::normalise(&reply.text) {
                shim::Normal::Text(text) => Judged::Reply(Reply { text, ..reply }),
                _ if !reply.attachments.is_empty() => Judged::Reply(Reply { text: String::new(), ..reply }),
                shim::Normal::Empty => Judged::Silent("empty".to_owned()),
                shim::Normal::Marker(marker) => Judged::Silent(format!("marker {marker}")),
            },
            Self::React(emoji) => match shim::normalise(&emoji) {
                shim::Normal::Text(emoji) => Judged::React(emoji),
                shim::Normal::Empty => Judged::Silent("empty reaction".to_owned()),
                shim::Normal::Marker(marker) => Judged::Silent(format!("marker {marker}")),
            },
            Self::Defer { note, due } => {
                let note = note.and_then(|note| match shim::normalise(&note) {
                    shim::Normal::Text(text) => Some(text),
                    shim::Normal::Empty | shim::Normal::Marker(_) => None,
                });
                Judged::Defer { note, due }
            }
            Self::Silent(reason) => Judged::Silent(reason),
        }
    }
}
