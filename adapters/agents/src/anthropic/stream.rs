//! Parses a server's answer, from stream events or from one unstreamed body. No I/O.
//!
//! The format is that of Anthropic's pages "Streaming messages" and "Handling stop reasons".

use rejoinder_core::{Usage, json_error};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    model::{Answer, AnswerError, AnswerText, MAX_CALLS, Stage},
    prompt::messages::Written,
    report::AnswerUpdate,
    response::error_message,
    tools::ToolCall,
};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockStart {
        content_block: Map<String, Value>,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    MessageDelta {
        delta: MessageEnd,
        usage: Option<Consumed>,
    },
    MessageStop,
    /// The answer in one piece.
    Message {
        content: Vec<Map<String, Value>>,
        #[serde(flatten)]
        end: MessageEnd,
        usage: Option<Consumed>,
    },
    Error {
        error: Value,
    },
    /// A `ping`, the end of a block, or an event of a later version, which clients must ignore.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageStart {
    usage: Option<Consumed>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
struct MessageEnd {
    stop_reason: Option<String>,
    /// Why the model refuses; only some models say it.
    stop_details: Option<StopDetails>,
}

#[derive(Deserialize)]
struct StopDetails {
    explanation: Option<String>,
}

/// Tokens. Those that are missing in the last event are as in the first.
#[derive(Clone, Copy, Default, Deserialize)]
struct Consumed {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_written: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
}

impl Consumed {
    fn or(self, earlier: Self) -> Self {
        Self {
            input: self.input.or(earlier.input),
            cache_written: self.cache_written.or(earlier.cache_written),
            cache_read: self.cache_read.or(earlier.cache_read),
            output: self.output.or(earlier.output),
        }
    }

    fn usage(self) -> Usage {
        let input = [self.input, self.cache_written, self.cache_read];
        Usage {
            input_tokens: input.into_iter().flatten().fold(0, u64::saturating_add),
            output_tokens: self.output.unwrap_or(0),
        }
    }
}

/// The answer to one request, as received so far.
#[derive(Default)]
pub(crate) struct MessageAnswer {
    text: AnswerText,
    has_begun: bool,
    blocks: Vec<Block>,
    consumed: Consumed,
    is_paused: bool,
}

#[derive(Default)]
struct Block {
    fields: Map<String, Value>,
    /// The input of a tool as JSON text, if it comes in pieces.
    input: String,
}

impl Block {
    fn is(&self, kind: &str) -> bool {
        self.fields.get("type").is_some_and(|found| found == kind)
    }

    fn text_of(&self, key: &str) -> &str {
        self.fields.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn append(&mut self, key: &str, more: &str) {
        match self.fields.get_mut(key) {
            Some(Value::String(text)) => text.push_str(more),
            _ => _ = self.fields.insert(key.to_owned(), more.into()),
        }
    }

    fn is_call(&self) -> bool {
        self.is("tool_use")
    }

    fn call(&self) -> ToolCall {
        let arguments = match self.fields.get("input") {
            Some(whole) if self.input.is_empty() => whole.to_string(),
            _ => self.input.clone(),
        };
        ToolCall { id: self.text_of("id").to_owned(), name: self.text_of("name").to_owned(), arguments }
    }

    /// The block to send back. `None` for an empty text, which the API refuses.
    fn given(mut self) -> Option<Value> {
        if self.is("text") && self.text_of("text").trim().is_empty() {
            return None;
        }
        if !self.input.is_empty() {
            let input = serde_json::from_str::<Map<String, Value>>(&self.input).unwrap_or_default();
            self.fields.insert("input".to_owned(), input.into());
        }
        Some(self.fields.into())
    }
}

impl Answer for MessageAnswer {
    fn new(thinks_first: bool) -> Self {
        Self { text: AnswerText::new(thinks_first), ..Self::default() }
    }

    fn event(&mut self, data: &str) -> Result<AnswerUpdate, AnswerError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(AnswerUpdate::default());
        }
        let event = serde_json::from_str(data)
            .map_err(|error| AnswerError::Broken(format!("not an event of a message: {}", json_error(&error))))?;
        let (before, mut update) = (self.text.size, AnswerUpdate::default());
        match event {
            Event::MessageStart { message } => {
                self.has_begun = true;
                self.consume(message.usage);
            }
            Event::ContentBlockStart { content_block } => {
                self.text.size += data.len();
                self.begin(content_block, &mut update)?;
            }
            Event::ContentBlockDelta { index, delta } => self.add(index, delta, &mut update)?,
            Event::MessageDelta { delta, usage } => {
                self.consume(usage);
                self.end(delta)?;
            }
            Event::MessageStop => self.text.stage = Stage::Done,
            Event::Message { content, end, usage } => {
                self.has_begun = true;
                self.consume(usage);
                self.text.size += content.len();
                for block in content {
                    self.begin(block, &mut update)?;
                }
                self.end(end)?;
                self.text.stage = Stage::Done;
            }
            Event::Error { error } => {
                return Err(AnswerError::Failed(error_message(&error).unwrap_or_else(|| error.to_string())));
            }
            Event::Other => {}
        }
        self.text.end_event(before, &mut update)?;
        Ok(update)
    }

    fn whole(&mut self, body: &str) -> Result<AnswerUpdate, AnswerError> {
        self.event(body)
    }

    fn is_empty(&self) -> bool {
        !self.has_begun
    }

    fn is_paused(&self) -> bool {
        self.is_paused
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
        let calls = self.blocks.iter().filter(|block| block.is_call()).map(Block::call).collect();
        let blocks = self.blocks.into_iter().filter_map(Block::given).collect();
        Written { text, calls, blocks }
    }
}

