//! The parts of a request's body. No I/O.

use std::borrow::Cow;

use rejoinder_core::AgentTurn;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_with::skip_serializing_none;

use super::section::AnthropicSection;
use crate::{
    model::write_elements,
    prompt::{
        files::GivenFile,
        frame,
        messages::{Content, Message},
    },
    tools::Tool,
};

/// Where the instructions stand in a body: what comes before and after their text. Servers may cache them, with the tools.
pub(super) const AROUND_INSTRUCTIONS: [&str; 2] =
    [r#","system":[{"type":"text","text":"#, r#","cache_control":{"type":"ephemeral"}}],"messages":["#];

/// Stands in place of an empty text, which the API refuses.
const NO_TEXT: &str = "(no text)";

/// A body without its instructions and messages.
#[skip_serializing_none]
#[derive(Serialize)]
struct BodyStart<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    temperature: Option<f32>,
    thinking: Option<Thinking>,
    tools: Option<Vec<ToolDescription<'a>>>,
}

#[derive(Serialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: &'static str,
    budget_tokens: u32,
}

/// A tool, as this API describes one.
struct ToolDescription<'a>(&'a Tool);

impl Serialize for ToolDescription<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", &self.0.name)?;
        map.serialize_entry("description", &self.0.description)?;
        map.serialize_entry("input_schema", &self.0.parameters)?;
        map.end()
    }
}

pub(super) fn options<'a>(
    section: &'a AnthropicSection,
    turn: &'a AgentTurn,
    tools: Option<&'a [Cow<'a, Tool>]>,
) -> impl Serialize {
    BodyStart {
        model: turn.place.model.as_deref().unwrap_or(&section.model),
        max_tokens: section.max_tokens,
        stream: true,
        temperature: section.temperature.filter(|_| section.thinking.is_none()),
        thinking: section.thinking.map(|budget_tokens| Thinking { kind: "enabled", budget_tokens }),
        tools: tools.map(|tools| tools.iter().map(|tool| ToolDescription(tool)).collect()),
    }
}

/// Writes the messages after the instructions, as elements of a list.
pub(super) fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>) {
    // The next request begins the same up to here: the next round of the run, or the next turn.
    let stable = messages.iter().rposition(|message| match message {
        Message::Model(_) => true,
        Message::Round { results, .. } => !results.is_empty(),
        Message::People(_) => false,
    });
    let mut list = ApiMessages::default();
    for (index, message) in messages.iter().enumerate() {
        list.add(message);
        if Some(index) == stable {
            list.cache();
        }
    }
    write_elements(list.0, body);
}

#[derive(Default)]
struct ApiMessages<'a>(Vec<ApiMessage<'a>>);

