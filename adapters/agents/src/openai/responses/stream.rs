//! Parses a server's answer, from stream events or from one unstreamed body. No I/O.
//!
//! The format is that of OpenAI's "Responses" reference ("The response object", "Streaming events").

use rejoinder_core::{Usage, json_error};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    model::{Answer, AnswerError, AnswerText, MAX_CALLS, Stage},
    prompt::messages::Written,
    report::AnswerUpdate,
    response::error_message,
    tools::ToolCall,
};

/// The data with which some servers end each stream, whatever its protocol.
const DONE: &str = "[DONE]";

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "response.created", alias = "response.queued", alias = "response.in_progress")]
    Begun,
    #[serde(rename = "response.output_item.added")]
    ItemBegun {
        #[serde(default)]
        output_index: usize,
        item: Item,
    },
    #[serde(rename = "response.output_text.delta", alias = "response.refusal.delta")]
    Text {
        #[serde(default)]
        output_index: usize,
        delta: String,
    },
    #[serde(rename = "response.reasoning_text.delta", alias = "response.reasoning_summary_text.delta")]
    Thought { delta: String },
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments {
        #[serde(default)]
        output_index: usize,
        delta: String,
    },
    #[serde(rename = "response.output_item.done")]
    ItemEnded {
        #[serde(default)]
        output_index: usize,
        item: Item,
    },
    #[serde(rename = "response.completed")]
    Completed { response: Response },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    #[serde(rename = "response.failed")]
    Failed { response: Response },
    #[serde(rename = "error")]
    Error(Value),
    /// An event that repeats others, or one of a later version.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Response {
    status: Option<String>,
    error: Option<Value>,
    incomplete_details: Option<IncompleteDetails>,
    output: Option<Vec<Item>>,
    usage: Option<Consumed>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Consumed {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message {
        content: Option<Vec<Part>>,
    },
    FunctionCall {
        call_id: Option<String>,
        name: Option<String>,
        arguments: Option<String>,
    },
    Reasoning {
        summary: Option<Value>,
        encrypted_content: Option<String>,
    },
    #[serde(other)]
    Other,
}

/// A part of a message. A refusal is said to the person.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    OutputText {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    #[serde(other)]
    Other,
}

/// The answer to one request, as received so far.
#[derive(Default)]
pub(crate) struct ResponseAnswer {
    text: AnswerText,
    has_begun: bool,
    items: Vec<Placed>,
}

/// An item of the answer with its number. Some servers number no items: then all are the first.
struct Placed {
    index: usize,
    item: OutputItem,
    /// Whether its end has arrived.
    is_whole: bool,
}

/// An item of the answer, as it is sent back.
enum OutputItem {
    Text(String),
    Call(ToolCall),
    Thought { summary: Value, encrypted: String },
}

impl Answer for ResponseAnswer {
    fn new(thinks_first: bool) -> Self {
        Self { text: AnswerText::new(thinks_first), ..Self::default() }
    }

    fn event(&mut self, data: &str) -> Result<AnswerUpdate, AnswerError> {
        let data = data.trim();
        if data.is_empty() || data == DONE {
            return Ok(AnswerUpdate::default());
        }
        let event = serde_json::from_str(data).map_err(|error| not_read(data, "an event of a response", &error))?;
        let (before, mut update) = (self.text.size, AnswerUpdate::default());
        self.has_begun |= !matches!(event, Event::Other);
        match event {
            Event::ItemBegun { output_index, item } => {
                self.text.size += 1;
                self.begin(output_index, item)?;
            }
            Event::Text { output_index, delta } => self.add_text(output_index, &delta, &mut update),
            Event::Thought { delta } => self.text.size += delta.len(),
            Event::Arguments { output_index, delta } => {
                self.text.size += delta.len();
                self.latest_call(output_index)?.arguments.push_str(&delta);
            }
            Event::ItemEnded { output_index, item } => self.end_item(output_index, item, &mut update)?,
            Event::Completed { response } => self.end(response, "completed", &mut update)?,
            Event::Incomplete { response } => self.end(response, "incomplete", &mut update)?,
            Event::Failed { response } => self.end(response, "failed", &mut update)?,
            Event::Error(error) => {
                return Err(AnswerError::Failed(error_message(&error).unwrap_or_else(|| error.to_string())));
            }
            Event::Begun | Event::Other => {}
        }
        self.text.end_event(before, &mut update)?;
        Ok(update)
    }

