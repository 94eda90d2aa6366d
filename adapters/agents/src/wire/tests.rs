use std::sync::Arc;

use rejoinder_core::{
    ActivityState, AgentError, AgentFile, AgentQuote, AgentTurn, ApprovalRequest, Attachment, Author, BudgetLeft,
    ChatKind, Choices, Cost, Currency, HistoryLine, LastAnswer, LineState, Outcome, PersonAnswer, Reaction, Reply,
    RunEvent, RunEvents, SendResult, SenderKind, Speaker, Support, ToolAccess, ToolTokens, Usage, Voice,
};
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    Format, Said, WireTurn,
    body::Beginning,
    lines::{Lines, TextPieces, WrongLine},
    said::MAX_OBJECT,
};
use crate::{
    report::MAX_ANSWER,
    tests::{history, line, turn},
};

fn file(bytes: Option<&[u8]>) -> AgentFile {
    let attachment =
        Attachment { name: "a.txt".into(), media_type: "text/plain".into(), url: "http://10.0.0.1/secret".into() };
    AgentFile { attachment, bytes: bytes.map(|bytes| bytes.to_vec().into()), text: None }
}

fn written(turn: &AgentTurn) -> Value {
    serde_json::from_slice(&WireTurn::take_json(&mut turn.clone())).expect("JSON")
}

#[test]
fn a_turn_has_the_keys_of_the_contract_and_no_other_that_says_nothing() {
    let turn = turn("Hi");
    assert_eq!(
        written(&turn),
        json!({
            "turn_id": turn.turn.to_string(),
            "text": "Hi",
            "sender": {"id": "ada", "name": "Ada"},
            "conversation": {"channel": "telegram.main", "chat": "7", "thread": null, "kind": "direct"},
            "session_id": turn.place.session.to_string(),
            "attempt": 1,
            "history": [],
            "attachments": [],
            "deadline": "2023-11-14T22:23:20Z",
            "may": {"defer": {"left": 3, "seconds": 86400}},
            "surface": "Telegram",
        })
    );
}

#[test]
fn a_turn_says_what_is_left_of_the_budget_and_is_the_same_with_less() {
    let budget = BudgetLeft { tokens: Some(1200), cost: Some(Cost { micros: 420_000, currency: Currency::USD }) };
    let turn = turn("Hi").with(|turn| turn.rights.budget = Some(budget));
    let money = json!({"amount": 0.42, "currency": "USD"});
    assert_eq!(written(&turn)["may"]["budget"], json!({"tokens": 1200, "cost": money}));

    let less = turn.clone().with(|turn| turn.rights.budget = Some(BudgetLeft { tokens: Some(1), ..budget }));
    assert_eq!(WireTurn::digest(&less), WireTurn::digest(&turn), "a worker goes on with it");
}

struct OneToken;

impl ToolTokens for OneToken {
    fn token(&self) -> Arc<str> {
        "hunter2".into()
    }

    fn begin_again(&self) {}
}

#[test]
fn the_agent_gets_the_token_of_its_tools_and_the_operator_does_not() {
    let tools = ToolAccess { url: "http://127.0.0.1:7420/mcp".into(), tokens: Arc::new(OneToken) };
    let turn = turn("Hi").with(|turn| turn.rights.tools = Some(tools));

    assert_eq!(written(&turn)["mcp"], json!({"url": "http://127.0.0.1:7420/mcp", "token": "hunter2"}));
    assert!(!WireTurn::input(&turn).messages.contains("mcp"));
}

#[test]
fn a_turn_that_was_written_holds_no_files() {
    let mut turn = turn("Hi").with(|turn| turn.message.attachments = vec![file(Some(b"abc"))]);

    let json = String::from_utf8(WireTurn::take_json(&mut turn)).expect("UTF-8");

    assert!(json.contains("YWJj"), "{json}");
    assert!(turn.message.attachments[0].bytes.is_none());
}

#[test]
fn a_file_has_its_content_and_never_its_address_and_the_operator_sees_only_its_size() {
    let stranger = Author { id: Some("9".into()), is_stranger: true, ..Author::default() };
    let quoted = AgentQuote { author: stranger, text: "Buy!".into(), files: vec![file(None)] };
    let turn = turn("Hi").with(|turn| {
        turn.message.attachments = vec![file(Some(b"hi"))];
        turn.message.voice = Some(Voice::lasting(Some(3.0)));
        turn.message.quoted = Some(quoted);
    });

    let json = written(&turn);
    assert_eq!(json["voice_note"], json!({"seconds": 3}));
    assert_eq!(json["attachments"], json!([{"name": "a.txt", "type": "text/plain", "size": 2, "data": "aGk="}]));
    assert_eq!(
        json["quoted"],
        json!({
            "from": {"id": "9", "stranger": true},
            "text": "Buy!",
            "attachments": [{"name": "a.txt", "type": "text/plain"}],
        })
    );
    let shown = WireTurn::input(&turn).messages;
    assert!(shown.contains("\"size\":2") && !shown.contains("aGk=") && !shown.contains("10.0.0.1"), "{shown}");
}

