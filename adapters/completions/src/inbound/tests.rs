use rstest::rstest;

use super::*;
use crate::{OperatorToken, models::OfferedAgent};

fn models() -> Models {
    let models = vec!["fast".into()];
    Models::new([OfferedAgent { name: "main".into(), models }])
}

const LIMITS: Limits = Limits { body: 1 << 20, files: FileLimits { max: 12, per_message: 5, in_flight: 1000 } };

fn asked(body: &Value) -> Result<Question, ApiError> {
    read(body.to_string().as_bytes(), &models(), LIMITS)
}

/// A request with these messages.
fn said(messages: &Value) -> Question {
    asked(&json!({ "model": "main", "messages": messages })).expect("it can be read")
}

/// The error's status, param and code.
fn refused(body: &Value) -> Value {
    let response = axum::response::IntoResponse::into_response(asked(body).expect_err("it is refused"));
    let status = response.status().as_u16();
    let body = futures_util::FutureExt::now_or_never(axum::body::to_bytes(response.into_body(), 4096));
    let body: Value = serde_json::from_slice(&body.expect("it is there").expect("a body")).expect("JSON");
    json!([status, body["error"]["param"], body["error"]["code"]])
}

fn event_of(question: Question, key: Option<&str>, holder: &TokenHolder) -> InboundEvent {
    question.into_event(&Context {
        channel: &ChannelId::new("api", "main"),
        holder,
        key,
        wait: Duration::from_secs(9),
        trace: None,
        language: None,
        now: Timestamp::from_millis(1),
    })
}

fn lines(question: &Question) -> Vec<(&str, &str)> {
    let lines = question.brief.said_before.as_deref().expect("the history is the caller's");
    lines.iter().map(|line| (if line.is_agents { "agent" } else { "person" }, &*line.text)).collect()
}

#[rstest]
#[case("", 0)]
#[case("[0,[],{}]", 9)]
#[case(r#"["long text",""]"#, 7)]
#[case(r#"{"a":"b\"c\\"}"#, 7)]
#[case(r#"["never ends"#, 2)]
fn bytes_of_json_count_that_are_not_in_a_text(#[case] json: &str, #[case] expected: usize) {
    assert_eq!(outside_texts(json.as_bytes()), expected);
}

#[test]
fn the_last_message_is_the_question_and_the_others_were_said_before() {
    let question = said(&json!([
        { "role": "system", "content": "You are a pirate." },
        { "role": "user", "content": "Hi" },
        { "role": "assistant", "content": "Ahoy" },
        { "role": "user", "content": "Where am I?" },
        { "role": "user", "content": [{ "type": "text", "text": "And" }, { "type": "text", "text": "who are you?" }] },
        { "role": "developer", "content": "Be brief." },
    ]));

    assert_eq!(question.text, "And\nwho are you?");
    assert_eq!(lines(&question), [("person", "Hi"), ("agent", "Ahoy"), ("person", "Where am I?")]);
    assert_eq!(question.brief.instructions.as_deref(), Some("You are a pirate.\n\nBe brief."));
    assert_eq!(question.brief.agent.as_deref(), Some("main"));
}

#[test]
fn calls_of_tools_are_left_out_of_what_was_said() {
    let question = said(&json!([
        { "role": "user", "content": "Weather?" },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "1" }] },
        { "role": "tool", "tool_call_id": "1", "content": "sunny" },
        { "role": "assistant", "content": "It is sunny." },
        { "role": "user", "content": "Thanks" },
    ]));

    assert_eq!(lines(&question), [("person", "Weather?"), ("agent", "It is sunny.")]);
}

#[test]
fn with_a_user_the_gateway_remembers() {
    let body = json!({
        "model": "main/fast",
        "user": "ada/1",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "old" },
            { "role": "user", "content": "new" },
        ],
    });
    let holder = TokenHolder::operator(&OperatorToken { name: Some("phone".to_owned()), may_ask: true });

    let event = event_of(asked(&body).expect("it can be read"), None, &holder);

    let brief = event.brief.expect("there is one");
    assert_eq!((brief.said_before, brief.model.as_deref()), (None, Some("fast")));
    assert_eq!(brief.instructions.as_deref(), Some("Be brief."));
    assert_eq!((&*event.conversation.chat, &*event.sender.id), ("user:token:phone/ada/1", "token:phone/ada/1"));
    assert_eq!((event.sender.name.as_deref(), event.patience), (Some("ada/1"), Some(Duration::from_secs(9))));
    assert_eq!(event.directed, Directed::Asked);
}

