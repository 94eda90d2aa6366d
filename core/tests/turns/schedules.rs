//! Schedules: messages and turns at given times.

use std::time::Duration;

use rejoinder_core::{
    Access, Actor, AgentTurn, Clock as _, Expectation, Missed, NewSchedule, OperationError, PersonLimits, ScheduleCall,
    ScheduleLimits, ScheduledAction, SenderKind, TurnStatus, When, Words,
    conformance::scripted::{Fault, Script},
    store::{Schedule, ScheduleOrigin, ScheduleState},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, mention, operator, said, secs},
    life::{at_every_write, comes_in_dying, passes_dying},
    linking::{code_for, confirms, guarded, last, says, setup, there},
    texts::SILENT,
};

const HOUR: Duration = Duration::from_hours(1);

fn says_hello(to: &str, when: When) -> NewSchedule {
    NewSchedule {
        name: "hello".to_owned(),
        when,
        time_zone: "UTC".into(),
        to: to.parse().expect("a target"),
        action: ScheduledAction::Message("Good morning.".to_owned()),
        missed: Missed::Once,
    }
}

fn prompts(to: &str, quiet: bool) -> NewSchedule {
    let text = "Say what is new.".to_owned();
    NewSchedule {
        action: ScheduledAction::Prompt { text, agent: None, quiet, words: Words::default() },
        ..says_hello(to, When::Every(HOUR))
    }
}

async fn adds(gateway: &TestGateway, new: NewSchedule) -> Schedule {
    gateway.engine().schedules().add(new, &operator("a test")).await.expect("it is made")
}

async fn schedule(gateway: &TestGateway) -> (Schedule, Vec<Option<String>>) {
    let (schedule, runs) =
        gateway.engine().calendar().with_runs("hello", &operator("a test")).await.expect("there is one");
    (schedule, runs.into_iter().map(|run| run.problem).collect())
}

fn ada() -> String {
    chat("ada").to_string()
}

fn greetings(gateway: &TestGateway) -> usize {
    gateway.visible(&chat("ada")).iter().filter(|text| *text == "Good morning.").count()
}

#[tokio::test]
async fn a_message_is_sent_at_its_times() {
    let mut gateway = guarded().await;
    adds(&gateway, says_hello(&ada(), When::Every(HOUR))).await;

    gateway.advance(secs(3599)).await;
    assert_eq!(greetings(&gateway), 0);
    gateway.advance(secs(1)).await;
    assert_eq!(greetings(&gateway), 1);
    gateway.restart().await;
    gateway.advance(HOUR).await;
    assert_eq!(greetings(&gateway), 2);
    let (schedule, runs) = schedule(&gateway).await;
    assert_eq!((schedule.state, runs), (ScheduleState::Active, vec![None, None]));
    gateway.at_rest().await;
}

/// A person gets it where they are reached at that time.
#[tokio::test]
async fn what_is_for_somebody_goes_where_they_are_then() {
    let gateway = guarded().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    let in_an_hour = When::At(gateway.clock.now() + HOUR);
    adds(&gateway, says_hello("Ada", in_an_hour)).await;
    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), &format!("/link {code}"))).await;
    confirms(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), "hello")).await;

    gateway.advance(HOUR).await;

    assert_eq!(last(&gateway, &there("lovelace")), "Good morning.");
    let (schedule, _) = schedule(&gateway).await;
    assert_eq!((schedule.state, schedule.next_at), (ScheduleState::Done, None));
    gateway.at_rest().await;
}

