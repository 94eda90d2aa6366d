//! The files of an answer, as programs read them in JSON.

use std::sync::Arc;

use rejoinder_core::{Attachment, Intake, TurnView};
use serde::Serialize;
use utoipa::ToSchema;

/// A file of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AnswerFile)]
pub struct AnswerFile<'a> {
    /// The file's name.
    pub name: &'a str,
    /// The file's IANA media type.
    pub r#type: &'a str,
    /// Where the file is. What the gateway stores is at a link that opens it without a token, for a time.
    pub url: &'a str,
}

impl<'a> From<&'a Attachment> for AnswerFile<'a> {
    fn from(file: &'a Attachment) -> Self {
        Self { name: &file.name, r#type: &file.media_type, url: &file.url }
    }
}

/// A turn for a client that reads its answer: the stored files of the answer have links as their URLs. `base` is the gateway's URL as the
/// client reaches it, without a final slash; empty if that is not known.
#[must_use]
pub fn with_links(intake: &Intake, view: Arc<TurnView>, base: &str) -> Arc<TurnView> {
    if view.shown.as_ref().is_none_or(|shown| shown.attachments.is_empty()) {
        return view;
    }
    let mut view = Arc::unwrap_or_clone(view);
    let turn = view.turn_id;
    for file in view.shown.iter_mut().flat_map(|shown| &mut shown.attachments) {
        if let Some(path) = intake.file_link(turn, file) {
            file.url = format!("{base}{path}");
        }
    }
    Arc::new(view)
}
