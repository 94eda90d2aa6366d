mod properties;

use std::{collections::BTreeMap, time::Duration};

use rejoinder_core::{
    Attachment, ChannelId, ChatKind, CommandHelp, Directed, EventKind, InboundEvent, Language, Timestamp,
};
use rejoinder_kit::data_url;
use rstest::rstest;

use super::{
    message::{MAX_NAME, MAX_URL},
    *,
};

const JSON: Option<&str> = Some("application/json");
const FORM: Option<&str> = Some("application/x-www-form-urlencoded");
const MULTIPART: Option<&str> = Some("multipart/form-data; boundary=\"b\"");

fn read(content_type: Option<&str>, body: &[u8]) -> Result<CheckedMessage, Problem> {
    super::read(content_type, body, FileLimits::default())
}

fn text_of(content_type: Option<&str>, body: &str) -> String {
    read(content_type, body.as_bytes()).unwrap().text
}

fn refused(content_type: Option<&str>, body: &str) -> Problem {
    read(content_type, body.as_bytes()).unwrap_err()
}

fn context(channel: &ChannelId) -> Context<'_> {
    Context {
        channel,
        conversation: None,
        key: None,
        wait: Duration::ZERO,
        trace: None,
        language: None,
        now: Timestamp::from_millis(1),
    }
}

fn event(body: &str, change: impl FnOnce(&mut Context<'_>)) -> InboundEvent {
    let channel = ChannelId::new("webhook", "siri");
    let mut context = context(&channel);
    change(&mut context);
    read(JSON, body.as_bytes()).unwrap().into_event(&context)
}

#[rstest]
#[case(JSON, r#"{"message":"hi"}"#)]
#[case(JSON, " \n{\"message\":\"hi\"}\n")]
#[case(JSON, "\u{feff}{\"message\":\"hi\"}")]
#[case(JSON, r#"{"message":"hi","sender":null,"conversation":null,"attachments":null}"#)]
#[case(JSON, r#"{"message":"hi","mood":{"deep":[1,2]}}"#)]
#[case(Some("application/json; charset=utf-8"), r#"{"message":"hi"}"#)]
#[case(Some("Application/JSON;charset=\"UTF-8\""), r#"{"message":"hi"}"#)]
#[case(Some("application/vnd.example+json"), r#"{"message":"hi"}"#)]
#[case(None, r#"{"message":"hi"}"#)]
#[case(Some(""), " {\"message\":\"hi\"}")]
#[case(None, "hi")]
#[case(Some("text/plain"), "hi")]
#[case(Some("text/plain; charset=us-ascii"), "hi\r\n")]
#[case(Some("TEXT/PLAIN"), "hi\n")]
#[case(FORM, "message=hi")]
#[case(FORM, "sender=&message=%68%69&mood=blue")]
#[case(Some("application/x-www-form-urlencoded; charset=utf-8"), "message=hi")]
#[case(MULTIPART, "--b\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nhi\r\n--b--\r\n")]
#[case(
    MULTIPART,
    "preamble\r\n--b \r\ncontent-type: text/plain\r\ncontent-disposition: form-data; name=message; filename=\"a;b.txt\"\r\n\r\nhi\r\n--b--"
)]
fn a_message_is_read_in_every_form(#[case] content_type: Option<&str>, #[case] body: &str) {
    assert_eq!(text_of(content_type, body), "hi");
}

