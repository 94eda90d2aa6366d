//! Forms and links, as the person and the agent see them.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn request(params: &Value) -> ElicitationRequest {
    // As text: the order of a form is the agent's.
    serde_json::from_str(&params.to_string()).expect("a request")
}

fn form(properties: &Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "mode": "form", "sessionId": "s1", "message": "Some details, please.", "requestedSchema": schema })
}

/// A form with one required property.
fn asks(property: &Value) -> Elicitation {
    Elicitation::of(request(&form(&json!({ "it": property }), &["it"]))).expect("it can be shown")
}

fn question(elicitation: &Elicitation) -> (String, Choices) {
    match elicitation.step() {
        Step::Ask(text, choices) => {
            let asked = ApprovalRequest::question(text.clone(), choices.clone());
            assert_eq!(as_stored(&asked), asked, "the core changes nothing");
            (text, choices)
        }
        Step::Answer(response) => panic!("it is answered: {response:?}"),
    }
}

fn response(elicitation: &Elicitation) -> Response {
    match elicitation.step() {
        Step::Answer(response) => response,
        Step::Ask(text, _) => panic!("it asks: {text}"),
    }
}

/// The value of a form with one required property.
fn value(property: &Value, words: &str) -> Result<Value, String> {
    let mut elicitation = asks(property);
    elicitation.take(Some(words));
    match elicitation.step() {
        Step::Answer(Response::Accept(Some(content))) => Ok(content["it"].clone()),
        Step::Ask(text, _) => Err(text.lines().next().unwrap_or_default().to_owned()),
        other @ Step::Answer(_) => panic!("{other:?}"),
    }
}

fn titled(count: usize) -> Value {
    (1..=count).map(|number| json!({ "const": format!("v{number}"), "title": format!("Title {number}") })).collect()
}

#[rstest]
#[case::untitled(json!({ "type": "string", "enum": ["red", "blue"] }), &["red", "blue", "Decline"])]
#[case::titled(json!({ "type": "string", "oneOf": titled(2) }), &["Title 1", "Title 2", "Decline"])]
#[case::boolean(json!({ "type": "boolean" }), &["Yes", "No", "Decline"])]
#[case::seven(json!({ "type": "string", "oneOf": titled(7) }), &["Title 1", "Title 2", "Title 3", "Title 4", "Title 5", "Title 6", "Title 7", "Decline"])]
#[case::too_many(json!({ "type": "string", "oneOf": titled(8) }), &[])]
#[case::long(json!({ "type": "string", "enum": ["x".repeat(65), "y".to_owned()] }), &["1", "2", "Decline"])]
#[case::alike(json!({ "type": "string", "enum": ["Red", "red"] }), &["1", "2", "Decline"])]
#[case::like_our_own(json!({ "type": "string", "enum": ["accept", "decline"] }), &["1", "2", "Decline"])]
#[case::words(json!({ "type": "string" }), &[])]
#[case::number(json!({ "type": "number" }), &[])]
#[case::several(json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }), &[])]
fn choices_are_shown_where_they_can_be(#[case] property: Value, #[case] shown: &[&str]) {
    let (text, choices) = question(&asks(&property));

    assert_eq!(
        (choices.options.iter().map(String::as_str).collect::<Vec<_>>(), choices.free_text),
        (shown.to_vec(), shown.is_empty())
    );
    assert!(text.starts_with("Some details, please."), "{text}");
}

#[test]
fn an_optional_choice_can_be_left_out_whatever_its_default() {
    let property = json!({ "type": "string", "enum": ["red", "blue"], "default": "red" });
    let mut elicitation = Elicitation::of(request(&form(&json!({ "it": property }), &[]))).expect("a form");
    assert_eq!(question(&elicitation).1.options, ["red", "blue", "Skip", "Decline"]);

    elicitation.take(Some("Skip"));

    assert_eq!(response(&elicitation).result(), json!({ "action": "accept", "content": {} }));
}