    fn whole(&mut self, body: &str) -> Result<AnswerUpdate, AnswerError> {
        let response: Response = serde_json::from_str(body).map_err(|error| not_read(body, "a response", &error))?;
        let (before, mut update) = (self.text.size, AnswerUpdate::default());
        if response.output.is_none() && response.error.as_ref().is_none_or(Value::is_null) {
            return Err(AnswerError::Broken("not a response: it has no `output`".to_owned()));
        }
        self.has_begun = true;
        self.end(response, "completed", &mut update)?;
        self.text.end_event(before, &mut update)?;
        Ok(update)
    }

    fn is_empty(&self) -> bool {
        !self.has_begun
    }

    fn text(&self) -> &AnswerText {
        &self.text
    }

    fn text_mut(&mut self) -> &mut AnswerText {
        &mut self.text
    }

    fn into_written(self) -> Written {
        let text = self.text.raw;
        if self.text.cut {
            return Written { text, ..Written::default() };
        }
        let (mut calls, mut blocks) = (Vec::new(), Vec::new());
        for placed in self.items {
            match placed.item {
                OutputItem::Text(text) if text.is_empty() => {}
                OutputItem::Text(text) => {
                    blocks.push(json!({ "type": "message", "role": "assistant", "content": text }));
                }
                OutputItem::Call(mut call) => {
                    if call.id.is_empty() {
                        call.id = format!("call_{}", calls.len());
                    }
                    blocks.push(json!({
                        "type": "function_call", "call_id": call.id, "name": call.given_name(), "arguments": call.object(),
                    }));
                    calls.push(call);
                }
                // Without its number: that names an item which the server has not stored.
                OutputItem::Thought { summary, encrypted } => {
                    blocks.push(json!({ "type": "reasoning", "summary": summary, "encrypted_content": encrypted }));
                }
            }
        }
        Written { text, calls, blocks }
    }
}

/// Why data cannot be read: it is the server's error, or no `what`.
fn not_read(data: &str, what: &str, error: &serde_json::Error) -> AnswerError {
    let failure = serde_json::from_str::<Value>(data).ok().and_then(|data| error_message(data.get("error")?));
    failure.map_or_else(|| AnswerError::Broken(format!("not {what}: {}", json_error(error))), AnswerError::Failed)
}

impl ResponseAnswer {
    /// Begins an item. Its text and its arguments may come in pieces, or only with its end.
    fn begin(&mut self, index: usize, item: Item) -> Result<(), AnswerError> {
        match item {
            Item::Message { .. } => self.push(index, OutputItem::Text(String::new())),
            Item::FunctionCall { call_id, name, arguments } => {
                let calls = self.items.iter().filter(|placed| matches!(placed.item, OutputItem::Call(_)));
                if calls.count() == MAX_CALLS {
                    return Err(AnswerError::Broken(format!("more than {MAX_CALLS} tool calls")));
                }
                let [id, name, arguments] = [call_id, name, arguments].map(Option::unwrap_or_default);
                self.text.size += id.len() + name.len() + arguments.len();
                self.push(index, OutputItem::Call(ToolCall { id, name, arguments }));
            }
            Item::Reasoning { .. } | Item::Other => {}
        }
        Ok(())
    }

    fn push(&mut self, index: usize, item: OutputItem) {
        self.items.push(Placed { index, item, is_whole: false });
    }

    /// The latest message of this index, and whether it is whole.
    fn message(&mut self, index: usize) -> Option<(&mut String, &mut bool)> {
        self.items.iter_mut().rev().filter(|placed| placed.index == index).find_map(|placed| match &mut placed.item {
            OutputItem::Text(text) => Some((text, &mut placed.is_whole)),
            _ => None,
        })
    }

    /// Adds to the latest message of this index, or begins another one if that is whole.
    fn add_text(&mut self, index: usize, text: &str, update: &mut AnswerUpdate) {
        if self.message(index).is_none_or(|(_, is_whole)| *is_whole) {
            self.push(index, OutputItem::Text(String::new()));
        }
        let Some((written, _)) = self.message(index) else { return };
        let begins = written.is_empty() && !text.is_empty();
        written.push_str(text);
        // Messages stand apart.
        if begins && !self.text.raw.is_empty() {
            self.text.push("\n\n", update);
        }
        self.text.push(text, update);
    }

