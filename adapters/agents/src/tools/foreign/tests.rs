use parking_lot::Mutex;
use rejoinder_core::{
    ActivityState, AgentFile, ApprovalState, Attachment, Outcome, RunEvent, Timestamp, conformance::runtime::decision,
};
use serde_json::{json, value::to_raw_value};
use tokio::{sync::mpsc, time::sleep};

use super::*;
use crate::{tests::turn, tools::RunState};

/// A tool that says what it was called with.
struct Double {
    definition: Tool,
    kind: Option<&'static str>,
    calls: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl ForeignTool for Double {
    fn definition(&self) -> &Tool {
        &self.definition
    }

    fn approved_as(&self) -> Option<&str> {
        self.kind
    }

    async fn call(&self, arguments: Map<String, Value>) -> ForeignAnswer {
        if arguments.contains_key("is_slow") {
            sleep(Duration::from_secs(5)).await;
        }
        let url = "data:image/png;base64,aGk=".to_owned();
        let file = Attachment { name: "picture.png".to_owned(), media_type: "image/png".to_owned(), url };
        let files = if arguments.contains_key("draws") { vec![file] } else { Vec::new() };
        self.calls.lock().push(Value::from(arguments).to_string());
        ForeignAnswer { text: "done".to_owned(), is_error: false, files }
    }
}

/// A run with the tools `read`, `pay`, which needs an approval, and one that has a name of the gateway's own.
struct Run {
    state: RunState,
    turn: AgentTurn,
    events: RunEvents,
    calls: Arc<Mutex<Vec<String>>>,
}

fn run(turn: AgentTurn) -> (Run, mpsc::Receiver<RunEvent>) {
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let tool = |name: &'static str, kind| -> Arc<dyn ForeignTool> {
        let parameters = to_raw_value(&json!({ "type": "object" })).expect("JSON");
        let definition = Tool { name: name.into(), description: "Does it.".into(), parameters };
        Arc::new(Double { definition, kind, calls: Arc::clone(&calls) })
    };
    let tools = vec![tool("bank_read", None), tool("bank_pay", Some("mcp.bank.pay")), tool("send", None)];
    let mut foreign = ForeignCalls::of(&turn, tools);
    foreign.rounds_left = 9;
    let (events, reported) = RunEvents::channel();
    (Run { state: RunState::with(foreign), turn, events, calls }, reported)
}

impl Run {
    async fn call(&mut self, name: &str, arguments: &str) -> (String, bool) {
        let call = ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
        let now = Timestamp::from_millis(0);
        let mut results = self.state.perform(&[call], &self.turn, now, &self.events).await;
        let result = results.remove(0);
        (result.text, result.needs_answer)
    }

    fn names(&self) -> Vec<String> {
        self.state.foreign.definitions().into_iter().map(|tool| tool.name.into_owned()).collect()
    }
}

fn approvable() -> AgentTurn {
    turn("Pay the rent.").with(|turn| turn.rights.may_ask_approval = true)
}

/// Answers each question like this. Returns what was asked, and the calls that were recorded.
fn decided(
    mut reported: mpsc::Receiver<RunEvent>,
    state: ApprovalState,
) -> Arc<Mutex<(Vec<ApprovalRequest>, Vec<String>)>> {
    let seen: Arc<Mutex<(Vec<ApprovalRequest>, Vec<String>)>> = Arc::default();
    let all = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Some(event) = reported.recv().await {
            match event {
                RunEvent::Ask(request, _, answer) => {
                    all.lock().0.push(request.clone());
                    let _ = answer.send(Ok(decision(&request, state)));
                }
                RunEvent::Tool(call) => all.lock().1.push(call.name),
                _ => {}
            }
        }
    });
    seen
}