#[rstest]
#[case::untitled(json!({ "type": "string", "enum": ["red", "blue"] }), "blue", json!("blue"))]
#[case::titled(json!({ "type": "string", "oneOf": titled(2) }), "Title 2", json!("v2"))]
#[case::yes(json!({ "type": "boolean" }), "Yes", json!(true))]
#[case::no(json!({ "type": "boolean" }), "No", json!(false))]
#[case::of_a_list(json!({ "type": "string", "oneOf": titled(20) }), "20", json!("v20"))]
#[case::of_a_list_by_title(json!({ "type": "string", "oneOf": titled(20) }), "title 7", json!("v7"))]
#[case::a_title_before_a_number(json!({ "type": "string", "enum": ["2", "x", "3"] }), "2", json!("2"))]
#[case::named_as_our_own(json!({ "type": "string", "enum": ["accept", "decline"] }), "decline", json!("decline"))]
#[case::words(json!({ "type": "string" }), " It's  5\u{a0}o'clock ", json!("It's  5\u{a0}o'clock"))]
#[case::words_like_a_command(json!({ "type": "string" }), "{\"action\":\"decline\"}", json!("{\"action\":\"decline\"}"))]
#[case::not_to_be_left_out(json!({ "type": "string" }), "skip", json!("skip"))]
#[case::no_default(json!({ "type": "string" }), "default", json!("default"))]
#[case::default(json!({ "type": "string", "default": "Rome" }), "Default", json!("Rome"))]
#[case::default_that_fits_not(json!({ "type": "string", "default": 7 }), "default", json!("default"))]
#[case::email(json!({ "type": "string", "format": "email" }), "ada@example.org", json!("ada@example.org"))]
#[case::uri(json!({ "type": "string", "format": "uri" }), "https://example.org/a?b", json!("https://example.org/a?b"))]
#[case::date(json!({ "type": "string", "format": "date" }), "2026-02-28", json!("2026-02-28"))]
#[case::time(json!({ "type": "string", "format": "date-time" }), "2026-11-28T14:30:00+01:00", json!("2026-11-28T14:30:00+01:00"))]
#[case::unknown_format(json!({ "type": "string", "format": "zip" }), "x", json!("x"))]
#[case::length(json!({ "type": "string", "minLength": 2, "maxLength": 3 }), "äöü", json!("äöü"))]
#[case::whole(json!({ "type": "integer", "minimum": 1, "maximum": 3 }), "3", json!(3))]
#[case::negative(json!({ "type": "integer" }), "-3", json!(-3))]
#[case::number(json!({ "type": "number", "minimum": 0.5 }), "0.5", json!(0.5))]
#[case::a_number_that_is_whole(json!({ "type": "number" }), "4", json!(4))]
#[case::default_number(json!({ "type": "integer", "default": 5 }), "default", json!(5))]
#[case::several(json!({ "type": "array", "items": { "anyOf": titled(4) } }), "3, 1;3", json!(["v1", "v3"]))]
#[case::several_by_title(json!({ "type": "array", "items": { "anyOf": titled(4) } }), "title 4, 2", json!(["v2", "v4"]))]
#[case::several_with_spaces(json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }), "1 2", json!(["a", "b"]))]
#[case::none(json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }), "None", json!([]))]
#[case::default_of_several(json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "default": ["b"] }), "default", json!(["b"]))]
fn words_are_the_value(#[case] property: Value, #[case] words: &str, #[case] sent: Value) {
    assert_eq!(value(&property, words), Ok(sent));
}

