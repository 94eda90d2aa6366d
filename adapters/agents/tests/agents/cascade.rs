//! Agents of which one answers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use rejoinder_agents::{Cascade, CascadeMember, Order};
use rejoinder_core::{
    ActivityState, AgentError, AgentFile, AgentMessage, AgentName, AgentRuntime, AgentTurn, ApprovalRequest,
    Attachment, Cost, Currency, HistoryLine, LineState, MemberReport, ModelInput, Outcome, Reply, RunEvent, RunEvents,
    Runtimes, ScheduleCall, SendResult, Speaker, SystemClock, Timestamp, ToolUse, TurnId, Usage,
    conformance::scripted::{Script, ScriptedAgent},
};
use rstest::rstest;
use tokio_util::sync::CancellationToken;

use crate::double::{Answer, Piece, Server, agent_with, run, run_hearing, text_chunk, turn};

/// What a scripted member does, step by step. Its run ends with the last step.
#[derive(Clone, Debug)]
enum Step {
    Says(&'static str),
    Rewrites(&'static str),
    Sends(&'static str),
    UsesATool,
    Does(&'static str),
    Uses(u64),
    Costs(u64),
    IsShown(&'static str),
    Titles(&'static str),
    Schedules(ScheduleCall),
    Listens,
    Takes(Duration),
    AsksApprovalFor(Duration),
    Waits,
    Fails,
    IsUnreachable,
    Panics,
    Answers(&'static str),
    Ends(Outcome),
}

use Step::*;

/// A member whose runs go as this says, the last one again and again.
struct Scripted {
    runs: Mutex<Vec<Vec<Step>>>,
    given: Mutex<Vec<AgentTurn>>,
    reads: usize,
    history: usize,
    seals: bool,
}

impl Scripted {
    fn of(runs: impl IntoIterator<Item = Vec<Step>>) -> Arc<Self> {
        let mut runs: Vec<_> = runs.into_iter().collect();
        runs.reverse();
        Arc::new(Self { runs: Mutex::new(runs), given: Mutex::default(), reads: 0, history: 0, seals: false })
    }

    fn that(steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        Self::of([steps.into_iter().collect()])
    }

    fn reading(history: usize, reads: usize, step: Step) -> Arc<Self> {
        let runs = Mutex::new(vec![vec![step]]);
        Arc::new(Self { runs, given: Mutex::default(), reads, history, seals: false })
    }

    fn sealing(step: Step) -> Arc<Self> {
        let runs = Mutex::new(vec![vec![step]]);
        Arc::new(Self { runs, given: Mutex::default(), reads: 0, history: 0, seals: true })
    }

    fn runs(&self) -> usize {
        self.given.lock().unwrap().len()
    }
}

#[async_trait]
impl AgentRuntime for Scripted {
    fn describe(&self) -> String {
        "scripted".to_owned()
    }

    fn history(&self) -> usize {
        self.history
    }

    fn reads(&self, _: &str) -> Option<usize> {
        (self.reads > 0).then_some(self.reads)
    }

    fn seals(&self) -> bool {
        self.seals
    }

    async fn run(&self, turn: AgentTurn, events: RunEvents, cancel: CancellationToken) -> Result<Outcome, AgentError> {
        let steps = {
            let mut runs = self.runs.lock().unwrap();
            if runs.len() > 1 { runs.pop().unwrap() } else { runs[0].clone() }
        };
        self.given.lock().unwrap().push(turn);
        for step in steps {
            match step {
                Says(text) => events.text(text).await,
                Rewrites(text) => events.rewrite(text).await,
                Sends(text) => {
                    let _ = events.send(Reply::text(text)).await;
                }
                UsesATool => events.tool(ToolUse::default()).await,
                Does(title) => events.activity(title, ActivityState::Done).await,
                Uses(tokens) => events.usage(Usage { input_tokens: tokens, output_tokens: tokens }).await,
                Costs(micros) => events.cost(dollars(micros)).await,
                IsShown(text) => events.shown(ModelInput { messages: text.to_owned(), ..ModelInput::default() }).await,
                Titles(text) => events.title(text).await,
                Schedules(call) => drop(events.schedule(call).await),
                Listens => drop(events.listen().await),
                Takes(time) => tokio::time::sleep(time).await,
                AsksApprovalFor(time) => drop(tokio::select! {
                    decided = events.ask_approval(to_pay()) => decided,
                    () = cancel.cancelled() => Err("the run was cancelled".to_owned()),
                    () = tokio::time::sleep(time) => Err("nobody has decided".to_owned()),
                }),
                Waits => {
                    cancel.cancelled().await;
                    return Err(AgentError::Failed("the run was cancelled".to_owned()));
                }
                Fails => return Err(AgentError::Failed("it fails".to_owned())),
                IsUnreachable => return Err(AgentError::Unreachable("no route".to_owned())),
                Panics => panic!("a bug in the member"),
                Answers(text) => return Ok(Outcome::Reply(Reply::text(text))),
                Ends(outcome) => return Ok(outcome),
            }
        }
        unreachable!("the last step ends the run")
    }
}

fn to_pay() -> ApprovalRequest {
    ApprovalRequest::action("pay")
}

fn dollars(micros: u64) -> Cost {
    Cost { micros, currency: Currency::USD }
}

/// A cascade with its members, and the runtimes by which they are found.
struct Both {
    cascade: Arc<Cascade>,
    runtimes: Arc<Runtimes>,
}

fn of_both(members: [Arc<dyn AgentRuntime>; 2]) -> Both {
    with_order(members, Order::Listed)
}

fn with_order(members: [Arc<dyn AgentRuntime>; 2], order: Order) -> Both {
    let names: [AgentName; 2] = ["one".into(), "two".into()];
    let described = names.clone().map(|name| CascadeMember {
        models: vec![format!("m-{name}").into()],
        shows_activity: &*name != "two",
        name,
        price: None,
    });
    let runtimes = Arc::new(Runtimes::from(names.into_iter().zip(members).collect::<HashMap<_, _>>()));
    let cascade = Cascade::new("both".into(), described.into(), order, Arc::downgrade(&runtimes));
    Both { cascade: Arc::new(cascade), runtimes }
}

impl Both {
    async fn answer(&self) -> String {
        run(&*self.cascade, turn("Hi")).await.reply()
    }
}

#[tokio::test]
async fn a_member_that_dies_before_any_text_is_replaced_by_the_next_one_once() {
    let (one, two) = (
        Server::answering([Answer::stream([Piece::Cut]), Answer::stream([Piece::Cut])]).await,
        Scripted::that([Uses(7), IsShown("mine"), Titles("Tea"), Says("Hello."), Answers("Hello.")]),
    );
    let both = of_both([Arc::new(one.agent()), Arc::clone(&two) as _]);

    let run = run(&*both.cascade, turn("Hi")).await;

    assert_eq!((run.ever.as_str(), two.runs()), ("Hello.", 1));
    assert_eq!(run.usage, Some(Usage { input_tokens: 7, output_tokens: 7 }));
    assert_eq!(run.shown.as_ref().map(|shown| shown.messages.as_str()), Some("mine"));
    assert_eq!(run.title.as_deref(), Some("Tea"));
    assert_eq!(run.reply(), "Hello.");
}

#[tokio::test]
async fn a_member_that_dies_after_visible_text_is_the_end_of_the_run() {
    let (one, two) = (
        Server::answering([Answer::stream([text_chunk("Half an"), Piece::Cut])]).await,
        Scripted::that([Answers("Hello.")]),
    );
    let both = of_both([Arc::new(one.agent()), Arc::clone(&two) as _]);

    let run = run(&*both.cascade, turn("Hi")).await;

    assert!(run.outcome.is_err(), "{:?}", run.outcome);
    assert_eq!((run.ever.as_str(), two.runs()), ("Half an", 0));
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_for_the_next_member() {
    let one = Server::answering([Answer::stream([Piece::Stall]), Answer::stream([Piece::Stall])]).await;
    let impatient = agent_with(rejoinder_agents::OpenAiSection {
        first_token_timeout: Duration::from_millis(20),
        ..one.settings()
    });
    let both = of_both([Arc::new(impatient), Scripted::that([Answers("Hello.")])]);

    assert_eq!(both.answer().await, "Hello.");
}

#[rstest]
#[case::sent(Sends("Here."))]
#[case::used_a_tool(UsesATool)]
#[case::rewrote(Rewrites("Here."))]
#[tokio::test]
async fn after_an_effect_no_other_member_is_asked(#[case] effect: Step) {
    let two = Scripted::that([Answers("Hello.")]);
    let both = of_both([Scripted::that([effect, Fails]), Arc::clone(&two) as _]);

    let run = run(&*both.cascade, turn("Hi")).await;

    assert_eq!((run.outcome, two.runs()), (Err(AgentError::Failed("it fails".to_owned())), 0));
}

#[rstest]
#[case::blank(vec![Says(" \n"), Rewrites(""), Fails])]
#[case::looked_at_schedules(vec![Schedules(ScheduleCall::List), Fails])]
#[case::made_no_schedule(vec![Schedules(ScheduleCall::Remove { name: "gone".to_owned() }), Fails])]
#[case::reported(vec![IsShown("theirs"), Titles("Coffee"), Fails])]
#[case::panicked(vec![Panics])]
#[tokio::test]
async fn nothing_of_a_member_without_an_effect_is_left(#[case] steps: Vec<Step>) {
    let both = of_both([Scripted::of([steps]), Scripted::that([Says("Hello."), Answers("Hello.")])]);

    let run = run(&*both.cascade, turn("Hi")).await;

    assert_eq!((run.ever.as_str(), run.usage, run.shown.is_none(), run.title.as_deref()), ("Hello.", None, true, None));
    assert_eq!(run.reply(), "Hello.");
}

#[rstest]
#[case::reports(vec![Uses(2), Uses(5), Answers("Hello.")], 15)]
#[case::reports_nothing(vec![Answers("Hello.")], 10)]
#[tokio::test]
async fn what_a_member_used_that_failed_is_part_of_what_the_run_used(#[case] two: Vec<Step>, #[case] tokens: u64) {
    let both = of_both([Scripted::that([Uses(7), Uses(10), Fails]), Scripted::that(two)]);

    let run = run(&*both.cascade, turn("Hi")).await;

    assert_eq!(run.usage, Some(Usage { input_tokens: tokens, output_tokens: tokens }));
    assert_eq!(run.reply(), "Hello.");
}

/// Each counts for the member that was asked last.
#[tokio::test]
async fn what_members_cost_is_passed_on_as_it_is() {
    let both = of_both([Scripted::that([Costs(7), Fails]), Scripted::that([Costs(2), Costs(5), Answers("Hello.")])]);

    let run = run(&*both.cascade, turn("Hi")).await;

    assert_eq!(run.costs, [7, 2, 5].map(dollars));
    assert_eq!(run.reply(), "Hello.");
}

#[tokio::test]
async fn the_core_learns_how_members_have_ended() {
    for (step, error) in [
        (IsUnreachable, AgentError::Unreachable("no route".to_owned())),
        (Fails, AgentError::Failed("it fails".to_owned())),
    ] {
        let both = of_both([Scripted::that([step]), Scripted::that([Answers("Hello.")])]);
        let (events, mut reported) = RunEvents::channel();

        both.cascade.run(turn("Hi"), events, CancellationToken::new()).await.expect("the second one answers");

        let mut members = Vec::new();
        while let Some(event) = reported.recv().await {
            if let RunEvent::Member(report) = event {
                members.push(report);
            }
        }
        let asked = |name: &str| MemberReport::Asked(name.into());
        assert_eq!(members, [asked("one"), MemberReport::Failed(error), asked("two"), MemberReport::Answered]);
    }
}

#[tokio::test]
async fn only_what_a_member_does_that_shows_it_is_reported() {
    let both = of_both([Scripted::that([Does("looks"), Fails]), Scripted::that([Does("hides"), Answers("Hello.")])]);
    let (events, mut reported) = RunEvents::channel();

    both.cascade.run(turn("Hi"), events, CancellationToken::new()).await.expect("the second one answers");

    let mut titles = Vec::new();
    while let Some(event) = reported.recv().await {
        if let RunEvent::Activity(activity) = event {
            titles.push(activity.title);
        }
    }
    assert_eq!(titles, ["looks"]);
}

/// The budgets of members are found by these names.
#[test]
fn the_names_of_the_members_are_those_in_the_configuration() {
    let both = of_both([Scripted::that([Fails]), Scripted::that([Fails])]);

    let names: Vec<_> = both.cascade.members().into_iter().map(|member| member.name).collect();
    assert_eq!(names, ["one", "two"].map(AgentName::from));
    assert_eq!(both.cascade.member_names(), names);
}

#[tokio::test]
async fn a_member_that_has_used_its_budget_is_not_asked() {
    let (one, two) = (Scripted::that([Answers("One.")]), Scripted::that([Fails]));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);
    let spent =
        |names: &[&str]| turn("Hi").with(|turn| turn.rights.spent = names.iter().map(|name| (*name).into()).collect());

    assert_eq!(run(&*both.cascade, spent(&["two"])).await.reply(), "One.");
    for _ in 0..6 {
        assert!(
            run(&*both.cascade, spent(&["one"])).await.outcome.is_err(),
            "also if the circuit of the other is open"
        );
    }
    assert!(run(&*both.cascade, spent(&["one", "two"])).await.outcome.is_err());
    assert_eq!((one.runs(), two.runs()), (1, 6));
}

#[tokio::test]
async fn only_members_that_can_seal_are_asked_for_a_sealed_answer() {
    let sealed = || Ends(Outcome::Reply(Reply::sealed("armour")));
    let (one, two) = (Scripted::that([Answers("One.")]), Scripted::sealing(sealed()));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);
    let none = of_both([Arc::clone(&one) as _, Scripted::that([Answers("Two.")])]);
    let to_be_sealed = || turn("Hi").with(|turn| turn.person.seal_to = Some("age1key".into()));

    let answered = run(&*both.cascade, to_be_sealed()).await;
    let refused = run(&*none.cascade, to_be_sealed()).await;

    assert_eq!(answered.outcome, Ok(Outcome::Reply(Reply::sealed("armour"))));
    assert!(matches!(refused.outcome, Err(AgentError::Unreachable(_))), "{:?}", refused.outcome);
    assert!(both.cascade.seals() && !none.cascade.seals());
    assert_eq!((one.runs(), two.runs()), (0, 1));
}

#[test]
fn a_cascade_lacks_a_worker_if_one_of_its_members_does() {
    let member = || Arc::new(ScriptedAgent::new(Arc::new(SystemClock), |_| Script::replies("One.")));
    let without = ScriptedAgent::new(Arc::new(SystemClock), |_| Script::replies("Two.")).without_worker().withdrawing();
    let (with, lacking) = (of_both([member(), member()]), of_both([member(), Arc::new(without)]));
    let turn = TurnId::new(Timestamp::from_millis(0));

    assert!(with.cascade.has_worker() && !with.cascade.withdraw(turn, 1));
    assert!(!lacking.cascade.has_worker() && lacking.cascade.withdraw(turn, 1));
}

#[tokio::test]
async fn what_the_last_member_reported_is_in_the_record_of_a_run_that_failed() {
    let both = of_both([Scripted::that([Uses(1), Fails]), Scripted::that([Uses(2), IsShown("last"), Fails])]);

    let run = run(&*both.cascade, turn("Hi")).await;

    assert!(run.outcome.is_err());
    assert_eq!(run.usage, Some(Usage { input_tokens: 3, output_tokens: 3 }), "what the first one used costs too");
    assert_eq!(run.shown.map(|shown| shown.messages), Some("last".to_owned()));
}

#[tokio::test]
async fn what_a_member_heard_before_it_failed_is_given_to_the_next_one() {
    let two = Scripted::that([Answers("Coffee.")]);
    let both = of_both([Scripted::that([Listens, Fails]), Arc::clone(&two) as _]);
    let hi = turn("Tea, please.");
    let came = AgentMessage {
        sender: hi.message.sender.clone(),
        text: "No, coffee!".to_owned(),
        forwarded: None,
        attachments: Vec::new(),
        voice: None,
        quoted: None,
        reaction: None,
    };

    run_hearing(&*both.cascade, hi, |_| SendResult::Claimed, vec![came]).await;

    let given: Vec<_> = two.given.lock().unwrap()[0].more.iter().map(|message| message.text.clone()).collect();
    assert_eq!(given, ["No, coffee!"]);
}

#[rstest]
#[case(Outcome::Silent("nothing to say".to_owned()))]
#[case(Outcome::Defer { note: None, due: rejoinder_core::Timestamp::from_millis(1) })]
#[tokio::test]
async fn a_deliberate_outcome_is_no_failure(#[case] outcome: Outcome) {
    let (one, two) = (Scripted::that([Ends(outcome.clone())]), Scripted::that([Answers("Hello.")]));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);

    for _ in 0..6 {
        assert_eq!(run(&*both.cascade, turn("Hi")).await.outcome, Ok(outcome.clone()));
    }

    assert_eq!((one.runs(), two.runs()), (6, 0));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_keeps_failing_is_left_out_for_a_minute() {
    let (one, two) = (Scripted::that([Fails]), Scripted::that([Answers("Hello.")]));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);
    for _ in 0..10 {
        both.answer().await;
    }
    assert_eq!((one.runs(), two.runs()), (5, 10));

    tokio::time::advance(Duration::from_mins(1)).await;
    both.answer().await;
    both.answer().await;

    assert_eq!(one.runs(), 6, "one run tries");
}

#[tokio::test(start_paused = true)]
async fn if_all_are_left_out_the_first_one_is_asked_all_the_same() {
    let (one, two) =
        (Scripted::of((0..5).map(|_| vec![Fails]).chain([vec![Answers("Back.")]])), Scripted::that([Fails]));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);
    for _ in 0..5 {
        assert!(run(&*both.cascade, turn("Hi")).await.outcome.is_err());
    }

    assert_eq!(both.answer().await, "Back.");

    assert_eq!((one.runs(), two.runs()), (6, 5));
    assert_eq!(both.answer().await, "Back.", "its circuit is closed");
}

/// Runs the cascade, and cancels after a time.
async fn stopped_after(both: &Both, time: Duration) -> Result<Outcome, AgentError> {
    let (events, _reported) = RunEvents::channel();
    let cancel = CancellationToken::new();
    let stop = async {
        tokio::time::sleep(time).await;
        cancel.cancel();
    };
    tokio::join!(both.cascade.run(turn("Hi"), events, cancel.clone()), stop).0
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_is_no_failure_of_the_member() {
    let (one, two) = (Scripted::that([Waits]), Scripted::that([Answers("Hello.")]));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);

    for _ in 0..6 {
        assert!(stopped_after(&both, Duration::from_secs(3)).await.is_err());
    }

    assert_eq!((one.runs(), two.runs()), (6, 0));
}

/// The deadline of the run stands still meanwhile.
#[tokio::test(start_paused = true)]
async fn a_member_that_is_stopped_while_it_waits_for_an_approval_has_not_failed() {
    let one = Scripted::that([Takes(Duration::from_secs(1)), AsksApprovalFor(Duration::from_hours(96)), Fails]);
    let both = of_both([Arc::clone(&one) as _, Scripted::that([Answers("Hello.")])]);

    for _ in 0..6 {
        assert!(stopped_after(&both, Duration::from_hours(48)).await.is_err());
    }

    let health = both.cascade.members();
    assert_eq!((one.runs(), health[0].failed, health[0].is_left_out), (6, 0, false));
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_nobody_decides_does_not_count_as_the_time_of_an_answer() {
    let one =
        Scripted::that([Takes(Duration::from_secs(1)), AsksApprovalFor(Duration::from_hours(48)), Answers("Later.")]);
    let both = of_both([one as _, Scripted::that([Fails])]);
    let (events, mut reported) = RunEvents::channel();
    let waits = async {
        let mut asked = Vec::new();
        while let Some(event) = reported.recv().await {
            asked.push(event);
        }
    };

    let (outcome, ()) = tokio::join!(both.cascade.run(turn("Hi"), events, CancellationToken::new()), waits);

    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(both.cascade.members()[0].median, Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn what_a_member_used_counts_for_it_also_when_it_failed() {
    let two = Scripted::of([vec![Uses(2), Answers("Hello.")], vec![Answers("Again.")]]);
    let both = of_both([Scripted::that([Uses(7), Uses(10), Fails]), two as _]);

    for _ in 0..2 {
        both.answer().await;
    }

    let tokens: Vec<_> = both.cascade.members().into_iter().map(|member| member.usage).collect();
    assert_eq!(tokens, [20, 2].map(|tokens| Usage { input_tokens: tokens, output_tokens: tokens }));
}

/// The core drops a run that does not end by itself.
#[tokio::test(start_paused = true)]
async fn what_a_member_used_counts_also_when_its_run_is_dropped() {
    let both = of_both([Scripted::that([Uses(7), Waits]), Scripted::that([Answers("Hello.")])]);
    let (events, _reported) = RunEvents::channel();

    let run = both.cascade.run(turn("Hi"), events, CancellationToken::new());
    assert!(tokio::time::timeout(Duration::from_secs(3), run).await.is_err());

    let tokens: Vec<_> = both.cascade.members().iter().map(|member| member.usage.input_tokens).collect();
    assert_eq!(tokens, [7, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_hangs_until_the_deadline_has_failed() {
    let (one, two) = (Scripted::that([Waits]), Scripted::that([Answers("Hello.")]));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);
    let deadline = turn("Hi").deadline.since(turn("Hi").now);

    for _ in 0..5 {
        assert!(stopped_after(&both, deadline).await.is_err());
    }

    assert_eq!((both.answer().await, one.runs()), ("Hello.".to_owned(), 5));
}

#[tokio::test(start_paused = true)]
async fn the_fastest_member_is_asked_first_once_all_are_measured() {
    let slow = Scripted::that([Takes(Duration::from_secs(3)), Answers("slow")]);
    let fast = Scripted::that([Takes(Duration::from_secs(1)), Answers("fast")]);
    let both = with_order([slow as _, fast as _], Order::Fastest);

    let answers = [both.answer().await, both.answer().await, both.answer().await];

    assert_eq!(answers, ["slow", "fast", "fast"]);
}

#[tokio::test]
async fn a_member_gets_no_more_than_it_reads() {
    let one = Scripted::reading(1, 2, Fails);
    let two = Scripted::reading(3, 9, Answers("Hello."));
    let both = of_both([Arc::clone(&one) as _, Arc::clone(&two) as _]);
    let mut hi = turn("Hi");
    let line = |text: &str| HistoryLine {
        spoken: false,
        speaker: Speaker::Person,
        author: None,
        forwarded: None,
        text: text.to_owned(),
        at: hi.now,
        state: LineState::Seen,
    };
    hi.past.history = ["a", "b", "c"].map(|text| Arc::new(line(text))).into();
    let attachment = Attachment { name: "x.txt".into(), media_type: "text/plain".into(), url: "telegram:x".into() };
    hi.message.attachments = vec![AgentFile { attachment, bytes: Some(b"abc".to_vec().into()), text: None }];
    hi.place.model = Some("m-two".into());
    assert_eq!((both.cascade.history(), both.cascade.reads("text/plain")), (3, Some(9)));

    // With the chosen model, the second member is the first one.
    run(&*both.cascade, hi.clone()).await;
    hi.place.model = Some("m-one".into());
    run(&*both.cascade, hi).await;

    let seen = |member: &Scripted| -> Vec<(String, bool, Option<String>)> {
        let given = member.given.lock().unwrap();
        let said = |turn: &AgentTurn| turn.past.history.iter().map(|line| line.text.as_str()).collect();
        let model = |turn: &AgentTurn| turn.place.model.as_deref().map(ToOwned::to_owned);
        given.iter().map(|turn| (said(turn), turn.message.attachments[0].bytes.is_some(), model(turn))).collect()
    };
    assert_eq!(seen(&one), [("c".to_owned(), false, Some("m-one".to_owned()))]);
    assert_eq!(seen(&two), [("abc".to_owned(), true, Some("m-two".to_owned())), ("abc".to_owned(), true, None)]);
}

#[tokio::test]
async fn a_member_that_a_reload_replaces_answers_from_then_on() {
    let both = of_both([Scripted::that([Answers("old")]), Scripted::that([Answers("other")])]);
    assert_eq!(both.answer().await, "old");

    both.runtimes.set(HashMap::from([("one".into(), Scripted::that([Answers("new")]) as Arc<dyn AgentRuntime>)]));

    assert_eq!(both.answer().await, "new");
}

/// Whatever two members do, an answer has the text of one.
#[tokio::test]
async fn no_answer_has_the_text_of_two_members() {
    let ends = [Fails, Panics, Answers("")];
    let acts =
        |name: &'static str| [Says(name), Says(" "), Rewrites(name), Rewrites(""), Sends(name), Uses(1), UsesATool];
    let mut checked = 0;
    for number in 0..acts("").len().pow(2) * ends.len().pow(2) {
        let (acts_number, ends_number) = (number / ends.len().pow(2), number % ends.len().pow(2));
        let steps = |name: &'static str, act: usize, end: usize| {
            let said = if let Answers(_) = ends[end] { Answers(name) } else { ends[end].clone() };
            [acts(name)[act].clone(), Says(" "), said]
        };
        let one = Scripted::that(steps("one", acts_number / acts("").len(), ends_number / ends.len()));
        let two = Scripted::that(steps("two", acts_number % acts("").len(), ends_number % ends.len()));
        let both = of_both([one as _, two as _]);

        let cascade = Arc::clone(&both.cascade);
        let Ok(run) = tokio::spawn(async move { run(&*cascade, turn("Hi")).await }).await else { continue };

        let answer = if let Ok(Outcome::Reply(reply)) = &run.outcome { reply.text.clone() } else { String::new() };
        let all = format!("{answer} {} {}", run.ever, run.sent.concat());
        assert!(!(all.contains("one") && all.contains("two")), "{number}: {all}");
        checked += 1;
    }
    assert!(checked > 300, "{checked}");
}