#[tokio::test]
async fn a_picture_that_a_tool_returns_goes_with_the_answer() {
    let (mut run, _reported) = run(turn("Draw."));

    let (told, needs_answer) = run.call("bank_read", r#"{"draws":true}"#).await;

    assert_eq!((&*told, needs_answer), ("done\nnoted: picture.png goes with your answer", true));
    run.state.add_text("Here it is.", true);
    let Outcome::Reply(reply) = run.state.outcome() else { panic!("not a reply") };
    assert_eq!((&*reply.text, &*reply.attachments[0].name), ("Here it is.", "picture.png"));
}

#[tokio::test]
async fn a_call_is_an_activity_until_its_result_is_there_and_one_that_failed_says_so() {
    let (mut run, mut reported) = run(turn("How much?"));
    run.call("bank_read", "{}").await;
    run.call("bank_read", "[]").await;
    drop(run);

    let mut told = Vec::new();
    while let Some(event) = reported.recv().await {
        match event {
            RunEvent::Activity(activity) => told.push((activity.title, activity.state)),
            RunEvent::Tool(call) => assert_eq!(call.name, "bank_read"),
            other => panic!("unexpected: {other:?}"),
        }
    }
    let states = [ActivityState::Working, ActivityState::Done, ActivityState::Working, ActivityState::Failed];
    assert_eq!(told, states.map(|state| ("calls bank_read".to_owned(), state)));
}

#[tokio::test]
async fn a_call_is_carried_out_and_its_result_goes_back() {
    let (mut run, reported) = run(approvable());
    let seen = decided(reported, ApprovalState::Approved);

    assert_eq!(run.names(), ["bank_read", "bank_pay"], "a name of the gateway's own is left out");
    assert_eq!(run.call("bank_read", r#"{"of":"Ada"}"#).await, ("done".to_owned(), true));

    assert_eq!(*run.calls.lock(), [r#"{"of":"Ada"}"#]);
    assert_eq!(seen.lock().0, []);
    let (wrong, _) = run.call("bank_read", "[1]").await;
    assert!(wrong.starts_with("error: the arguments are no JSON object"), "{wrong}");
}

#[tokio::test]
async fn an_approved_call_is_carried_out() {
    let (mut run, reported) = run(approvable());
    let seen = decided(reported, ApprovalState::Approved);

    let (text, _) = run.call("bank_pay", r#"{"euros":800}"#).await;

    assert_eq!((text.as_str(), run.calls.lock().len()), ("done", 1));
    let asked = seen.lock().0.clone();
    assert!(asked[0].action.starts_with("Call bank_pay ("), "{asked:?}");
    assert_eq!(
        (asked[0].kind.as_deref(), asked[0].details.as_deref()),
        (Some("mcp.bank.pay"), Some("{\n  \"euros\": 800\n}"))
    );
    run.call("bank_pay", r#"{"euros":800}"#).await;
    assert_eq!(seen.lock().0.len(), 2, "an approval allows one call");
}

#[tokio::test(start_paused = true)]
async fn the_record_of_a_call_has_its_duration_without_the_wait_for_the_approval() {
    let (mut run, mut reported) = run(approvable());
    let recorded = tokio::spawn(async move {
        loop {
            match reported.recv().await.expect("the call is recorded") {
                RunEvent::Ask(request, _, answer) => {
                    sleep(Duration::from_mins(1)).await;
                    let _ = answer.send(Ok(decision(&request, ApprovalState::Approved)));
                }
                RunEvent::Tool(call) => return call.duration_ms,
                _ => {}
            }
        }
    });

    run.call("bank_pay", r#"{"is_slow":true}"#).await;

    let duration_ms = recorded.await.expect("it is recorded").expect("it is known");
    assert!((5_000..5_100).contains(&duration_ms), "{duration_ms}");
}

#[tokio::test]
async fn a_call_that_is_not_approved_is_not_carried_out() {
    let (mut run, reported) = run(approvable());
    let seen = decided(reported, ApprovalState::Declined);

    let (text, needs_answer) = run.call("bank_pay", "{}").await;

    assert!(needs_answer && text.starts_with("error: not called: its approval was not given"), "{text}");
    run.call("bank_pay", "{}").await;
    assert_eq!((run.calls.lock().len(), seen.lock().0.len()), (0, 1), "a no holds for the rest of the run");
}

#[tokio::test]
async fn where_nobody_can_approve_the_tool_is_not_offered() {
    let (run, _reported) = run(turn("Pay the rent."));

    assert_eq!(run.names(), ["bank_read"]);
}

#[tokio::test]
async fn what_was_approved_for_an_earlier_run_is_carried_out_once() {
    let approved = decision(&request("bank_pay", "mcp.bank.pay", &Map::new()), ApprovalState::Approved);
    let (mut run, reported) = run(approvable().with(|turn| turn.past.approvals = vec![approved]));
    let seen = decided(reported, ApprovalState::Declined);

    assert_eq!(run.call("bank_pay", "{}").await.0, "done");
    let (other, _) = run.call("bank_pay", r#"{"euros":800}"#).await;

    assert!(other.starts_with("error: not called"), "another call is asked for: {other}");
    assert_eq!((run.calls.lock().len(), seen.lock().0.len()), (1, 1));
}

#[tokio::test]
async fn a_model_cannot_approve_a_call_by_another_request() {
    let (mut run, reported) = run(approvable());
    let _seen = decided(reported, ApprovalState::Approved);

    let (text, _) = run.call("request_approval", r#"{"action":"Call bank_pay","kind":"mcp.bank.pay"}"#).await;

    assert!(text.starts_with("error: kinds that begin with mcp."), "{text}");
}

#[tokio::test]
async fn the_last_answer_calls_nothing() {
    let (mut run, reported) = run(approvable());
    let _seen = decided(reported, ApprovalState::Approved);

    run.state.foreign.rounds_left = 1;
    assert!(run.call("bank_read", "{}").await.0.ends_with("[Nothing more can be called: answer the person now.]"));
    run.state.foreign.rounds_left = 0;
    assert!(run.call("bank_read", "{}").await.0.starts_with("error: not called"));
    assert_eq!(run.calls.lock().len(), 1);
}

#[tokio::test]
async fn the_calls_of_a_run_are_bounded() {
    let (mut run, reported) = run(approvable());
    let _seen = decided(reported, ApprovalState::Approved);

    for _ in 0..=MOST_CALLS {
        run.call("bank_read", "{}").await;
    }

    assert_eq!(run.calls.lock().len(), MOST_CALLS);
}

#[tokio::test]
async fn a_run_with_files_ends_with_its_request() {
    let (name, media_type, url) = ("a.png".to_owned(), "image/png".to_owned(), String::new());
    let file = AgentFile { attachment: Attachment { name, media_type, url }, bytes: Some(vec![1].into()), text: None };
    let (mut run, reported) = run(approvable().with(|turn| turn.message.attachments = vec![file]));
    let _seen = decided(reported, ApprovalState::Approved);

    run.call("bank_pay", "{}").await;

    assert!(run.calls.lock().is_empty());
    let outcome = run.state.outcome();
    assert!(
        matches!(&outcome, Outcome::Approval(request) if request.action.starts_with("Call bank_pay")),
        "{outcome:?}"
    );
}