#[rstest]
#[case::choice(json!({ "type": "boolean" }), "maybe", "That is none of the choices.")]
#[case::beyond_a_list(json!({ "type": "string", "oneOf": titled(20) }), "21", "That is none of the choices.")]
#[case::nothing_of_a_list(json!({ "type": "string", "oneOf": titled(20) }), "0", "That is none of the choices.")]
#[case::email(json!({ "type": "string", "format": "email" }), "ada at example", "That is no e-mail address.")]
#[case::two_emails(json!({ "type": "string", "format": "email" }), "a@b@c", "That is no e-mail address.")]
#[case::uri(json!({ "type": "string", "format": "uri" }), "example", "That is no web address. It begins with https:// or the like.")]
#[case::date(json!({ "type": "string", "format": "date" }), "2026-02-30", "That is no date such as 2026-11-28.")]
#[case::date_in_words(json!({ "type": "string", "format": "date" }), "tomorrow", "That is no date such as 2026-11-28.")]
#[case::time(json!({ "type": "string", "format": "date-time" }), "2026-11-28T14:30:00", "That is no time such as 2026-11-28T14:30:00Z.")]
#[case::too_short(json!({ "type": "string", "minLength": 3 }), "ab", "That has fewer than 3 characters.")]
#[case::too_long(json!({ "type": "string", "maxLength": 3 }), "abcd", "That has more than 3 characters.")]
#[case::no_number(json!({ "type": "number" }), "many", "That is no number.")]
#[case::endless(json!({ "type": "number" }), "inf", "That is no number.")]
#[case::not_whole(json!({ "type": "integer" }), "3.5", "That is no whole number.")]
#[case::huge(json!({ "type": "integer" }), "99999999999999999999", "That is no whole number.")]
#[case::less(json!({ "type": "integer", "minimum": 1 }), "0", "That is less than 1.")]
#[case::more(json!({ "type": "number", "maximum": 2.5 }), "2.6", "That is more than 2.5.")]
#[case::several(json!({ "type": "array", "items": { "anyOf": titled(4) } }), "1, 5", "That is not a list of numbers of the choices.")]
#[case::too_few(json!({ "type": "array", "minItems": 2, "items": { "anyOf": titled(4) } }), "1 1", "Please choose at least 2.")]
#[case::too_many(json!({ "type": "array", "maxItems": 1, "items": { "anyOf": titled(4) } }), "1 2", "Please choose at most 1.")]
#[case::default_too_long(json!({ "type": "string", "maxLength": 3, "default": "Rome" }), "default", "That has more than 3 characters.")]
#[case::default_of_another_format(json!({ "type": "string", "format": "email", "default": "Ada" }), "default", "That is no e-mail address.")]
#[case::default_that_is_more(json!({ "type": "integer", "maximum": 3, "default": 5 }), "default", "That is no whole number.")]
#[case::default_that_is_less(json!({ "type": "number", "minimum": 0.5, "default": 0.25 }), "default", "That is no number.")]
#[case::default_of_too_few(json!({ "type": "array", "minItems": 1, "items": { "anyOf": titled(4) }, "default": [] }), "default", "That is not a list of numbers of the choices.")]
#[case::default_of_too_many(json!({ "type": "array", "maxItems": 1, "items": { "anyOf": titled(4) }, "default": ["v1", "v2"] }), "default", "That is not a list of numbers of the choices.")]
fn words_that_do_not_fit_are_asked_for_again(#[case] property: Value, #[case] words: &str, #[case] wrong: &str) {
    assert_eq!(value(&property, words), Err(wrong.to_owned()));
}

/// Each question is another one: an earlier answer to it is known by its text.
#[test]
fn a_third_answer_that_does_not_fit_is_the_last() {
    let mut elicitation = asks(&json!({ "type": "integer" }));
    let mut texts = Vec::new();
    for words in ["a", "b", "c"] {
        texts.push(question(&elicitation).0);
        elicitation.take(Some(words));
    }

    assert_eq!(response(&elicitation), Response::Cancel);
    assert!(texts[1].starts_with("That is no whole number.\n\n") && texts[2].contains("the last try"), "{texts:?}");
    assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
}

#[rstest]
#[case::choice(json!({ "type": "boolean" }), Some("Decline"), Response::Decline)]
#[case::words(json!({ "type": "string" }), Some("decline"), Response::Decline)]
#[case::number(json!({ "type": "number" }), Some("DECLINE"), Response::Decline)]
#[case::no_answer(json!({ "type": "boolean" }), None, Response::Cancel)]
fn a_person_may_refuse_and_may_say_nothing(
    #[case] property: Value,
    #[case] answer: Option<&str>,
    #[case] expected: Response,
) {
    let mut elicitation = asks(&property);

    elicitation.take(answer);

    assert_eq!(response(&elicitation), expected);
}

