//! Sample values for the unit tests of this crate.

use std::sync::Arc;

pub(crate) use rejoinder_core::conformance::{runtime::turn, scripted::capabilities};
use rejoinder_core::{HistoryLine, LineState, Speaker, Timestamp};

use crate::OpenAiSection;

/// Settings for a server that no test calls.
pub(crate) fn settings() -> OpenAiSection {
    let base_url = "http://127.0.0.1:9/v1".parse().expect("a URL");
    OpenAiSection { base_url, model: "test-model".to_owned(), ..OpenAiSection::default() }
}

/// What was said before a turn.
pub(crate) fn history<const N: usize>(lines: [HistoryLine; N]) -> Vec<Arc<HistoryLine>> {
    lines.map(Arc::new).into()
}

/// A line of the history that was seen.
pub(crate) fn line(speaker: Speaker, text: &str) -> HistoryLine {
    HistoryLine {
        spoken: false,
        speaker,
        author: None,
        forwarded: None,
        text: text.into(),
        at: Timestamp::from_millis(0),
        state: LineState::Seen,
    }
}
