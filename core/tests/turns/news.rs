//! A channel reports what happened elsewhere: it is sent as it is, or put before an agent.

use std::sync::Arc;

use rejoinder_core::{
    Access, AgentMessage, AgentTurn, BegunTurn, Intake, News, NewsError, PersonLimits, SenderKind, Task, Words,
    conformance::scripted::Script,
};

use crate::{
    gateway::{TestGateway, chat, comes_in, mention, secs},
    life::at_every_write,
    linking::{guarded, last, other_channel, says, setup},
};

fn news(to: &str, key: &str) -> News {
    News {
        to: to.parse().expect("a target"),
        text: "It *burns*.".to_owned(),
        task: None,
        key: key.to_owned(),
        raw: "{}".to_owned(),
    }
}

/// The same, for an agent.
fn task(to: &str, key: &str, quiet: bool) -> News {
    let task = Task { text: "Tell Ada.".to_owned(), agent: None, quiet, words: Words::default() };
    News { task: Some(task), ..news(to, key) }
}

/// The channel that reports.
fn hook(gateway: &TestGateway) -> Intake {
    gateway.engine().intake(&other_channel())
}

async fn reports(gateway: &TestGateway, news: News) -> Result<Vec<BegunTurn>, NewsError> {
    let taken = hook(gateway).report(news).await;
    gateway.settle().await;
    taken.map(|taken| taken.begun)
}

/// Once for each key, in the recipient's conversation.
#[tokio::test]
async fn what_happened_is_sent_as_it_is() {
    let mut gateway = guarded().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;

    let taken = reports(&gateway, news("Ada", "one")).await.expect("it is taken");
    assert_eq!(last(&gateway, &chat("ada")), "It *burns*.");
    gateway.restart().await;
    assert_eq!(reports(&gateway, news("Ada", "one")).await.expect("it was taken"), taken);

    assert_eq!(gateway.visible(&chat("ada")), ["hello", "It *burns*."]);
    assert_eq!(gateway.agent("main").runs().len(), 1);
    gateway.at_rest().await;
}

/// G3. The agent is told what to do by the gateway, and reads what happened as a stranger's words, also where strangers are not
/// quoted.
#[tokio::test]
async fn an_agent_reads_what_happened_as_a_strangers_words() {
    let quotes_nobody = Access { quote_strangers: false, ..Access::open() };
    let mut settings = setup(Access::open());
    settings.access.insert(chat("ada").channel, quotes_nobody);
    let gateway = settings.start().await;

    reports(&gateway, task(&chat("ada").to_string(), "one", false)).await.expect("it is taken");

    let AgentMessage { text, sender, quoted, .. } = gateway.agent("main").runs().pop().expect("a run").turn.message;
    let quoted = quoted.expect("a quote");
    assert_eq!((&*text, sender.kind), ("Tell Ada.", SenderKind::Operator));
    assert_eq!((&*quoted.text, quoted.author.is_stranger), ("It *burns*.", true));
    assert_eq!(quoted.author.name.as_deref(), Some("test.other"));
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// With `quiet` it speaks only if it has something to say, in a group as well.
#[rstest::rstest]
#[case(true, &["hello"])]
#[case(false, &["hello", crate::texts::SILENT])]
#[tokio::test]
async fn an_agent_may_have_nothing_to_say(#[case] quiet: bool, #[case] shown: &[&str]) {
    let silent = |turn: &AgentTurn| match &*turn.message.text {
        "Tell Ada." => Script::is_silent("it does not matter"),
        text => Script::replies(text),
    };
    let gateway = crate::gateway::GatewaySetup::new().agent("main", silent).start().await;
    gateway.receives(mention(&chat("ada"), "hello")).await;

    reports(&gateway, task(&chat("ada").to_string(), "one", quiet)).await.expect("it is taken");

    assert_eq!(gateway.visible(&chat("ada")), shown);
    gateway.at_rest().await;
}

/// O4. What a hook reports costs no more runs than what a person writes.
#[tokio::test]
async fn there_is_a_limit_for_what_agents_are_asked() {
    let mut settings = setup(Access::open());
    settings.access.insert(chat("ada").channel, Access::open());
    settings.limits = PersonLimits { turns_per_minute: Some(2), ..PersonLimits::default() };
    let gateway = settings.start().await;
    let to = chat("ada").to_string();

    for key in ["one", "two"] {
        reports(&gateway, task(&to, key, false)).await.expect("it is taken");
    }
    let refused = reports(&gateway, task(&to, "three", false)).await;
    assert!(matches!(refused, Err(NewsError::Limited { .. })), "{refused:?}");
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"], "nothing is said about it");
    reports(&gateway, news(&to, "four")).await.expect("no agent is asked");
    gateway.advance(secs(60)).await;
    reports(&gateway, task(&to, "three", false)).await.expect("it is taken");

    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello", "It *burns*.", "hello"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_reaches_nobody_is_refused() {
    let gateway = guarded().await;

    for to in ["Eve", "Ada", "role:guest", "fax.main/42"] {
        let refused = reports(&gateway, news(to, "one")).await;
        assert!(matches!(refused, Err(NewsError::Unreachable(_))), "{refused:?}");
    }
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    reports(&gateway, news("Ada", "one")).await.expect("it is taken when it comes again");
    assert_eq!(last(&gateway, &chat("ada")), "It *burns*.");
    gateway.at_rest().await;
}

/// D1. The reporter repeats what it is not told was taken; it is answered once.
#[tokio::test]
async fn it_is_answered_once_whatever_write_the_gateway_dies_at() {
    at_every_write(3, async |crash, write| {
        let mut gateway = guarded().await;
        comes_in(&gateway, says(&chat("ada"), "hello")).await;
        let life = Arc::clone(&gateway.life);
        life.crash_at(write, crash);
        let intake = hook(&gateway);
        tokio::spawn(async move { intake.report(task("Ada", "one", false)).await });
        gateway.settle().await;
        let has_crashed = life.is_over();
        gateway.restart().await;
        reports(&gateway, task("Ada", "one", false)).await.expect("it is taken");
        gateway.advance(secs(60)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}
