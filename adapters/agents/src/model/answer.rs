//! An answer of a model while it arrives, as far as all protocols have it in common. No I/O.

use rejoinder_core::{EmbeddedFiles, Usage};

use crate::{
    prompt::messages::Written,
    report::{AnswerUpdate, MAX_ANSWER, VisibleText, cut},
};

/// The most tool calls in one answer.
pub(crate) const MAX_CALLS: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    Failed(String),
    /// The answer violates the API's format, or its reasoning or tool calls are too large.
    Broken(String),
    /// The model refuses to answer.
    Refused(String),
}

/// The answer to one request, as received so far.
pub(crate) trait Answer: Send {
    /// An empty answer. If `thinks_first`, it shows nothing before its thought has ended.
    fn new(thinks_first: bool) -> Self;

    /// Reads the data of one event of a stream.
    ///
    /// # Errors
    /// When it is no event of this protocol, or reports a failure.
    fn event(&mut self, data: &str) -> Result<AnswerUpdate, AnswerError>;

    /// Reads an unstreamed answer.
    ///
    /// # Errors
    /// As of [`Answer::event`].
    fn whole(&mut self, body: &str) -> Result<AnswerUpdate, AnswerError>;

    /// Whether nothing that arrived was an answer.
    fn is_empty(&self) -> bool;

    /// Whether the model wants to go on in another request, with what it wrote so far.
    fn is_paused(&self) -> bool {
        false
    }

    fn text(&self) -> &AnswerText;

    fn text_mut(&mut self) -> &mut AnswerText;

    /// What the model wrote; of an answer that was cut, the text only.
    fn into_written(self) -> Written;
}

/// The text of an answer without the files that it embeds, and how far the answer has come.
#[derive(Debug, Default)]
pub(crate) struct AnswerText {
    pub(crate) raw: String,
    pub(crate) embedded: EmbeddedFiles,
    pub(crate) visible: VisibleText,
    /// How many bytes of text, reasoning and tool arguments arrived. Files do not count.
    pub(crate) size: usize,
    pub(crate) stage: Stage,
    /// Whether the text was too long, so that its end is missing. Nothing more of the answer is read.
    pub(crate) cut: bool,
    /// The tokens that it uses, until they are reported. They are kept if it ends with an error.
    pub(crate) usage: Option<Usage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    #[default]
    Arriving,
    /// The model has finished. The usage may still follow.
    Finished,
    /// The stream sent its last event.
    Done,
}

impl AnswerText {
    pub(crate) fn new(thinks_first: bool) -> Self {
        Self { visible: VisibleText::new(thinks_first), ..Self::default() }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.stage >= Stage::Finished
    }

    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Adds text, as much of it as there is room for.
    pub(crate) fn push(&mut self, text: &str, update: &mut AnswerUpdate) {
        update.progress |= !text.is_empty();
        let text = self.embedded.push(text);
        self.add(&text, update);
        if self.embedded.is_too_much() {
            (self.cut, self.stage) = (true, Stage::Done);
        }
    }

    fn add(&mut self, text: &str, update: &mut AnswerUpdate) {
        let (kept, is_cut) = cut(text, self.size);
        self.size += kept.len();
        self.raw.push_str(kept);
        self.visible.push(kept, update);
        if is_cut {
            (self.cut, self.stage) = (true, Stage::Done);
        }
    }

    /// Ends the reading of an event before which the answer had `before` bytes.
    ///
    /// # Errors
    /// When the answer is too large.
    pub(crate) fn end_event(&mut self, before: usize, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        if self.size > MAX_ANSWER {
            return Err(AnswerError::Broken(format!("the answer is larger than {MAX_ANSWER} bytes")));
        }
        self.visible.count(update);
        update.usage = self.usage.take();
        update.progress |= self.size > before;
        Ok(())
    }

    /// Ends the text, which is whole then. Returns the rest of it to show.
    pub(crate) fn end(&mut self) -> AnswerUpdate {
        let (rest, mut update) = (self.embedded.end(), AnswerUpdate::default());
        if !self.cut {
            self.add(&rest, &mut update);
        }
        self.visible.count(&update);
        update.show.push_str(&self.visible.end());
        update
    }
}