#[test]
fn the_history_says_who_spoke_and_what_was_not_seen() {
    let author = Some(Author { id: Some("7".into()), name: Some("Bob".into()), ..Author::default() });
    let refused = LineState::NotDelivered("refused".into());
    let history = history([
        HistoryLine { author, spoken: true, state: LineState::Stopped, ..line(Speaker::Person, "Tea?") },
        HistoryLine { state: refused, ..line(Speaker::Agent, "Coffee.") },
    ]);
    let turn = turn("Hi").with(|turn| {
        turn.place.chat = ChatKind::Group;
        turn.past.history = history;
    });

    let at = "1970-01-01T00:00:00Z";
    assert_eq!(
        written(&turn)["history"],
        json!([
            {"speaker": "person", "name": "Bob", "id": "7", "text": "Tea?", "spoken": true, "at": at, "state": "stopped"},
            {"speaker": "agent", "name": null, "text": "Coffee.", "at": at, "state": "not_delivered", "reason": "refused"},
        ])
    );
    assert_eq!(written(&turn)["conversation"]["kind"], "group");
}

#[rstest]
#[case::a_person(SenderKind::Person, json!("Ada"))]
#[case::a_schedule(SenderKind::Operator, json!(null))]
fn the_history_of_a_direct_chat_has_the_name_of_the_person(#[case] kind: SenderKind, #[case] name: Value) {
    let history = history([line(Speaker::Person, "Tea?"), line(Speaker::Agent, "Coffee.")]);
    let mut turn = turn("Hi").with(|turn| turn.past.history = history);
    turn.message.sender.kind = kind;

    let written = written(&turn);
    let names: Vec<_> = written["history"].as_array().expect("a list").iter().map(|line| &line["name"]).collect();
    assert_eq!(names, [&name, &json!(null)]);
}

/// What was reported while an agent said something, and how it ended.
#[derive(Default)]
struct Heard {
    end: Option<Result<Outcome, AgentError>>,
    drafts: String,
    sent: Vec<Reply>,
    tools: Vec<(String, String, String)>,
    activities: Vec<(String, ActivityState)>,
    usage: Option<Usage>,
    cost: Option<Cost>,
    title: Option<String>,
}