#[test]
fn a_text_is_kept_as_it_was_said() {
    assert_eq!(text_of(Some("text/plain"), "  {\"a\": 1}\n\n"), "  {\"a\": 1}\n");
    assert_eq!(text_of(FORM, "message=a+b%2Bc%20%E2%9C%93"), "a b+c ✓");
    assert_eq!(text_of(JSON, r#"{"message":"a\nb \u2713 \ud83d\ude00"}"#), "a\nb ✓ 😀");
    assert_eq!(text_of(FORM, "message=%EF%BF%BD"), "\u{fffd}");
    assert_eq!(text_of(FORM, "message=\u{fffd}"), "\u{fffd}");
}

#[test]
fn the_payload_is_kept_as_it_was_received() {
    let body = "{\"message\": \"hi\",  \"mood\": \"blue\"}";

    assert_eq!(event(body, |_| {}).raw, body);
}

#[test]
fn the_content_of_a_file_in_a_form_is_not_in_the_payload() {
    let form = Some("application/x-www-form-urlencoded");
    for file in ["attachments=data%3Atext%2Fplain%3Bbase64%2CaGVsbG8%3D", "attachments=data:text/plain;base64,aGVsbG8="]
    {
        let body = format!("message=see&{file}&attachments=https%3A%2F%2Fexample.org%2Fa");

        let message = read(form, body.as_bytes()).expect("it is read");

        assert_eq!(message.attachments.len(), 2, "{file}");
        assert_eq!(message.raw, "message=see&attachments=https%3A%2F%2Fexample.org%2Fa");
    }
}

#[rstest]
#[case(r#"{"message":"hi""#, 1, 15)]
#[case("{\n  \"message\": hi\n}", 2, 14)]
#[case("{\"message\":\"hi\"} x", 1, 18)]
#[case("[1,", 1, 3)]
#[case("hi", 1, 1)]
#[case("", 1, 0)]
fn a_body_that_is_not_json_is_told_where(#[case] body: &str, #[case] line: usize, #[case] column: usize) {
    let problem = refused(JSON, body);

    assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
    assert_eq!(problem.name(), "not-json");
    assert_eq!(problem.position(), Some((line, column)));
}

#[test]
fn a_body_that_opens_like_json_is_json() {
    assert_eq!(refused(None, "{\"message\": }").name(), "not-json");
}

#[rstest]
#[case(r#"{"message":5}"#, "message")]
#[case(r#"{"message":{"text":"hi"}}"#, "message")]
#[case(r#"{"message":"hi","sender":["me"]}"#, "sender")]
#[case(r#"{"message":"hi","conversation":7}"#, "conversation")]
#[case(r#"{"message":"hi","attachments":"https://a.example"}"#, "attachments")]
#[case(r#"{"message":"hi","attachments":[{"url":"https://a.example"},{}]}"#, "attachments[1]")]
#[case(r#"{"message":"hi","attachments":[["a","b","https://a.example"]]}"#, "attachments[0]")]
#[case(r#"{"message":"hi","attachments":[{"url":"somewhere"}]}"#, "attachments[0].url")]
#[case(r#"{"message":"hi\u0000"}"#, "message")]
#[case(r#"{"message":"hi","sender":"me\n"}"#, "sender")]
fn a_field_that_cannot_be_used_is_named(#[case] body: &str, #[case] field: &str) {
    let problem = refused(JSON, body);

    assert_eq!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(problem.name(), "invalid-field");
    assert_eq!(problem.field(), Some(field));
    assert!(problem.detail().contains(field), "{}", problem.detail());
}

/// Made by `age-keygen`.
const RECIPIENT: &str = "age1p6ms2nufw50pyxygsnkx3gd643juxglwhkj22ht2m6a2pqyhx9xsm5lxrm";

#[rstest]
#[case(JSON, &format!(r#"{{"message":"hi","seal_to":"{RECIPIENT}"}}"#))]
#[case(JSON, &format!(r#"{{"message":"hi","seal_to":" {RECIPIENT}\n"}}"#))]
#[case(FORM, &format!("message=hi&seal_to={RECIPIENT}"))]
fn a_caller_says_to_which_key_the_answer_is_to_be_sealed(#[case] content_type: Option<&str>, #[case] body: &str) {
    let channel = ChannelId::new("webhook", "siri");

    let event = read(content_type, body.as_bytes()).unwrap().into_event(&context(&channel));

    assert_eq!(event.seal_to.as_deref(), Some(RECIPIENT));
}

#[test]
fn what_names_no_key_wants_nothing_sealed() {
    assert_eq!(event(r#"{"message":"hi"}"#, |_| {}).seal_to, None);
}

#[rstest]
#[case::blank("  ".to_owned())]
#[case::a_mistyped_character(RECIPIENT.replace("lxrm", "lxrn"))]
#[case::two_swapped(RECIPIENT.replace("lxrm", "lxmr"))]
#[case::one_missing(RECIPIENT[..61].to_owned())]
#[case::capitals(RECIPIENT.to_uppercase())]
#[case::a_secret_key("AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX".to_owned())]
#[case::another_checksum("age1qyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqsyk4rdz".to_owned())]
#[case::a_short_key("age1qyqszqgvn77ap".to_owned())]
#[case::an_ssh_key("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO".to_owned())]
fn what_is_no_age_recipient_is_refused_and_not_repeated(#[case] key: String) {
    let problem = refused(JSON, &serde_json::json!({"message": "hi", "seal_to": key}).to_string());

    assert_eq!((problem.name(), problem.field()), ("invalid-field", Some("seal_to")));
    assert!(problem.detail().contains("age1") && !problem.detail().contains(&key), "{}", problem.detail());
}

#[test]
fn the_answer_of_a_command_cannot_be_sealed() {
    let problem = refused(JSON, &format!(r#"{{"command":"status","seal_to":"{RECIPIENT}"}}"#));

    assert_eq!((problem.name(), problem.field()), ("invalid-field", Some("seal_to")));
}

#[rstest]
#[case("[]")]
#[case(r#"["hi"]"#)]
#[case("\"hi\"")]
#[case("5")]
#[case("null")]
fn json_that_is_no_object_is_refused(#[case] body: &str) {
    let problem = refused(JSON, body);

    assert_eq!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(problem.detail().contains("object"), "{}", problem.detail());
}

#[rstest]
#[case(JSON, "{}")]
#[case(JSON, r#"{"message":""}"#)]
#[case(JSON, r#"{"message":" \n\t"}"#)]
#[case(JSON, r#"{"message":null}"#)]
#[case(JSON, r#"{"message":"","attachments":[]}"#)]
#[case(JSON, r#"{"text":"hi"}"#)]
#[case(Some("text/plain"), "")]
#[case(Some("text/plain"), " \n")]
#[case(None, "")]
#[case(FORM, "")]
#[case(FORM, "message=")]
#[case(FORM, "mood=blue")]
#[case(FORM, "sender=ada")]
#[case(MULTIPART, "--b--\r\n")]
fn an_empty_message_is_refused(#[case] content_type: Option<&str>, #[case] body: &str) {
    let problem = refused(content_type, body);

    assert_eq!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(problem.name(), "empty-message");
}

/// What `curl -d` sends, which it calls a form.
#[rstest]
#[case("hello")]
#[case("What can you do?")]
#[case("Is 2+2=4?")]
#[case("x=5, so what is y?")]
#[case("salt & pepper")]
#[case("100% sure")]
#[case("1+1")]
fn a_bare_text_that_is_sent_as_a_form_is_the_message(#[case] text: &str) {
    assert_eq!(text_of(FORM, text), text);
}

/// What `curl --data-urlencode` sends.
#[test]
fn an_encoded_text_without_a_name_is_the_message() {
    assert_eq!(text_of(FORM, "What%20can%20you%20do%3F"), "What can you do?");
}

#[test]
fn a_bare_text_that_is_sent_as_a_form_is_an_event() {
    assert_eq!(read_any(FORM, "the disk is full"), Ok("the disk is full".into()));
    assert_eq!(read_any(FORM, "title=the disk"), Ok(serde_json::json!({"title": "the disk"})));
}

#[test]
fn a_form_without_a_message_is_told_what_to_send() {
    assert!(refused(FORM, "text=hello").detail().contains("`message=`"));
}

#[test]
fn json_that_is_sent_as_a_form_is_told_so() {
    assert!(refused(FORM, r#"{"message":"hi"}"#).detail().contains("Content-Type: application/json"));
}

#[rstest]
#[case("application/xml")]
#[case("text/html")]
#[case("json")]
#[case("application/json; charset=latin1")]
#[case("text/plain; charset=utf-16")]
#[case("multipart/form-data")]
#[case("application/octet-stream")]
fn another_media_type_is_refused(#[case] content_type: &str) {
    let problem = refused(Some(content_type), r#"{"message":"hi"}"#);

    assert_eq!(problem.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[rstest]
#[case(JSON, b"{\"message\":\"\xff\"}")]
#[case(Some("text/plain"), b"\xff")]
#[case(FORM, b"message=%FF")]
#[case(FORM, b"message=%FF&sender=%EF%BF%BD")]
#[case(MULTIPART, b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\n\xff\r\n--b--")]
fn a_body_that_is_not_utf8_is_refused(#[case] content_type: Option<&str>, #[case] body: &[u8]) {
    let problem = read(content_type, body).unwrap_err();

    assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
    assert_eq!(problem.name(), "not-utf-8");
}

#[rstest]
#[case("")]
#[case("hi")]
#[case("--b\r\nContent-Disposition: form-data; name=message\r\n\r\nhi")]
#[case("--b\r\n\r\nhi\r\n--b--")]
#[case("--b\r\nContent-Disposition: form-data\r\n\r\nhi\r\n--b--")]
#[case("--bb\r\nContent-Disposition: form-data; name=message\r\n\r\nhi\r\n--b--")]
fn a_broken_form_is_refused(#[case] body: &str) {
    assert_eq!(refused(MULTIPART, body).name(), "not-a-form");
}

#[test]
fn a_form_may_hold_several_addresses_and_no_files() {
    let asked =
        read(FORM, b"message=look&attachments=https://a.example/x.png&attachments=&attachments=https://b.example")
            .unwrap();
    let urls: Vec<_> = asked.attachments.iter().map(|attachment| attachment.url.as_str()).collect();
    assert_eq!(urls, ["https://a.example/x.png", "https://b.example"]);
}

fn file_part(disposition: &str, content_type: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--b\r\nContent-Disposition: form-data; {disposition}\r\n{content_type}\r\n");
    [head.as_bytes(), content, b"\r\n"].concat()
}

/// K3.
#[test]
fn the_files_of_a_form_are_attachments() {
    let form = [
        &file_part("name=notes; filename=\"notes.txt\"", "Content-Type: text/plain\r\n", "Grüße\r\n--a".as_bytes()),
        &file_part("name=photo; filename=x.png", "", b"\xff\x00\r\n"),
        &file_part("name=more; filename=\"\"", "Content-Type: application/octet-stream\r\n", b""),
        &file_part("name=message", "", b"look"),
        &b"--b--"[..],
    ]
    .concat();

    let message = read(MULTIPART, &form).unwrap();

    let files: Vec<_> = message
        .attachments
        .iter()
        .map(|file| (&*file.name, &*file.media_type, data_url::content(&file.url).unwrap().unwrap()))
        .collect();
    let expected = [
        ("notes.txt", "text/plain", "Grüße\r\n--a".as_bytes().to_vec()),
        ("x.png", "application/octet-stream", b"\xff\x00\r\n".to_vec()),
    ];
    assert_eq!((message.text.as_str(), files), ("look", expected.to_vec()));
}

#[test]
fn the_files_of_a_form_are_bounded_and_named() {
    let part = file_part("name=f; filename=a", "", b"x");
    let most = FileLimits::default().per_message;
    let many = |count| [part.repeat(count), b"--b--".to_vec()].concat();
    let named = [file_part("name=f; filename=\"a\tb\"", "", b"x"), b"--b--".to_vec()].concat();

    assert!(read(MULTIPART, &many(most)).is_ok());
    let problem = |form: &[u8]| read(MULTIPART, form).unwrap_err().field().map(ToOwned::to_owned);
    assert_eq!(problem(&many(most + 1)).as_deref(), Some("attachments"));
    assert_eq!(problem(&named).as_deref(), Some("attachments[0].name"));
}

#[test]
fn the_files_of_a_message_have_a_limit_together() {
    let form = [file_part("name=f; filename=a", "", b"12345").repeat(2), b"--b--".to_vec()].concat();
    let json =
        br#"{"attachments":[{"url":"data:,12345"},{"url":"data:;base64,MTIzNDU="},{"url":"https://a.example/x"}]}"#;
    let status = |content_type, body: &[u8], max| {
        super::read(content_type, body, FileLimits { max, ..FileLimits::default() }).map_err(|problem| problem.name())
    };

    for (content_type, body) in [(MULTIPART, &form[..]), (JSON, &json[..])] {
        assert!(status(content_type, body, 10).is_ok());
        assert_eq!(status(content_type, body, 9).unwrap_err(), "files-too-large");
    }
}

#[test]
fn a_file_may_be_in_its_url() {
    let long = "x".repeat(2 * MAX_URL);
    let body = format!(
        r#"{{"attachments":[{{"url":"data:text/csv,{long}"}},{{"url":"data:,x","name":"n","media_type":"a/b"}}]}}"#
    );

    let event = event(&body, |_| {});

    let files: Vec<_> = event.attachments.iter().map(|file| (&*file.name, &*file.media_type)).collect();
    assert_eq!(files, [("attachment", "text/csv"), ("n", "a/b")]);
    let broken = r#"{"message":"hi","attachments":[{"url":"data:;base64,%%%"}]}"#;
    assert_eq!(refused(JSON, broken).field(), Some("attachments[0].url"));
}

#[test]
fn a_form_may_hold_so_many_fields_and_no_more() {
    let form = |count| vec!["mood=blue"; count].join("&") + "&&message=hi";
    let part = |name: &str, value| format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n");
    let parts = |count| part("mood", "blue").repeat(count) + &part("message", "hi") + "--b--";

    for (media, fits, too_many) in [(FORM, form(63), form(64)), (MULTIPART, parts(63), parts(64))] {
        assert_eq!(text_of(media, &fits), "hi");
        let problem = refused(media, &too_many);
        assert_eq!((problem.status(), problem.name()), (StatusCode::UNPROCESSABLE_ENTITY, "too-many-fields"));
        assert!(problem.detail().contains("64"), "{}", problem.detail());
    }
}

/// A regression: each field with U+FFFD once caused a copy of the body, and the first form here took 30 s.
#[test]
fn a_hostile_form_costs_no_more_than_its_length() {
    let begun = std::time::Instant::now();

    for mebibytes in [1, 2] {
        let many = "=\u{fffd}&".repeat((mebibytes << 20) / 5) + "message=%EF%BF%BD";
        assert_eq!(refused(FORM, &many).name(), "too-many-fields");
        let long = format!("x={}&", "\u{fffd}".repeat((mebibytes << 20) / 3 / 60));
        assert_eq!(text_of(FORM, &(long.repeat(60) + "message=%EF%BF%BD")), "\u{fffd}");
        assert_eq!(refused(MULTIPART, &"--b\r\n".repeat((mebibytes << 20) / 5)).name(), "not-a-form");
    }

    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_field_that_stands_in_a_form_twice_is_refused() {
    assert_eq!(refused(FORM, "message=a&message=b").field(), Some("message"));
}

/// K3.
#[test]
fn an_attachment_is_structured() {
    let body = r#"{"attachments":[
        {"url":"https://a.example/photos/cat.jpg?size=2"},
        {"url":"https://a.example","name":"A page","media_type":"text/html","size":7}
    ]}"#;

    let event = event(body, |_| {});

    assert_eq!(event.text, "");
    let attachment = |name: &str, media_type: &str, url: &str| Attachment {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        url: url.to_owned(),
    };
    let expected = [
        attachment("cat.jpg", "application/octet-stream", "https://a.example/photos/cat.jpg?size=2"),
        attachment("A page", "text/html", "https://a.example"),
    ];
    assert_eq!(event.attachments, expected);
}

#[rstest]
#[case("sender", MAX_NAME)]
#[case("conversation", MAX_NAME)]
fn names_are_bounded(#[case] field: &str, #[case] most: usize) {
    let body = |length| format!(r#"{{"message":"hi","{field}":"{}"}}"#, "é".repeat(length));

    assert!(read(JSON, body(most).as_bytes()).is_ok());
    assert_eq!(refused(JSON, &body(most + 1)).field(), Some(field));
}

#[test]
fn attachments_are_bounded() {
    let most = FileLimits::default().per_message;
    let body = |count| {
        let one = r#"{"url":"https://a.example"}"#;
        format!(r#"{{"message":"hi","attachments":[{}]}}"#, vec![one; count].join(","))
    };

    assert!(read(JSON, body(most).as_bytes()).is_ok());
    assert_eq!(refused(JSON, &body(most + 1)).field(), Some("attachments"));
    let long = format!(r#"{{"message":"hi","attachments":[{{"url":"https://a.example/{}"}}]}}"#, "x".repeat(MAX_URL));
    assert_eq!(refused(JSON, &long).field(), Some("attachments[0].url"));
}

#[rstest]
#[case(r#"{"message":"hi","conversation":"trip","sender":"ann"}"#, "conversation:trip", "ann")]
#[case(r#"{"message":"hi","sender":"ann"}"#, "sender:ann", "ann")]
#[case(r#"{"message":"hi","conversation":"","sender":"ann"}"#, "sender:ann", "ann")]
#[case(r#"{"message":"hi"}"#, "conversation:home", "caller")]
#[case(r#"{"message":"hi","sender":" "}"#, "conversation:home", "caller")]
fn a_turn_belongs_to_the_conversation_that_is_named(#[case] body: &str, #[case] chat: &str, #[case] sender: &str) {
    let event = event(body, |context| context.conversation = Some("home"));

    assert_eq!(&*event.conversation.chat, chat);
    assert_eq!(event.sender.id, sender);
}

#[test]
fn a_turn_without_a_conversation_shares_it_with_nothing() {
    let one = event(r#"{"message":"hi"}"#, |_| {});
    let other = event(r#"{"message":"hi"}"#, |_| {});

    assert_ne!(one.external_id, other.external_id);
    assert_ne!(one.conversation, other.conversation);
}

/// E6.
#[test]
fn the_same_key_is_the_same_event() {
    let with = |key| event(r#"{"message":"hi"}"#, |context| context.key = Some(key));

    let event = with(Key::Idempotency("k1"));

    assert_eq!(event.external_id, with(Key::Idempotency("k1")).external_id);
    assert_eq!(event.conversation, with(Key::Idempotency("k1")).conversation);
    assert_ne!(event.external_id, with(Key::Idempotency("k2")).external_id);
    assert_ne!(event.external_id, with(Key::WebhookId("k1")).external_id);
    assert_eq!(event.external_id.len(), 64);
}

/// M2.
#[test]
fn a_hook_asks_and_says_how_long_it_waits() {
    let event = event(r#"{"message":"hi"}"#, |context| context.wait = Duration::from_secs(20));

    assert_eq!(event.directed, Directed::Asked);
    assert_eq!(event.chat, ChatKind::Direct);
    assert_eq!(event.kind, EventKind::Message);
    assert_eq!(event.patience, Some(Duration::from_secs(20)));
}

/// M5.
#[test]
fn a_caller_that_does_not_wait_has_no_patience_to_lose() {
    assert_eq!(event(r#"{"message":"hi"}"#, |_| {}).patience, None);
}

/// The message's own comes before the request's.
#[test]
fn the_language_is_that_of_the_message_or_of_the_request() {
    let english = |context: &mut Context<'_>| context.language = Language::of("en");
    let language = |body: &str| event(body, english).language;

    assert_eq!(language(r#"{"message":"hi","language":"de-AT"}"#), Language::of("de"));
    for body in
        [r#"{"message":"hi"}"#, r#"{"message":"hi","language":null}"#, r#"{"message":"hi","language":"klingon!"}"#]
    {
        assert_eq!(language(body), Language::of("en"), "{body}");
    }
    assert_eq!(event(r#"{"message":"hi"}"#, |_| ()).language, None);
    let form = read(FORM, b"message=hi&language=es").unwrap();
    assert_eq!(form.into_event(&context(&ChannelId::new("webhook", "siri"))).language, Language::of("es"));
}

#[test]
fn a_command_is_named_and_may_have_a_text() {
    let said = |body: &str| event(body, |_| {}).text;

    assert_eq!(said(r#"{"command":"stop"}"#), "/stop");
    assert_eq!(said(r#"{"command":"/Stop","message":""}"#), "/stop");
    assert_eq!(said(r#"{"command":"weather","message":"Vienna"}"#), "/weather Vienna");
    assert_eq!(said(r#"{"command":" ","message":"hi"}"#), "hi");
    assert_eq!(text_of(FORM, "command=status"), "/status");
    for body in [r#"{"command":"stop it"}"#, r#"{"command":"/"}"#, r#"{"command":"a/b"}"#] {
        assert_eq!(refused(JSON, body).status(), StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
}

#[test]
fn a_command_that_there_is_not_is_refused() {
    let own = || CommandHelp {
        name: "weather".into(),
        description: "The weather".into(),
        descriptions: BTreeMap::new(),
        argument: None,
    };
    let check = |body: &str| read(JSON, body.as_bytes()).expect("it can be read").check_command(|| vec![own()]);

    for body in [r#"{"command":"cancel"}"#, r#"{"command":"weather"}"#, r#"{"message":"/fly"}"#] {
        assert!(check(body).is_ok(), "{body}");
    }
    let problem = check(r#"{"command":"fly"}"#).expect_err("there is no such command");
    assert!(problem.detail().contains("must be one of weather, not fly"), "{}", problem.detail());
}
