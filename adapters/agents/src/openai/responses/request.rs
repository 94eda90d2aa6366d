//! The parts of a request's body. No I/O.

use std::borrow::Cow;

use rejoinder_core::AgentTurn;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::{
    OpenAiSection,
    model::{Dialect, write_elements},
    prompt::{
        files::GivenFile,
        frame,
        messages::{Content, Message},
    },
    tools::Tool,
};

/// What a server that stores nothing sends of a thought, so that it gets it back.
const ENCRYPTED_THOUGHTS: [&str; 1] = ["reasoning.encrypted_content"];

/// A body without its instructions and its input.
#[skip_serializing_none]
#[derive(Serialize)]
struct BodyStart<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    include: Option<[&'static str; 1]>,
    temperature: Option<f32>,
    max_output_tokens: Option<u32>,
    tools: Option<Vec<FunctionTool<'a>>>,
}

/// A tool, as this API describes one.
#[derive(Serialize)]
struct FunctionTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    function: &'a Tool,
    /// If it is left out, the server makes every argument required.
    strict: bool,
}

pub(super) fn options<'a>(
    section: &'a OpenAiSection,
    turn: &'a AgentTurn,
    tools: Option<&'a [Cow<'a, Tool>]>,
    dialect: Dialect,
) -> impl Serialize {
    let tool = |tool: &'a Cow<'a, Tool>| FunctionTool { kind: "function", function: tool, strict: false };
    BodyStart {
        model: turn.place.model.as_deref().unwrap_or(&section.model),
        stream: true,
        store: false,
        include: dialect.encrypted_thoughts.then_some(ENCRYPTED_THOUGHTS),
        temperature: section.temperature,
        max_output_tokens: section.max_tokens,
        tools: tools.map(|tools| tools.iter().map(tool).collect()),
    }
}

