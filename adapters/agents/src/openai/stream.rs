//! Parses a server's answer, from stream events or from one unstreamed body. No I/O.
//!
//! The format is that of OpenAI's "Chat Completions" reference ("The chat completion object", "The chat completion chunk
//! object"). The parser is lenient, because servers that imitate the API deviate from it.

use std::borrow::Cow;

use rejoinder_core::{Usage, json_error};
use serde::{Deserialize, Deserializer, de};

use crate::{
    model::{Answer, AnswerError, AnswerText, MAX_CALLS, Stage},
    prompt::messages::Written,
    report::AnswerUpdate,
    response::error_message,
    tools::ToolCall,
};

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

#[derive(Debug, Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Consumed>,
    error: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    index: Option<u32>,
    /// In a stream.
    #[serde(borrow)]
    delta: Option<CompletionMessage<'a>>,
    /// In an unstreamed answer.
    #[serde(borrow)]
    message: Option<CompletionMessage<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionMessage<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    /// Why the model refuses to answer; shown to the person.
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    /// Sent by DeepSeek, vLLM and llama.cpp.
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    /// Sent by OpenRouter and Ollama.
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    index: Option<u32>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Debug, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    /// A piece of JSON text; some servers send the object itself.
    arguments: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Consumed {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

/// A text. Mistral sends a list of parts, of which those of type `text` are joined.
#[derive(Debug)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut text = String::new();
                while let Some(part) = parts.next_element::<serde_json::Value>()? {
                    if part.get("type").is_some_and(|kind| kind == "text") {
                        text.push_str(part.get("text").and_then(serde_json::Value::as_str).unwrap_or_default());
                    }
                }
                Ok(Text(Cow::Owned(text)))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// The answer to one request, as received so far.
#[derive(Debug, Default)]
pub(crate) struct ChatAnswer {
    text: AnswerText,
    calls: Vec<Slot>,
    /// Whether anything in it was a completion.
    has_choices: bool,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u32>,
    call: ToolCall,
}

impl Answer for ChatAnswer {
    fn new(thinks_first: bool) -> Self {
        Self { text: AnswerText::new(thinks_first), ..Self::default() }
    }

    fn event(&mut self, data: &str) -> Result<AnswerUpdate, AnswerError> {
        let data = data.trim();
        if data == DONE {
            self.text.stage = Stage::Done;
            return Ok(AnswerUpdate::default());
        }
        if data.is_empty() {
            return Ok(AnswerUpdate::default());
        }
        self.parse(data)
    }

    fn whole(&mut self, body: &str) -> Result<AnswerUpdate, AnswerError> {
        self.text.stage = Stage::Finished;
        self.parse(body)
    }

    fn is_empty(&self) -> bool {
        !self.has_choices
    }

    fn text(&self) -> &AnswerText {
        &self.text
    }

    fn text_mut(&mut self) -> &mut AnswerText {
        &mut self.text
    }

    fn into_written(self) -> Written {
        let mut calls: Vec<_> = self.calls.into_iter().map(|slot| slot.call).collect();
        if self.text.cut {
            calls.clear();
        }
        for (number, call) in calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{number}");
            }
        }
        Written { text: self.text.raw, calls, blocks: Vec::new() }
    }
}

impl ChatAnswer {
    fn parse(&mut self, json: &str) -> Result<AnswerUpdate, AnswerError> {
        let completion: Completion<'_> = serde_json::from_str(json)
            .map_err(|error| AnswerError::Broken(format!("not a completion: {}", json_error(&error))))?;
        self.text.usage = completion.usage.map(|consumed| Usage {
            input_tokens: consumed.prompt_tokens.unwrap_or(0),
            output_tokens: consumed.completion_tokens.unwrap_or(0),
        });
        if let Some(error) = completion.error.filter(|error| !error.is_null()) {
            return Err(AnswerError::Failed(error_message(&error).unwrap_or_else(|| error.to_string())));
        }
        let before = self.text.size;
        let mut update = AnswerUpdate::default();
        self.has_choices |= completion.choices.is_some();
        for choice in completion.choices.unwrap_or_default() {
            // Only one choice was requested.
            if choice.index.is_some_and(|index| index > 0) {
                continue;
            }
            let message = choice.delta.or(choice.message).unwrap_or_default();
            // Some servers send it in both.
            let mut thoughts = [message.reasoning_content, message.reasoning].into_iter().flatten();
            if let Some(Text(thought)) = thoughts.find(|Text(thought)| !thought.is_empty()) {
                self.text.size += thought.len();
                update.thought.push_str(&thought);
            }
            for text in [message.content, message.refusal].into_iter().flatten() {
                self.text.push(&text.0, &mut update);
                if self.text.cut {
                    break;
                }
            }
            if self.text.cut {
                break;
            }
            for delta in message.tool_calls.unwrap_or_default() {
                self.call(delta)?;
            }
            if choice.finish_reason.is_some_and(|reason| !reason.is_empty()) && !self.text.is_finished() {
                self.text.stage = Stage::Finished;
                self.text.size += 1;
            }
        }
        self.text.end_event(before, &mut update)?;
        Ok(update)
    }