#[test]
fn without_a_user_each_call_is_a_conversation_of_its_own() {
    let event = || event_of(said(&json!([{ "role": "user", "content": "Hi" }])), None, &TokenHolder::channel());

    let (one, other) = (event(), event());

    assert_ne!(one.conversation, other.conversation);
    assert!(one.conversation.chat.starts_with("once:own/"), "{:?}", one.conversation);
    assert_eq!(one.sender.id, "own");
}

/// M4.
#[test]
fn a_key_is_one_of_its_token() {
    let event =
        |holder: &TokenHolder, key| event_of(said(&json!([{ "role": "user", "content": "Hi" }])), Some(key), holder);
    let other = TokenHolder::operator(&OperatorToken { name: None, may_ask: true });

    let id = event(&TokenHolder::channel(), "k").external_id;

    assert_eq!(event(&TokenHolder::channel(), "k").external_id, id);
    assert_ne!(event(&TokenHolder::channel(), "l").external_id, id);
    assert_ne!(event(&other, "k").external_id, id);
}

#[test]
fn files_come_in_the_body_or_are_named() {
    let question = said(&json!([{ "role": "user", "content": [
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
        { "type": "image_url", "image_url": { "url": "https://a.example/cat.png" } },
        { "type": "file", "file": { "filename": "a.txt", "file_data": "data:text/plain;base64,SGkh" } },
        { "type": "file", "file": { "file_data": "SGkh" } },
        { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
    ] }]));

    let files: Vec<_> = question.attachments.iter().map(|file| (&*file.name, &*file.media_type, &*file.url)).collect();
    let expected = [
        ("image", "image/png", "data:image/png;base64,AAAA"),
        ("image", "application/octet-stream", "https://a.example/cat.png"),
        ("a.txt", "text/plain", "data:text/plain;base64,SGkh"),
        ("file", "application/octet-stream", "data:application/octet-stream;base64,SGkh"),
        ("audio.wav", "audio/wav", "data:audio/wav;base64,AAAA"),
    ];
    assert_eq!(files, expected);
    assert_eq!(question.text, "");
}

#[test]
fn files_and_the_rest_of_a_body_have_limits_of_their_own() {
    let body = |before: &Value, content: &Value| {
        let messages = [before, content].map(|content| json!({ "role": "user", "content": content }));
        json!({ "model": "main", "messages": messages })
    };
    let file = |groups| json!([{ "type": "file", "file": { "file_data": "AAAA".repeat(groups) } }]);
    let large = file(LIMITS.body);

    assert!(asked(&body(&large, &file(4))).is_ok(), "the files of earlier messages are left out");
    assert_eq!(refused(&body(&json!("Hi"), &file(5))), json!([413, null, "files-too-large"]));
    assert_eq!(refused(&body(&large, &json!("x".repeat(LIMITS.body)))), json!([413, null, "body-too-large"]));
    let picture = json!({ "type": "image_url", "image_url": { "url": "https://a.example/cat.png" } });
    let pictures = |count| json!(vec![picture.clone(); count]);
    assert!(asked(&body(&pictures(6), &pictures(5))).is_ok());
    assert_eq!(refused(&body(&json!("Hi"), &pictures(6))), json!([400, "messages", "invalid_value"]));
}

#[test]
fn options_that_only_shape_an_answer_are_ignored_and_kept_for_the_operator() {
    let body = json!({
        "model": "main", "messages": [{ "role": "user", "content": "Hi" }], "n": 1, "temperature": 0.2, "max_tokens": 5,
        "tools": [], "tool_choice": "auto", "response_format": { "type": "text" }, "metadata": { "a": "b" },
        "modalities": ["text"], "stream": true, "stream_options": { "include_usage": true },
    });

    let question = asked(&body).expect("it can be read");

    assert!(question.streams && question.wants_usage);
    assert!(question.raw.contains("\"temperature\":0.2") && !question.raw.contains("Hi"), "{}", question.raw);
}

#[rstest]
#[case(json!({ "n": 2 }), json!([400, "n", "unsupported_value"]))]
#[case(json!({ "tool_choice": "required" }), json!([400, "tool_choice", "unsupported_value"]))]
#[case(json!({ "tool_choice": { "type": "function" } }), json!([400, "tool_choice", "unsupported_value"]))]
#[case(json!({ "function_call": { "name": "f" } }), json!([400, "function_call", "unsupported_value"]))]
#[case(json!({ "response_format": { "type": "json_object" } }), json!([400, "response_format", "unsupported_value"]))]
#[case(json!({ "modalities": ["text", "audio"] }), json!([400, "modalities", "unsupported_value"]))]
#[case(json!({ "model": "gpt-4o" }), json!([404, "model", "model_not_found"]))]
#[case(json!({ "model": 1 }), json!([400, "model", "invalid_value"]))]
#[case(json!({ "user": "a\nb" }), json!([400, "user", "invalid_value"]))]
#[case(json!({ "messages": [] }), json!([400, "messages", "invalid_value"]))]
#[case(json!({ "messages": "Hi" }), json!([400, "messages", "invalid_value"]))]
#[case(json!({ "messages": [{ "role": "user", "content": " " }] }), json!([400, "messages", "invalid_value"]))]
#[case(json!({ "messages": [{ "role": "assistant", "content": "Hi" }] }), json!([400, "messages", "invalid_value"]))]
#[case(json!({ "messages": [{ "role": "robot", "content": "Hi" }] }), json!([400, "messages[0].role", "invalid_value"]))]
#[case(json!({ "messages": [{ "role": "user", "content": 1 }] }), json!([400, "messages[0].content", "invalid_value"]))]
#[case(json!({ "messages": [{ "role": "user", "content": "\u{0}" }] }), json!([400, "messages[0].content", "invalid_value"]))]
#[case(
    json!({ "messages": [{ "role": "user", "content": [{ "type": "video" }] }] }),
    json!([400, "messages[0].content[0].type", "unsupported_value"])
)]
#[case(
    json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:;base64,%" } }] }] }),
    json!([400, "messages[0].content[0].image_url.url", "invalid_value"])
)]
#[case(
    json!({ "messages": [{ "role": "system", "content": "x".repeat(MAX_INSTRUCTIONS + 1) }, { "role": "user", "content": "Hi" }] }),
    json!([400, "messages", "invalid_value"])
)]
fn what_cannot_be_done_is_refused(#[case] fields: Value, #[case] expected: Value) {
    let mut body = json!({ "model": "main", "messages": [{ "role": "user", "content": "Hi" }] });
    let fields = fields.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(fields);

    assert_eq!(refused(&body), expected);
}

#[rstest]
#[case("")]
#[case("[]x")]
#[case("{\"model\":\"main\"")]
#[case("{\"model\":\"main\",\"messages\":[]} {}")]
#[case("\u{feff}null")]
fn what_is_no_json_object_is_refused(#[case] body: &str) {
    assert!(read(body.as_bytes(), &models(), LIMITS).is_err());
}

#[test]
fn of_a_long_history_the_latest_is_kept() {
    let mut messages: Vec<Value> =
        (0..MAX_LINES + 5).map(|number| json!({ "role": "user", "content": format!("line {number}") })).collect();
    messages.push(json!({ "role": "user", "content": "now" }));
    let question = said(&Value::Array(messages));
    assert_eq!((lines(&question).len(), lines(&question)[0]), (MAX_LINES, ("person", "line 5")));

    let long = "x".repeat(MAX_SAID / 2 + 1);
    let question = said(&json!([
        { "role": "user", "content": long },
        { "role": "assistant", "content": long },
        { "role": "user", "content": "now" },
    ]));
    assert_eq!(lines(&question), [("agent", &*long)]);
}