/// Writes the messages after the instructions, as elements of a list.
pub(super) fn write_messages(messages: &[Message<'_>], body: &mut Vec<u8>) {
    write_elements(messages.iter().flat_map(InputItem::all_of), body);
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    New(NewItem<'a>),
    /// One that the model wrote.
    Given(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NewItem<'a> {
    Message { role: Role, content: InputContent<'a> },
    FunctionCallOutput { call_id: &'a str, output: &'a str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

struct InputContent<'a> {
    text: &'a str,
    files: &'a [GivenFile<'a>],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: &'a str },
}

impl Serialize for InputContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.files.is_empty() {
            return serializer.serialize_str(self.text);
        }
        let text = (!self.text.is_empty()).then(|| Part::InputText { text: self.text.into() });
        let pictures = self.files.iter().flat_map(|picture| {
            let label = frame::of_file(picture);
            [Part::InputText { text: label.into() }, Part::InputImage { image_url: &picture.url }]
        });
        serializer.collect_seq(text.into_iter().chain(pictures))
    }
}

impl<'a> InputItem<'a> {
    const fn message(role: Role, text: &'a str, files: &'a [GivenFile<'a>]) -> Self {
        Self::New(NewItem::Message { role, content: InputContent { text, files } })
    }

    /// The items of this API that say the same.
    fn all_of(message: &'a Message<'_>) -> Vec<Self> {
        match message {
            Message::People(Content { text, files }) => vec![Self::message(Role::User, text, files)],
            Message::Model(text) => vec![Self::message(Role::Assistant, text, &[])],
            Message::Round { written, results } => {
                let text = written.blocks.is_empty().then(|| Self::message(Role::Assistant, &written.text, &[]));
                let results = written.calls.iter().zip(results);
                let results =
                    results.map(|(call, output)| Self::New(NewItem::FunctionCallOutput { call_id: &call.id, output }));
                text.into_iter().chain(written.blocks.iter().map(Self::Given)).chain(results).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{AgentFile, Attachment, Speaker};
    use serde_json::json;

    use super::*;
    use crate::{
        model::{Protocol as _, Request},
        openai::responses::ResponsesSection,
        prompt::messages::{Prompt, Written},
        tests::{history, line, settings, turn},
        tools::ToolCall,
    };

    fn sent(section: OpenAiSection, turn: &AgentTurn, dialect: Dialect) -> Value {
        let prompt = Prompt::of(turn, &section.settings());
        body(section, turn, &prompt, dialect)
    }

    fn body(section: OpenAiSection, turn: &AgentTurn, prompt: &Prompt<'_>, dialect: Dialect) -> Value {
        let request = Request::of(&ResponsesSection::from(section), turn, prompt, dialect);
        serde_json::from_slice(&request.body).expect("a body is JSON")
    }

    #[test]
    fn a_body_carries_what_is_set_and_nothing_else() {
        let mut body = sent(settings(), &turn("Hi"), Dialect::default());
        assert!(body["instructions"].take().as_str().is_some_and(|text| text.contains("Telegram")));
        let tools = body["tools"].take();
        let tools = tools.as_array().expect("tools are offered");
        assert_eq!(tools.len(), 6);
        for tool in tools {
            assert_eq!((&tool["type"], &tool["strict"]), (&json!("function"), &json!(false)));
            assert!(tool["name"].is_string() && tool["description"].is_string(), "{tool}");
            assert_eq!(tool["parameters"]["type"], "object");
        }
        let expected = json!({
            "model": "test-model", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
            "tools": null, "instructions": null, "input": [{ "type": "message", "role": "user", "content": "Hi" }],
        });
        assert_eq!(body, expected);

        let set = OpenAiSection { temperature: Some(0.7), max_tokens: Some(100), tools: false, ..settings() };
        let dialect = Dialect { encrypted_thoughts: false, ..Dialect::default() };
        let body = sent(set, &turn("Hi"), dialect);
        assert_eq!((&body["temperature"], &body["max_output_tokens"]), (&json!(0.7), &json!(100)));
        assert!(body.get("tools").is_none() && body.get("include").is_none(), "{body}");
    }

    #[test]
    fn the_history_and_what_the_model_wrote_in_this_run_go_back() {
        let turn = turn("three")
            .with(|turn| turn.past.history = history([line(Speaker::Person, "one"), line(Speaker::Agent, "two")]));
        let mut prompt = Prompt::of(&turn, &settings().settings());
        let calls = vec![ToolCall { id: "c1".to_owned(), name: "look_up".to_owned(), arguments: "{}".to_owned() }];
        let blocks = vec![
            json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAA" }),
            json!({ "type": "function_call", "call_id": "c1", "name": "look_up", "arguments": "{}" }),
        ];
        prompt.push_round(Written { text: String::new(), calls, blocks: blocks.clone() }, vec!["error: no".to_owned()]);
        prompt.push_round(Written { text: "cut".to_owned(), ..Written::default() }, Vec::new());

        let said = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": text });
        let expected = json!([
            said("user", "one"),
            said("assistant", "two"),
            said("user", "three"),
            blocks[0],
            blocks[1],
            { "type": "function_call_output", "call_id": "c1", "output": "error: no" },
            said("assistant", "cut"),
        ]);
        assert_eq!(body(settings(), &turn, &prompt, Dialect::default())["input"], expected);
    }

    /// K3.
    #[test]
    fn a_picture_is_a_part_of_its_own() {
        let attachment =
            Attachment { name: "cat.png".into(), media_type: "image/png".into(), url: "telegram:cat".into() };
        let picture = AgentFile { attachment, bytes: Some(b"abc".to_vec().into()), text: None };
        let turn = turn("Look!").with(|turn| turn.message.attachments = vec![picture]);
        let section = OpenAiSection { images: true, ..settings() };

        let content = sent(section, &turn, Dialect::default())["input"][0]["content"].take();

        assert_eq!(content.as_array().map(Vec::len), Some(3));
        assert!(content[0]["text"].as_str().is_some_and(|text| text.contains("Look!")));
        assert_eq!(content[1], json!({ "type": "input_text", "text": r#"{"picture":"cat.png"}"# }));
        assert_eq!(content[2], json!({ "type": "input_image", "image_url": "data:image/png;base64,YWJj" }));
    }

    /// I3.
    #[test]
    fn the_operator_sees_the_request_as_it_is_sent() {
        let section = ResponsesSection::from(OpenAiSection { api_key: Some("sk-secret-key".into()), ..settings() });
        let turn = turn("\"Hi\"");
        let prompt = Prompt::of(&turn, &section.settings());
        let request = Request::of(&section, &turn, &prompt, Dialect::default());
        let input = request.input::<ResponsesSection>(&prompt);
        let mut body: Value = serde_json::from_slice(&request.body).expect("a body is JSON");

        let mut shown: Value = serde_json::from_str(&input.settings).expect("JSON");
        assert_eq!(shown["system"].take(), body["instructions"]);
        assert_eq!(serde_json::from_str::<Value>(&input.messages).expect("JSON"), body["input"].take());
        assert_eq!((&shown["model"], &shown["store"]), (&body["model"], &body["store"]));
        assert!(!input.settings.contains("sk-secret-key"));
    }
}