    /// Adds a delta to its call, found by index. Some servers send no index, or 0 for all calls; there a new id starts a
    /// new call.
    fn call(&mut self, delta: CallDelta) -> Result<(), AnswerError> {
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        let name = function.name.unwrap_or_default();
        let arguments = match function.arguments {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text,
            Some(object) => object.to_string(),
        };
        self.text.size += 1 + id.len() + name.len() + arguments.len();

        let same = self.calls.iter().rposition(|slot| delta.index.is_none() || slot.index == delta.index);
        let same = same.filter(|&at| {
            let known = &self.calls[at].call.id;
            id.is_empty() || known.is_empty() || *known == id
        });
        if same.is_none() && self.calls.len() == MAX_CALLS {
            return Err(AnswerError::Broken(format!("more than {MAX_CALLS} tool calls")));
        }
        let at = same.unwrap_or_else(|| {
            self.calls.push(Slot { index: delta.index, call: ToolCall::default() });
            self.calls.len() - 1
        });
        let slot = &mut self.calls[at];
        if slot.call.id.is_empty() {
            slot.call.id = id;
        }
        // Some servers repeat the name with every piece.
        if slot.call.name != name {
            slot.call.name.push_str(&name);
        }
        slot.call.arguments.push_str(&arguments);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::report::MAX_ANSWER;

    fn chunk(delta: &serde_json::Value) -> String {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
    }

    fn calls(deltas: &[serde_json::Value]) -> Vec<ToolCall> {
        let mut answer = ChatAnswer::default();
        for delta in deltas {
            answer.event(&chunk(&json!({"tool_calls": [delta]}))).expect("it is a chunk");
        }
        answer.into_written().calls
    }

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
    }

    /// C1, A20.
    #[test]
    fn a_marker_split_over_chunks_is_kept_in_the_answer_and_never_shown() {
        let mut answer = ChatAnswer::default();
        let shown: String = ["NO_", "RE", "PLY"]
            .map(|text| answer.event(&chunk(&json!({"content": text}))).expect("it is a chunk").show)
            .concat();
        assert_eq!(shown + &answer.text.visible.end(), "");
        assert_eq!(answer.text.visible.shown, 0);
        assert_eq!(answer.into_written().text, "NO_REPLY");
    }

    #[rstest]
    #[case(json!({"reasoning_content": "hm"}))]
    #[case(json!({"reasoning": "hm"}))]
    #[case(json!({"reasoning_content": "hm", "reasoning": "hm"}))]
    fn reasoning_is_progress_and_never_text(#[case] delta: serde_json::Value) {
        let mut answer = ChatAnswer::default();
        let update = answer.event(&chunk(&delta)).expect("it is a chunk");
        assert!(update.progress && update.show.is_empty());
        assert_eq!(update.thought, "hm");
        assert_eq!(answer.into_written().text, "");
    }

    #[rstest]
    #[case(json!({"role": "assistant", "content": ""}))]
    #[case(json!({"role": "assistant", "content": null, "tool_calls": null}))]
    #[case(json!(null))]
    fn an_empty_chunk_is_no_progress(#[case] delta: serde_json::Value) {
        assert_eq!(ChatAnswer::default().event(&chunk(&delta)), Ok(AnswerUpdate::default()));
    }

