//! The tool with which an agent searches what was said. No I/O.

use rejoinder_core::{Speaker, store::FoundLine};
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::call::rfc3339;

/// A line, as an agent sees it.
#[skip_serializing_none]
#[derive(Serialize)]
struct Shown<'a> {
    at: String,
    /// `person`, `agent` or `gateway`.
    speaker: Speaker,
    name: Option<&'a str>,
    text: &'a str,
}

/// What an agent is told of a search.
pub(super) fn told(found: Result<Vec<FoundLine>, String>) -> String {
    let lines = match found {
        Ok(lines) => lines,
        Err(why) => return format!("error: {why}"),
    };
    let shown = lines.iter().map(|line| Shown {
        at: rfc3339(line.at),
        speaker: line.speaker,
        name: line.name.as_deref(),
        text: &line.excerpt,
    });
    serde_json::to_string(&shown.collect::<Vec<_>>()).expect("texts serialise to JSON")
}
