//! Where the words of prompts go: a place for words, another conversation, or the chat without its session.

use std::time::Duration;

use rejoinder_core::{
    Access, AgentTurn, ChannelId, ChatKind, ConversationRef, ConversationTrigger, Expectation, Missed, NewSchedule,
    News, Policy, PromptSession, ScheduledAction, SenderKind, SessionReset, SessionSettings, Task, TurnStatus, When,
    Words,
    conformance::scripted::{Fault, Script},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, operator, policy, secs},
    life::{at_every_write, passes_dying},
    linking::{last, other_channel, says, setup, there},
};

const PROMPT: &str = "Reflect.";
const REFLECTION: &str = "A private reflection.";
const HOUR: Duration = Duration::from_hours(1);

fn journal() -> ChannelId {
    ChannelId::new("words", "journal")
}

/// What is written about a conversation.
fn written(gateway: &TestGateway, about: &ConversationRef) -> Vec<String> {
    gateway.visible(&ConversationRef::new(journal(), about.channel.as_str()).in_thread(&about.chat))
}

fn to(address: &str) -> Words {
    Words { to: address.parse().expect("a place"), session: PromptSession::Current }
}

fn on_copy() -> Words {
    Words { session: PromptSession::Copy, ..Words::default() }
}

/// After two messages.
fn trigger(words: Words) -> ConversationTrigger {
    ConversationTrigger {
        name: "reflection".into(),
        conditions: Vec::new(),
        after_messages: Some(2),
        idle: None,
        cooldown: secs(60),
        prompt: PROMPT.into(),
        agent: None,
        quiet: false,
        words,
    }
}

/// Every hour.
fn schedule(to: &str, words: Words) -> NewSchedule {
    NewSchedule {
        name: "reflection".to_owned(),
        when: When::Every(HOUR),
        time_zone: "UTC".into(),
        to: to.parse().expect("a target"),
        action: ScheduledAction::Prompt { text: PROMPT.to_owned(), agent: None, quiet: false, words },
        missed: Missed::Once,
    }
}

fn reflects(turn: &AgentTurn) -> Script {
    if &*turn.message.text == PROMPT { Script::replies(REFLECTION) } else { Script::replies("hello").taking(secs(10)) }
}

/// A gateway with a place for words beside its two channels.
fn with_journal(script: impl Fn(&AgentTurn) -> Script + Clone + Send + Sync + 'static) -> GatewaySetup {
    let mut setup = setup(Access::open());
    setup.agents.clear();
    let mut setup = setup.agent("main", script);
    let for_words = Policy { only_agents_words: true, ..policy() };
    for kind in [ChatKind::Direct, ChatKind::Group] {
        setup.policies = setup.policies.with("words", kind, for_words.clone());
    }
    setup.access = [(main_channel(), Access::open()), (other_channel(), Access::open())].into();
    setup.channels.push((journal(), setup.capabilities.clone()));
    setup
}

async fn hears(gateway: &TestGateway, name: &str, messages: usize) {
    for _ in 0..messages {
        comes_in(gateway, says(&chat(name), "hi")).await;
        gateway.advance(secs(10)).await;
    }
}

async fn adds(gateway: &TestGateway, schedule: NewSchedule) {
    gateway.engine().schedules().add(schedule, &operator("a test")).await.expect("it is made");
}

/// What the agent of a person's next message is told was said before.
async fn remembered(gateway: &TestGateway, name: &str) -> Vec<String> {
    hears(gateway, name, 1).await;
    let turn = gateway.agent("main").runs().pop().expect("a run").turn;
    turn.past.history.iter().map(|line| line.text.clone()).collect()
}

/// The agent is that of the conversation, and has its whole history, with the answer to the last message. The chat sees nothing of
/// it, and keeps nothing of it.
#[rstest::rstest]
#[case::a_place_for_words("words.journal")]
#[case::another_conversation("test.other/lovelace")]
#[tokio::test]
async fn words_go_elsewhere_and_the_chat_is_unmoved(#[case] address: &str) {
    let mut setup = with_journal(reflects);
    setup.triggers = vec![trigger(to(address))];
    setup = setup.agent("other", |_| Script::replies("I am another."));
    setup.channel_agents = [(journal(), "other".into()), (other_channel(), "other".into())].into();
    let gateway = setup.start().await;
    let told = || {
        if address.starts_with("words") { written(&gateway, &chat("ada")) } else { gateway.visible(&there("lovelace")) }
    };

    hears(&gateway, "ada", 2).await;
    gateway.advance(secs(10)).await;

    assert_eq!(told(), [REFLECTION]);
    let run = gateway.agent("main").runs().pop().expect("a run").turn;
    let said: Vec<_> = run.past.history.iter().map(|line| line.text.as_str()).collect();
    assert_eq!((run.message.text.as_str(), run.message.sender.kind), (PROMPT, SenderKind::Operator));
    assert_eq!(said, ["hi", "hello", "hi", "hello"]);
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"]);
    comes_in(&gateway, says(&chat("ada"), "/history")).await;
    assert!(!last(&gateway, &chat("ada")).contains(REFLECTION));
    assert_eq!(remembered(&gateway, "ada").await, ["hi", "hello", "hi", "hello"]);
    let explained = gateway.explained(run.turn).await;
    assert!(
        explained.contains("The agent gets the history of test.main/ada, which keeps nothing of it"),
        "{explained}"
    );
    gateway.at_rest().await;
}