impl MessageAnswer {
    fn begin(&mut self, fields: Map<String, Value>, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        let mut block = Block { fields, input: String::new() };
        if block.is_call() && self.blocks.iter().filter(|block| block.is_call()).count() == MAX_CALLS {
            return Err(AnswerError::Broken(format!("more than {MAX_CALLS} tool calls")));
        }
        let text = if block.is("text") { block.fields.remove("text") } else { None };
        self.blocks.push(block);
        match text.as_ref().and_then(Value::as_str) {
            Some(text) => self.add_text(self.blocks.len() - 1, text, update),
            None => Ok(()),
        }
    }

    fn add(&mut self, index: usize, delta: Delta, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        let (key, more) = match delta {
            Delta::Text { text } => return self.add_text(index, &text, update),
            Delta::Input { partial_json } => {
                self.text.size += partial_json.len();
                self.block(index)?.input.push_str(&partial_json);
                return Ok(());
            }
            Delta::Thinking { thinking } => {
                update.thought.push_str(&thinking);
                ("thinking", thinking)
            }
            Delta::Signature { signature } => ("signature", signature),
            Delta::Other => return Ok(()),
        };
        self.text.size += more.len();
        self.block(index)?.append(key, &more);
        Ok(())
    }

    fn add_text(&mut self, index: usize, text: &str, update: &mut AnswerUpdate) -> Result<(), AnswerError> {
        let follows_text =
            index.checked_sub(1).is_some_and(|last| self.blocks.get(last).is_some_and(|it| it.is("text")));
        let block = self.block(index)?;
        let begins = block.text_of("text").is_empty() && !text.is_empty();
        block.append("text", text);
        // What stands between is a thought or a call.
        if begins && !follows_text && !self.text.raw.is_empty() {
            self.text.push("\n\n", update);
        }
        self.text.push(text, update);
        Ok(())
    }

    fn block(&mut self, index: usize) -> Result<&mut Block, AnswerError> {
        let unknown = || AnswerError::Broken(format!("block {index} has no beginning"));
        self.blocks.get_mut(index).ok_or_else(unknown)
    }

    fn consume(&mut self, consumed: Option<Consumed>) {
        if let Some(consumed) = consumed {
            self.consumed = consumed.or(self.consumed);
            self.text.usage = Some(self.consumed.usage());
        }
    }

