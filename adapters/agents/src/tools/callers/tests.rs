use rejoinder_core::{
    ApprovalState, Attachment, ChannelId, Choices, ConversationId, ConversationRef, Reply, RunEvent, SendResult,
    Speaker, TurnId, conformance::runtime::decision, store::FoundLine,
};
use rstest::rstest;
use tokio::sync::mpsc;

use super::*;
use crate::tests::turn;

const REACTION: (&str, &str) = ("react", r#"{"emoji":"👍"}"#);
const QUESTION: (&str, &str) = ("ask", r#"{"question":"Which one?","choices":["a","b"]}"#);
const WAITING_QUESTION: (&str, &str) = ("ask", r#"{"question":"Which one?","choices":["a","b"],"wait":true}"#);
const SILENCE: (&str, &str) = ("stay_silent", r#"{"reason":"it is not for me"}"#);
const DEFERRAL: (&str, &str) = ("defer", r#"{"minutes":5}"#);
const MESSAGE: (&str, &str) = ("send", r#"{"text":"Done."}"#);
const APPROVAL: (&str, &str) = ("request_approval", r#"{"action":"pay the rent"}"#);
const FILE: (&str, &str) = ("send_file", r#"{"name":"a.txt","media_type":"text/plain","data":"aGk="}"#);

type Ended = Result<Outcome, AgentError>;

/// A run, and what the core hears of it.
struct Run {
    tools: CallerTools,
    reported: mpsc::Receiver<RunEvent>,
    /// What it has sent.
    sent: Vec<Outcome>,
}

impl Run {
    fn new() -> Self {
        Self::of(turn("Hi").with(|turn| {
            turn.rights.may_ask_approval = true;
            turn.rights.may_ask_person = true;
            turn.rights.may_schedule = true;
        }))
    }

    fn of(mut turn: AgentTurn) -> Self {
        let (events, reported) = RunEvents::channel();
        Self { tools: CallerTools::of(&mut turn, events), reported, sent: Vec::new() }
    }

    /// Calls a tool. What it sends is claimed.
    async fn call(&mut self, (name, arguments): (&str, &str)) -> ToolAnswer {
        let (answer, answered) = oneshot::channel();
        let Self { tools, reported, sent } = self;
        let calling = tools.call(name, arguments.to_owned(), answer);
        let mut calling = std::pin::pin!(calling);
        loop {
            tokio::select! {
                biased;
                Some(event) = reported.recv() => match event {
                    RunEvent::Send(reply, claimed) => {
                        sent.push(Outcome::Reply(reply));
                        drop(claimed.send(SendResult::Claimed));
                    }
                    RunEvent::Search(_, found) => drop(found.send(Ok(lines()))),
                    _ => {}
                },
                () = &mut calling => break,
            }
        }
        answered.await.expect("an answer")
    }

    /// Begins a call that waits.
    async fn begin(&mut self, (name, arguments): (&str, &str)) -> oneshot::Receiver<ToolAnswer> {
        let (answer, answered) = oneshot::channel();
        self.tools.call(name, arguments.to_owned(), answer).await;
        answered
    }

    /// Decides what was asked for.
    async fn decide(&mut self, decision: Decision) {
        let asked = async {
            loop {
                if let Some(RunEvent::Ask(_, _, answer)) = self.reported.recv().await {
                    let _ = answer.send(decision);
                    break;
                }
            }
        };
        let (decided, ()) = tokio::join!(self.tools.decision(), asked);
        self.tools.decided(decided).await;
    }
}

fn lines() -> Vec<FoundLine> {
    let now = turn("").now;
    vec![FoundLine {
        position: 1,
        turn: TurnId::new(now),
        conversation_id: ConversationId::new(now),
        conversation: ConversationRef::new(ChannelId::new("telegram", "main"), "7"),
        at: now,
        speaker: Speaker::Person,
        name: Some("Ada".to_owned()),
        excerpt: "the train is late".to_owned(),
    }]
}

#[expect(clippy::unnecessary_wraps, reason = "a run ends so")]
fn said(text: &str) -> Result<Outcome, AgentError> {
    Ok(Outcome::Reply(Reply::text(text)))
}

#[expect(clippy::unnecessary_wraps, reason = "a decision is one")]
fn approved() -> Decision {
    let request = ApprovalRequest::action("pay the rent");
    Ok(AgentApproval { by: Some("Bo".to_owned()), ..decision(&request, ApprovalState::Approved) })
}

/// What the person answered to the question that is waited for.
#[expect(clippy::unnecessary_wraps, reason = "a decision is one")]
fn answered(words: Option<&str>) -> Decision {
    let choices = Choices { options: vec!["a".to_owned(), "b".to_owned()], free_text: true, expires: None };
    let state = if words.is_some() { ApprovalState::Approved } else { ApprovalState::Expired };
    let request = ApprovalRequest::question("Which one?", choices);
    Ok(AgentApproval { note: words.map(str::to_owned), ..decision(&request, state) })
}

#[rstest]
#[case(REACTION, Outcome::React("👍".to_owned()))]
#[case(SILENCE, Outcome::Silent("it is not for me".to_owned()))]
#[tokio::test]
async fn what_is_called_for_stands_in_place_of_the_text(#[case] call: (&str, &str), #[case] outcome: Outcome) {
    for ended in [said("I have done that."), said(""), Err(AgentError::Failed("a crash".to_owned()))] {
        let mut run = Run::new();
        assert!(!run.call(call).await.is_error);

        assert_eq!(run.tools.outcome(ended), Ok(outcome.clone()));
    }
}

#[tokio::test]
async fn text_comes_before_a_question_and_is_the_note_of_a_deferral() {
    let mut run = Run::new();
    run.call(QUESTION).await;
    let Ok(Outcome::Reply(reply)) = run.tools.outcome(said("There are two.")) else { panic!("a question") };
    assert_eq!((&*reply.text, reply.choices.is_some()), ("There are two.\n\nWhich one?", true));

    let mut run = Run::new();
    run.call(DEFERRAL).await;
    let outcome = run.tools.outcome(said("Soon."));
    assert!(matches!(&outcome, Ok(Outcome::Defer { note: Some(note), .. }) if note == "Soon."), "{outcome:?}");
}

#[rstest]
#[case(REACTION, SILENCE, "`react` already")]
#[case(QUESTION, MESSAGE, "`ask` already")]
#[case(MESSAGE, DEFERRAL, "your answer already")]
#[case(SILENCE, APPROVAL, "`stay_silent` already")]
#[tokio::test]
async fn the_first_call_counts_and_another_is_told_so(
    #[case] first: (&str, &str),
    #[case] second: (&str, &str),
    #[case] told: &str,
) {
    let mut run = Run::new();
    assert!(!run.call(first).await.is_error);

    let answer = run.call(second).await;

    assert!(answer.is_error && answer.text.contains(told), "{answer:?}");
}

#[tokio::test]
async fn a_call_that_fails_decides_nothing() {
    let mut run = Run::new();
    assert!(run.call(("react", r#"{"emoji":"fine"}"#)).await.is_error);
    assert!(run.call(("ask", r#"{"question":"What?","choices":["one"]}"#)).await.is_error);

    assert_eq!(run.tools.outcome(said("Hello.")), said("Hello."));
}

#[tokio::test]
async fn a_message_that_was_sent_is_the_answer() {
    let mut run = Run::new();
    assert_eq!(run.call(MESSAGE).await.text, "sent");

    let outcome = run.tools.outcome(said(""));
    assert_eq!(outcome, Ok(Outcome::Silent("answered with the tool `send`".to_owned())));
}

/// A reply with the file.
#[expect(clippy::unnecessary_wraps, reason = "a run ends so")]
fn with_file(reply: Reply) -> Ended {
    let url = "data:text/plain;base64,aGk=".to_owned();
    let file = Attachment { name: "a.txt".to_owned(), media_type: "text/plain".to_owned(), url };
    Ok(Outcome::Reply(Reply { attachments: vec![file], ..reply }))
}

/// A file without words is an answer.
#[rstest]
#[case::words(said("Here."), with_file(Reply::text("Here.")))]
#[case::no_words(said(""), with_file(Reply::default()))]
#[case::silence(Ok(Outcome::Silent("no need".to_owned())), with_file(Reply::default()))]
#[case::a_failure(Err(AgentError::Failed("a crash".to_owned())), with_file(Reply::default()))]
#[tokio::test]
async fn a_file_goes_with_what_the_agent_says(#[case] ended: Ended, #[case] outcome: Ended) {
    let mut run = Run::new();
    assert_eq!(run.call(FILE).await.text, "noted: a.txt goes with your answer");

    assert_eq!(run.tools.outcome(ended), outcome);
}

#[tokio::test]
async fn a_file_goes_with_a_question_and_with_what_is_sent() {
    let mut run = Run::new();
    run.call(QUESTION).await;
    run.call(FILE).await;
    let Ok(Outcome::Reply(reply)) = run.tools.outcome(said("")) else { panic!("a question") };
    assert_eq!((&*reply.text, reply.choices.is_some(), reply.attachments.len()), ("Which one?", true, 1));

    let mut run = Run::new();
    run.call(FILE).await;
    run.call(MESSAGE).await;
    assert_eq!(run.sent.pop().map(Ok), Some(with_file(Reply::text("Done."))));
    let late = run.call(FILE).await;
    assert!(late.is_error && late.text.contains("too late"), "{late:?}");
}

#[tokio::test]
async fn a_file_does_not_go_with_a_deferral() {
    let mut run = Run::new();
    run.call(FILE).await;
    let told = run.call(DEFERRAL).await.text;
    assert!(told.ends_with("send your files again then"), "{told}");
    assert!(run.call(FILE).await.is_error);
    assert!(matches!(run.tools.outcome(said("Soon.")), Ok(Outcome::Defer { .. })));

    let mut run = Run::new();
    run.call(FILE).await;
    let ended = Ok(Outcome::Defer { note: None, due: run.tools.now() });
    assert_eq!(run.tools.outcome(ended.clone()), ended);
}

#[tokio::test]
async fn an_answer_has_so_many_files_and_bytes() {
    let mut run = Run::new();
    for _ in 0..10 {
        assert!(!run.call(FILE).await.is_error);
    }
    let told = run.call(FILE).await;
    assert!(told.is_error && told.text.contains("at most 10 files"), "{told:?}");

    let mut run = Run::new();
    let large = format!(r#"{{"name":"a","data":"{}"}}"#, "aaaa".repeat(3 << 20));
    for is_refused in [false, false, true] {
        assert_eq!(run.call(("send_file", large.as_str())).await.is_error, is_refused);
    }
}

#[tokio::test]
async fn a_search_finds_the_lines_of_earlier_turns() {
    let mut run = Run::new();

    let found = run.call(("search_history", r#"{"query":"late train"}"#)).await;

    let expected = r#"[{"at":"2023-11-14T22:13:20Z","speaker":"person","name":"Ada","text":"the train is late"}]"#;
    assert_eq!(found.text, expected);
    assert!(run.call(("search_history", r#"{"query":"?!"}"#)).await.is_error);
}

/// G3.
#[tokio::test]
async fn an_approval_is_waited_for_and_the_run_goes_on() {
    let mut run = Run::new();
    let given_up = run.begin(APPROVAL).await;
    drop(given_up);
    let again = run.begin(APPROVAL).await;
    let other = run.begin(("request_approval", r#"{"action":"buy a house"}"#)).await;
    assert!(other.await.unwrap().text.contains("another approval"));
    assert!(run.call(REACTION).await.text.contains("not decided yet"));

    run.decide(approved()).await;

    let decision = r#"{"action":"pay the rent","decision":"approved","by":"Bo"}"#;
    assert_eq!(again.await.unwrap().text, decision);
    drop(run.begin(APPROVAL).await);
    assert!(run.tools.asking.is_some(), "it was for one call");
    run.tools.asking = None;
    assert_eq!(run.tools.outcome(said("Paid.")), said("Paid."));
}

/// The client may have lost its connection.
#[tokio::test]
async fn a_decision_that_nobody_waited_for_is_told_once() {
    let mut run = Run::new();
    drop(run.begin(APPROVAL).await);
    run.decide(approved()).await;

    assert!(run.call(APPROVAL).await.text.contains("approved"));

    let _waiting = run.begin(APPROVAL).await;
    assert!(run.tools.asking.is_some(), "it is asked for again");
}

/// It gave up on its call, and says that it waits.
#[rstest]
#[case(APPROVAL, approved())]
#[case(WAITING_QUESTION, answered(Some("b")))]
#[case::nothing_in_time(WAITING_QUESTION, answered(None))]
#[tokio::test]
async fn a_run_that_has_not_heard_its_latest_decision_leaves_the_request(
    #[case] call: (&str, &str),
    #[case] decision: Decision,
    #[values(said("I wait for you."), Err(AgentError::Failed("a crash".to_owned())))] ended: Ended,
) {
    let mut run = Run::new();
    drop(run.begin(call).await);
    run.decide(decision.clone()).await;

    assert_eq!(run.tools.outcome(ended), Ok(Outcome::Approval(decision.unwrap().request)));
}

/// A later call of the agent, or a worker that has not asked.
#[rstest]
#[case(APPROVAL, approved())]
#[case(WAITING_QUESTION, answered(Some("b")))]
#[tokio::test]
async fn a_decision_that_is_heard_or_not_needed_leaves_nothing(
    #[case] call: (&str, &str),
    #[case] decision: Decision,
    #[values("heard", "chosen", "another worker", "left to another worker")] how: &str,
) {
    let mut run = Run::new();
    drop(run.begin(call).await);
    if how == "left to another worker" {
        run.tools.begin_again();
    }
    run.decide(decision).await;
    match how {
        "heard" => drop(run.call(call).await),
        "chosen" => drop(run.call(REACTION).await),
        "another worker" => run.tools.begin_again(),
        _ => {}
    }
    let events = run.tools.events.clone();

    let outcome = run.tools.outcome(said("Done."));

    let expected = if how == "chosen" { Ok(Outcome::React("👍".to_owned())) } else { said("Done.") };
    assert_eq!((outcome, events.told_count()), (expected, 1));
}

/// The agent asked for something else in its own way since, and was told of that.
#[tokio::test]
async fn a_decision_that_is_not_the_latest_is_left_to_no_run() {
    let mut run = Run::new();
    drop(run.begin(APPROVAL).await);
    run.decide(approved()).await;
    run.tools.events.note_told();

    assert_eq!(run.tools.outcome(said("Done.")), said("Done."));
}

/// The core gives the decision to the next run, if the agent was not told of it.
#[tokio::test]
async fn a_run_that_ends_with_a_decision_that_it_has_not_heard_was_not_told_of_it() {
    let mut run = Run::new();
    drop(run.begin(APPROVAL).await);
    run.decide(approved()).await;
    let (events, ended) = (run.tools.events.clone(), Ok(Outcome::Approval(approved().unwrap().request)));

    assert_eq!((run.tools.outcome(ended.clone()), events.told_count()), (ended, 0));
}

/// The core gives the decision to the run that pays the debt.
#[tokio::test]
async fn a_run_that_defers_was_not_told_of_a_decision_that_it_has_not_heard() {
    let mut run = Run::new();
    drop(run.begin(APPROVAL).await);
    run.decide(approved()).await;
    assert!(!run.call(DEFERRAL).await.is_error);
    let events = run.tools.events.clone();

    let outcome = run.tools.outcome(said("Soon."));

    assert!(matches!(&outcome, Ok(Outcome::Defer { .. })), "{outcome:?}");
    assert_eq!(events.told_count(), 0);
}

#[tokio::test]
async fn a_no_holds_for_the_whole_run() {
    let mut run = Run::new();
    let waiting = run.begin(APPROVAL).await;
    run.decide(approved().map(|approval| AgentApproval { state: ApprovalState::Declined, ..approval })).await;
    assert!(waiting.await.unwrap().text.contains("declined"));

    assert!(run.call(APPROVAL).await.text.contains("declined"));
}

/// G3. The decision of an earlier run, if that run did not have it.
#[rstest]
#[case::not_had(ApprovalState::Approved, false, Some("approved"))]
#[case::had(ApprovalState::Approved, true, None)]
#[case::declined(ApprovalState::Declined, true, Some("declined"))]
#[tokio::test]
async fn the_decision_of_an_earlier_run_is_told(
    #[case] state: ApprovalState,
    #[case] is_used: bool,
    #[case] told: Option<&str>,
) {
    let decision = approved().map(|approval| AgentApproval { state, is_used, ..approval }).unwrap();
    let (events, reported) = RunEvents::channel();
    let mut turn = turn("Hi").with(|turn| {
        turn.rights.may_ask_approval = true;
        turn.past.approvals = vec![decision];
    });
    let mut run = Run { tools: CallerTools::of(&mut turn, events), reported, sent: Vec::new() };

    let mut answered = run.begin(APPROVAL).await;

    let answer = answered.try_recv().ok();
    assert_eq!(answer.is_some(), told.is_some(), "{answer:?}");
    assert!(told.is_none_or(|told| answer.is_some_and(|answer| answer.text.contains(told))));
}

/// Its worker has lost the run.
#[tokio::test]
async fn what_another_worker_had_chosen_is_dropped_and_what_it_sent_stays() {
    let mut run = Run::new();
    run.call(FILE).await;
    run.call(REACTION).await;
    let mut waiting = run.begin(APPROVAL).await;
    assert!(waiting.try_recv().is_ok(), "it has reacted");
    run.tools.begin_again();
    let _waiting = run.begin(APPROVAL).await;
    run.tools.begin_again();
    assert_eq!(run.tools.outcome(said("Hello.")), said("Hello."));

    let mut run = Run::new();
    run.call(MESSAGE).await;
    run.tools.begin_again();
    assert!(run.call(MESSAGE).await.text.contains("your answer already"));
}

/// It is told what it can wait for.
#[tokio::test]
async fn what_another_worker_had_asked_locks_nobody_out() {
    let mut run = Run::new();
    drop(run.begin(WAITING_QUESTION).await);
    run.tools.begin_again();

    let other = run.call(APPROVAL).await;
    assert!(other.is_error && other.text.contains(WAITING_QUESTION.1), "{other:?}");
    let waiting = run.begin(WAITING_QUESTION).await;
    run.decide(answered(Some("b"))).await;
    assert!(waiting.await.unwrap().text.contains(r#""answer":"b""#));

    let _waiting = run.begin(WAITING_QUESTION).await;
    run.tools.begin_again();
    assert!(!run.call(REACTION).await.is_error);
    assert_eq!(run.tools.outcome(said("Hello.")), Ok(Outcome::React("👍".to_owned())));
}

#[tokio::test]
async fn a_run_has_so_many_calls() {
    let mut run = Run::new();
    run.tools.calls = MOST_CALLS - 1;
    assert!(!run.call(("search_history", r#"{"query":"train"}"#)).await.is_error);

    assert!(run.call(REACTION).await.text.contains("at most 1000 calls"));
}

/// G3.
#[tokio::test]
async fn a_run_that_ends_before_the_decision_leaves_the_request() {
    let mut run = Run::new();
    let _waiting = run.begin(APPROVAL).await;

    let outcome = run.tools.outcome(said("I have asked."));

    assert!(matches!(&outcome, Ok(Outcome::Approval(request)) if request.action == "pay the rent"), "{outcome:?}");
}

#[tokio::test]
async fn an_approval_for_which_nobody_can_be_asked_is_an_error() {
    let mut run = Run::new();
    let waiting = run.begin(APPROVAL).await;

    run.decide(Err("too many wait already".to_owned())).await;

    assert_eq!(waiting.await.unwrap().text, "error: nobody was asked: too many wait already");
    assert!(!run.call(REACTION).await.is_error, "nothing is decided by it");
}

#[rstest]
#[case::a_choice(Some("b"), r#"{"question":"Which one?","answer":"b"}"#)]
#[case::nothing_in_time(None, r#"{"question":"Which one?","answer":null}"#)]
#[tokio::test]
async fn an_answer_is_waited_for_and_the_run_goes_on(#[case] words: Option<&str>, #[case] told: &str) {
    let mut run = Run::new();
    drop(run.begin(WAITING_QUESTION).await);
    let waiting = run.begin(WAITING_QUESTION).await;
    let other = ("ask", r#"{"question":"Why?","choices":["a","b"],"wait":true}"#);
    for call in [other, APPROVAL, QUESTION, REACTION] {
        assert!(run.call(call).await.text.contains("your question is not answered yet"), "{call:?}");
    }

    run.decide(answered(words)).await;

    assert_eq!(waiting.await.unwrap(), ToolAnswer { text: told.to_owned(), is_error: false });
    drop(run.begin(WAITING_QUESTION).await);
    assert!(run.tools.asking.is_some(), "it is asked again");
    run.tools.asking = None;
    assert_eq!(run.tools.outcome(said("Done.")), said("Done."));
}

/// A client may give up without closing its request.
#[rstest]
#[case(APPROVAL, approved())]
#[case(WAITING_QUESTION, answered(Some("b")))]
#[tokio::test]
async fn only_the_latest_call_waits(#[case] call: (&str, &str), #[case] decision: Decision) {
    let mut run = Run::new();
    let before = run.begin(call).await;
    let latest = run.begin(call).await;

    let told = before.await.unwrap();
    assert!(told.is_error && told.text.contains("a later call of yours"), "{told:?}");

    run.decide(decision).await;
    assert!(!latest.await.unwrap().is_error);
}

#[tokio::test]
async fn a_question_waits_for_the_approval_that_was_asked_for_before() {
    let mut run = Run::new();
    let _waiting = run.begin(APPROVAL).await;

    assert!(run.call(WAITING_QUESTION).await.text.contains("another approval is not decided yet"));
}

/// The client may have lost its connection, or the worker its run.
#[tokio::test]
async fn an_answer_is_told_to_those_who_have_not_heard_it() {
    let mut run = Run::new();
    drop(run.begin(WAITING_QUESTION).await);
    run.decide(answered(Some("b"))).await;

    assert!(run.call(WAITING_QUESTION).await.text.contains(r#""answer":"b""#));
    run.tools.begin_again();
    assert!(run.call(WAITING_QUESTION).await.text.contains(r#""answer":"b""#), "another worker has not heard it");

    let _waiting = run.begin(WAITING_QUESTION).await;
    assert!(run.tools.asking.is_some(), "it is asked again");
}

#[tokio::test]
async fn the_answers_of_earlier_runs_are_told_in_their_order() {
    let answers = ["a", "b"].map(|words| super::said(answered(Some(words)).unwrap())).to_vec();
    let mut run = Run::of(turn("Hi").with(|turn| {
        turn.rights.may_ask_person = true;
        turn.past.answers = answers;
    }));

    for words in ["a", "b"] {
        assert!(run.call(WAITING_QUESTION).await.text.contains(&format!(r#""answer":"{words}""#)));
    }

    let _waiting = run.begin(WAITING_QUESTION).await;
    assert!(run.tools.asking.is_some(), "it is asked again");
}

/// It was asked again, and answered then.
#[rstest]
#[case::for_the_next_run(false)]
#[case::for_another_worker(true)]
#[tokio::test]
async fn a_question_that_nobody_answered_in_time_hides_no_later_answer(#[case] is_heard: bool) {
    let answers = [None, Some("b")].map(|words| super::said(answered(words).unwrap())).to_vec();
    let mut run = Run::of(turn("Hi").with(|turn| {
        turn.rights.may_ask_person = true;
        turn.past.answers = if is_heard { Vec::new() } else { answers };
    }));
    if is_heard {
        for words in [None, Some("b")] {
            let waiting = run.begin(WAITING_QUESTION).await;
            run.decide(answered(words)).await;
            assert!(waiting.await.is_ok());
        }
        run.tools.begin_again();
    }

    assert!(run.call(WAITING_QUESTION).await.text.contains(r#""answer":"b""#));
    let _waiting = run.begin(WAITING_QUESTION).await;
    assert!(run.tools.asking.is_some(), "it is asked again");
}

#[tokio::test]
async fn a_run_that_ends_before_the_answer_leaves_the_question() {
    let mut run = Run::new();
    let _waiting = run.begin(WAITING_QUESTION).await;

    let outcome = run.tools.outcome(said("I have asked."));

    assert_eq!(outcome, Ok(Outcome::Approval(answered(None).unwrap().request)));
}

#[rstest]
#[case::in_this_turn(false, WAITING_QUESTION.1, "you cannot wait")]
#[case::with_an_end(
    true,
    r#"{"question":"Which?","choices":["a","b"],"wait":true,"expires_in":90}"#,
    "no `expires_in`"
)]
#[case::no_truth(true, r#"{"question":"Which?","choices":["a","b"],"wait":"yes"}"#, "not as described")]
#[tokio::test]
async fn what_cannot_be_waited_for_is_told_and_decides_nothing(
    #[case] may_ask_person: bool,
    #[case] arguments: &str,
    #[case] why: &str,
) {
    let mut run = Run::of(turn("Hi").with(|turn| turn.rights.may_ask_person = may_ask_person));

    let answer = run.call(("ask", arguments)).await;

    assert!(answer.is_error && answer.text.contains(why), "{answer:?}");
    assert!(!run.call(REACTION).await.is_error);
}

/// The core would cut it off.
#[tokio::test]
async fn a_choice_that_is_waited_for_is_shorter() {
    let mut run = Run::new();
    let arguments =
        |length| serde_json::json!({"question": "Which?", "choices": ["a", "x".repeat(length)], "wait": true});

    let refused = run.call(("ask", &arguments(65).to_string())).await;

    assert!(refused.is_error && refused.text.contains("64 characters"), "{refused:?}");
    let _waiting = run.begin(("ask", &arguments(64).to_string())).await;
    assert!(run.tools.asking.is_some());
}

#[rstest]
#[case(true)]
#[case(false)]
fn waiting_for_an_answer_is_offered_only_where_a_person_can_be_asked(#[case] may_ask_person: bool) {
    let run = Run::of(turn("Hi").with(|turn| turn.rights.may_ask_person = may_ask_person));

    let tools = run.tools.offered();

    let ask = tools.iter().find(|tool| tool.name == "ask").expect("it is offered everywhere");
    assert_eq!(ask.parameters.get().contains(r#""wait""#), may_ask_person);
    assert_eq!(ask.description.contains("With `wait`"), may_ask_person);
}

#[test]
fn what_is_offered_says_that_an_approval_can_be_waited_for() {
    let run = Run::new();

    let tools = run.tools.offered();

    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    let all =
        ["react", "ask", "stay_silent", "send", "send_file", "defer", "request_approval", "schedule", "search_history"];
    assert_eq!(names, all);
    assert!(tools[6].description.contains("Returns the decision"), "{}", tools[6].description);
}