    /// The calls of this index, the latest first, each with whether it is whole.
    fn calls(&mut self, index: usize) -> impl Iterator<Item = (&mut ToolCall, &mut bool)> {
        self.items.iter_mut().rev().filter(move |placed| placed.index == index).filter_map(|placed| {
            match &mut placed.item {
                OutputItem::Call(call) => Some((call, &mut placed.is_whole)),
                _ => None,
            }
        })
    }

    fn latest_call(&mut self, index: usize) -> Result<&mut ToolCall, AnswerError> {
        let latest = self.calls(index).next().map(|(call, _)| call);
        latest.ok_or_else(|| AnswerError::Broken(format!("the tool call {index} has no beginning")))
    }

    /// Ends an item, which is here whole.
    fn end_item(&mut self, index: usize, item: Item, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        match item {
            Item::Message { content } => {
                let parts = content.into_iter().flatten().filter_map(|part| match part {
                    Part::OutputText { text } | Part::Refusal { refusal: text } => Some(text),
                    Part::Other => None,
                });
                let whole: String = parts.collect();
                let is_known = self
                    .message(index)
                    .is_some_and(|(text, is_whole)| if *is_whole { *text == whole } else { !text.is_empty() });
                if !is_known {
                    self.add_text(index, &whole, update);
                }
                if let Some((_, is_whole)) = self.message(index) {
                    *is_whole = true;
                }
            }
            Item::FunctionCall { call_id, name, arguments } => {
                // Some servers name a call differently at its end.
                let is_same = |call: &ToolCall| call_id.as_ref().is_none_or(|id| id.is_empty() || *id == call.id);
                let mut known = self.calls(index).position(|(call, _)| is_same(call));
                if known.is_none() {
                    known = self.calls(index).position(|(_, is_whole)| !*is_whole);
                }
                let Some(known) = known else {
                    self.begin(index, Item::FunctionCall { call_id, name, arguments })?;
                    self.calls(index).take(1).for_each(|(_, is_whole)| *is_whole = true);
                    return Ok(());
                };
                let mut size = 0;
                if let Some((call, is_whole)) = self.calls(index).nth(known) {
                    *is_whole = true;
                    if call.arguments.is_empty() {
                        call.arguments = arguments.unwrap_or_default();
                        size = call.arguments.len();
                    }
                }
                self.text.size += size;
            }
            Item::Reasoning { summary, encrypted_content: Some(encrypted) } if !encrypted.is_empty() => {
                let summary = summary.filter(Value::is_array).unwrap_or_else(|| json!([]));
                self.text.size += encrypted.len();
                self.push(index, OutputItem::Thought { summary, encrypted });
            }
            Item::Reasoning { .. } | Item::Other => {}
        }
        Ok(())
    }

    /// Ends the answer. `usual`: the status, if the response does not say it.
    fn end(&mut self, response: Response, usual: &str, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        let Response { status, error, incomplete_details, output, usage } = response;
        self.text.usage = usage.map(|Consumed { input_tokens, output_tokens }| Usage {
            input_tokens: input_tokens.unwrap_or(0),
            output_tokens: output_tokens.unwrap_or(0),
        });
        if let Some(error) = error.filter(|error| !error.is_null()) {
            return Err(AnswerError::Failed(error_message(&error).unwrap_or_else(|| error.to_string())));
        }
        // What was not streamed.
        let (is_empty, has_text) = (self.items.is_empty(), !self.text.raw.is_empty());
        let has_calls = self.items.iter().any(|placed| matches!(placed.item, OutputItem::Call(_)));
        for (index, item) in output.into_iter().flatten().enumerate() {
            let is_missing = match &item {
                Item::Message { .. } => !has_text,
                Item::FunctionCall { .. } => !has_calls,
                Item::Reasoning { .. } | Item::Other => is_empty,
            };
            if is_missing {
                self.end_item(index, item, update)?;
            }
        }
        let reason = incomplete_details.and_then(|details| details.reason);
        match (status.as_deref().unwrap_or(usual), reason.as_deref()) {
            (_, Some("content_filter")) => {
                return Err(AnswerError::Refused("the server's content filter stopped the answer".to_owned()));
            }
            ("completed", _) => {}
            ("incomplete", reason) if self.text.raw.trim().is_empty() => {
                let reason = reason.unwrap_or("incomplete");
                return Err(AnswerError::Broken(format!("it ended before any text ({reason})")));
            }
            ("incomplete", _) => self.text.cut = true,
            (status, _) => {
                return Err(AnswerError::Failed(format!("the server says that the answer is {status}")));
            }
        }
        self.text.size += 1;
        self.text.stage = Stage::Done;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
