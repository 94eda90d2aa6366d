//! An object that can be said in its turn.

use rejoinder_core::{Activity, AgentTurn, Cost, NotACost, Timestamp, ToolUse, Usage};

use super::{
    answer::{Defer, Message, WireObject, WireUsage},
    ends::{CheckedMessage, End},
    files::CheckedFiles,
};

/// How many characters of an unknown key are logged.
const MAX_LOGGED: usize = 100;

impl WireObject {
    /// Checks that it can be said in this turn, now. The error quotes nothing.
    pub(super) fn check(self, turn: &AgentTurn, now: Timestamp) -> Result<CheckedObject, String> {
        if turn.person.seal_to.is_some() {
            self.check_nothing_in_the_clear()?;
        }
        let Self { rewrite, text, tool, activity, usage, title, send, files, end, unknown } = self;
        let files = files.map(CheckedFiles::read);
        let end = end.check(turn, now)?.or_else(|| files.as_ref().map(|_| End::Said));
        let (usage, cost) = usage.map(WireUsage::read).unzip();
        Ok(CheckedObject {
            rewrite,
            text,
            tool: tool.map(Into::into),
            activity: activity.map(Into::into),
            usage,
            cost: cost.flatten(),
            title,
            send: send.map(Message::check).transpose()?,
            files: files.unwrap_or_default(),
            end,
            unknown: unknown.keys().next().map(|key| key.chars().take(MAX_LOGGED).collect()),
        })
    }

    /// Checks that it says nothing of an answer that is to be sealed.
    fn check_nothing_in_the_clear(&self) -> Result<(), String> {
        let Self { rewrite, text, activity, title, send, files, end, .. } = self;
        let note = matches!(end.defer, Some(Defer::WithNote { note: Some(_), .. }));
        let keys = [
            ("text", text.is_some()),
            ("rewrite", rewrite.is_some()),
            ("activity", activity.is_some()),
            ("title", title.is_some()),
            ("send", send.is_some()),
            ("files", files.is_some()),
            ("reply", end.reply.is_some()),
            ("react", end.react.is_some()),
            ("ask", end.ask.is_some()),
            ("defer.note", note),
            ("end", end.end.is_some()),
        ];
        match keys.into_iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => Err(format!(
                "`{key}` would answer in the clear, and the asker wants it sealed: encrypt the answer to `seal_to` with age, and send \
                 it armoured as `sealed`"
            )),
            None => Ok(()),
        }
    }
}

/// An object that is as described.
pub(crate) struct CheckedObject {
    pub(super) rewrite: Option<String>,
    pub(super) text: Option<String>,
    pub(super) tool: Option<ToolUse>,
    pub(super) activity: Option<Activity>,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<Result<Cost, NotACost>>,
    pub(super) title: Option<String>,
    pub(super) send: Option<CheckedMessage>,
    pub(super) files: CheckedFiles,
    pub(super) end: Option<End>,
    /// The beginning of a key that means nothing, for the log.
    pub(super) unknown: Option<String>,
}

impl CheckedObject {
    /// Whether it says something of the answer before the end.
    pub(crate) const fn says_a_part(&self) -> bool {
        self.rewrite.is_some() || self.text.is_some() || self.send.is_some()
    }

    /// Whether it ends the run.
    pub(crate) const fn ends(&self) -> bool {
        self.end.is_some()
    }
}
