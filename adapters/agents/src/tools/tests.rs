use std::time::Duration;

use rejoinder_core::{
    AgentTurn, ApprovalRequest, Attachment, Capabilities, Choices, Outcome, Reply, Support, Timestamp,
};
use rstest::rstest;
use serde_json::Value;

use super::{
    call::{Call, MAX_CHOICE},
    chosen::Chosen,
    offer::offered,
};
use crate::tests::{capabilities, turn};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn parse(name: &str, arguments: &str) -> Result<Call, String> {
    Call::parse(name, arguments, &at_now(), NOW)
}

fn at_now() -> AgentTurn {
    turn("").with(|turn| turn.now = NOW)
}

fn on(capabilities: &Capabilities) -> AgentTurn {
    at_now().with(|turn| turn.place.capabilities = capabilities.clone())
}

fn names(turn: &AgentTurn) -> Vec<String> {
    offered(turn).iter().map(|tool| tool.name.to_string()).collect()
}

#[test]
fn a_reaction_is_offered_only_where_it_can_be_shown() {
    assert_eq!(names(&at_now()), ["react", "ask", "stay_silent", "send", "send_file", "defer"]);
    let without = on(&Capabilities { reactions: Support::No, ..capabilities() });
    assert_eq!(names(&without), ["ask", "stay_silent", "send", "send_file", "defer"]);
    assert!(Call::parse("react", r#"{"emoji":"👍"}"#, &without, NOW).is_err());
}

/// A15.
#[test]
fn a_model_may_put_its_answer_off_only_so_often_and_for_so_long() {
    let mut last = at_now();
    last.rights.may_defer.left = 0;
    assert!(!names(&last).iter().any(|name| name == "defer"));
    assert!(Call::parse("defer", r#"{"note":"soon","minutes":5}"#, &last, NOW).is_err());

    let told = parse("defer", r#"{"note":"soon","minutes":1441}"#).expect_err("a day is the most");
    assert!(told.contains("2023-11-15T22:13:20Z at the latest"), "{told}");
}

/// G3.
#[test]
fn an_approval_is_offered_only_where_somebody_could_give_it() {
    let asking = at_now().with(|turn| turn.rights.may_ask_approval = true);
    let arguments = r#"{"action":" pay the rent ","kind":"bank.pay"}"#;

    assert!(names(&asking).iter().any(|name| name == "request_approval"));
    assert!(!names(&at_now()).iter().any(|name| name == "request_approval"));
    assert!(parse("request_approval", arguments).is_err());
    assert!(Call::parse("request_approval", r#"{"action":" "}"#, &asking, NOW).is_err());
    for kind in ["mcp.files.write_file", " acp.execute"] {
        let arguments = format!(r#"{{"action":"pay","kind":"{kind}"}}"#);
        assert!(
            Call::parse("request_approval", &arguments, &asking, NOW).is_err(),
            "approvers read of {kind} what asks"
        );
    }
    let request = ApprovalRequest { kind: Some("bank.pay".to_owned()), ..ApprovalRequest::action("pay the rent") };
    assert_eq!(Call::parse("request_approval", arguments, &asking, NOW), Ok(Call::Approval(request.clone())));
    let mut chosen = Chosen::default();
    chosen.add(Call::Defer { note: None, due: NOW });
    chosen.add(Call::Approval(request.clone()));
    assert_eq!(chosen.outcome(Some("I have paid.")), Some(Outcome::Approval(request)));
}

#[test]
fn only_the_emoji_that_the_platform_allows_are_offered_and_taken() {
    let few = on(&Capabilities { allowed_reactions: Some(["👍".into(), "🔥".into()].into()), ..capabilities() });
    let parameters: Value = serde_json::from_str(offered(&few)[0].parameters.get()).expect("parameters are JSON");
    let allowed = &parameters["properties"]["emoji"]["enum"];
    assert_eq!(*allowed, serde_json::json!(["👍", "🔥"]));
    assert!(Call::parse("react", r#"{"emoji":"🔥"}"#, &few, NOW).is_ok());
    assert!(Call::parse("react", r#"{"emoji":"🦀"}"#, &few, NOW).is_err_and(|told| told.contains("👍 🔥")));
}

#[rstest]
#[case(r#"{"note":"soon","minutes":2}"#, 120)]
#[case(r#"{"note":"soon","seconds":30}"#, 30)]
#[case(r#"{"note":"soon","minutes":"1.5","until":null}"#, 90)]
#[case(r#"{"note":"soon","minutes":1,"seconds":5,"until":"tomorrow"}"#, 65)]
#[case(r#"{"note":"soon","until":"2023-11-14T22:14:20Z"}"#, 60)]
#[case(r#"{"note":"soon","until":"2023-11-14T23:14:20+01:00"}"#, 60)]
fn a_deferral_is_due_when_the_model_says(#[case] arguments: &str, #[case] seconds: u64) {
    let due = NOW + Duration::from_secs(seconds);
    assert_eq!(parse("defer", arguments), Ok(Call::Defer { note: Some("soon".into()), due }));
}

#[rstest]
#[case("react", "")]
#[case("react", r#"{"emoji":" "}"#)]
#[case("react", r#"{"emoji":"#)]
#[case("react", r#"{"emoji":"thumbs_up"}"#)]
#[case("defer", r#"{"note":"soon"}"#)]
#[case("defer", r#"{"minutes":-5}"#)]
#[case("defer", r#"{"minutes":1e300}"#)]
#[case("defer", r#"{"until":"2001-01-01T00:00:00Z"}"#)]
#[case("defer", r#"{"until":"tomorrow"}"#)]
#[case("ask", r#"{"question":"Which?"}"#)]
#[case("ask", r#"{"question":" ","choices":["a","b"]}"#)]
#[case("ask", r#"{"question":"Which?","choices":["a"]}"#)]
#[case("ask", r#"{"question":"Which?","choices":["1","2","3","4","5","6","7","8","9"]}"#)]
#[case("ask", r#"{"question":"Which?","choices":["a"," "]}"#)]
#[case("ask", r#"{"question":"Which?","choices":["Yes","yes "]}"#)]
#[case("ask", r#"{"question":"Which?","choices":"a or b"}"#)]
#[case("ask", r#"{"question":"Which?","choices":["a","b"],"expires_in":"soon"}"#)]
#[case("send", r#"{"text":""}"#)]
#[case("send", "[1]")]
#[case("send_file", r#"{"data":"aGk="}"#)]
#[case("send_file", r#"{"name":"a.txt","data":"{}"}"#)]
#[case("web_search", r#"{"query":"weather"}"#)]
fn what_is_not_understood_is_told_to_the_model(#[case] name: &str, #[case] arguments: &str) {
    assert!(parse(name, arguments).is_err_and(|told| told.starts_with("error: ")));
}

fn which(options: &[&str]) -> Choices {
    Choices { options: options.iter().map(|one| (*one).to_owned()).collect(), free_text: true, expires: None }
}

#[rstest]
#[case("", true, None)]
#[case(r#","free_text":false,"expires_in":null"#, false, None)]
#[case(r#","free_text":null,"expires_in":3600"#, true, Some(3600))]
#[case(r#","expires_in":"90""#, true, Some(90))]
#[case(r#","expires_in":1"#, true, Some(60))]
#[case(r#","expires_in":-1"#, true, Some(60))]
#[case(r#","expires_in":1e300"#, true, Some(30 * 24 * 3600))]
fn a_question_is_open_for_as_long_as_the_model_says(
    #[case] more: &str,
    #[case] free_text: bool,
    #[case] seconds: Option<u64>,
) {
    let expires = seconds.map(|seconds| NOW + Duration::from_secs(seconds));
    let choices = Choices { free_text, expires, ..which(&["Tea", "Coffee"]) };
    let call = parse("ask", &format!(r#"{{"question":" Which? ","choices":["Tea "," Coffee"]{more}}}"#));
    assert_eq!(call, Ok(Call::Ask { question: "Which?".into(), choices }));
}

#[test]
fn a_choice_that_fits_on_no_button_is_told_to_the_model() {
    let arguments = |length| serde_json::json!({"question": "Which?", "choices": ["a", "x".repeat(length)]});
    assert!(parse("ask", &arguments(MAX_CHOICE).to_string()).is_ok());
    assert!(parse("ask", &arguments(MAX_CHOICE + 1).to_string()).is_err_and(|told| told.contains("80")));
}

/// B6.
#[test]
fn silence_without_a_reason_is_still_chosen() {
    assert_eq!(parse("stay_silent", ""), Ok(Call::StaySilent("chosen, no reason given".into())));
}

/// B10.
#[test]
fn several_choices_come_to_one_signal() {
    let chosen = |calls: &[Call], text| {
        let mut chosen = Chosen::default();
        calls.iter().cloned().for_each(|call| chosen.add(call));
        chosen.outcome(text)
    };
    let (react, silent) = (Call::React("👍".into()), Call::StaySilent("no need".into()));
    let defer = Call::Defer { note: None, due: NOW };
    let thumb = Some(Outcome::React("👍".into()));
    let ask = Call::Ask { question: "Which?".into(), choices: which(&["a", "b"]) };
    let asked = |text: &str| Some(Outcome::Reply(Reply::question(text, which(&["a", "b"]))));

    assert_eq!(chosen(&[ask.clone(), silent.clone(), react.clone()], None), asked("Which?"));
    assert_eq!(chosen(std::slice::from_ref(&ask), Some("There are two. ")), asked("There are two.\n\nWhich?"));
    assert_eq!(chosen(std::slice::from_ref(&ask), Some("There are two. Which?")), asked("There are two. Which?"));
    assert_eq!(chosen(&[ask, defer.clone()], None), Some(Outcome::Defer { note: None, due: NOW }));

    assert_eq!(chosen(std::slice::from_ref(&react), None), thumb);
    assert_eq!(chosen(std::slice::from_ref(&react), Some("Yes.")), None, "the text is the answer");
    assert_eq!(chosen(&[silent.clone(), react.clone()], Some("I say nothing.")), thumb);
    assert_eq!(chosen(std::slice::from_ref(&silent), Some("I say nothing.")), Some(Outcome::Silent("no need".into())));
    assert_eq!(
        chosen(&[react, silent, defer], Some(" Give me a minute. ")),
        Some(Outcome::Defer { note: Some("Give me a minute.".into()), due: NOW })
    );
    assert_eq!(chosen(&[], Some("Yes.")), None);
}

#[test]
fn files_go_with_what_is_said() {
    let file = Attachment { name: "a.png".into(), media_type: "image/png".into(), url: "https://example.org/a".into() };
    let chosen = |call: Option<Call>, text| {
        let mut chosen = Chosen::default();
        for call in std::iter::once(Call::File(file.clone())).chain(call) {
            chosen.add(call);
        }
        chosen.outcome(text)
    };
    let with_file = |reply: Reply| Some(Outcome::Reply(Reply { attachments: vec![file.clone()], ..reply }));
    let (react, silent) = (Call::React("👍".into()), Call::StaySilent("no need".into()));
    let ask = Call::Ask { question: "Which?".into(), choices: which(&["a", "b"]) };

    assert_eq!(chosen(None, Some("Here.")), with_file(Reply::text("Here.")));
    assert_eq!(chosen(None, None), with_file(Reply::default()), "a file without words is an answer");
    assert_eq!(chosen(Some(react), None), with_file(Reply::default()));
    assert_eq!(chosen(Some(silent), Some("I say nothing.")), with_file(Reply::default()));
    assert_eq!(chosen(Some(ask), None), with_file(Reply::question("Which?", which(&["a", "b"]))));
    let defer = Call::Defer { note: None, due: NOW };
    assert_eq!(chosen(Some(defer), None), Some(Outcome::Defer { note: None, due: NOW }));
}
