use axum::{body::to_bytes, http::HeaderMap};
use proptest::{collection::vec, prelude::*, sample::select};
use rejoinder_core::{Attachment, ChannelId, ConversationRef, SoundFormat, conformance::growth::assert_linear};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const TURN: &str = "0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1";
const URL: &str = "https://a.example/hooks/siri/turns/0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1";
const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn view(status: TurnStatus, shown: Option<Shown>) -> TurnView {
    TurnView {
        turn_id: TURN.parse().unwrap(),
        seq: 1,
        conversation: ConversationRef::new(ChannelId::new("webhook", "siri"), "ann"),
        at: NOW,
        text: "what is the status?".to_owned(),
        attachments: Vec::new(),
        status,
        shown,
        picked: None,
        merged_into: None,
        instead_of: None,
    }
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
        at: NOW,
    }
}

fn answered(text: &str) -> TurnView {
    view(TurnStatus::Answered, Some(shown(SignalKind::Reply, text)))
}

fn deferred() -> TurnView {
    let due = Some(Timestamp::from_millis(1_008_000));
    view(TurnStatus::Deferred, Some(Shown { due, ..shown(SignalKind::Deferral, "Still working on this.") }))
}

fn texts() -> HookTexts {
    HookTexts {
        accepted: "It will be at {url}.".to_owned(),
        cancelled: "Cancelled.".to_owned(),
        undeliverable: "Sorry.".to_owned(),
        unspoken: "Not aloud.".to_owned(),
        language: Language::ENGLISH,
    }
}

fn respond(view: &TurnView, format: Format) -> Response {
    Answer::of(view, Some(URL), NOW, &texts()).respond(format, &texts())
}

async fn body_of(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), 4096).await.unwrap().to_vec()).unwrap()
}

async fn json_of(view: &TurnView) -> Value {
    serde_json::from_str(&body_of(respond(view, Format::Json)).await).unwrap()
}