/// Two properties with one title are two questions.
#[test]
fn a_form_is_asked_in_the_order_of_the_agent() {
    let properties = r#"{ "to": { "type": "string", "title": "Name" }, "from": { "type": "string", "title": "Name" },
        "count": { "type": "integer", "description": "How many tickets?", "maximum": 9 } }"#;
    let schema = format!(r#"{{ "properties": {properties}, "required": ["to", "from"] }}"#);
    let params =
        format!(r#"{{ "mode": "form", "sessionId": "s1", "message": "A trip.", "requestedSchema": {schema} }}"#);
    let mut elicitation = Elicitation::of(serde_json::from_str(&params).expect("a request")).expect("a form");
    let mut texts = Vec::new();
    for words in ["Rome", "Bern", "skip"] {
        texts.push(question(&elicitation).0);
        elicitation.take(Some(words));
    }

    let content = json!({ "to": "Rome", "from": "Bern" });
    assert_eq!(response(&elicitation).result(), json!({ "action": "accept", "content": content }));
    let refuse = "“decline” to refuse.";
    assert_eq!(
        texts,
        [
            format!("A trip.\n\nName (1 of 3)\n\nPlease write your answer; or {refuse}"),
            format!("A trip.\n\nName (2 of 3)\n\nPlease write your answer; or {refuse}"),
            format!(
                "A trip.\n\ncount (3 of 3)\n\nHow many tickets?\n\nPlease write a whole number, at most 9; or “skip” to leave it out, {refuse}"
            ),
        ]
    );
}

#[test]
fn a_list_and_a_default_are_shown() {
    let items = json!({ "anyOf": titled(2) });
    let (text, _) =
        question(&asks(&json!({ "type": "array", "minItems": 1, "maxItems": 2, "items": items, "default": ["v2"] })));
    let (chosen, _) = question(&asks(&json!({ "type": "string", "oneOf": titled(2), "default": "v1" })));

    let hint = "Please write the numbers of your choices, such as “1, 3” (1 to 2 of them); or “default” for Title 2, “decline” to refuse.";
    assert_eq!(text, format!("Some details, please.\n\nit\n\n1. Title 1\n2. Title 2\n\n{hint}"));
    assert_eq!(chosen, "Some details, please.\n\nit\n\nDefault: Title 1");
}

/// What follows it would be a part of the block.
#[test]
fn a_description_opens_no_block_of_code() {
    let (text, _) = question(&asks(&json!({ "type": "string", "description": "``` or\n```" })));

    assert!(text.contains("\n\n''' or '''\n\n") && !text.contains("```"), "{text}");
}

#[test]
fn a_long_message_is_cut_and_what_is_asked_is_not() {
    let property =
        json!({ "type": "string", "title": "x".repeat(500), "description": "y".repeat(5_000), "oneOf": titled(90) });
    let mut params = form(&json!({ "it": property }), &["it"]);
    params["message"] = "m".repeat(10_000).into();

    let (text, _) = question(&Elicitation::of(request(&params)).expect("it can be shown"));

    assert!(text.chars().count() <= MOST_TEXT && text.contains("90. Title 90") && text.ends_with("refuse."), "{text}");
}

#[rstest]
#[case::format(json!({ "it": { "type": "string", "format": "password" } }))]
#[case::name(json!({ "name": { "type": "string" }, "userPassword": { "type": "string" } }))]
#[case::snake_case(json!({ "github_token": { "type": "string" } }))]
#[case::key(json!({ "apiKey": { "type": "string" } }))]
#[case::title(json!({ "it": { "type": "string", "title": "Your client secret" } }))]
#[case::number(json!({ "pin": { "type": "integer", "title": "Your secret" } }))]
#[case::too_much((0..9).map(|number| (format!("p{number}"), json!({ "type": "string" }))).collect())]
#[case::too_many_choices(json!({ "it": { "type": "string", "oneOf": titled(200) } }))]
fn a_form_that_does_not_belong_into_a_chat_is_not_shown(#[case] properties: Value) {
    Elicitation::of(request(&form(&properties, &[]))).expect_err("it is declined");
}

#[rstest]
#[case::tokens(json!({ "max_tokens": { "type": "integer" } }))]
#[case::chosen(json!({ "token": { "type": "string", "enum": ["BTC", "ETH"] } }))]
#[case::word(json!({ "secretary": { "type": "string" }, "keyboard": { "type": "string" } }))]
fn what_only_sounds_like_a_secret_is_asked(#[case] properties: Value) {
    question(&Elicitation::of(request(&form(&properties, &[]))).expect("it can be shown"));
}

#[rstest]
#[case::later_type(json!({ "type": "_color" }))]
#[case::no_choices(json!({ "type": "string", "enum": [] }))]
#[case::array_of_something(json!({ "type": "array", "items": { "type": "number" } }))]
#[case::no_type(json!({}))]
fn what_cannot_be_asked_is_left_out_if_it_may_be(#[case] property: Value) {
    let properties = json!({ "it": property });

    Elicitation::of(request(&form(&properties, &["it"]))).expect_err("it is declined");
    let mut elicitation = Elicitation::of(request(&form(&properties, &[]))).expect("it can be shown");

    let (text, choices) = question(&elicitation);
    assert_eq!(
        (text.as_str(), choices.options),
        ("Some details, please.", vec!["OK".to_owned(), "Decline".to_owned()])
    );
    elicitation.take(Some("OK"));
    assert_eq!(response(&elicitation).result(), json!({ "action": "accept", "content": {} }));
}

fn link_to(url: &str) -> Result<Elicitation, &'static str> {
    let message = "Please log in.";
    let params = json!({ "mode": "url", "sessionId": "s1", "elicitationId": "e1", "message": message, "url": url });
    Elicitation::of(request(&params))
}

