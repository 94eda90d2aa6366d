//! How several choices of a model become one outcome. No I/O.

use rejoinder_core::{AgentTurn, ApprovalRequest, Attachment, Choices, Outcome, Reply, Shim, Timestamp};

use super::call::{Call, shortened};

/// The choices that a model has made in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    react: Option<String>,
    ask: Option<(String, Choices)>,
    approval: Option<ApprovalRequest>,
    pub(super) defer: Option<(Option<String>, Timestamp)>,
    silent: Option<String>,
    /// The files of the answer.
    pub(super) files: Vec<Attachment>,
}

impl Chosen {
    /// Records a choice. The last one of each kind counts.
    pub(super) fn add(&mut self, call: Call) {
        match call {
            Call::React(emoji) => self.react = Some(emoji),
            Call::Ask { question, choices } => self.ask = Some((question, choices)),
            Call::Approval(request) => self.approval = Some(request),
            Call::Defer { note, due } => self.defer = Some((note, due)),
            Call::StaySilent(reason) => self.silent = Some(reason),
            Call::File(file) => self.files.push(file),
            Call::Send(_) | Call::Schedule(_) | Call::Search(_) => {}
        }
    }

    /// The outcome of the choices and `text`, the visible text. `None`: the text is the answer.
    ///
    /// A turn ends in one signal, so the first of these counts:
    ///
    /// 1. a request for an approval: what was said beside it may claim that it was done;
    /// 2. a deferral, because its promise needs a debt; the text becomes its note if it has none;
    /// 3. a question, after the text if there is some, with the files;
    /// 4. files, with the text; of silence beside them it stays that they come without words;
    /// 5. silence, even with text, which then only comments on the silence; but a reaction replaces silence, because it
    ///    is silence that a person can see;
    /// 6. text;
    /// 7. a reaction.
    pub(super) fn outcome(self, text: Option<&str>) -> Option<Outcome> {
        match self {
            Self { approval: Some(request), .. } => Some(Outcome::Approval(request)),
            Self { defer: Some((note, due)), .. } => {
                Some(Outcome::Defer { note: note.or_else(|| text.map(shortened)), due })
            }
            Self { ask: Some((question, choices)), files: attachments, .. } => {
                Some(Outcome::Reply(Reply { attachments, ..Reply::question(after(text, question), choices) }))
            }
            Self { silent, files: attachments, .. } if !attachments.is_empty() => {
                let text = text.filter(|_| silent.is_none()).unwrap_or_default();
                Some(Outcome::Reply(Reply { attachments, ..Reply::text(text) }))
            }
            Self { silent: Some(reason), react: None, .. } => Some(Outcome::Silent(reason)),
            Self { react: Some(emoji), silent, .. } if silent.is_some() || text.is_none() => {
                Some(Outcome::React(emoji))
            }
            _ => None,
        }
    }
}

/// A valid choice of an agent that is not a model.
pub(crate) struct Choice(Chosen);

impl Choice {
    /// Reads a call of `tool`, made now.
    ///
    /// # Errors
    /// Says what is wrong with the arguments.
    pub(crate) fn read(tool: &str, arguments: &str, turn: &AgentTurn, now: Timestamp) -> Result<Self, String> {
        let mut chosen = Chosen::default();
        chosen.add(Call::parse(tool, arguments, turn, now)?);
        Ok(Self(chosen))
    }

    /// The outcome of the choice and of the visible `text` that was written beside it.
    pub(crate) fn outcome(self, text: Option<&str>) -> Outcome {
        self.0.outcome(text).unwrap_or_else(|| Outcome::Reply(Reply::text(text.unwrap_or_default())))
    }
}

/// A question after the text that was written beside it. Some models also write the question itself.
fn after(text: Option<&str>, question: String) -> String {
    match text.map(Shim::whole) {
        Some(text) if text.ends_with(&question) => text,
        Some(text) if !text.is_empty() => format!("{text}\n\n{question}"),
        _ => question,
    }
}
