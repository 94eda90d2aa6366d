//! Which push services are asked, and what their answers mean.

use rejoinder_core::{ChannelId, ConversationRef, SystemClock, Timestamp, TurnId};
use rstest::rstest;

use super::*;

fn pushes(kind: PushKind) -> Option<Arc<Pushes>> {
    let settings = PushSettings {
        secret: "secret".into(),
        contact: "mailto:operator@example.org".to_owned(),
        public: || Client::builder().build(),
        own: Client::builder().build().expect("a client"),
    };
    let services = ["http://127.0.0.1:8080/push".parse().expect("a URL")];
    let clock: SharedClock = Arc::new(SystemClock);
    Pushes::of(settings, (kind, &services), ("family", "Family"), (&Arc::default(), &clock))
}

fn view(status: TurnStatus, signal: SignalKind) -> TurnView {
    let at = Timestamp::from_millis(1_000);
    TurnView {
        turn_id: TurnId::new(at),
        seq: 1,
        conversation: ConversationRef::new(ChannelId::new("webchat", "family"), "abcdefghijklmnopqrstuv"),
        at,
        text: String::new(),
        attachments: vec![],
        status,
        shown: Some(Shown {
            signal,
            agent: None,
            text: format!("**Done**, see [this](https://example.org). {}", "More. ".repeat(100)),
            attachments: vec![],
            choices: vec![],
            sealed: None,
            fallback: None,
            due: None,
            at,
        }),
        picked: None,
        merged_into: None,
        instead_of: None,
    }
}

const POINT: &str = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

#[rstest]
#[case::of_a_browser("https://push.example.org/a", POINT, AUTH, true)]
#[case::of_the_operator("http://127.0.0.1:8080/push/a", POINT, AUTH, true)]
#[case::beside_that("http://127.0.0.1:8080/admin", POINT, AUTH, false)]
#[case::with_a_longer_name("http://127.0.0.1:8080/pushes/a", POINT, AUTH, false)]
#[case::up_from_that("http://127.0.0.1:8080/push/../admin", POINT, AUTH, false)]
#[case::of_this_machine("https://127.0.0.1/a", POINT, AUTH, false)]
#[case::without_tls("http://push.example.org/a", POINT, AUTH, false)]
#[case::without_a_key("https://push.example.org/a", "", AUTH, false)]
#[case::with_half_a_secret("https://push.example.org/a", POINT, "BTBZMqHH6r4", false)]
fn a_subscription_is_one_that_can_be_told(
    #[case] endpoint: &str,
    #[case] key: &str,
    #[case] auth: &str,
    #[case] is_one: bool,
) {
    let pushes = pushes(PushKind::Words).expect("somebody is told");

    assert_eq!(pushes.subscription(endpoint.to_owned(), key, auth).is_some(), is_one);
}

#[rstest]
#[case(TurnStatus::Answered, SignalKind::Reply, true)]
#[case(TurnStatus::Answered, SignalKind::Reaction, false)]
#[case(TurnStatus::Accepted, SignalKind::Reply, false)]
#[case(TurnStatus::Deferred, SignalKind::Deferral, false)]
#[case(TurnStatus::Cancelled, SignalKind::Reply, false)]
fn an_answer_is_news(#[case] status: TurnStatus, #[case] signal: SignalKind, #[case] is_news: bool) {
    assert_eq!(news(&view(status, signal)).is_some(), is_news);
}

#[test]
fn a_question_is_news_until_it_is_answered() {
    let mut view = view(TurnStatus::Deferred, SignalKind::Deferral);
    view.shown.as_mut().expect("it asks").choices = vec!["Yes".to_owned()];
    assert!(news(&view).is_some());

    view.picked = Some("Yes".to_owned());

    assert!(news(&view).is_none());
}

#[test]
fn a_message_has_as_much_as_the_operator_wants() {
    let view = view(TurnStatus::Answered, SignalKind::Reply);
    let shown = view.shown.as_ref().expect("an answer");
    let message = |kind| pushes(kind).map(|pushes| pushes.message(&view, shown));

    let words: serde_json::Value = serde_json::from_str(&message(PushKind::Words).expect("words")).expect("JSON");
    assert_eq!((&words["title"], &words["path"]), (&json!("Family"), &json!("/chat/family")));
    let text = words["text"].as_str().expect("text");
    assert!(text.starts_with("Done, see this. More.") && text.chars().count() == LONGEST + 1, "{text}");
    assert_eq!(message(PushKind::Notice).as_deref(), Some(r#"{"path":"/chat/family"}"#));
    assert_eq!(message(PushKind::Off), None);
}

/// Also if it is the thread of somebody who is signed in.
#[test]
fn a_message_names_its_conversation_as_the_page_finds_it() {
    let channel = ChannelId::new("webchat", "family");
    let of_anybody = inbound::conversation(&channel, "abcdefghijklmnopqrstuv", None).expect("a conversation");
    let of_ada = ConversationRef::new(channel, "ada").in_thread("abcdefghijklmnopqrstuv");
    let pushes = pushes(PushKind::Words).expect("somebody is told");

    let named = [of_anybody, of_ada].map(|conversation| {
        let view = TurnView { conversation, ..view(TurnStatus::Answered, SignalKind::Reply) };
        let message = pushes.message(&view, view.shown.as_ref().expect("an answer"));
        serde_json::from_str::<serde_json::Value>(&message).expect("JSON")["conversation"].clone()
    });

    assert!(named[0].is_string() && named[0] == named[1], "{named:?}");
}

#[rstest]
#[case(201, Answer::Taken)]
#[case(404, Answer::Gone)]
#[case(410, Answer::Gone)]
#[case(429, Answer::Later(Some(Duration::from_secs(7))))]
#[case(503, Answer::Later(Some(Duration::from_secs(7))))]
#[case(413, Answer::Refused("it answered 413 Payload Too Large".to_owned()))]
#[case(307, Answer::Refused("it answered 307 Temporary Redirect".to_owned()))]
fn a_status_says_what_to_do(#[case] status: u16, #[case] answer: Answer) {
    let status = StatusCode::from_u16(status).expect("a status");

    assert_eq!(judged(status, Some(Duration::from_secs(7))), answer);
}

/// Others are told meanwhile.
#[test]
fn no_service_has_messages_wait_for_long() {
    let pushes = pushes(PushKind::Words).expect("they are told");

    pushes.pause("https://push.example.org/a", Duration::from_hours(1));

    let until = pushes.paused.lock()["https://push.example.org"];
    assert!(until <= Instant::now() + LONGEST_PAUSE);
}