#[tokio::test]
async fn an_answer_is_there() {
    let response = respond(&answered("All is well."), Format::Json);

    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert!(!response.headers().contains_key("location"));
    assert!(!response.headers().contains_key("retry-after"));
    assert_eq!(
        body_of(response).await,
        format!(r#"{{"turn_id":"{TURN}","status":"answered","signal":"reply","reply":"All is well."}}"#)
    );
}

#[tokio::test]
async fn a_reaction_is_an_answer() {
    let view = view(TurnStatus::Answered, Some(shown(SignalKind::Reaction, "👍")));

    let expected = json!({"turn_id": TURN, "status": "answered", "signal": "reaction", "reply": "👍"});
    assert_eq!(json_of(&view).await, expected);
    assert_eq!(body_of(respond(&view, Format::Text)).await, "👍");
}

/// In Markdown, a line of hyphens would be a rule.
#[tokio::test]
async fn a_sealed_answer_is_unchanged_in_every_format() {
    let armour = "-----BEGIN AGE ENCRYPTED FILE-----\n\nYWdl\n-----END AGE ENCRYPTED FILE-----\n";
    let sealed = Some(armour.to_owned());
    let view = view(TurnStatus::Answered, Some(Shown { sealed, ..shown(SignalKind::Reply, "(a sealed answer)") }));

    let expected = json!({"turn_id": TURN, "status": "answered", "signal": "reply", "reply": armour, "sealed": true});
    assert_eq!(json_of(&view).await, expected);
    assert_eq!(body_of(respond(&view, Format::Text)).await, armour);
    let text = "(a sealed answer)".to_owned();
    let content = Content { text, sealed: Some(armour.to_owned()), ..Content::default() };
    let posted = Answer::for_callback(TURN.parse().unwrap(), SignalKind::Reply, None).with_content(&content).to_json();
    assert_eq!(serde_json::from_slice::<Value>(&posted).unwrap(), expected);
}

/// A1.
#[tokio::test]
async fn an_answer_of_the_ladder_says_so() {
    let fallback = Some(FallbackView { cause: Cause::Silent, rung: "say:silent".to_owned() });
    let view =
        view(TurnStatus::Answered, Some(Shown { fallback, ..shown(SignalKind::Reply, "Sorry, I have nothing.") }));

    let json = json_of(&view).await;

    assert_eq!(json["fallback"], json!({"cause": "silent", "rung": "say:silent"}));
    assert_eq!(json["reply"], "Sorry, I have nothing.");
}

/// M2.
#[tokio::test]
async fn a_deferral_can_be_spoken_and_says_where_the_answer_will_be() {
    let response = respond(&deferred(), Format::Json);

    assert_eq!(response.status(), 202);
    assert_eq!(response.headers()["location"], URL);
    assert_eq!(response.headers()["retry-after"], "8");
    let json: Value = serde_json::from_str(&body_of(response).await).unwrap();
    let expected = json!({
        "turn_id": TURN,
        "status": "deferred",
        "reply": "Still working on this.",
        "result_url": URL,
        "retry_after": 8,
    });
    assert_eq!(json, expected);
}

/// M2.
#[tokio::test]
async fn a_deferral_as_text_is_what_is_spoken() {
    let response = respond(&deferred(), Format::Text);

    assert_eq!(response.status(), 202);
    assert_eq!(response.headers()["location"], URL);
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(body_of(response).await, "Still working on this.");
}

/// M5.
#[tokio::test]
async fn a_turn_without_a_signal_says_where_the_answer_will_be() {
    let expected = json!({"turn_id": TURN, "status": "accepted", "result_url": URL, "retry_after": 1});

    assert_eq!(json_of(&view(TurnStatus::Accepted, None)).await, expected);
    let spoken = respond(&view(TurnStatus::Accepted, None), Format::Text);
    assert_eq!((spoken.status(), &*body_of(spoken).await), (StatusCode::ACCEPTED, &*format!("It will be at {URL}.")));
    let just_taken_in = Answer::accepted(TURN.parse().unwrap(), Some(URL));
    assert_eq!(just_taken_in.code(), 202);
    assert_eq!(serde_json::to_value(&just_taken_in).unwrap(), expected);
}

#[rstest]
#[case(TurnStatus::Cancelled, None, "cancelled", "Cancelled.")]
#[case(TurnStatus::Undeliverable, None, "undeliverable", "Sorry.")]
#[case(TurnStatus::Cancelled, Some("It follows."), "cancelled", "Cancelled.")]
#[case(TurnStatus::Undeliverable, Some("It follows."), "undeliverable", "Sorry.")]
#[tokio::test]
async fn a_turn_that_will_not_be_answered_says_so(
    #[case] status: TurnStatus,
    #[case] deferral: Option<&str>,
    #[case] name: &str,
    #[case] words: &str,
) {
    let view = view(status, deferral.map(|text| shown(SignalKind::Deferral, text)));

    let (spoken, response) = (respond(&view, Format::Text), respond(&view, Format::Json));

    assert_eq!((spoken.status(), response.status()), (StatusCode::OK, StatusCode::OK));
    assert_eq!(body_of(spoken).await, words);
    let json: Value = serde_json::from_str(&body_of(response).await).unwrap();
    assert_eq!(json, json!({"turn_id": TURN, "status": name, "reply": words}));
}

#[tokio::test]
async fn what_is_said_of_a_turn_that_is_given_up_is_read() {
    let view = view(TurnStatus::Cancelled, Some(shown(SignalKind::Reply, "Ask Grace.")));

    assert_eq!(json_of(&view).await, json!({"turn_id": TURN, "status": "cancelled", "reply": "Ask Grace."}));
}

#[tokio::test]
async fn choices_are_listed_for_programs_and_numbered_for_ears() {
    let choices = vec!["Try again".to_owned(), "Never mind".to_owned()];
    let view = view(TurnStatus::Answered, Some(Shown { choices, ..shown(SignalKind::Reply, "Which of these?") }));

    assert_eq!(json_of(&view).await["choices"], json!(["Try again", "Never mind"]));
    assert_eq!(body_of(respond(&view, Format::Text)).await, "Which of these?\n1. Try again\n2. Never mind");
}

#[tokio::test]
async fn a_voice_hears_no_markdown() {
    let markdown = "# Result\n\nIt is **done**, see [the log](https://a.example).\n\n| Step | Time |\n|---|---|\n| build | 2 s |\n\n```\nok\n```";

    assert_eq!(
        body_of(respond(&answered(markdown), Format::Text)).await,
        "Result\nIt is done, see the log.\nStep: build, Time: 2 s\nok"
    );
    assert_eq!(json_of(&answered(markdown)).await["reply"], markdown);
}

/// K3.
#[tokio::test]
async fn files_are_structured_and_not_lost_where_there_are_no_words() {
    let attachments = vec![Attachment {
        name: "cat.jpg".to_owned(),
        media_type: "image/jpeg".to_owned(),
        url: "https://a.example/cat.jpg".to_owned(),
    }];
    let view = view(TurnStatus::Answered, Some(Shown { attachments, ..shown(SignalKind::Reply, "") }));

    let expected = json!([{"name": "cat.jpg", "type": "image/jpeg", "url": "https://a.example/cat.jpg"}]);
    assert_eq!(json_of(&view).await["files"], expected);
    assert_eq!(body_of(respond(&view, Format::Text)).await, "https://a.example/cat.jpg");
}

#[rstest]
#[case(0, 1)]
#[case(900, 1)]
#[case(12_000, 12)]
#[case(7_200_000, 30)]
fn an_agents_deferral_says_when_to_ask_again(#[case] until_due_ms: i64, #[case] seconds: u64) {
    let due = Some(Timestamp::from_millis(NOW.as_millis() + until_due_ms));
    let view = view(TurnStatus::Deferred, Some(Shown { due, ..shown(SignalKind::Deferral, "Later.") }));

    assert_eq!(Answer::of(&view, Some(URL), NOW, &texts()).retry_after, Some(seconds));
}

#[rstest]
#[case(1, 1)]
#[case(20, 5)]
#[case(60, 15)]
#[case(3600, 30)]
fn the_longer_the_agent_works_the_later_it_makes_sense_to_ask_again(#[case] worked: i64, #[case] seconds: u64) {
    let view = view(TurnStatus::Deferred, Some(shown(SignalKind::Deferral, "Still working on this.")));
    let now = Timestamp::from_millis(NOW.as_millis() + worked * 1000);

    assert_eq!(Answer::of(&view, Some(URL), now, &texts()).retry_after, Some(seconds));
}

#[rstest]
#[case(&[], Format::Json)]
#[case(&["*/*"], Format::Json)]
#[case(&["application/json"], Format::Json)]
#[case(&["text/plain"], Format::Text)]
#[case(&["Text/Plain; charset=utf-8"], Format::Text)]
#[case(&["text/*"], Format::Text)]
#[case(&["text/plain, */*;q=0.1"], Format::Text)]
#[case(&["text/plain, */*"], Format::Json)]
#[case(&["text/plain;q=0.5, application/json;q=0.9"], Format::Json)]
#[case(&["text/plain;q=0.9", "application/json;q=0.5"], Format::Text)]
#[case(&["text/plain;q=0, */*"], Format::Json)]
#[case(&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], Format::Json)]
#[case(&["image/png"], Format::Json)]
#[case(&["text/plain;q=high"], Format::Json)]
#[case(&["audio/mpeg"], Format::Sound(SoundFormat::Mp3))]
#[case(&["audio/*"], Format::Sound(SoundFormat::Mp3))]
#[case(&["Audio/Ogg; codecs=opus, text/plain"], Format::Sound(SoundFormat::Opus))]
#[case(&["audio/wav, audio/mpeg;q=0.9", "*/*;q=0.1"], Format::Sound(SoundFormat::Wav))]
#[case(&["audio/mpeg;q=0.5, text/plain"], Format::Text)]
#[case(&["application/json, audio/mpeg"], Format::Json)]
#[case(&["application/json;q=0, */*"], Format::Text)]
#[case(&["audio/webm"], Format::Json)]
fn a_caller_reads_what_it_prefers(#[case] accept: &[&str], #[case] format: Format) {
    let headers = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap())).collect();

    assert_eq!(Format::read(&headers), format);
}