impl Heard {
    fn event(&mut self, event: RunEvent) {
        match event {
            RunEvent::Text(text) => self.drafts.push_str(&text),
            RunEvent::Rewrite(text) => self.drafts = text,
            RunEvent::Tool(call) => self.tools.push((call.name, call.arguments, call.result)),
            RunEvent::Activity(activity) => self.activities.push((activity.title, activity.state)),
            RunEvent::Usage(usage) => self.usage = Some(usage),
            RunEvent::Cost(cost, _) => self.cost = Some(cost),
            RunEvent::Title(title) => self.title = Some(title),
            RunEvent::Send(reply, answer) => {
                self.sent.push(reply);
                drop(answer.send(SendResult::Claimed));
            }
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn end(&mut self) -> Result<Outcome, AgentError> {
        self.end.take().expect("it has ended")
    }
}

async fn hear(turn: &AgentTurn, objects: &[Value]) -> Heard {
    let (events, mut reported) = RunEvents::channel();
    let saying = async move {
        let mut said = Said::of("main", turn, &events);
        for object in objects {
            said.object(&object.to_string()).await?;
        }
        said.into_outcome()
    };
    let hearing = async {
        let mut heard = Heard::default();
        while let Some(event) = reported.recv().await {
            heard.event(event);
        }
        heard
    };
    let (end, heard) = tokio::join!(saying, hearing);
    Heard { end: Some(end), ..heard }
}

async fn end_of(objects: &[Value]) -> Result<Outcome, AgentError> {
    hear(&turn("Hi").with(|turn| turn.rights.may_ask_approval = true), objects).await.end()
}

fn reply(text: &str) -> Outcome {
    Outcome::Reply(Reply::text(text))
}

#[tokio::test]
async fn what_was_said_is_the_answer_and_was_shown_without_thoughts() {
    let mut heard =
        hear(&turn("Hi"), &[json!({"text": "<think>hm</think>Good "}), json!({"text": "day."}), json!({"end": true})])
            .await;

    assert_eq!(heard.drafts, "Good day.");
    assert_eq!(heard.end(), Ok(reply("<think>hm</think>Good day.")));
}

#[tokio::test]
async fn an_activity_is_reported_with_its_state() {
    let activity = |activity: Value| json!({ "activity": activity });
    let objects = [
        activity(json!({ "title": "reads 3 files" })),
        activity(json!({ "title": "reads 3 files", "state": "failed" })),
        activity(json!({ "title": "ä".repeat(2_000), "state": "done" })),
        json!({ "reply": "Hi" }),
    ];
    let mut heard = hear(&turn("Hi"), &objects).await;

    let title = "reads 3 files".to_owned();
    let expected = [
        (title.clone(), ActivityState::Working),
        (title, ActivityState::Failed),
        ("ä".repeat(1_000), ActivityState::Done),
    ];
    assert_eq!(heard.activities, expected);
    assert_eq!(heard.end(), Ok(reply("Hi")));
    let paused = end_of(&[activity(json!({ "title": "reads", "state": "paused" }))]).await;
    assert!(matches!(paused, Err(AgentError::Broken(_))), "{paused:?}");
}

#[test]
fn what_became_of_the_last_answer_is_told() {
    let told = |answer: LastAnswer| {
        written(&turn("Hi").with(|turn| turn.past.last_answer = Some(answer)))["last_answer"].clone()
    };

    let refused = told(LastAnswer::NotDelivered("refused".to_owned()));
    assert_eq!(refused, json!({ "state": "not_delivered", "reason": "refused" }));
    assert_eq!(told(LastAnswer::Replaced("Sorry.".to_owned())), json!({ "state": "replaced", "said": "Sorry." }));
    let by = Some(Author { id: Some("7".to_owned()), name: Some("Ada".to_owned()), ..Author::default() });
    let reacted = told(LastAnswer::Seen(vec![Reaction { emoji: "👍".to_owned(), by }]));
    assert_eq!(reacted, json!({ "state": "seen", "reactions": [{ "emoji": "👍", "id": "7", "name": "Ada" }] }));
}

#[test]
fn what_the_person_answered_in_earlier_runs_is_told() {
    let choices = Choices { options: Vec::new(), free_text: true, expires: None };
    let question = ApprovalRequest::question("Which colour?", choices);
    let answers = vec![
        PersonAnswer { question: question.clone(), answer: None },
        PersonAnswer { question, answer: Some("Blue".to_owned()) },
    ];

    let written = written(&turn("Hi").with(|turn| turn.past.answers = answers));

    let expected = json!([
        { "question": "Which colour?", "answer": null },
        { "question": "Which colour?", "answer": "Blue" },
    ]);
    assert_eq!(written["answers"], expected);
}

#[tokio::test]
async fn a_rewrite_replaces_what_was_said_and_shown() {
    let mut heard =
        hear(&turn("Hi"), &[json!({"text": "Tea."}), json!({"rewrite": "Coffee."}), json!({"end": true})]).await;

    assert_eq!((heard.end(), &*heard.drafts), (Ok(reply("Coffee.")), "Coffee."));
}

#[test]
fn of_an_unknown_key_the_log_has_the_beginning() {
    let (turn, (events, _reported)) = (turn("Hi"), RunEvents::channel());
    let object = json!({"reply": "Hi", "ä".repeat(1000): 1}).to_string();

    let object = Said::of("main", &turn, &events).check(&object).expect("it is as described");

    assert_eq!(object.unknown, Some("ä".repeat(100)));
}

#[tokio::test]
async fn another_agent_begins_anew_even_after_an_end() {
    let turn = turn("Hi");
    let (events, _reported) = RunEvents::channel();
    let mut said = Said::of("main", &turn, &events);
    said.object(r#"{"text": "Tea.", "end": true}"#).await.expect("it is an object");

    said.begin_again().await;
    assert!(!said.has_ended());
    said.object(r#"{"text": "Coffee.", "end": true}"#).await.expect("it is an object");

    assert_eq!(said.into_outcome(), Ok(reply("Coffee.")));
}

#[tokio::test]
async fn tools_and_tokens_are_reported() {
    let objects = [
        json!({"tool": {"name": "weather", "arguments": {"city": "Wien"}, "result": "sunny"}}),
        json!({"tool": {"name": "mail", "result": "no server", "failed": true}}),
        json!({"usage": {"input_tokens": 7, "output_tokens": 3}, "reply": "Sunny."}),
    ];
    let mut heard = hear(&turn("Hi"), &objects).await;

    let tool = |name: &str, arguments: &str, result: &str| (name.to_owned(), arguments.to_owned(), result.to_owned());
    assert_eq!(heard.tools, [tool("weather", r#"{"city":"Wien"}"#, "sunny"), tool("mail", "", "failed: no server")]);
    assert_eq!(heard.usage, Some(Usage { input_tokens: 7, output_tokens: 3 }));
    assert_eq!(heard.end(), Ok(reply("Sunny.")));
}

#[rstest]
#[case::a_cost(json!({"amount": 0.25, "currency": "USD"}), Some(250_000))]
#[case::a_whole_one(json!({"amount": 2, "currency": "EUR"}), Some(2_000_000))]
#[case::null(json!(null), None)]
#[case::negative(json!({"amount": -1, "currency": "USD"}), None)]
#[case::far_too_much(json!({"amount": 1e300, "currency": "USD"}), None)]
#[case::no_currency(json!({"amount": 1, "currency": "dollars"}), None)]
#[tokio::test]
async fn a_cost_is_reported_and_a_bad_one_spoils_no_answer(#[case] cost: Value, #[case] micros: Option<u64>) {
    let usage = json!({"input_tokens": 7, "output_tokens": 3, "cost": cost});
    let mut heard = hear(&turn("Hi"), &[json!({"usage": usage, "reply": "Hi"})]).await;

    assert_eq!(heard.cost.map(|cost| cost.micros), micros);
    assert_eq!(heard.usage, Some(Usage { input_tokens: 7, output_tokens: 3 }));
    assert_eq!(heard.end(), Ok(reply("Hi")));
}

#[tokio::test]
async fn what_the_agent_before_has_cost_is_part_of_what_the_run_cost() {
    let turn = turn("Hi");
    let (events, mut reported) = RunEvents::channel();
    let mut said = Said::of("main", &turn, &events);
    let usage = |amount: f64| json!({"usage": {"input_tokens": 7, "output_tokens": 3, "cost": {"amount": amount, "currency": "USD"}}});
    for amount in [0.5, 1.0] {
        said.object(&usage(amount).to_string()).await.expect("it is an object");
    }

    said.begin_again().await;
    said.object(&usage(2.0).to_string()).await.expect("it is an object");

    let mut costs = Vec::new();
    while let Ok(event) = reported.try_recv() {
        if let RunEvent::Cost(cost, _) = event {
            costs.push(cost.to_string());
        }
    }
    assert_eq!(costs, ["0.50 USD", "1.00 USD", "1.00 USD", "3.00 USD"], "its tokens come before its cost");
}

/// Neither of the one before nor of the one that is asked now.
#[tokio::test]
async fn tokens_of_an_agent_that_says_no_cost_are_in_no_cost() {
    let usage = |input: u64| Usage { input_tokens: input, output_tokens: 3 };
    let said = |input: u64, amount: Option<f64>| {
        let cost = amount.map(|amount| json!({"amount": amount, "currency": "USD"}));
        json!({"usage": {"input_tokens": input, "output_tokens": 3, "cost": cost}}).to_string()
    };
    for [first, second] in [[Some(0.5), None], [None, Some(0.5)], [Some(0.5), Some(0.0)]] {
        let turn = turn("Hi");
        let (events, mut reported) = RunEvents::channel();
        let mut heard = Said::of("main", &turn, &events);
        heard.object(&said(7, first)).await.expect("it is an object");

        heard.begin_again().await;
        heard.object(&said(11, second)).await.expect("it is an object");

        let events = std::iter::from_fn(|| reported.try_recv().ok());
        let costs = events.filter_map(|event| match event {
            RunEvent::Cost(cost, unpriced) => Some((cost.to_string(), unpriced)),
            _ => None,
        });
        let unpriced = if first.is_some() { usage(11) } else { usage(7) };
        assert_eq!(costs.last(), Some(("0.50 USD".to_owned(), unpriced)), "{first:?} and {second:?}");
    }
}

#[tokio::test]
async fn a_title_is_reported_beside_an_end_and_alone() {
    for objects in [vec![json!({"title": "Tea", "reply": "Hi"})], vec![json!({"title": "Tea"}), json!({"reply": "Hi"})]]
    {
        let mut heard = hear(&turn("Hi"), &objects).await;

        assert_eq!((heard.end(), heard.title.as_deref()), (Ok(reply("Hi")), Some("Tea")));
    }
}

#[tokio::test]
async fn what_is_sent_is_the_answer() {
    let mut heard = hear(&turn("Hi"), &[json!({"send": "Here."}), json!({"end": true})]).await;

    assert_eq!(heard.sent, [Reply::text("Here.")]);
    assert_eq!(heard.end(), Ok(Outcome::Silent("answered with `send`".into())));
}

#[rstest]
#[case(json!({"reply": "Hi"}), reply("Hi"))]
#[case(json!({"reply": {"text": "Hi"}}), reply("Hi"))]
#[case(json!({"reply": "Hi", "unknown": 1}), reply("Hi"))]
#[case(json!({"react": "👍"}), Outcome::React("👍".into()))]
#[case(json!({"silent": "not for me"}), Outcome::Silent("not for me".into()))]
#[case(json!({"silent": true}), Outcome::Silent("chosen, no reason given".into()))]
#[case(json!({"approval": {"action": "Send it", "kind": "email.send"}}), Outcome::Approval(ApprovalRequest {
    kind: Some("email.send".into()),
    ..ApprovalRequest::action("Send it")
}))]
#[tokio::test]
async fn an_object_ends_the_run(#[case] object: Value, #[case] outcome: Outcome) {
    assert_eq!(end_of(&[object]).await, Ok(outcome));
}

#[tokio::test]
async fn a_question_comes_after_what_was_said() {
    let ask = json!({"ask": {"question": "Which?", "choices": ["Tea", "Coffee"], "free_text": false}});
    let Ok(Outcome::Reply(Reply { text, choices: Some(choices), .. })) = end_of(&[json!({"text": "Well."}), ask]).await
    else {
        panic!("no question")
    };
    assert_eq!(text, "Well.\n\nWhich?");
    assert_eq!((choices.options, choices.free_text), (vec!["Tea".to_owned(), "Coffee".to_owned()], false));
}

#[rstest]
#[case(json!({"seconds": 90}))]
#[case(json!(90))]
#[tokio::test]
async fn a_deferral_is_due_in_seconds_and_its_note_may_be_what_was_said(#[case] defer: Value) {
    let due = turn("Hi").now + std::time::Duration::from_secs(90);
    let ended = end_of(&[json!({"text": "Wait."}), json!({"defer": defer})]).await;

    assert_eq!(ended, Ok(Outcome::Defer { note: Some("Wait.".into()), due }));
}

#[tokio::test]
async fn a_reply_may_have_files_and_then_the_text_that_was_said() {
    let files = json!([
        {"name": "a.txt", "type": "text/plain", "data": "aGk="},
        {"name": "b.pdf", "url": "https://example.org/b.pdf"},
    ]);
    let Ok(Outcome::Reply(reply)) = end_of(&[json!({"text": "Here."}), json!({"reply": {"attachments": files}})]).await
    else {
        panic!("no reply")
    };
    let urls: Vec<_> = reply.attachments.iter().map(|file| (&*file.media_type, &*file.url)).collect();
    assert_eq!(reply.text, "Here.");
    assert_eq!(
        urls,
        [("text/plain", "data:text/plain;base64,aGk="), ("application/octet-stream", "https://example.org/b.pdf")]
    );
}

#[rstest]
#[case::beside_a_reply(vec![json!({"reply": "Here.", "files": one_file()})], "Here.")]
#[case::beside_an_end(vec![json!({"text": "Here."}), json!({"end": true, "files": one_file()})], "Here.")]
#[case::alone(vec![json!({"text": "Here."}), json!({"files": one_file()})], "Here.")]
#[case::without_words(vec![json!({"files": one_file()})], "")]
#[tokio::test]
async fn an_answer_has_the_files_beside_it(#[case] objects: Vec<Value>, #[case] text: &str) {
    let Ok(Outcome::Reply(reply)) = end_of(&objects).await else { panic!("no reply") };

    let file =
        Attachment { name: "a.txt".into(), media_type: "text/plain".into(), url: "data:text/plain;base64,aGk=".into() };
    assert_eq!((&*reply.text, reply.attachments), (text, vec![file]));
}

fn one_file() -> Value {
    json!([{"name": "a.txt", "type": "text/plain; charset=utf-8", "data": "aG\nk="}])
}

#[tokio::test]
async fn a_question_may_have_files() {
    let ask = json!({"question": "Which?", "choices": ["Tea", "Coffee"]});
    let Ok(Outcome::Reply(reply)) = end_of(&[json!({"ask": ask, "files": one_file()})]).await else {
        panic!("no question")
    };
    assert_eq!((&*reply.text, reply.choices.is_some(), reply.attachments.len()), ("Which?", true, 1));
}

#[rstest]
#[case::no_base64(json!([{"name": "b", "data": "?"}]), &[("b", "must be bytes in Base64")])]
#[case::nothing(json!([{"name": "b"}]), &[("b", "needs either `data` or an https:// `url`")])]
#[case::a_path(json!([{"name": "b", "url": "file:///etc/passwd"}]), &[("b", "needs either")])]
#[case::no_type(json!([{"name": "b", "type": "a picture", "data": "aGk="}]), &[("b", "a media type without blanks")])]
#[case::no_file(json!([7, {"name": 7}]), &[("?", "a file needs a `name`"), ("?", "a file needs a `name`")])]
#[case::no_list(json!("b"), &[("files", "`files` must be a list")])]
#[tokio::test]
async fn a_file_that_cannot_be_sent_costs_no_words(#[case] files: Value, #[case] left_out: &[(&str, &str)]) {
    let mut heard = hear(&turn("Hi"), &[json!({"reply": "Here.", "files": files})]).await;

    assert_eq!(heard.end(), Ok(reply("Here.")));
    assert_eq!(heard.tools.len(), left_out.len(), "{:?}", heard.tools);
    for ((tool, file, told), (name, why)) in heard.tools.iter().zip(left_out) {
        assert_eq!((&**tool, &**file), ("files", *name));
        assert!(told.starts_with("failed: ") && told.contains(why), "{told}");
    }
}

/// Also one that is larger than a text may be. Its bytes are shown in no draft.
#[tokio::test]
async fn a_picture_in_the_text_is_a_file_of_the_answer() {
    let picture = format!("![a cat](data:image/gif;base64,{}) Nice!", "R0lGODlh".repeat(200_000));
    let (begin, end) = picture.split_at(700_000);
    let streamed = [json!({"text": "Look: "}), json!({"text": begin}), json!({"text": end}), json!({"end": true})];
    let whole = [json!({"reply": "Look: ".to_owned() + &picture})];
    for objects in [&streamed[..], &whole[..]] {
        let mut heard = hear(&turn("Hi"), objects).await;
        let Ok(Outcome::Reply(reply)) = heard.end() else { panic!("no reply") };
        assert_eq!((&*reply.text, reply.attachments.len()), ("Look: a cat Nice!", 1));
        assert!(["", "Look: a cat Nice!"].contains(&&*heard.drafts), "{}", heard.drafts.len());
    }

    let heard = hear(&turn("Hi"), &[json!({"send": picture}), json!({"end": true})]).await;
    assert_eq!((&*heard.sent[0].text, heard.sent[0].attachments.len()), ("a cat Nice!", 1));
}

#[tokio::test]
async fn an_answer_has_so_many_files_at_most() {
    let file = json!({"name": "a.txt", "data": "aGk="});
    let (some, many) = (vec![file.clone(); 7], vec![file; 6]);

    let mut heard = hear(&turn("Hi"), &[json!({"reply": {"attachments": some}, "files": many})]).await;

    let Ok(Outcome::Reply(reply)) = heard.end() else { panic!("no reply") };
    assert_eq!((reply.attachments.len(), heard.tools.len()), (10, 3));
}

#[tokio::test]
async fn files_go_with_no_other_end_and_it_stays() {
    let mut heard = hear(&turn("Hi"), &[json!({"silent": true, "files": one_file()})]).await;

    assert_eq!(heard.end(), Ok(Outcome::Silent("chosen, no reason given".into())));
    assert!(heard.tools[0].2.contains("files go with a reply or a question only"), "{:?}", heard.tools);
}

#[rstest]
#[case(json!({"reply": {"attachments": [{"name": "a", "url": "file:///etc/passwd"}]}}), "an attachment needs either")]
#[case(json!({"reply": " ", "files": [{"name": "a", "data": "?"}]}), "a file of the answer cannot be sent: the `data` of")]
#[case(json!({"reply": {"attachments": [{"name": "a", "data": "?"}]}}), "must be bytes in Base64")]
#[case(json!({"reply": {"attachments": [{"name": "", "data": "aGk="}]}}), "an attachment needs a `name`")]
#[case(json!({"react": "like"}), "`react` must be one emoji")]
#[case(json!({"ask": {"question": "Which?", "choices": ["Tea"]}}), "`choices` must have 2 to 8 entries, not 1")]
#[case(json!({"defer": {"seconds": 0}}), "`defer.seconds` must be a number above 0")]
#[case(json!({"defer": {"seconds": 1e300}}), "`defer.seconds` must be a number above 0")]
#[case(json!({"defer": -1}), "`defer.seconds` must be a number above 0")]
#[case(json!({"end": false}), "`end` must be true")]
#[case(json!({"silent": false}), "`silent` must be a text or true")]
#[case(json!({"reply": "Hi", "silent": "no"}), "an object ends the run in two ways")]
#[case(json!({"answer": "Hi"}), "an object has none of the keys")]
#[case(json!({"text": 7}), "a value is missing or of another type")]
#[case(json!("Hi"), "a value is missing or of another type")]
#[case(json!({"text": "Hi"}), "it ended after 2 characters without an object that ends the run")]
#[tokio::test]
async fn what_is_not_as_described_is_broken(#[case] object: Value, #[case] why: &str) {
    let Err(AgentError::Broken(said)) = end_of(&[object]).await else { panic!("it is not broken") };
    assert!(said.contains(why), "{said}");
}

#[tokio::test]
async fn an_approval_that_nobody_could_give_is_broken() {
    let ended = hear(&turn("Hi"), &[json!({"approval": {"action": "Send it"}})]).await.end();
    assert!(matches!(ended, Err(AgentError::Broken(_))), "{ended:?}");
}

#[tokio::test]
async fn an_agent_may_say_that_it_failed() {
    assert_eq!(end_of(&[json!({"error": "no\n credit"})]).await, Err(AgentError::Failed("no credit".into())));
}

#[tokio::test]
async fn an_emoji_that_the_platform_does_not_show_is_text_and_beside_a_text_it_is_dropped() {
    let mut turn = turn("Hi");
    turn.place.capabilities.reactions = Support::Full;
    turn.place.capabilities.allowed_reactions = Some(["👍".to_owned()].into());
    assert_eq!(hear(&turn, &[json!({"react": "🦀"})]).await.end(), Ok(reply("🦀")));
    turn.place.capabilities.reactions = Support::No;
    assert_eq!(hear(&turn, &[json!({"react": "👍"})]).await.end(), Ok(reply("👍")));
    assert_eq!(end_of(&[json!({"text": "Yes."}), json!({"react": "👍"})]).await, Ok(reply("Yes.")));
}

#[rstest]
#[case(vec![json!({"text": "ä".repeat(MAX_ANSWER / 4)}), json!({"text": "x".to_owned() + &"ä".repeat(MAX_ANSWER / 2)})])]
#[case(vec![json!({"rewrite": "x".repeat(MAX_ANSWER + 1)})])]
#[case(vec![json!({"reply": "x".repeat(MAX_ANSWER + 1)})])]
#[tokio::test]
async fn a_text_that_is_too_long_is_cut_off_and_says_so(#[case] objects: Vec<Value>) {
    let Ok(Outcome::Reply(reply)) = end_of(&objects).await else { panic!("no reply") };
    let kept = reply.text.strip_suffix("\n\nThe rest is missing.").expect("it says so").len();
    assert!(kept == MAX_ANSWER || kept == MAX_ANSWER - 1, "{kept}");
}

/// The format that an answer shows first, or has at its end.
fn format_of<'a>(pieces: impl Iterator<Item = &'a [u8]>, has_ended: bool) -> Option<Format> {
    let mut beginning = Beginning::default();
    for piece in pieces {
        beginning.push(piece);
        if let Some(format) = beginning.format(false) {
            return Some(format);
        }
    }
    beginning.format(has_ended)
}

#[rstest]
#[case("{\"text\": \"Hi\"}\n", Some(Format::Lines))]
#[case("\u{feff}\n {\"reply\": \"Hi\"}\r\n", Some(Format::Lines))]
#[case("{\"text\": \"Hi", None)]
#[case("{\"weather\": \"sunny\"}\n{\"text\": 1}\n", Some(Format::Text))]
#[case("{ braces }\n", Some(Format::Text))]
#[case("Hi", Some(Format::Text))]
#[case(" \n", None)]
fn the_first_line_says_what_an_answer_consists_of(#[case] beginning: &str, #[case] format: Option<Format>) {
    assert_eq!(format_of(beginning.as_bytes().chunks(beginning.len()), false), format);
    assert_eq!(format_of(beginning.as_bytes().chunks(1), false), format, "in single bytes");
}

#[rstest]
#[case("{\"text\": \"Hi\"}", Format::Lines)]
#[case("{\"text\": \"Hi", Format::Text)]
#[case("", Format::Text)]
fn an_answer_without_a_whole_line_has_a_format_at_its_end(#[case] whole: &str, #[case] format: Format) {
    assert_eq!(format_of(whole.as_bytes().chunks(64), true), Some(format));
}

/// Searched from the start with each piece, this takes minutes.
#[rstest]
fn a_long_first_line_may_come_in_small_pieces(#[values("", "{")] begun: &str) {
    let (mut beginning, began) = (Beginning::default(), std::time::Instant::now());
    beginning.push(begun.as_bytes());
    for _ in 0..512 * 1024 {
        beginning.push(b" ");
        assert_eq!(beginning.format(false), None);
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_stream_is_cut_into_lines_wherever_its_pieces_end() {
    let stream = "\u{feff}{\"a\":1}\r\n\n  \n{\"ä\":2}\n{\"b\"";
    for size in 1..stream.len() {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        for piece in stream.as_bytes().chunks(size) {
            lines.push(piece);
            while let Some(line) = lines.next_line(false).expect("good lines") {
                seen.push(line);
            }
        }
        seen.extend(lines.rest().expect("a good line"));
        assert_eq!(seen, ["{\"a\":1}", "{\"ä\":2}", "{\"b\""], "in pieces of {size}");
    }
}

#[test]
fn a_line_that_is_too_long_or_no_text_is_wrong() {
    let mut lines = Lines::default();
    lines.push(&vec![b'x'; MAX_OBJECT + 1]);
    assert_eq!(lines.next_line(false), Err(WrongLine::TooLong));
    let mut lines = Lines::default();
    lines.push(b"\xFF\n");
    assert_eq!(lines.next_line(false), Err(WrongLine::NotUtf8));
}

#[test]
fn text_may_come_in_half_characters() {
    let mut pieces = TextPieces::default();
    let text: Vec<_> = "\u{feff}ä€🦀".as_bytes().chunks(2).map(|piece| pieces.push(piece)).collect();
    assert_eq!(text.concat() + &pieces.rest(), "\u{feff}ä€🦀");
    let mut pieces = TextPieces::default();
    assert_eq!(pieces.push(b"\xEF\xBB\xBFa\xFFb\xC3"), "a\u{fffd}b");
    assert_eq!(pieces.rest(), "\u{fffd}");
}

const RECIPIENT: &str = "age1p6ms2nufw50pyxygsnkx3gd643juxglwhkj22ht2m6a2pqyhx9xsm5lxrm";

fn to_be_sealed() -> AgentTurn {
    turn("What is it?").with(|turn| {
        turn.person.seal_to = Some(RECIPIENT.into());
        turn.rights.may_ask_approval = true;
    })
}

#[test]
fn an_agent_is_told_to_which_key_its_answer_is_to_be_sealed() {
    assert_eq!(written(&to_be_sealed())["seal_to"], RECIPIENT);
}

#[tokio::test]
async fn a_sealed_answer_is_passed_on_as_it_is() {
    let armour = include_str!("sealed_by_age.txt");

    let mut heard =
        hear(&to_be_sealed(), &[json!({"usage": {"input_tokens": 7, "output_tokens": 3}, "sealed": armour})]).await;

    assert_eq!(heard.end(), Ok(Outcome::Reply(Reply::sealed(armour))));
}

#[rstest]
#[case(json!({"reply": "the heart"}), "`reply` would answer in the clear")]
#[case(json!({"text": "the heart"}), "`text` would")]
#[case(json!({"rewrite": "the heart"}), "`rewrite` would")]
#[case(json!({"send": "the heart", "silent": "sent"}), "`send` would")]
#[case(json!({"files": []}), "`files` would")]
#[case(json!({"react": "👍"}), "`react` would")]
#[case(json!({"ask": {"question": "heart?", "choices": ["yes", "no"]}}), "`ask` would")]
#[case(json!({"end": true}), "`end` would")]
#[case(json!({"defer": {"note": "the heart, I think", "seconds": 60}}), "`defer.note` would")]
#[case(json!({"sealed": "the heart"}), "`sealed` is no armoured age file")]
#[tokio::test]
async fn an_answer_in_the_clear_is_refused_where_it_is_to_be_sealed(#[case] object: Value, #[case] why: &str) {
    let mut heard = hear(&to_be_sealed(), &[object]).await;

    let Err(AgentError::Broken(error)) = heard.end() else { panic!("it is refused") };
    assert!(error.contains(why) && !error.contains("the heart"), "{error}");
    assert_eq!((heard.drafts.as_str(), heard.sent.len()), ("", 0));
}

#[rstest]
#[case(json!({"silent": "not for me"}))]
#[case(json!({"defer": {"seconds": 60}}))]
#[case(json!({"approval": {"action": "Look it up"}}))]
#[tokio::test]
async fn an_end_that_is_no_answer_needs_no_seal(#[case] object: Value) {
    assert!(hear(&to_be_sealed(), &[object]).await.end().is_ok());
}

#[tokio::test]
async fn nothing_is_sealed_that_nobody_wants_sealed() {
    let Err(AgentError::Broken(error)) = end_of(&[json!({"sealed": include_str!("sealed_by_age.txt")})]).await else {
        panic!("it is refused")
    };
    assert!(error.contains("has no `seal_to`"), "{error}");
}
