//! Builds the body of a request, and what the operator sees of it. No I/O.

use std::{borrow::Cow, ops::Range};

use rejoinder_core::{AgentTurn, ModelInput};
use serde::Serialize;

use super::{dialect::Dialect, protocol::Protocol};
use crate::{
    prompt::messages::{Message, Prompt},
    tools::Tool,
};

/// About how large a body is without its messages, in bytes.
const BODY: usize = 2048;

/// A request in the server's dialect.
pub(crate) struct Request {
    pub(crate) body: Vec<u8>,
    /// Where the options end in the body, without the closing brace.
    options: usize,
    /// Where the text of the instructions is in the body.
    instructions: Range<usize>,
    /// Where the messages after them are.
    messages: Range<usize>,
}

impl Request {
    /// The request for `prompt` with these tools, and what the operator sees of it. They have the same parts, which are written once.
    pub(crate) fn new<P: Protocol>(
        protocol: &P,
        turn: &AgentTurn,
        tools: &[Cow<'_, Tool>],
        prompt: &Prompt<'_>,
        dialect: Dialect,
    ) -> Self {
        let Prompt { instructions, messages } = prompt;
        let tools = Some(tools).filter(|tools| dialect.tools && !tools.is_empty());
        let texts: usize = messages.iter().map(Message::size).sum();
        let mut body = Vec::with_capacity(texts + texts / 8 + instructions.len() + BODY);
        write(&protocol.options(turn, tools, dialect), &mut body);
        // The instructions and the messages follow in the same object.
        body.pop();
        let options = body.len();
        let [before, after] = P::AROUND_INSTRUCTIONS;
        body.extend(before.bytes());
        let start = body.len();
        body.extend_from_slice(instructions.as_bytes());
        let instructions = start..body.len();
        body.extend(after.bytes());
        let start = body.len();
        P::write_messages(messages, &mut body);
        let messages = start..body.len();
        body.extend(b"]}");
        Self { body, options, instructions, messages }
    }

    /// The request with the gateway's own tools.
    #[cfg(test)]
    pub(crate) fn of<P: Protocol>(protocol: &P, turn: &AgentTurn, prompt: &Prompt<'_>, dialect: Dialect) -> Self {
        let tools = if protocol.settings().tools { crate::tools::offered(turn) } else { Vec::new() };
        Self::new(protocol, turn, &tools, prompt, dialect)
    }

    /// What the model gets to read, without the bytes of pictures.
    pub(crate) fn input<P: Protocol>(&self, prompt: &Prompt<'_>) -> ModelInput {
        let part = |part: Range<usize>| text(&self.body[part]);
        let settings = [part(0..self.options), ",\"system\":", part(self.instructions.clone()), "}"].concat();
        let list = |elements: &str| ["[", elements, "]"].concat();
        let messages = match prompt.with_notes() {
            None => list(part(self.messages.clone())),
            Some(messages) => {
                let mut noted = Vec::new();
                P::write_messages(&messages, &mut noted);
                list(text(&noted))
            }
        };
        ModelInput { settings, messages, left_out: 0 }
    }
}

/// Appends values as the elements of a JSON list, without its brackets.
pub(crate) fn write_elements<T: Serialize>(values: impl IntoIterator<Item = T>, body: &mut Vec<u8>) {
    for (number, value) in values.into_iter().enumerate() {
        if number > 0 {
            body.push(b',');
        }
        write(&value, body);
    }
}

/// What was written as JSON.
fn text(json: &[u8]) -> &str {
    std::str::from_utf8(json).expect("JSON is written as UTF-8")
}

/// Appends a value as JSON.
fn write<T: Serialize + ?Sized>(value: &T, body: &mut Vec<u8>) {
    serde_json::to_writer(body, value).expect("texts, numbers and lists serialise to JSON");
}