/// Grace is known, and has not written yet.
#[tokio::test]
async fn a_trigger_waits_until_its_words_can_be_said() {
    let mut setup = with_journal(reflects);
    setup.triggers = vec![trigger(to("Grace"))];
    let gateway = setup.start().await;
    hears(&gateway, "ada", 2).await;
    gateway.advance(secs(600)).await;

    hears(&gateway, "grace", 1).await;
    gateway.advance(secs(600)).await;

    assert_eq!(gateway.visible(&chat("grace")), ["hello", REFLECTION]);
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"]);
    gateway.at_rest().await;
}

/// What was said before the trigger fired counts once, over a restart as well.
#[tokio::test]
async fn a_trigger_whose_words_go_elsewhere_counts_over_restarts() {
    let mut setup = with_journal(reflects);
    setup.triggers = vec![trigger(to("words.journal"))];
    let mut gateway = setup.start().await;
    hears(&gateway, "ada", 2).await;
    gateway.advance(secs(10)).await;
    gateway.restart().await;
    hears(&gateway, "ada", 1).await;
    gateway.advance(secs(600)).await;
    assert_eq!(written(&gateway, &chat("ada")).len(), 1, "one message is not two");

    gateway.restart().await;
    hears(&gateway, "ada", 1).await;
    gateway.advance(secs(600)).await;

    assert_eq!(written(&gateway, &chat("ada")).len(), 2);
    gateway.at_rest().await;
}

