use rejoinder_core::{Attachment, ChannelId, ConversationRef, FallbackView, Shown, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const TURN: &str = "0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1";

fn texts() -> ApiTexts {
    let text = |text: &str| text.to_owned();
    ApiTexts { deferral: text("Wait."), cancelled: text("Called off."), undeliverable: text("Lost.") }
}

fn shown(signal: SignalKind, text: &str) -> Shown {
    Shown {
        signal,
        agent: None,
        text: text.to_owned(),
        attachments: Vec::new(),
        choices: Vec::new(),
        sealed: None,
        fallback: None,
        due: None,
        at: Timestamp::from_millis(0),
    }
}

fn view(status: TurnStatus, shown: Option<Shown>) -> TurnView {
    TurnView {
        turn_id: TURN.parse().expect("an id"),
        seq: 1,
        conversation: ConversationRef::new(ChannelId::new("api", "main"), "once:own/1"),
        at: Timestamp::from_millis(0),
        text: "Hi".to_owned(),
        attachments: Vec::new(),
        status,
        shown,
        picked: None,
        merged_into: None,
        instead_of: None,
    }
}

/// The whole object for a turn.
fn object(view: &TurnView) -> Value {
    let (texts, usage) = (texts(), Usage { input_tokens: 3, output_tokens: 4 });
    let answer = Answer::of(view, &texts, || "/v1/later".to_owned());
    serde_json::to_value(Completion::new(7, "main", &answer, usage)).expect("JSON")
}

#[test]
fn an_answer_is_a_completion() {
    let object = object(&view(TurnStatus::Answered, Some(shown(SignalKind::Reply, "Hello"))));

    let expected = json!({
        "id": format!("chatcmpl-{TURN}"), "object": "chat.completion", "created": 7, "model": "main",
        "choices": [{
            "index": 0, "logprobs": null, "finish_reason": "stop",
            "message": { "role": "assistant", "content": "Hello", "refusal": null },
        }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 },
        "rejoinder": { "turn_id": TURN, "status": "answered", "signal": "reply" },
    });
    assert_eq!(object, expected);
    assert_eq!(turn_of(object["id"].as_str().expect("a text")), TURN.parse().ok());
}

#[rstest]
#[case(TurnStatus::Deferred, Some(shown(SignalKind::Deferral, "Soon.")), "Soon.", json!({ "status": "deferred", "result_url": "/v1/later" }))]
#[case(TurnStatus::Accepted, None, "Wait.", json!({ "status": "accepted", "result_url": "/v1/later" }))]
#[case(TurnStatus::Cancelled, Some(shown(SignalKind::Deferral, "Soon.")), "Called off.", json!({ "status": "cancelled" }))]
#[case(TurnStatus::Cancelled, Some(shown(SignalKind::Reply, "Ask Grace.")), "Ask Grace.", json!({ "status": "cancelled" }))]
#[case(TurnStatus::Undeliverable, None, "Lost.", json!({ "status": "undeliverable" }))]
#[case(TurnStatus::Answered, Some(shown(SignalKind::Reaction, "👍")), "👍", json!({ "status": "answered", "signal": "reaction" }))]
fn whatever_becomes_of_a_turn_the_caller_reads_it(
    #[case] status: TurnStatus,
    #[case] shown: Option<Shown>,
    #[case] text: &str,
    #[case] mut about: Value,
) {
    let object = object(&view(status, shown));

    about["turn_id"] = TURN.into();
    assert_eq!((&object["choices"][0]["message"]["content"], &object["rejoinder"]), (&json!(text), &about));
}

#[test]
fn a_fallback_is_named() {
    let fallback = Some(FallbackView { cause: Cause::Silent, rung: "say:silent".to_owned() });
    let object = object(&view(TurnStatus::Answered, Some(Shown { fallback, ..shown(SignalKind::Reply, "Nothing.") })));

    assert_eq!(object["rejoinder"]["fallback"], json!({ "cause": "silent", "rung": "say:silent" }));
}

#[rstest]
#[case("Here.", "Here.\n\na.txt: <https://a.example/a.txt>")]
#[case("", "a.txt: <https://a.example/a.txt>")]
fn files_with_an_address_are_linked(#[case] text: &str, #[case] expected: &str) {
    let file = |name: &str, url: &str| Attachment {
        name: name.to_owned(),
        media_type: "text/plain".to_owned(),
        url: url.to_owned(),
    };
    let attachments = vec![file("a.txt", "https://a.example/a.txt"), file("b.txt", "/files/b")];
    let object = object(&view(TurnStatus::Answered, Some(Shown { attachments, ..shown(SignalKind::Reply, text) })));

    assert_eq!(object["choices"][0]["message"]["content"], expected);
    let other = json!({ "name": "b.txt", "type": "text/plain", "url": "/files/b" });
    assert_eq!(object["rejoinder"]["files"][1], other);
}

/// What a caller has read after these drafts and this end.
fn read(drafts: &[&str], end: &str) -> String {
    let mut written = Written::default();
    let mut read: String = drafts.iter().filter_map(|draft| written.draft(draft)).collect();
    read.extend(written.end(end));
    read
}

#[rstest]
#[case(&[], "one two", "one two")]
#[case(&["one", "one two"], "one two", "one two")]
#[case(&["one ", "one two\n"], "one two three", "one two three")]
#[case(&[" one"], " one two", "one two")]
#[case(&["one", "other", "one two"], "one two", "one two")]
#[case(&["Let me look."], "It rains.", "Let me look.\n\nIt rains.")]
fn whatever_the_drafts_were_the_answer_stands_whole_at_the_end(
    #[case] drafts: &[&str],
    #[case] end: &str,
    #[case] expected: &str,
) {
    assert_eq!(read(drafts, end), expected);
}