#[test]
fn every_field_is_described() {
    let answer = Answer {
        turn_id: TURN.parse().unwrap(),
        status: Status::Answered,
        signal: Some(SignalKind::Reply),
        reply: Some("hi"),
        sealed: true,
        files: vec![AnswerFile { name: "a", r#type: "b", url: "https://a.example" }],
        choices: &["one".to_owned()],
        fallback: Some(Fallback { cause: Cause::Error, rung: "say:failed".into() }),
        result_url: Some(URL),
        retry_after: Some(1),
    };
    let written = serde_json::to_value(&answer).unwrap();
    let schemas = serde_json::to_value(crate::openapi()).unwrap()["components"]["schemas"].take();

    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&written), fields(&schemas["HookAnswer"]["properties"]));
    assert_eq!(fields(&written["files"][0]), fields(&schemas["AnswerFile"]["properties"]));
    assert_eq!(fields(&written["fallback"]), fields(&schemas["HookFallback"]["properties"]));
}

fn accepting(value: &str) -> Format {
    Format::read(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(value).unwrap())]))
}

proptest! {
    #[test]
    fn any_accept_is_read(
        pieces in vec(select(vec!["text/plain", "application/json", "*/*", "text/*", ";", ",", "q", "=", "0.5", "-1", "NaN", "inf", "\"", "\\", " "]), 0..20),
    ) {
        let format = accepting(&pieces.concat());
        prop_assert!(format == Format::Json || pieces.iter().any(|piece| piece.starts_with("text/")));
    }
}

#[test]
fn a_long_accept_costs_what_its_length_asks_for() {
    assert_linear(&[",", ";", "text/plain;q=", "\"", "\\", ";a=\"", "\"\\\""], |value| {
        let _ = accepting(value);
    });
}