#[rstest]
#[case(Some("Done"), json!({ "action": "accept" }))]
#[case(Some("Decline"), json!({ "action": "decline" }))]
#[case(None, json!({ "action": "cancel" }))]
fn a_link_is_shown_whole(#[case] answer: Option<&str>, #[case] expected: Value) {
    let url = format!("https://login.example/_a_?state={}", "x".repeat(1_000));
    let mut elicitation = link_to(&url).expect("it can be shown");

    let (text, choices) = question(&elicitation);
    elicitation.take(answer);

    assert_eq!((text, choices.options.len()), (format!("Please log in.\n\n<{url}>"), 2));
    assert_eq!(response(&elicitation).result(), expected);
}

#[test]
fn the_host_of_a_link_is_shown_as_it_is() {
    let (text, _) = question(&link_to("https://ex\u{430}mple.com/").expect("it can be shown"));

    assert!(text.ends_with("<https://xn--exmple-4nf.com/>"), "{text}");
}

#[rstest]
#[case::script("javascript:alert(1)")]
#[case::file("file:///etc/passwd")]
#[case::app("tg://resolve?domain=x")]
#[case::relative("/login")]
#[case::user("https://bank.example@evil.example/")]
#[case::bidi("https://example.org/\u{202e}gpj.exe")]
#[case::hidden("https://exam\u{200b}ple.org/")]
#[case::control("https://example.org/\u{7}")]
#[case::lines("https://example.org/\nx")]
#[case::long(&format!("https://example.org/{}", "x".repeat(MOST_LINK)))]
fn a_link_that_misleads_is_not_shown(#[case] url: &str) {
    link_to(url).expect_err("it is declined");
}

#[rstest]
#[case::no_mode(json!({ "message": "Hi", "requestedSchema": {} }))]
#[case::no_message(json!({ "mode": "form", "requestedSchema": {} }))]
#[case::no_schema(json!({ "mode": "form", "message": "Hi" }))]
#[case::no_url(json!({ "mode": "url", "message": "Hi" }))]
#[case::no_object(json!({ "mode": "form", "message": "Hi", "requestedSchema": { "properties": [] } }))]
#[case::no_values(json!({ "mode": "form", "message": "Hi", "requestedSchema": { "properties": { "a": { "type": "string", "enum": 5 } } } }))]
#[case::nothing(Value::Null)]
fn what_is_no_request_cannot_be_read(#[case] params: Value) {
    serde_json::from_str::<ElicitationRequest>(&params.to_string()).expect_err("it is refused");
}

#[test]
fn later_modes_and_requests_outside_of_sessions_are_told_apart() {
    assert!(matches!(
        request(&json!({ "mode": "_voice", "sessionId": "s1", "message": "Hi" })),
        ElicitationRequest::Other
    ));
    let outside = json!({ "mode": "form", "requestId": 3, "message": "Hi", "requestedSchema": {} });
    assert_eq!((request(&outside).session(), request(&form(&json!({}), &[])).session()), (None, Some("s1")));
}

#[test]
fn earlier_answers_are_taken_in_order_and_the_last_one_again() {
    let ask =
        |text: &str| ApprovalRequest::question(text, Choices { options: Vec::new(), free_text: true, expires: None });
    let answer = |text: &str, answer: Option<&str>| PersonAnswer {
        question: as_stored(&ask(text)),
        answer: answer.map(str::to_owned),
    };
    let mut answers = Answers::of(&[answer("Go on?", Some("yes")), answer("Who?", None), answer("Go on?", Some("no"))]);

    let mut said = |text: &str| answers.take(&ask(text)).map(|known| known.answer.clone().unwrap_or_default());

    assert_eq!([" Go on? "; 3].map(&mut said), ["yes", "no", "no"].map(|words| Some(words.to_owned())));
    assert_eq!([said("Who?"), said("Why?")], [Some(String::new()), None]);
}