#[derive(Serialize)]
struct ApiMessage<'a> {
    role: Role,
    content: Vec<ApiBlock<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct ApiBlock<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    New(NewBlock<'a>),
    /// One that the model wrote.
    Given(&'a serde_json::Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NewBlock<'a> {
    Text { text: Cow<'a, str> },
    Image { source: Source<'a> },
    ToolResult { tool_use_id: &'a str, content: &'a str },
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: Option<&'a str>,
    data: &'a str,
}

#[derive(Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> ApiMessages<'a> {
    fn add(&mut self, message: &'a Message<'_>) {
        match message {
            Message::People(Content { text, files }) => {
                if files.is_empty() || !text.is_empty() {
                    self.push_text(Role::User, text);
                }
                for picture in files {
                    self.push(Role::User, Block::New(NewBlock::Text { text: frame::of_file(picture).into() }));
                    self.push(Role::User, Block::New(NewBlock::Image { source: source(picture) }));
                }
            }
            Message::Model(text) => self.push_text(Role::Assistant, text),
            Message::Round { written, results } => {
                if written.blocks.is_empty() {
                    self.push_text(Role::Assistant, &written.text);
                }
                for block in &written.blocks {
                    self.push(Role::Assistant, Block::Given(block));
                }
                for (call, result) in written.calls.iter().zip(results) {
                    let result = NewBlock::ToolResult { tool_use_id: &call.id, content: result };
                    self.push(Role::User, Block::New(result));
                }
            }
        }
    }

    fn push_text(&mut self, role: Role, text: &'a str) {
        let text = if text.trim().is_empty() { NO_TEXT } else { text };
        self.push(role, Block::New(NewBlock::Text { text: text.into() }));
    }

    /// Adds a block to the last message if it has this role.
    fn push(&mut self, role: Role, block: Block<'a>) {
        let block = ApiBlock { block, cache_control: None };
        match self.0.last_mut() {
            Some(last) if last.role == role => last.content.push(block),
            _ => self.0.push(ApiMessage { role, content: vec![block] }),
        }
    }

    /// Lets the server cache everything up to here.
    fn cache(&mut self) {
        if let Some(last) = self.0.last_mut().and_then(|last| last.content.last_mut()) {
            last.cache_control = Some(CacheControl { kind: "ephemeral" });
        }
    }
}

fn source<'a>(picture: &'a GivenFile<'_>) -> Source<'a> {
    let (media_type, data) =
        picture.encoded().map_or((None, &*picture.url), |(media_type, data)| (Some(media_type), data));
    Source { kind: "base64", media_type, data }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{AgentFile, AgentMessage, Attachment, HistoryLine, Speaker};
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        model::{Dialect, Request},
        piece::PieceName,
        prompt::messages::{Prompt, Written},
        tests::{history, line, turn},
        tools::ToolCall,
    };

    fn section() -> AnthropicSection {
        AnthropicSection { model: "claude".to_owned(), ..AnthropicSection::default() }
    }

    fn body(section: &AnthropicSection, turn: &AgentTurn, prompt: &Prompt<'_>, dialect: Dialect) -> Value {
        let request = Request::of(section, turn, prompt, dialect);
        serde_json::from_slice(&request.body).expect("a body is JSON")
    }

    fn sent(section: &AnthropicSection, turn: &AgentTurn) -> Value {
        body(section, turn, &Prompt::of(turn, &section.settings()), Dialect::default())
    }

    fn text(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    fn cached(mut block: Value) -> Value {
        block["cache_control"] = json!({ "type": "ephemeral" });
        block
    }

    #[test]
    fn a_body_carries_what_is_set_and_nothing_else() {
        let body = sent(&section(), &turn("Hi"));
        assert_eq!(
            (&body["model"], &body["max_tokens"], &body["stream"]),
            (&json!("claude"), &json!(8192), &json!(true))
        );
        let tools = body["tools"].as_array().expect("tools are offered");
        assert_eq!(tools.len(), 6);
        assert!(tools.iter().all(|tool| tool["input_schema"]["type"] == "object" && tool["description"].is_string()));
        assert!(body.get("temperature").is_none() && body.get("thinking").is_none());

        let set = AnthropicSection { temperature: Some(0.5), tools: false, ..section() };
        let body = sent(&set, &turn("Hi"));
        assert_eq!((&body["temperature"], body.get("tools")), (&json!(0.5), None));
        let body = sent(&AnthropicSection { thinking: Some(2048), ..set }, &turn("Hi"));
        assert!(body.get("temperature").is_none(), "the API refuses both");
        assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 2048 }));
    }

    #[test]
    fn what_is_left_out_of_the_instructions_is_not_sent() {
        let leave_out = vec![PieceName::Place, PieceName::Date];
        let body = sent(&AnthropicSection { leave_out, ..section() }, &turn("Hi"));

        let system = body["system"][0]["text"].as_str().expect("a text");
        assert!(system.contains("is a JSON object in one line"), "{system}");
        assert!(!system.contains("Telegram") && !system.contains("Today is "), "{system}");
    }

    /// The system prompt and the history of the conversation are the same in the next turn.
    #[test]
    fn what_stays_the_same_is_cached() {
        let turn = turn("four").with(|turn| {
            turn.past.history =
                history([line(Speaker::Person, "one"), line(Speaker::Agent, "two"), line(Speaker::Person, "three")]);
        });
        let body = sent(&section(), &turn);

        let system = body["system"].as_array().expect("a list");
        assert!(system.len() == 1 && system[0]["text"].as_str().is_some_and(|text| text.contains("Telegram")));
        assert_eq!(system[0]["cache_control"], json!({ "type": "ephemeral" }));
        let expected = json!([
            { "role": "user", "content": [text("one")] },
            { "role": "assistant", "content": [cached(text("two"))] },
            { "role": "user", "content": [text("three\n\nfour")] },
        ]);
        assert_eq!(body["messages"], expected);
    }

    /// The blocks of the model go back unchanged, thoughts included, and the results come right after them.
    #[test]
    fn a_result_follows_what_the_model_wrote_and_is_cached_for_the_next_round() {
        let turn = turn("Hi");
        let history =
            turn.with(|turn| turn.past.history = history([line(Speaker::Person, "a"), line(Speaker::Agent, "b")]));
        let section = section();
        let mut prompt = Prompt::of(&history, &section.settings());
        let blocks = vec![
            json!({ "type": "thinking", "thinking": "Hm.", "signature": "EqQB" }),
            json!({ "type": "tool_use", "id": "t1", "name": "look_up", "input": {} }),
        ];
        let calls = vec![ToolCall { id: "t1".to_owned(), name: "look_up".to_owned(), arguments: "{}".to_owned() }];
        prompt.push_round(Written { text: String::new(), calls, blocks: blocks.clone() }, vec!["error: no".to_owned()]);
        let more = AgentMessage {
            sender: history.message.sender.clone(),
            text: "Well?".to_owned(),
            forwarded: None,
            attachments: Vec::new(),
            voice: None,
            quoted: None,
            reaction: None,
        };
        prompt.came_in(&[more], history.place.chat);

        let messages = body(&section, &history, &prompt, Dialect::default())["messages"].take();

        assert_eq!(messages[1]["content"], json!([text("b")]), "only the last stable part is marked");
        assert_eq!(messages[3], json!({ "role": "assistant", "content": blocks }));
        let result = json!({ "type": "tool_result", "tool_use_id": "t1", "content": "error: no" });
        assert_eq!(messages[4], json!({ "role": "user", "content": [cached(result), text("Well?")] }));
    }

    /// K3.
    #[test]
    fn a_picture_is_a_block_of_its_own() {
        let attachment =
            Attachment { name: "cat.png".into(), media_type: "image/png".into(), url: "telegram:cat".into() };
        let picture = |bytes| AgentFile { attachment: attachment.clone(), bytes: Some(Vec::into(bytes)), text: None };
        let too_large = vec![0; section().settings().takes.pictures.expect("it sees") + 1];
        let turn =
            turn("Look!").with(|turn| turn.message.attachments = vec![picture(too_large), picture(b"abc".to_vec())]);

        let content = sent(&section(), &turn)["messages"][0]["content"].take();

        assert_eq!(content.as_array().map(Vec::len), Some(3), "the API refuses a picture that is too large");
        assert_eq!(content[1], text(r#"{"picture":"cat.png"}"#));
        let source = json!({ "type": "base64", "media_type": "image/png", "data": "YWJj" });
        assert_eq!(content[2], json!({ "type": "image", "source": source }));

        let (section, dialect) = (section(), Dialect::default());
        let prompt = Prompt::of(&turn, &section.settings());
        let shown = Request::of(&section, &turn, &prompt, dialect).input::<AnthropicSection>(&prompt);
        assert!(shown.messages.contains("[image/png, 3 bytes]") && !shown.messages.contains("YWJj"), "{shown:?}");
    }

    /// I3.
    #[test]
    fn the_operator_sees_the_request_as_it_is_sent() {
        let section = AnthropicSection { api_key: Some("sk-ant-secret".into()), ..section() };
        let turn = turn("\"Hi\"");
        let prompt = Prompt::of(&turn, &section.settings());
        let input = Request::of(&section, &turn, &prompt, Dialect::default()).input::<AnthropicSection>(&prompt);
        let mut body = sent(&section, &turn);

        let mut settings: Value = serde_json::from_str(&input.settings).expect("JSON");
        assert_eq!(settings["system"].take(), body["system"][0]["text"]);
        assert_eq!(serde_json::from_str::<Value>(&input.messages).expect("JSON"), body["messages"].take());
        body["system"].take();
        settings["messages"].take();
        assert_eq!(settings, body);
        assert!(!input.settings.contains("sk-ant-secret"));
    }

    #[test]
    fn an_empty_text_is_not_sent() {
        let history =
            history([line(Speaker::Person, "one"), HistoryLine { text: " ".into(), ..line(Speaker::Agent, "") }]);
        let body = sent(&section(), &turn("two").with(|turn| turn.past.history = history));
        assert_eq!(body["messages"][1]["content"][0]["text"], NO_TEXT);
    }

    #[test]
    fn tools_are_left_out_where_they_are_refused() {
        let (section, turn) = (section(), turn("Hi"));
        let prompt = Prompt::of(&turn, &section.settings());
        let dialect = Dialect { tools: false, ..Dialect::default() };
        assert!(body(&section, &turn, &prompt, dialect).get("tools").is_none());
    }
}
