//! Parses a server's answer, from stream events or from one unstreamed body. No I/O.
//!
//! The format is that of OpenAI's "Responses" reference ("The response object", "Streaming events").

use rejoinder_core::{Usage, json_error};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    model::{Answer, AnswerError, AnswerText, MAX_CALLS, Stage, error_message},
    prompt::messages::Written,
    report::AnswerUpdate,
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
    #[serde(rename = "response.completed", alias = "response.incomplete", alias = "response.failed")]
    Ended { response: Response },
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
    items: Vec<(usize, OutputItem)>,
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
                self.call(output_index)?.arguments.push_str(&delta);
            }
            Event::ItemEnded { output_index, item } => self.end_item(output_index, item, &mut update)?,
            Event::Ended { response } => self.end(response, &mut update)?,
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
        self.end(response, &mut update)?;
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
        for (_, item) in self.items {
            match item {
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
            Item::Message { .. } => self.items.push((index, OutputItem::Text(String::new()))),
            Item::FunctionCall { call_id, name, arguments } => {
                let calls = self.items.iter().filter(|(_, item)| matches!(item, OutputItem::Call(_)));
                if calls.count() == MAX_CALLS {
                    return Err(AnswerError::Broken(format!("more than {MAX_CALLS} tool calls")));
                }
                let [id, name, arguments] = [call_id, name, arguments].map(Option::unwrap_or_default);
                self.text.size += id.len() + name.len() + arguments.len();
                self.items.push((index, OutputItem::Call(ToolCall { id, name, arguments })));
            }
            Item::Reasoning { .. } | Item::Other => {}
        }
        Ok(())
    }

    fn add_text(&mut self, index: usize, text: &str, update: &mut AnswerUpdate) {
        let known = self.items.iter().rposition(|(at, item)| *at == index && matches!(item, OutputItem::Text(_)));
        let known = known.unwrap_or_else(|| {
            self.items.push((index, OutputItem::Text(String::new())));
            self.items.len() - 1
        });
        let OutputItem::Text(written) = &mut self.items[known].1 else { return };
        let begins = written.is_empty() && !text.is_empty();
        written.push_str(text);
        // Messages stand apart.
        if begins && !self.text.raw.is_empty() {
            self.text.push("\n\n", update);
        }
        self.text.push(text, update);
    }

    /// The latest call of this index.
    fn call(&mut self, index: usize) -> Result<&mut ToolCall, AnswerError> {
        let mut latest = self.items.iter_mut().rev();
        let call = latest.find_map(|item| match item {
            (at, OutputItem::Call(call)) if *at == index => Some(call),
            _ => None,
        });
        call.ok_or_else(|| AnswerError::Broken(format!("the tool call {index} has no beginning")))
    }

    /// Ends an item, which is here whole.
    fn end_item(&mut self, index: usize, item: Item, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        match item {
            Item::Message { content } => {
                let has_text = |(at, item): &(usize, OutputItem)| {
                    *at == index && matches!(item, OutputItem::Text(text) if !text.is_empty())
                };
                if self.items.iter().any(has_text) {
                    return Ok(());
                }
                for part in content.unwrap_or_default() {
                    match part {
                        Part::OutputText { text } | Part::Refusal { refusal: text } => {
                            self.add_text(index, &text, update);
                        }
                        Part::Other => {}
                    }
                }
            }
            Item::FunctionCall { arguments, .. } if self.call(index).is_ok() => {
                let call = self.call(index)?;
                if call.arguments.is_empty() {
                    call.arguments = arguments.unwrap_or_default();
                    let size = call.arguments.len();
                    self.text.size += size;
                }
            }
            item @ Item::FunctionCall { .. } => self.begin(index, item)?,
            Item::Reasoning { summary, encrypted_content: Some(encrypted) } if !encrypted.is_empty() => {
                let summary = summary.filter(Value::is_array).unwrap_or_else(|| json!([]));
                self.text.size += encrypted.len();
                self.items.push((index, OutputItem::Thought { summary, encrypted }));
            }
            Item::Reasoning { .. } | Item::Other => {}
        }
        Ok(())
    }

    /// Ends the answer.
    fn end(&mut self, response: Response, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        let Response { status, error, incomplete_details, output, usage } = response;
        if let Some(error) = error.filter(|error| !error.is_null()) {
            return Err(AnswerError::Failed(error_message(&error).unwrap_or_else(|| error.to_string())));
        }
        if self.items.is_empty() {
            for (index, item) in output.into_iter().flatten().enumerate() {
                self.end_item(index, item, update)?;
            }
        }
        update.usage = usage.map(|Consumed { input_tokens, output_tokens }| Usage {
            input_tokens: input_tokens.unwrap_or(0),
            output_tokens: output_tokens.unwrap_or(0),
        });
        let reason = incomplete_details.and_then(|details| details.reason);
        match (status.as_deref(), reason.as_deref()) {
            (Some("completed") | None, None) => {}
            (_, Some("content_filter")) => {
                return Err(AnswerError::Refused("the server's content filter stopped the answer".to_owned()));
            }
            (Some("incomplete"), reason) if self.text.raw.trim().is_empty() => {
                let reason = reason.unwrap_or("incomplete");
                return Err(AnswerError::Broken(format!("it ended before any text ({reason})")));
            }
            (Some("incomplete"), _) => self.text.cut = true,
            (status, _) => {
                let status = status.unwrap_or_default();
                return Err(AnswerError::Failed(format!("the server says that the answer is {status:?}")));
            }
        }
        self.text.size += 1;
        self.text.stage = Stage::Done;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::report::MAX_ANSWER;

    fn read(answer: &mut ResponseAnswer, events: &[Value]) -> String {
        events.iter().map(|event| answer.event(&event.to_string()).expect("it is an event").show).collect()
    }

    fn begun(index: usize, item: &Value) -> Value {
        json!({ "type": "response.output_item.added", "output_index": index, "item": item })
    }

    fn ended(index: usize, item: &Value) -> Value {
        json!({ "type": "response.output_item.done", "output_index": index, "item": item })
    }

    fn delta(kind: &str, index: usize, delta: &str) -> Value {
        json!({ "type": format!("response.{kind}.delta"), "output_index": index, "delta": delta })
    }

    fn completed() -> Value {
        json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } })
    }

    fn incomplete(reason: &str) -> Value {
        let response = json!({ "status": "incomplete", "incomplete_details": { "reason": reason }, "output": [] });
        json!({ "type": "response.incomplete", "response": response })
    }

    fn call(arguments: &str) -> Value {
        json!({ "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "react", "arguments": arguments })
    }

    #[test]
    fn thoughts_are_kept_for_the_server_and_never_shown() {
        let mut answer = ResponseAnswer::default();
        let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" });
        let shown = read(
            &mut answer,
            &[
                json!({ "type": "response.created", "response": { "status": "in_progress" } }),
                begun(0, &json!({ "type": "reasoning", "id": "rs_1", "summary": [] })),
                delta("reasoning_summary_text", 0, "Let me see."),
                delta("reasoning_text", 0, "Hm."),
                ended(0, &thought),
                begun(1, &json!({ "type": "message", "id": "msg_1", "content": [] })),
                delta("output_text", 1, "Ye"),
                delta("output_text", 1, "s."),
                ended(1, &json!({ "type": "message", "content": [{ "type": "output_text", "text": "Yes." }] })),
                completed(),
            ],
        );

        assert_eq!(shown + &answer.text.visible.end(), "Yes.");
        assert!(answer.text.is_done());
        let written = answer.into_written();
        assert_eq!(written.text, "Yes.");
        let expected = json!([
            { "type": "reasoning", "summary": [], "encrypted_content": "gAAA" },
            { "type": "message", "role": "assistant", "content": "Yes." },
        ]);
        assert_eq!(json!(written.blocks), expected);
    }

    #[rstest]
    #[case::in_pieces(&["{\"emo", "ji\":\"👍\"}"], "{\"emoji\":\"👍\"}", "{\"emoji\":\"👍\"}")]
    #[case::at_its_end(&[], "{\"emoji\":\"👍\"}", "{\"emoji\":\"👍\"}")]
    #[case::broken(&["{\"emo"], "{\"emo", "{}")]
    fn a_tool_call_is_put_together(#[case] pieces: &[&str], #[case] arguments: &str, #[case] given: &str) {
        let mut answer = ResponseAnswer::default();
        let pieces = pieces.iter().map(|piece| delta("function_call_arguments", 0, piece));
        let events: Vec<_> =
            [begun(0, &call(""))].into_iter().chain(pieces).chain([ended(0, &call(arguments))]).collect();
        read(&mut answer, &events);
        read(&mut answer, &[completed()]);

        let written = answer.into_written();
        assert_eq!(written.calls, [ToolCall { id: "c1".into(), name: "react".into(), arguments: arguments.into() }]);
        let block = json!({ "type": "function_call", "call_id": "c1", "name": "react", "arguments": given });
        assert_eq!(written.blocks, [block], "what is no object is not given back");
    }

    #[test]
    fn messages_stand_apart_and_a_refusal_is_said() {
        let mut answer = ResponseAnswer::default();
        let events = [
            delta("output_text", 0, "One"),
            delta("output_text", 0, " more."),
            begun(1, &call("{}")),
            delta("refusal", 2, "I cannot."),
        ];
        assert_eq!(read(&mut answer, &events) + &answer.text.visible.end(), "One more.\n\nI cannot.");
    }

    #[test]
    fn an_answer_in_one_piece_is_read() {
        let body = json!({
            "object": "response", "status": "completed", "error": null, "incomplete_details": null,
            "output": [
                { "type": "reasoning", "id": "rs_1", "summary": [] },
                { "type": "message", "content": [{ "type": "output_text", "text": "Hi", "annotations": [] }] },
                call("{\"emoji\":\"👍\"}"),
            ],
            "usage": { "input_tokens": 1, "output_tokens": 2, "total_tokens": 3 },
        });
        let streamed = json!({ "type": "response.completed", "response": body });
        let whole: fn(&mut ResponseAnswer, &str) -> _ = |answer, data| answer.whole(data);
        let event: fn(&mut ResponseAnswer, &str) -> _ = |answer, data| answer.event(data);
        for (read, data) in [(whole, body), (event, streamed)] {
            let mut answer = ResponseAnswer::default();
            let update = read(&mut answer, &data.to_string()).expect("it is a response");
            assert_eq!((update.show + &answer.text.visible.end(), answer.text.is_done()), ("Hi".to_owned(), true));
            assert_eq!(update.usage, Some(Usage { input_tokens: 1, output_tokens: 2 }));
            let written = answer.into_written();
            assert_eq!((&*written.calls[0].arguments, written.blocks.len()), (r#"{"emoji":"👍"}"#, 2));
        }
    }

    #[rstest]
    #[case(json!({ "type": "response.in_progress", "response": {} }))]
    #[case(json!({ "type": "response.output_text.done", "text": "Hi" }))]
    #[case(json!({ "type": "a_later_event", "output_index": [] }))]
    fn what_says_nothing_is_no_progress(#[case] event: Value) {
        let update = ResponseAnswer::default().event(&event.to_string());
        assert_eq!(update, Ok(AnswerUpdate::default()));
    }

    #[test]
    fn only_the_last_event_ends_an_answer() {
        let mut answer = ResponseAnswer::default();
        read(&mut answer, &[delta("output_text", 0, "Hi"), json!({ "type": "response.output_text.done" })]);
        assert_eq!(answer.event("[DONE]"), Ok(AnswerUpdate::default()));
        assert!(!answer.text.is_finished());
        read(&mut answer, &[completed()]);
        assert!(answer.text.is_done() && !answer.text.cut);
    }

    #[test]
    fn an_answer_without_room_is_cut() {
        let mut answer = ResponseAnswer::default();
        read(
            &mut answer,
            &[delta("output_text", 0, "Once upon"), begun(1, &call("{")), incomplete("max_output_tokens")],
        );
        assert!(answer.text.cut && answer.text.is_done());
        let written = answer.into_written();
        assert_eq!((&*written.text, written.calls.len(), written.blocks.len()), ("Once upon", 0, 0));

        let cut = ResponseAnswer::default().event(&incomplete("max_output_tokens").to_string());
        assert_eq!(cut, Err(AnswerError::Broken("it ended before any text (max_output_tokens)".into())));
        let mut answer = ResponseAnswer::default();
        read(&mut answer, &[delta("output_text", 0, "First you")]);
        let filtered = answer.event(&incomplete("content_filter").to_string());
        assert_eq!(filtered, Err(AnswerError::Refused("the server's content filter stopped the answer".into())));
    }

    #[rstest]
    #[case(json!({ "type": "error", "code": "server_error", "message": "Overloaded", "param": null }))]
    #[case(json!({ "type": "error", "error": { "message": "Overloaded" } }))]
    #[case(json!({ "error": { "message": "Overloaded" } }))]
    #[case(json!({
        "type": "response.failed", "response": { "status": "failed", "error": { "code": "x", "message": "Overloaded" } },
    }))]
    fn an_error_within_a_stream_is_the_servers(#[case] event: Value) {
        assert_eq!(ResponseAnswer::default().event(&event.to_string()), Err(AnswerError::Failed("Overloaded".into())));
    }

    #[test]
    fn a_response_that_was_cancelled_has_failed() {
        let body = json!({ "status": "cancelled", "output": [] }).to_string();
        assert!(matches!(ResponseAnswer::default().whole(&body), Err(AnswerError::Failed(_))));
    }

    #[test]
    fn what_is_no_response_or_thinks_too_much_is_broken() {
        let too_many = |number| begun(number, &call("{}")).to_string();
        let mut many = ResponseAnswer::default();
        assert!((0..MAX_CALLS).all(|number| many.event(&too_many(number)).is_ok()));
        assert!(matches!(many.event(&too_many(MAX_CALLS)), Err(AnswerError::Broken(_))));
        for wrong in [json!(7), json!({ "choices": [] }), delta("function_call_arguments", 0, "{")] {
            let read = ResponseAnswer::default().event(&wrong.to_string());
            assert!(matches!(read, Err(AnswerError::Broken(_))), "{wrong}: {read:?}");
        }
        assert!(matches!(ResponseAnswer::default().whole("{\"choices\":[]}"), Err(AnswerError::Broken(_))));

        let mut answer = ResponseAnswer::default();
        let half = delta("reasoning_text", 0, &"x".repeat(MAX_ANSWER / 2 + 1)).to_string();
        assert!(answer.event(&half).is_ok());
        assert!(matches!(answer.event(&half), Err(AnswerError::Broken(_))));
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let mut answer = ResponseAnswer::default();
        let half = delta("output_text", 0, &"x".repeat(MAX_ANSWER / 2 + 1));
        read(&mut answer, &[half.clone(), half]);
        assert!(answer.text.cut && answer.text.is_done());
        assert_eq!(answer.into_written().text.len(), MAX_ANSWER);
    }
}
