//! An object that can be said in its turn.

use rejoinder_core::{Activity, AgentTurn, Timestamp, ToolUse, Usage};

use super::{
    answer::{Message, WireObject},
    ends::{CheckedMessage, End},
};

/// How many characters of an unknown key are logged.
const MAX_LOGGED: usize = 100;

impl WireObject {
    /// Checks that it can be said in this turn, now. The error quotes nothing.
    pub(super) fn check(self, turn: &AgentTurn, now: Timestamp) -> Result<CheckedObject, String> {
        let Self { rewrite, text, tool, activity, usage, title, send, end, unknown } = self;
        Ok(CheckedObject {
            rewrite,
            text,
            tool: tool.map(Into::into),
            activity: activity.map(Into::into),
            usage,
            title,
            send: send.map(Message::check).transpose()?,
            end: end.check(turn, now)?,
            unknown: unknown.keys().next().map(|key| key.chars().take(MAX_LOGGED).collect()),
        })
    }
}

/// An object that is as described.
pub(crate) struct CheckedObject {
    pub(super) rewrite: Option<String>,
    pub(super) text: Option<String>,
    pub(super) tool: Option<ToolUse>,
    pub(super) activity: Option<Activity>,
    pub(super) usage: Option<Usage>,
    pub(super) title: Option<String>,
    pub(super) send: Option<CheckedMessage>,
    pub(super) end: Option<End>,
    /// The beginning of a key that means nothing, for the log.
    pub(super) unknown: Option<String>,
}

impl CheckedObject {
    /// Whether it says something of the answer's text.
    pub(crate) const fn has_text(&self) -> bool {
        self.rewrite.is_some() || self.text.is_some()
    }

    /// Whether it ends the run.
    pub(crate) const fn ends(&self) -> bool {
        self.end.is_some()
    }
}
