//! The messages that a model reads, in no protocol's form. No I/O.

use std::{borrow::Cow, sync::Arc};

use rejoinder_core::{AgentMessage, AgentTurn, ChatKind};
use serde_json::Value;

use super::{
    files::{GivenFile, given},
    frame, history,
    instructions::LastInstructions,
    last_answer,
};
use crate::{
    file_kind::FileKind,
    section::ModelSettings,
    tools::{SEND_FILE, ToolCall, drop_bytes, without_bytes},
};

/// What a model gets to read: the instructions, and the messages after them.
#[derive(Clone, Debug)]
pub(crate) struct Prompt<'a> {
    /// In JSON.
    pub(crate) instructions: Arc<str>,
    /// At least one. No two of [`Message::People`], and no two of [`Message::Model`], follow each other: the chat templates of
    /// several models require that user and assistant alternate.
    pub(crate) messages: Vec<Message<'a>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Message<'a> {
    /// What people wrote, and what the gateway told.
    People(Content<'a>),
    /// What the model said in earlier turns.
    Model(Cow<'a, str>),
    /// What the model wrote in this run, and the result of each of its calls.
    Round { written: Written, results: Vec<String> },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Content<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Those whose bytes it gets.
    pub(crate) files: Vec<GivenFile<'a>>,
}

/// What a model wrote in one answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    /// With markers and thoughts, as far as they are in the text.
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    /// The whole answer as its protocol's blocks, if the server wants it back unchanged.
    pub(crate) blocks: Vec<Value>,
}

impl Written {
    /// Puts sizes in place of the bytes of files, which the model need not read again.
    fn drop_files(&mut self) {
        for ToolCall { name, arguments, .. } in &mut self.calls {
            if let Some(short) = without_bytes(name, arguments) {
                *arguments = short;
            }
        }
        for block in self.blocks.iter_mut().filter(|block| block["name"] == SEND_FILE) {
            if let Some(input) = block.get_mut("input").and_then(Value::as_object_mut) {
                drop_bytes(input);
            } else if let Some(short) = block["arguments"].as_str().and_then(|it| without_bytes(SEND_FILE, it)) {
                block["arguments"] = short.into();
            }
        }
    }
}

impl Message<'_> {
    /// About how much room it takes in a body, in bytes.
    pub(crate) fn size(&self) -> usize {
        /// The names of the fields.
        const FIELDS: usize = 32;
        FIELDS
            + match self {
                Self::People(Content { text, files }) => {
                    text.len() + files.iter().map(|file| file.url.len()).sum::<usize>()
                }
                Self::Model(text) => text.len(),
                Self::Round { written, results } => {
                    written.text.len() + results.iter().map(|result| FIELDS + result.len()).sum::<usize>()
                }
            }
    }

    /// The message with notes in place of the bytes of its files.
    fn with_notes(&self) -> Message<'_> {
        match self {
            Self::People(Content { text, files }) => {
                let files = files.iter().map(GivenFile::with_note).collect();
                Message::People(Content { text: Cow::Borrowed(&**text), files })
            }
            Self::Model(text) => Message::Model(Cow::Borrowed(&**text)),
            Self::Round { written, results } => Message::Round { written: written.clone(), results: results.clone() },
        }
    }
}

impl<'a> Prompt<'a> {
    /// The prompt for `turn`: instructions, history, and the current message. `last`: the instructions of the turn before.
    pub(crate) fn new(turn: &'a AgentTurn, settings: &ModelSettings<'_>, last: &LastInstructions) -> Self {
        Self { instructions: last.of(turn, settings), messages: messages(turn, settings) }
    }

    #[cfg(test)]
    pub(crate) fn of(turn: &'a AgentTurn, settings: &ModelSettings<'_>) -> Self {
        Self::new(turn, settings, &LastInstructions::default())
    }

    /// Adds an answer of the model, with the result of each of its calls.
    pub(crate) fn push_round(&mut self, mut written: Written, results: Vec<String>) {
        written.drop_files();
        self.messages.push(Message::Round { written, results });
    }

    /// Adds what people wrote while the model was at work. Of their files it gets the names and the texts.
    pub(crate) fn came_in(&mut self, messages: &[AgentMessage], chat: ChatKind) {
        for message in messages {
            push_people(&mut self.messages, frame::of_message(message, chat).into_owned().into());
        }
    }

    /// Removes all files of a kind, for a server that refuses them.
    pub(crate) fn remove(&mut self, kind: FileKind) {
        for message in &mut self.messages {
            if let Message::People(content) = message {
                content.files.retain(|file| file.kind != kind);
            }
        }
    }

    /// The messages with notes in place of the bytes of files; `None` if there are none.
    pub(crate) fn with_notes(&self) -> Option<Vec<Message<'_>>> {
        let has_files =
            |message: &Message<'_>| matches!(message, Message::People(content) if !content.files.is_empty());
        self.messages.iter().any(has_files).then(|| self.messages.iter().map(Message::with_notes).collect())
    }
}

/// The history and the current message.
fn messages<'a>(turn: &'a AgentTurn, settings: &ModelSettings<'_>) -> Vec<Message<'a>> {
    let history =
        history::fitting(&turn.past.history, settings.history_messages as usize, settings.history_chars as usize);
    let mut messages = Vec::with_capacity(history.len() + 1);
    if let Some(instructions) = &turn.person.instructions {
        push_people(&mut messages, frame::of_program(instructions).into());
    }
    for line in history {
        if history::is_own(line) {
            push_own(&mut messages, frame::of_line(line));
        } else {
            push_people(&mut messages, frame::of_line(line));
        }
    }
    push_people(&mut messages, frame::of_turn_after(turn, last_answer::to_model(turn)));
    for message in &turn.more {
        push_people(&mut messages, frame::of_message(message, turn.place.chat));
    }
    if let Some(Message::People(now)) = messages.last_mut() {
        let first = (&turn.message.attachments, &turn.message.quoted);
        let all = std::iter::once(first).chain(turn.more.iter().map(|more| (&more.attachments, &more.quoted)));
        let files = all.flat_map(|(own, quoted)| {
            let quoted = quoted.iter().flat_map(|quoted| &quoted.files).map(|file| (file, true));
            own.iter().map(|file| (file, false)).chain(quoted)
        });
        now.files = given(files, settings.takes);
    }
    messages
}

fn push_people<'a>(messages: &mut Vec<Message<'a>>, text: Cow<'a, str>) {
    match messages.last_mut() {
        Some(Message::People(last)) => join(&mut last.text, &text),
        _ => messages.push(Message::People(Content { text, files: Vec::new() })),
    }
}

fn push_own<'a>(messages: &mut Vec<Message<'a>>, text: Cow<'a, str>) {
    match messages.last_mut() {
        Some(Message::Model(last)) => join(last, &text),
        _ => messages.push(Message::Model(text)),
    }
}

fn join(text: &mut Cow<'_, str>, more: &str) {
    let text = text.to_mut();
    text.push_str("\n\n");
    text.push_str(more);
}