/// The agent is told that nobody wrote it, and remembers it so; the person sees the answer alone.
#[tokio::test]
async fn a_prompt_is_put_before_the_agent() {
    let gateway = setup(Access::open()).start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    adds(&gateway, prompts(&ada(), false)).await;

    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"]);
    let turn = &gateway.agent("main").runs()[1].turn;
    assert_eq!((&*turn.message.text, turn.message.sender.kind), ("Say what is new.", SenderKind::Operator));
    assert_eq!(turn.place.session, gateway.agent("main").runs()[0].turn.place.session);
    comes_in(&gateway, says(&chat("ada"), "thanks")).await;
    let history = &gateway.agent("main").runs()[2].turn.past.history;
    let prompt = history.iter().find(|line| line.text == "Say what is new.").expect("it is in the history");
    assert_eq!(prompt.author.as_ref().map(|author| author.kind), Some(SenderKind::Operator));
    gateway.at_rest().await;
}

/// It owes an answer unless it is quiet, in a group as well.
#[rstest::rstest]
#[case::quiet(true, &["hello"])]
#[case::owed(false, &["hello", SILENT])]
#[tokio::test]
async fn a_silent_agent_may_stay_silent_if_it_is_asked_quietly(#[case] quiet: bool, #[case] shown: &[&str]) {
    let silent = |turn: &rejoinder_core::AgentTurn| match &*turn.message.text {
        "Say what is new." => Script::is_silent("nothing is new"),
        text => Script::replies(text),
    };
    let gateway = GatewaySetup::new().agent("main", silent).start().await;
    gateway.receives(mention(&chat("ada"), "hello")).await;
    adds(&gateway, prompts(&ada(), quiet)).await;

    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), shown);
    let turn = gateway.turns().await.remove(0);
    assert_eq!(turn.owed, !quiet);
    let dossier = gateway.dossier(turn.turn_id).await;
    assert_eq!(dossier.turn.event.chat, rejoinder_core::ChatKind::Group);
    let owed = if quiet { Expectation::Nothing } else { Expectation::Answer };
    assert_eq!(dossier.turn.obligation.expectation(), owed);
    gateway.at_rest().await;
}

/// While the gateway was down three times passed.
#[rstest::rstest]
#[case(Missed::Once, 1)]
#[case(Missed::Skip, 0)]
#[case(Missed::All, 3)]
#[tokio::test]
async fn times_that_passed_are_made_up_for_as_it_says(#[case] missed: Missed, #[case] sent: usize) {
    let mut gateway = guarded().await;
    adds(&gateway, NewSchedule { missed, ..says_hello(&ada(), When::Every(HOUR)) }).await;
    gateway.stop(secs(1)).await;
    gateway.clock.advance(HOUR * 3 + secs(600));
    gateway.begin_life().await;
    gateway.settle().await;

    assert_eq!(greetings(&gateway), sent);
    gateway.advance(HOUR).await;
    assert_eq!(greetings(&gateway), sent + 1);
    gateway.at_rest().await;
}

