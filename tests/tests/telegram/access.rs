//! Who may write to the bot.

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gateway, GatewayBuilder, ScriptedAgent, eventually};

use crate::telegram;

fn allowing(double: &TelegramDouble, agent: &ScriptedAgent, keys: &str) -> GatewayBuilder {
    Gateway::builder().config(&telegram(double, keys)).config(&agent.section())
}

/// N1, O2: a stranger gets one notice with the id to add, runs no agent, and is owed nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stranger_is_told_once_and_runs_no_agent() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = allowing(&double, &agent, "dm_policy = \"allowlist\"").start().await;
    let eve = double.stranger("Eve");

    for n in 0..50 {
        eve.says(&format!("let me in {n}"));
    }
    eve.finds("the notice", |message| message.ours && message.text.contains(&eve.id().to_string())).await;
    double.all_confirmed().await;

    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    assert_eq!(double.bot_texts(eve.chat()).len(), 1);
    assert!(agent.calls().is_empty());
}

/// N1: people on the list are admitted, by id or by name; with a list, others get no notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn those_on_the_list_are_let_in() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (ada, bob, eve) = (double.person("Ada"), double.person_called("Bob", "bob_b"), double.person("Eve"));
    let list = format!("dm_policy = \"allowlist\"\nallow_from = [{}, \"@Bob_B\"]", ada.id());
    let _gateway = allowing(&double, &agent, &list).start().await;

    eve.says("hello");
    ada.says("hello");
    bob.says("hello");
    ada.hears("Hello.").await;
    bob.hears("Hello.").await;
    double.all_confirmed().await;

    assert!(double.bot_texts(eve.chat()).is_empty());
    assert_eq!(agent.calls().len(), 2);
}

/// Who is put on the list is let in from the next signal on, and who is taken off is not, without a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_list_is_changed_while_it_runs() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (ada, bob) = (double.person("Ada"), double.person("Bob"));
    let list = format!("dm_policy = \"allowlist\"\nallow_from = [{}]", ada.id());
    let gateway = allowing(&double, &agent, &list).start().await;
    ada.says("hello");
    bob.says("hello");
    ada.hears("Hello.").await;
    double.all_confirmed().await;

    gateway.reconfigure(|text| text.replace(&format!("[{}]", ada.id()), &format!("[{}]", bob.id())));
    gateway.hang_up();
    let log = "the configuration was read again";
    eventually(log, async || gateway.log().contains(log).then_some(())).await;
    ada.says("am I still here?");
    bob.says("and I?");
    bob.hears("Hello.").await;
    double.all_confirmed().await;

    assert_eq!((double.bot_texts(ada.chat()).len(), double.bot_texts(bob.chat()).len()), (1, 1));
}

/// O2: a flood from a stranger does not affect people on the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flood_from_a_stranger_runs_no_agent() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (ada, eve) = (double.person("Ada"), double.stranger("Eve"));
    let list = format!("dm_policy = \"allowlist\"\nallow_from = [{}]", ada.id());
    let _gateway = allowing(&double, &agent, &list).start().await;

    for n in 0..1000 {
        eve.says(&format!("flood {n}"));
    }
    ada.says("hello");
    ada.hears("Hello.").await;
    double.all_confirmed().await;

    assert_eq!(agent.calls().len(), 1);
}

/// A group is admitted as a whole by its id.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_group_on_the_list_is_let_in() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (family, others) = (double.supergroup("Family"), double.supergroup("Others"));
    let list = format!("dm_policy = \"disabled\"\ngroup_allow_from = [{}]", family.id());
    let _gateway = allowing(&double, &agent, &list).start().await;
    let (ada, bot) = (double.person("Ada"), double.bot().username);

    ada.says("hello");
    ada.at(&others).says(&format!("@{bot} hello"));
    ada.at(&family).says(&format!("@{bot} hello"));
    ada.at(&family).hears("Hello.").await;
    double.all_confirmed().await;

    assert_eq!(agent.calls().len(), 1);
    assert!(double.bot_texts(others.id()).is_empty() && double.bot_texts(ada.chat()).is_empty());
}

/// N1, N2, O2.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stranger_is_let_in_with_their_code() {
    const KEYS: &str = "dm_policy = \"pairing\"\nstreaming = \"off\"";
    rejoinder_tests::promise::a_stranger_is_let_in_with_their_code::<crate::promise::Telegram>(KEYS).await;
}

/// A8. Three strangers fill the line: everybody who is concerned is told, and nobody who was invited by name waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn strangers_who_fill_the_line_keep_out_nobody_who_was_invited() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let (grace, ada, other_phone) =
        (double.person("Grace"), double.person("Ada"), double.person("Grace's other phone"));
    let people = format!(
        "[people.Grace]\nidentities = [\"telegram.test/{}\"]\nrole = \"owner\"\n\
        [people.Ada]\nidentities = [\"telegram.test/{}\"]\n",
        grace.id(),
        ada.id()
    );
    let gateway = allowing(&double, &agent, "dm_policy = \"pairing\"").config(&people).start().await;
    grace.says("hello");
    grace.hears("Hello.").await;
    grace.says("/link");
    let told = grace.finds("a code", |message| message.ours && message.text.contains("write /link ")).await.text;
    let code = told.split_once("write /link ").expect("a code").1[..9].to_owned();
    for name in ["Eve", "Mallory", "Trudy"] {
        let stranger = double.person(name);
        stranger.says("let me in");
        stranger.finds("a code", |message| message.ours).await;
    }

    let dan = double.person("Dan");
    dan.says("and me?");
    ada.says("hello");
    other_phone.says(&format!("/link {code}"));

    dan.finds("why he waits", |message| message.ours && message.text.contains("too many others wait")).await;
    grace.finds("that it is full", |message| message.ours && message.text.contains("I turn newcomers away")).await;
    ada.hears("Hello.").await;
    grace.finds("the question", |message| message.ours && message.text.contains("Your code was written there")).await;
    grace.says("Link");
    other_phone.finds("who they are", |message| message.ours && message.text.contains("you are Grace to me")).await;
    other_phone.says("hello");
    other_phone.hears("Hello.").await;
    let problems = gateway.admin("overview").await["problems"].to_string();
    assert!(problems.contains("Newcomers are turned away on telegram.test"), "{problems}");
    let status = gateway.run(&["status"]);
    assert_eq!(status.status.code(), Some(1), "{status:?}");
    assert!(
        String::from_utf8_lossy(&status.stdout).contains("Newcomers are turned away on telegram.test"),
        "{status:?}"
    );
}