/// D1. Whatever write the gateway dies at.
#[tokio::test]
async fn words_are_written_once_whatever_write_the_gateway_dies_at() {
    at_every_write(3, async |crash, write| {
        let mut setup = with_journal(reflects);
        let idle = ConversationTrigger { after_messages: None, idle: Some(secs(60)), ..trigger(to("words.journal")) };
        setup.triggers = vec![ConversationTrigger { cooldown: HOUR, ..idle }];
        let mut gateway = setup.start().await;
        hears(&gateway, "ada", 1).await;
        let has_crashed = passes_dying(&mut gateway, (crash, write), secs(60)).await;
        gateway.advance(secs(7200)).await;

        assert_eq!(written(&gateway, &chat("ada")), [REFLECTION], "{crash:?} write {write}");
        assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

/// What is said on a copy is said in the chat, and the session stays as it is: also when it was last used.
#[tokio::test]
async fn a_run_on_a_copy_leaves_the_session_alone() {
    let mut setup = with_journal(reflects);
    setup.sessions = SessionSettings { reset: SessionReset::Idle(HOUR * 2), ..SessionSettings::default() };
    let gateway = setup.start().await;
    hears(&gateway, "ada", 1).await;
    adds(&gateway, schedule(&chat("ada").to_string(), on_copy())).await;

    gateway.advance(HOUR).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello", REFLECTION]);
    let runs = gateway.agent("main").runs();
    assert_eq!(runs[1].turn.past.history.len(), 2);
    assert_ne!(runs[1].turn.place.session, runs[0].turn.place.session);
    assert_eq!(remembered(&gateway, "ada").await, ["hi", "hello"]);
    gateway.advance(HOUR * 3).await;
    assert_eq!(remembered(&gateway, "ada").await, [""; 0], "nobody used it for two hours");
    gateway.at_rest().await;
}

/// Nobody is told: the operator sees it.
#[rstest::rstest]
#[case::it_fails(Script::fails("out of order"))]
#[case::it_says_nothing(Script::is_silent("nothing"))]
#[tokio::test]
async fn an_agent_without_words_is_the_operators_trouble(#[case] script: Script) {
    let says_nothing =
        move |turn: &AgentTurn| if &*turn.message.text == PROMPT { script.clone() } else { reflects(turn) };
    let mut setup = with_journal(says_nothing);
    setup.triggers = vec![trigger(to("words.journal"))];
    let gateway = setup.start().await;

    hears(&gateway, "ada", 2).await;
    gateway.advance(secs(60)).await;

    let turn = gateway.turns().await.remove(0);
    assert_eq!((turn.status, gateway.dead_letters().await.len()), (TurnStatus::Undeliverable, 1));
    assert_eq!(written(&gateway, &chat("ada")), [""; 0]);
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"]);
    gateway.at_rest().await;
}

/// An agent that owes nothing may say nothing.
#[tokio::test]
async fn a_quiet_trigger_may_say_nothing() {
    let says_nothing =
        |turn: &AgentTurn| if &*turn.message.text == PROMPT { Script::is_silent("nothing") } else { reflects(turn) };
    let mut setup = with_journal(says_nothing);
    setup.triggers = vec![ConversationTrigger { quiet: true, ..trigger(to("words.journal")) }];
    let gateway = setup.start().await;

    hears(&gateway, "ada", 2).await;
    gateway.advance(secs(60)).await;

    let dossier = gateway.dossier(gateway.turns().await.remove(0).turn_id).await;
    assert_eq!(dossier.turn.obligation.expectation(), Expectation::Nothing);
    assert!(gateway.dead_letters().await.is_empty());
    gateway.at_rest().await;
}

/// A place that is out of order is tried again, and the chat hears nothing of that either.
#[tokio::test]
async fn words_that_cannot_be_written_are_tried_again() {
    let gateway = with_journal(reflects).start().await;
    hears(&gateway, "ada", 1).await;
    adds(&gateway, schedule(&chat("ada").to_string(), to("words.journal"))).await;
    gateway.platform.choose_faults(|delivery| (delivery.channel() == &journal()).then_some(Fault::NotSent));
    gateway.advance(HOUR).await;
    assert_eq!(written(&gateway, &chat("ada")), [""; 0]);
    gateway.platform.clear_faults();

    gateway.advance(HOUR / 2).await;

    assert_eq!(written(&gateway, &chat("ada")), [REFLECTION]);
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// One run for each of them, with their own history; the same time begins it once.
#[tokio::test]
async fn what_is_for_several_people_is_written_for_each() {
    let mut gateway = with_journal(reflects).start().await;
    for name in ["ada", "grace"] {
        hears(&gateway, name, 1).await;
    }
    for (name, who) in [("one", "Ada"), ("two", "role:owner")] {
        let new = NewSchedule { name: name.to_owned(), ..schedule(who, to("words.journal")) };
        adds(&gateway, new).await;
    }

    gateway.advance(HOUR).await;
    gateway.restart().await;

    for name in ["ada", "grace"] {
        assert_eq!(written(&gateway, &chat(name)), [REFLECTION], "{name}");
        assert_eq!(gateway.visible(&chat(name)), ["hello"], "{name}");
    }
    gateway.at_rest().await;
}

/// An event is given to the agent with the recipient's history.
#[tokio::test]
async fn the_words_about_an_event_go_elsewhere() {
    let gateway = with_journal(|turn| Script::replies(&turn.message.text)).start().await;
    comes_in(&gateway, says(&chat("ada"), "hi")).await;
    let task = Task { text: PROMPT.to_owned(), agent: None, quiet: false, words: to("words.journal") };
    let news = News {
        to: "Ada".parse().expect("a target"),
        text: "It burns.".to_owned(),
        task: Some(task),
        key: "one".to_owned(),
        raw: "{}".to_owned(),
    };
    for _ in 0..2 {
        gateway.engine().intake(&other_channel()).report(news.clone()).await.expect("it is taken");
        gateway.settle().await;
    }

    assert_eq!(written(&gateway, &chat("ada")), [PROMPT]);
    assert_eq!(gateway.visible(&chat("ada")), ["hi"]);
    assert_eq!(gateway.agent("main").runs()[1].turn.past.history.len(), 2);
    gateway.at_rest().await;
}

/// A place that is not configured is named when the schedule is made.
#[tokio::test]
async fn words_go_only_where_something_is() {
    let gateway = with_journal(reflects).start().await;
    hears(&gateway, "ada", 1).await;
    for (address, told) in [("nowhere", "words.nowhere is not configured"), ("Hopper", "nobody who is known is Hopper")]
    {
        let new = schedule(&chat("ada").to_string(), to(address));
        let refused = gateway.engine().schedules().add(new, &operator("a test")).await;
        let refused = refused.expect_err("there is no such place").to_string();
        assert!(refused.contains(told), "{refused}");
    }
    gateway.at_rest().await;
}

/// What was written about somebody goes with them.
#[tokio::test]
async fn what_was_written_about_a_person_is_forgotten_with_them() {
    let gateway = with_journal(reflects).start().await;
    hears(&gateway, "ada", 1).await;
    adds(&gateway, schedule(&chat("ada").to_string(), to("words.journal"))).await;
    gateway.advance(HOUR).await;
    gateway.engine().calendar().remove("reflection", &operator("a test")).await.expect("it is removed");
    let ada = crate::linking::identity(main_channel(), "ada");
    let engine = gateway.engine().clone();
    let forgetting = tokio::spawn(async move { engine.erasure().forget(&ada, secs(60), operator("her wish")).await });
    gateway.advance(secs(1)).await;

    assert!(forgetting.await.expect("it ends").expect("it is done").is_done);
    assert!(gateway.turns().await.is_empty());
    assert_eq!(gateway.database.places_with(REFLECTION).await, [""; 0]);
    gateway.at_rest().await;
}