/// `kill -9` at every write over the time, whatever is done about times that passed.
#[rstest::rstest]
#[case(Missed::Once)]
#[case(Missed::Skip)]
#[case(Missed::All)]
#[tokio::test]
async fn a_time_is_acted_on_once_whenever_the_gateway_is_killed(#[case] missed: Missed) {
    at_every_write(3, async |crash, write| {
        let mut gateway = guarded().await;
        adds(&gateway, NewSchedule { missed, ..says_hello(&ada(), When::Every(HOUR)) }).await;
        let has_crashed = passes_dying(&mut gateway, (crash, write), HOUR).await;
        gateway.advance(secs(300)).await;

        assert_eq!(greetings(&gateway), 1, "{crash:?} write {write}");
        let (_, runs) = schedule(&gateway).await;
        assert_eq!(runs, [None], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

/// The platform refuses it three times; then it is paused, and says why, until it is resumed.
#[tokio::test]
async fn a_schedule_that_fails_is_paused() {
    let gateway = guarded().await;
    let key = || gateway.platform.choose_faults(|_| Some(Fault::Refuse));
    key();
    adds(&gateway, says_hello(&ada(), When::Every(HOUR))).await;

    for _ in 0..5 {
        gateway.advance(HOUR).await;
    }

    let (paused, runs) = schedule(&gateway).await;
    assert_eq!((paused.state, runs.len()), (ScheduleState::Paused, 3));
    assert!(paused.why.as_ref().is_some_and(|why| why.starts_with("it failed 3 times in a row: ")), "{:?}", paused.why);
    assert!(gateway.log().await.iter().any(|entry| entry.topic == "schedule.paused"));
    assert!(paused.has_paused_itself());

    gateway.platform.choose_faults(|_| None);
    let resumed = gateway.engine().calendar().pause("hello", false, &operator("mended")).await.expect("it is resumed");
    assert_eq!((resumed.state, resumed.failures, resumed.why), (ScheduleState::Active, 0, None));
    gateway.advance(HOUR).await;
    assert_eq!(greetings(&gateway), 1);

    key();
    for _ in 0..2 {
        gateway.advance(HOUR).await;
    }
    assert_eq!(schedule(&gateway).await.0.failures, 1);
    // What failed before it was resumed does not count.
    for pauses in [true, false] {
        gateway.engine().calendar().pause("hello", pauses, &operator("a look")).await.expect("it is done");
    }
    gateway.advance(HOUR).await;
    assert_eq!(schedule(&gateway).await.0.failures, 0);
    let paused = gateway.engine().calendar().pause("hello", true, &operator("later")).await.expect("it is paused");
    assert!(!paused.has_paused_itself(), "{paused:?}");
    gateway.at_rest().await;
}

/// It owes nothing, so nobody else would notice.
#[rstest::rstest]
#[case::fails(Script::fails("the model is gone"), "the model is gone")]
#[case::hangs(Script::replies("at last").taking(HOUR / 2), "the agent's run has stopped")]
#[tokio::test]
async fn a_quiet_prompt_whose_agent_fails_is_paused(#[case] fails: Script, #[case] told: &str) {
    let fails = move |turn: &AgentTurn| match &*turn.message.text {
        "Say what is new." => fails.clone(),
        text => Script::replies(text),
    };
    let gateway = GatewaySetup::new().agent("main", fails).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    adds(&gateway, prompts(&ada(), true)).await;

    for _ in 0..5 {
        gateway.advance(HOUR).await;
    }

    let (paused, runs) = schedule(&gateway).await;
    assert_eq!((paused.state, runs.len()), (ScheduleState::Paused, 3));
    assert!(paused.why.as_ref().is_some_and(|why| why.contains(told)), "{:?}", paused.why);
    gateway.at_rest().await;
}

/// Whatever became of a trial before.
#[tokio::test]
async fn a_schedule_with_one_time_is_judged_by_that() {
    let gateway = guarded().await;
    adds(&gateway, says_hello(&ada(), When::At(gateway.clock.now() + HOUR))).await;
    gateway.platform.choose_faults(|_| Some(Fault::Refuse));
    for key in ["one", "two", "three"] {
        gateway.engine().schedules().run_now("hello", key, &operator("a trial")).await.expect("it is begun");
        gateway.settle().await;
    }
    gateway.platform.choose_faults(|_| None);

    gateway.advance(HOUR).await;

    assert_eq!(greetings(&gateway), 1);
    assert_eq!(schedule(&gateway).await.0.state, ScheduleState::Done);
    gateway.at_rest().await;
}

/// By the clock, in the second in which it is due.
#[rstest::rstest]
#[case::every_hour("0 * * * *")]
#[case::at_hours("0 1,2 * * *")]
#[tokio::test]
async fn a_pattern_is_acted_on_at_its_times(#[case] pattern: &str) {
    let gateway = guarded().await;
    adds(&gateway, says_hello(&ada(), When::Cron(pattern.to_owned()))).await;

    for sent in 1..3 {
        gateway.advance(HOUR).await;
        assert_eq!(greetings(&gateway), sent);
    }
    gateway.at_rest().await;
}

/// It has no other time at which it could succeed.
#[tokio::test]
async fn a_schedule_whose_only_time_comes_to_nothing_says_so() {
    let gateway = guarded().await;
    adds(&gateway, says_hello("Ada", When::At(gateway.clock.now() + HOUR))).await;

    gateway.advance(HOUR).await;

    let (paused, _) = schedule(&gateway).await;
    assert!(paused.has_paused_itself() && paused.why.is_some_and(|why| why.contains("has written")));
    let done = gateway.engine().calendar().pause("hello", false, &operator("never mind")).await.expect("it is done");
    assert_eq!(done.state, ScheduleState::Done);
    gateway.at_rest().await;
}

/// Its name is free again, and it does not stay for ever.
#[tokio::test]
async fn a_schedule_that_is_done_gives_way() {
    let mut setup = setup(Access::open());
    setup.lifetimes.turns = Some(HOUR * 24);
    let gateway = setup.start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    let in_an_hour = || says_hello(&ada(), When::At(gateway.clock.now() + HOUR));
    adds(&gateway, in_an_hour()).await;
    let twice = gateway.engine().schedules().add(in_an_hour(), &operator("a test")).await;
    assert!(matches!(twice, Err(OperationError::Unfit(why)) if why.contains("there is a schedule")));
    gateway.advance(HOUR).await;
    let elsewhere = Actor { channels: Some(vec![there("x").channel]), ..operator("a test") };
    let other = NewSchedule { to: there("x").to_string().parse().expect("a target"), ..in_an_hour() };
    let hidden = gateway.engine().schedules().add(other, &elsewhere).await;
    assert!(matches!(hidden, Err(OperationError::Unfit(why)) if why.contains("there is a schedule")));
    adds(&gateway, in_an_hour()).await;
    assert_eq!(gateway.engine().calendar().seen_by(None).len(), 1);

    for _ in 0..5 {
        gateway.advance(HOUR * 12).await;
    }

    assert_eq!(gateway.engine().calendar().seen_by(None), []);
    gateway.at_rest().await;
}

/// The ladder speaks the language of its reader.
#[tokio::test]
async fn an_agent_that_is_silent_is_told_of_in_their_language() {
    let mut setup = setup(Access::open());
    setup.agents.clear();
    let gateway = setup.agent("main", |_| Script::is_silent("nothing is new")).start().await;
    comes_in(&gateway, says(&chat("ada"), "/language de")).await;
    adds(&gateway, prompts(&ada(), false)).await;

    gateway.advance(HOUR).await;

    assert_eq!(last(&gateway, &chat("ada")), "Nichts.");
    gateway.at_rest().await;
}

/// Nobody is there yet, which costs nobody else anything.
#[tokio::test]
async fn a_schedule_for_somebody_who_cannot_be_reached_says_so() {
    let gateway = guarded().await;
    adds(&gateway, says_hello("Ada", When::Every(HOUR))).await;
    adds(
        &gateway,
        NewSchedule { name: "other".to_owned(), ..says_hello(&chat("grace").to_string(), When::Every(HOUR)) },
    )
    .await;

    gateway.advance(HOUR).await;
    let (_, runs) = schedule(&gateway).await;
    assert!(runs[0].as_ref().is_some_and(|why| why.contains("has written")), "{runs:?}");
    assert_eq!(last(&gateway, &chat("grace")), "Good morning.");
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    gateway.advance(HOUR).await;
    assert_eq!(greetings(&gateway), 1);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_schedule_is_paused_run_and_removed() {
    let gateway = guarded().await;
    let by = operator("a test");
    adds(&gateway, says_hello(&ada(), When::Every(HOUR))).await;
    let again = gateway.engine().schedules().add(says_hello(&ada(), When::Every(HOUR)), &by).await;
    assert!(matches!(&again, Err(OperationError::Unfit(why)) if why.contains("there is a schedule")), "{again:?}");

    gateway.engine().calendar().pause("hello", true, &by).await.expect("it is paused");
    gateway.advance(HOUR * 2).await;
    assert_eq!(greetings(&gateway), 0);
    for _ in 0..2 {
        let begun = gateway.engine().schedules().run_now("hello", "key", &by).await.expect("it is run");
        gateway.settle().await;
        assert_eq!(gateway.status(begun.begun[0].turn).await, TurnStatus::Answered);
    }
    assert_eq!(greetings(&gateway), 1, "the second request is the first one");
    gateway.engine().calendar().pause("hello", false, &by).await.expect("it is resumed");
    gateway.advance(HOUR).await;
    assert_eq!(greetings(&gateway), 2, "those that passed meanwhile are not made up for");

    gateway.engine().calendar().remove("hello", &by).await.expect("it is removed");
    gateway.advance(HOUR * 2).await;
    assert_eq!(greetings(&gateway), 2);
    let gone = gateway.engine().calendar().with_runs("hello", &by).await;
    assert!(matches!(gone, Err(OperationError::Unknown(_))), "{gone:?}");
    gateway.at_rest().await;
}

/// What is changed in the configuration changes at the next start; the rest keeps its times.
#[tokio::test]
async fn the_configuration_makes_schedules() {
    let mut setup = setup(Access::default());
    let other = NewSchedule { name: "other".to_owned(), ..says_hello(&chat("grace").to_string(), When::Every(HOUR)) };
    setup.schedules = vec![says_hello(&ada(), When::Every(HOUR)), other.clone()];
    let mut gateway = setup.start().await;
    gateway.advance(secs(3540)).await;

    gateway.change_schedules(vec![other]);
    gateway.restart().await;
    gateway.advance(secs(60)).await;

    assert_eq!(greetings(&gateway), 0);
    assert_eq!(last(&gateway, &chat("grace")), "Good morning.");
    let refused = gateway.engine().calendar().remove("other", &operator("a test")).await;
    assert!(matches!(&refused, Err(OperationError::Unfit(why)) if why.contains("configuration")), "{refused:?}");
    gateway.at_rest().await;
}

/// G2. A person's message waits for it like for any other turn, and is answered.
#[tokio::test]
async fn a_prompt_and_a_message_are_answered_one_after_the_other() {
    let slow = |turn: &rejoinder_core::AgentTurn| Script::replies(&turn.message.text).taking(secs(5));
    let gateway = GatewaySetup::new().agent("main", slow).start().await;
    adds(&gateway, prompts(&ada(), false)).await;
    gateway.advance(HOUR).await;
    gateway.accepts(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Say what is new.", "hello"]);
    gateway.at_rest().await;
}

/// What an agent may schedule in these tests.
const LIMITS: ScheduleLimits = ScheduleLimits { most: 2, shortest: HOUR };

fn reminder(name: &str, when: When) -> ScheduleCall {
    let action = ScheduledAction::Message("Tea!".to_owned());
    ScheduleCall::Add { name: name.to_owned(), when, time_zone: "UTC".into(), action }
}

/// A platform that shows nothing twice, without an agent yet.
fn idempotent() -> GatewaySetup {
    let mut setup = setup(Access::open());
    setup.access.clear();
    setup.agents.clear();
    setup
}

/// A gateway whose agent schedules what `call` makes of what it is told, and says what came of it.
async fn scheduling(call: impl Fn(&AgentTurn) -> ScheduleCall + Clone + Send + Sync + 'static) -> TestGateway {
    let schedules = move |turn: &AgentTurn| Script::schedules(call(turn));
    let mut setup = idempotent().agent("main", schedules);
    setup.agent_schedules = [("main".into(), LIMITS)].into();
    setup.start().await
}

/// It is for the conversation in which the agent was asked. A run that is repeated makes it once.
#[tokio::test]
async fn an_agent_schedules_something_where_it_is_asked() {
    let mut gateway = scheduling(|turn| reminder("tea", When::At(turn.now + HOUR))).await;
    comes_in(&gateway, says(&chat("ada"), "remind me")).await;
    assert_eq!(last(&gateway, &chat("ada")), "tea");
    let (schedule, _) = gateway.engine().calendar().with_runs("tea", &operator("a test")).await.expect("there is one");
    assert_eq!(
        (schedule.origin, &*schedule.by, schedule.new.to.to_string()),
        (ScheduleOrigin::Agent, "agent main", ada())
    );

    gateway.restart().await;
    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["tea", "Tea!"]);
    gateway.at_rest().await;
}

/// The operator's limits hold, and names are told apart.
#[tokio::test]
async fn an_agent_schedules_no_more_than_it_may() {
    let gateway = scheduling(|turn| match turn.message.text.split_once(' ') {
        Some(("remove", name)) => ScheduleCall::Remove { name: name.to_owned() },
        Some(("every", minutes)) => reminder("tea", When::Every(secs(60 * minutes.parse::<u64>().expect("a number")))),
        Some(("cron", pattern)) => reminder("tea", When::Cron(pattern.to_owned())),
        _ => ScheduleCall::List,
    })
    .await;
    let asks = async |address: &str, text: &str| {
        comes_in(&gateway, says(&chat(address), text)).await;
        last(&gateway, &chat(address))
    };

    assert_eq!(asks("ada", "every 59").await, "too often: not more than once in 60 minutes");
    assert_eq!(asks("ada", "cron 0,30 8 * * *").await, "too often: not more than once in 60 minutes");
    assert_eq!(asks("ada", "every 60").await, "tea");
    assert_eq!(asks("ada", "cron 0 8 * * *").await, "tea 2");
    assert_eq!(asks("ada", "every 120").await, "there are 2 already: remove one first");
    assert_eq!(asks("grace", "list").await, "none");
    assert_eq!(asks("grace", "remove tea").await, "there is no schedule `tea` here");
    assert_eq!(asks("ada", "list").await, "tea, tea 2");
    assert_eq!(asks("ada", "remove tea").await, "tea");
    assert_eq!(asks("ada", "list").await, "tea 2");
    gateway.at_rest().await;
}

/// O4. What nobody wrote makes no schedules, and an agent without a limit has none.
#[rstest::rstest]
#[case::nobody_wrote_it(true)]
#[case::it_may_not(false)]
#[tokio::test]
async fn an_agent_schedules_nothing_unless_a_person_asks(#[case] may: bool) {
    let schedules = |turn: &AgentTurn| Script::schedules(reminder("tea", When::At(turn.now + HOUR)));
    let mut setup = idempotent().agent("main", schedules);
    setup.agent_schedules = [("main".into(), LIMITS)].into_iter().filter(|_| may).collect();
    let gateway = setup.start().await;

    if may {
        adds(&gateway, prompts(&ada(), false)).await;
        gateway.advance(HOUR).await;
    } else {
        comes_in(&gateway, says(&chat("ada"), "remind me")).await;
    }

    assert_eq!(last(&gateway, &chat("ada")), "nothing can be scheduled here");
    assert!(!gateway.agent("main").runs()[0].turn.rights.may_schedule);
    gateway.at_rest().await;
}

/// Two calls of one run, with the same words for different times, are two reminders.
#[tokio::test]
async fn an_agent_reminds_twice_of_the_same() {
    let twice = |turn: &AgentTurn| {
        let at = |hours| reminder("tea", When::At(turn.now + HOUR * hours));
        Script::schedules(at(2)).scheduling(at(1))
    };
    let mut setup = idempotent().agent("main", twice);
    setup.agent_schedules = [("main".into(), LIMITS)].into();
    let gateway = setup.start().await;
    comes_in(&gateway, says(&chat("ada"), "remind me twice")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["tea 2"]);
    gateway.advance(HOUR * 2).await;
    assert_eq!(gateway.visible(&chat("ada")), ["tea 2", "Tea!", "Tea!"]);
    gateway.at_rest().await;
}

/// D1. The run is repeated, and the schedule is there once.
#[tokio::test]
async fn an_agent_schedules_once_whatever_write_the_gateway_dies_at() {
    at_every_write(3, async |crash, write| {
        let mut gateway = scheduling(|turn| reminder("tea", When::At(turn.now + HOUR))).await;
        let event = says(&chat("ada"), "remind me");
        let has_crashed = comes_in_dying(&mut gateway, (crash, write), event).await;
        gateway.advance(HOUR * 2).await;

        let reminders = gateway.visible(&chat("ada")).iter().filter(|text| *text == "Tea!").count();
        assert_eq!(reminders, 1, "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

/// A task for the agent every hour, which somebody asked for.
fn hourly_task(turn: &AgentTurn) -> Script {
    if turn.message.text != "every hour" {
        return Script::replies(&turn.message.text);
    }
    let action =
        ScheduledAction::Prompt { text: "Look again.".to_owned(), agent: None, quiet: false, words: Words::default() };
    let (name, time_zone) = ("look".to_owned(), "UTC".into());
    Script::schedules(ScheduleCall::Add { name, when: When::Every(HOUR), time_zone, action })
}

/// L2. What somebody had an agent schedule counts as theirs, and nobody is told of a limit in its place.
#[tokio::test]
async fn what_somebody_had_scheduled_counts_towards_their_limits() {
    let mut setup = idempotent().agent("main", hourly_task);
    setup.agent_schedules = [("main".into(), LIMITS)].into();
    setup.limits = PersonLimits { turns_per_day: Some(3), ..PersonLimits::default() };
    let mut gateway = setup.start().await;
    comes_in(&gateway, says(&chat("ada"), "every hour")).await;

    gateway.advance(HOUR).await;
    gateway.restart().await;
    gateway.advance(HOUR * 3).await;

    assert_eq!(gateway.visible(&chat("ada")), ["look", "Look again.", "Look again."]);
    let (_, runs) = gateway.engine().calendar().with_runs("look", &operator("a test")).await.expect("there is one");
    let problems: Vec<_> = runs.into_iter().filter_map(|run| run.problem).collect();
    assert_eq!(problems, ["a limit holds for it: try again later", "a limit holds for it: try again later"]);
    gateway.engine().calendar().remove("look", &operator("enough")).await.expect("it is removed");
    gateway.at_rest().await;
}

/// I2. It ends with the access of the person who asked for it.
#[tokio::test]
async fn what_somebody_had_scheduled_ends_with_their_access() {
    let mut setup = setup(Access::open());
    setup.agents.clear();
    let mut setup = setup.agent("main", hourly_task);
    setup.agent_schedules = [("main".into(), LIMITS)].into();
    let gateway = setup.start().await;
    comes_in(&gateway, says(&chat("ada"), "every hour")).await;
    gateway.advance(HOUR).await;
    assert_eq!(last(&gateway, &chat("ada")), "Look again.");

    gateway
        .engine()
        .operations()
        .revoke(&says(&chat("ada"), "").identity(), operator("she left"))
        .await
        .expect("she is revoked");
    gateway.advance(HOUR).await;

    let looks = gateway.visible(&chat("ada")).iter().filter(|text| *text == "Look again.").count();
    assert_eq!(looks, 1);
    let (_, runs) = gateway.engine().calendar().with_runs("look", &operator("a test")).await.expect("there is one");
    let problem = runs[0].problem.as_deref();
    assert_eq!(problem, Some("the person who asked for it may not talk to the agent any more"));
    let ada = says(&chat("ada"), "").identity();
    gateway.engine().erasure().forget(&ada, secs(60), operator("her wish")).await.expect("it is done");
    assert!(gateway.engine().calendar().seen_by(None).is_empty());
    gateway.at_rest().await;
}