    fn end(&mut self, end: MessageEnd) -> Result<(), AnswerError> {
        match end.stop_reason.as_deref() {
            Some(reason @ ("max_tokens" | "model_context_window_exceeded")) => {
                if self.text.raw.trim().is_empty() {
                    return Err(AnswerError::Broken(format!("it ended before any text ({reason})")));
                }
                self.text.cut = true;
            }
            Some("refusal") => {
                let explanation = end.stop_details.and_then(|details| details.explanation);
                return Err(AnswerError::Refused(
                    explanation.unwrap_or_else(|| "the model refuses to answer".to_owned()),
                ));
            }
            Some("pause_turn") => self.is_paused = true,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::report::MAX_ANSWER;

    fn read(answer: &mut MessageAnswer, events: &[Value]) -> String {
        events.iter().map(|event| answer.event(&event.to_string()).expect("it is an event").show).collect()
    }

    fn begin(index: usize, block: &Value) -> Value {
        json!({ "type": "content_block_start", "index": index, "content_block": block })
    }

    fn delta(index: usize, delta: &Value) -> Value {
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    }

    fn text(index: usize, text: &str) -> [Value; 2] {
        [
            begin(index, &json!({ "type": "text", "text": "" })),
            delta(index, &json!({ "type": "text_delta", "text": text })),
        ]
    }

    fn end(reason: &str) -> Value {
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null } })
    }

    #[test]
    fn thoughts_are_kept_for_the_server_and_never_shown() {
        let mut answer = MessageAnswer::default();
        let mut events = vec![
            begin(0, &json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(0, &json!({ "type": "thinking_delta", "thinking": "Let me " })),
            delta(0, &json!({ "type": "thinking_delta", "thinking": "see." })),
            delta(0, &json!({ "type": "signature_delta", "signature": "EqQBCg" })),
            json!({ "type": "content_block_stop", "index": 0 }),
            begin(1, &json!({ "type": "redacted_thinking", "data": "EmwKAhgB" })),
        ];
        events.extend(text(2, "Yes."));
        let shown = read(&mut answer, &events) + &answer.text.visible.end();

        assert_eq!(shown, "Yes.");
        let written = answer.into_written();
        assert_eq!(written.text, "Yes.");
        assert_eq!(
            json!(written.blocks),
            json!([
                { "type": "thinking", "thinking": "Let me see.", "signature": "EqQBCg" },
                { "type": "redacted_thinking", "data": "EmwKAhgB" },
                { "type": "text", "text": "Yes." },
            ])
        );
    }

    #[rstest]
    #[case(&["{\"emo", "ji\":\"👍\"}"], "{\"emoji\":\"👍\"}", json!({ "emoji": "👍" }))]
    #[case(&[""], "{}", json!({}))]
    #[case(&["{\"emo"], "{\"emo", json!({}))]
    fn a_tool_call_is_put_together_from_its_pieces(
        #[case] pieces: &[&str],
        #[case] arguments: &str,
        #[case] given: Value,
    ) {
        let mut answer = MessageAnswer::default();
        let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "react", "input": {} });
        let pieces = pieces.iter().map(|json| delta(0, &json!({ "type": "input_json_delta", "partial_json": json })));
        let events: Vec<_> = [begin(0, &call)].into_iter().chain(pieces).collect();
        read(&mut answer, &events);

        let written = answer.into_written();
        let expected = ToolCall { id: "toolu_1".into(), name: "react".into(), arguments: arguments.into() };
        assert_eq!(written.calls, [expected]);
        assert_eq!(written.blocks[0]["input"], given, "what is no object is not given back");
    }

    #[test]
    fn texts_around_a_call_stand_apart() {
        let mut answer = MessageAnswer::default();
        let call = begin(2, &json!({ "type": "tool_use", "id": "toolu_1", "name": "send", "input": {} }));
        let events = [&text(0, "One")[..], &text(1, " and"), &[call], &text(3, "two.")].concat();
        assert_eq!(read(&mut answer, &events) + &answer.text.visible.end(), "One and\n\ntwo.");
    }

    /// Tokens of the prompt cache are read by the model, too.
    #[test]
    fn cached_tokens_are_input() {
        let mut answer = MessageAnswer::default();
        let cached = json!({
            "input_tokens": 7, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 1,
        });
        let start = json!({ "type": "message_start", "message": { "usage": cached } });
        let end =
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 9 } });
        for (event, output_tokens) in [(start, 1), (end, 9)] {
            let usage = answer.event(&event.to_string()).expect("it is an event").usage;
            assert_eq!(usage, Some(Usage { input_tokens: 327, output_tokens }));
        }
    }

    #[rstest]
    #[case(json!({ "type": "ping" }))]
    #[case(json!({ "type": "message_start", "message": { "content": [], "stop_reason": null } }))]
    #[case(json!({ "type": "content_block_stop", "index": 0 }))]
    #[case(json!({ "type": "a_later_event", "index": [] }))]
    fn what_says_nothing_is_no_progress(#[case] event: Value) {
        let update = MessageAnswer::default().event(&event.to_string());
        assert_eq!(update, Ok(AnswerUpdate::default()));
    }

    #[test]
    fn only_the_last_event_ends_an_answer() {
        let mut answer = MessageAnswer::default();
        read(&mut answer, &text(0, "Hi"));
        read(&mut answer, &[end("end_turn")]);
        assert!(!answer.text.is_finished());
        read(&mut answer, &[json!({ "type": "message_stop" })]);
        assert!(answer.text.is_done() && !answer.text.cut);
    }

    #[test]
    fn an_answer_in_one_piece_is_read() {
        let mut answer = MessageAnswer::default();
        let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "react", "input": { "emoji": "👍" } });
        let body = json!({
            "type": "message", "role": "assistant", "content": [{ "type": "text", "text": "Hi" }, call.clone()],
            "stop_reason": "tool_use", "usage": { "input_tokens": 1, "output_tokens": 2 },
        });
        let update = answer.whole(&body.to_string()).expect("it is a message");
        assert_eq!((update.show + &answer.text.visible.end(), answer.text.is_done()), ("Hi".to_owned(), true));
        assert_eq!(update.usage, Some(Usage { input_tokens: 1, output_tokens: 2 }));
        let written = answer.into_written();
        assert_eq!(written.calls[0].arguments, r#"{"emoji":"👍"}"#);
        assert_eq!(written.blocks, [json!({ "type": "text", "text": "Hi" }), call]);
    }

    #[rstest]
    #[case("max_tokens")]
    #[case("model_context_window_exceeded")]
    fn an_answer_without_room_is_cut(#[case] reason: &str) {
        let mut answer = MessageAnswer::default();
        read(&mut answer, &text(0, "Once upon"));
        read(
            &mut answer,
            &[begin(1, &json!({ "type": "tool_use", "id": "t", "name": "send", "input": {} })), end(reason)],
        );
        assert!(answer.text.cut);
        let written = answer.into_written();
        assert_eq!((&*written.text, written.calls.len(), written.blocks.len()), ("Once upon", 0, 0));

        let thought = begin(0, &json!({ "type": "thinking", "thinking": "Hm", "signature": "" }));
        let mut answer = MessageAnswer::default();
        read(&mut answer, &[thought]);
        assert!(matches!(answer.event(&end(reason).to_string()), Err(AnswerError::Broken(_))), "there is no text");
    }

    #[test]
    fn a_refusal_is_an_error_even_after_text() {
        let mut answer = MessageAnswer::default();
        read(&mut answer, &text(0, "First you"));
        let refused = answer.event(&end("refusal").to_string());
        assert_eq!(refused, Err(AnswerError::Refused("the model refuses to answer".into())));
        let details = json!({ "type": "refusal", "category": "bio", "explanation": "Not that." });
        let end = json!({ "type": "message_delta", "delta": { "stop_reason": "refusal", "stop_details": details } });
        assert_eq!(MessageAnswer::default().event(&end.to_string()), Err(AnswerError::Refused("Not that.".into())));
    }

    #[rstest]
    #[case("refusal")]
    #[case("max_tokens")]
    fn the_usage_of_an_answer_that_fails_is_kept(#[case] reason: &str) {
        let consumed = json!({ "input_tokens": 7, "output_tokens": 9 });
        let end = json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": consumed });
        let whole = json!({ "type": "message", "content": [], "stop_reason": reason, "usage": consumed });
        for event in [end, whole] {
            let mut answer = MessageAnswer::default();
            assert!(answer.event(&event.to_string()).is_err());
            assert_eq!(answer.text.usage, Some(Usage { input_tokens: 7, output_tokens: 9 }));
        }
    }

    #[test]
    fn an_error_within_a_stream_is_the_servers() {
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        assert_eq!(MessageAnswer::default().event(&error.to_string()), Err(AnswerError::Failed("Overloaded".into())));
    }

    #[test]
    fn what_is_no_message_or_thinks_too_much_is_broken() {
        for wrong in [json!(7), json!({ "choices": [] }), delta(0, &json!({ "type": "text_delta", "text": "x" }))] {
            let read = MessageAnswer::default().event(&wrong.to_string());
            assert!(matches!(read, Err(AnswerError::Broken(_))), "{wrong}: {read:?}");
        }
        let mut answer = MessageAnswer::default();
        read(&mut answer, &[begin(0, &json!({ "type": "thinking", "thinking": "" }))]);
        let half = delta(0, &json!({ "type": "thinking_delta", "thinking": "x".repeat(MAX_ANSWER / 2) })).to_string();
        assert!(answer.event(&half).is_ok());
        assert!(matches!(answer.event(&half), Err(AnswerError::Broken(_))));
    }
}