    #[rstest]
    #[case(json!("Hi \"there\""), "Hi \"there\"")]
    #[case(json!([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hi"}]), "Hi")]
    fn text_comes_as_a_text_or_in_parts(#[case] content: serde_json::Value, #[case] text: &str) {
        let mut answer = ChatAnswer::default();
        answer.event(&chunk(&json!({"content": content}))).expect("it is a chunk");
        assert_eq!(answer.into_written().text, text);
    }

    #[test]
    fn a_refusal_is_said_to_the_person() {
        let mut answer = ChatAnswer::default();
        let update = answer.event(&chunk(&json!({"content": null, "refusal": "I cannot."}))).expect("it is a chunk");
        assert_eq!(update.show, "I cannot.");
    }

    #[test]
    fn a_tool_call_is_put_together_from_its_pieces() {
        let pieces = [
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "react", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "{\"emo"}}),
            json!({"index": 1, "id": "b", "function": {"name": "send", "arguments": "{\"text\":"}}),
            json!({"index": 0, "function": {"arguments": "ji\":\"👍\"}"}}),
            json!({"index": 1, "function": {"arguments": "\"Hi\"}"}}),
        ];
        assert_eq!(calls(&pieces), [call("a", "react", r#"{"emoji":"👍"}"#), call("b", "send", r#"{"text":"Hi"}"#)]);
    }

    #[test]
    fn calls_without_an_index_or_all_with_index_0_are_told_apart_by_their_ids() {
        for index in [json!(null), json!(0)] {
            let whole =
                |id: &str| json!({"index": index, "id": id, "function": {"name": "send", "arguments": {"n": 1}}});
            assert_eq!(
                calls(&[whole("a"), whole("b")]),
                [call("a", "send", "{\"n\":1}"), call("b", "send", "{\"n\":1}")]
            );
        }
        let piece = json!({"id": "a", "function": {"name": "send", "arguments": "x"}});
        assert_eq!(calls(&[piece.clone(), piece]), [call("a", "send", "xx")]);
    }

    #[test]
    fn a_call_without_an_id_is_given_one() {
        let nameless = json!({"index": 0, "function": {"name": "send", "arguments": "{}"}});
        assert_eq!(calls(&[nameless]), [call("call_0", "send", "{}")]);
    }

    #[test]
    fn usage_comes_with_an_event_of_its_own() {
        let mut answer = ChatAnswer::default();
        let update = answer
            .event(r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#)
            .expect("it is a chunk");
        assert_eq!(update.usage, Some(Usage { input_tokens: 7, output_tokens: 3 }));
    }

    #[test]
    fn an_answer_in_one_piece_is_read() {
        let mut answer = ChatAnswer::default();
        let body = json!({
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        });
        let update = answer.whole(&body.to_string()).expect("it is a completion");
        assert_eq!((update.show + &answer.text.visible.end(), answer.text.is_finished()), ("Hi".to_owned(), true));
    }

    #[rstest]
    #[case(r#"{"error":{"message":"out of memory","code":500}}"#)]
    #[case(r#"{"error":"out of memory"}"#)]
    fn an_error_within_a_stream_is_the_servers(#[case] data: &str) {
        assert_eq!(ChatAnswer::default().event(data), Err(AnswerError::Failed("out of memory".into())));
    }

    #[test]
    fn what_is_no_completion_or_thinks_too_much_is_broken() {
        assert!(matches!(ChatAnswer::default().event("{"), Err(AnswerError::Broken(_))));
        let mut answer = ChatAnswer::default();
        let half = chunk(&json!({"reasoning": "x".repeat(MAX_ANSWER / 2 + 1)}));
        assert!(answer.event(&half).is_ok());
        assert!(matches!(answer.event(&half), Err(AnswerError::Broken(_))));
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let mut answer = ChatAnswer::default();
        let half = chunk(&json!({"content": "ä".repeat(MAX_ANSWER / 4) + "x"}));
        let shown: usize = (0..2).map(|_| answer.event(&half).expect("it is a chunk").show.len()).sum();

        assert!(answer.text.cut && answer.text.is_done());
        assert_eq!(
            (shown + answer.text.visible.end().len(), answer.into_written().text.len()),
            (MAX_ANSWER - 1, MAX_ANSWER - 1)
        );
    }
}
