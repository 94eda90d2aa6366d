//! The JSON that is posted to a URL.

use rejoinder_core::{Content, Delivery, SignalKind, TurnId};
use rejoinder_kit::AnswerFile;
use serde::Serialize;

use crate::about;

/// The same kind of object as a hook's callback gets.
#[derive(Serialize)]
struct Posted<'a> {
    turn_id: TurnId,
    status: &'static str,
    signal: SignalKind,
    reply: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<AnswerFile<'a>>,
    /// The conversation whose history the agent got: `telegram.main/42`.
    about: String,
}

pub(crate) fn body(delivery: &Delivery, content: &Content) -> Vec<u8> {
    let posted = Posted {
        turn_id: delivery.turn(),
        status: "answered",
        signal: delivery.signal().unwrap_or(SignalKind::Reply),
        reply: &content.text,
        files: content.attachments.iter().map(AnswerFile::from).collect(),
        about: about(delivery.conversation()),
    };
    serde_json::to_vec(&posted).expect("texts are JSON")
}
