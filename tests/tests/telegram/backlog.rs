//! Messages that were sent while the gateway was down.

use std::time::Duration;

use rejoinder_telegram_double::{Fault, Person, TelegramDouble, VisibleMessage};
use rejoinder_tests::{Script, ScriptedAgent, eventually};

use crate::{between, last_message};

/// D9, E1, E6: all missed messages are answered once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_said_before_the_start_is_answered_in_order() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("echo {}", last_message(call)))).await;
    let ada = double.person("Ada");
    for n in 0..110 {
        ada.says(&format!("{n}"));
    }

    // On a slow machine the last ones wait for long: what is said meanwhile is edited into their answers.
    let _gateway = between(&double, &agent).config("[guard]\nsoft_deadline = \"off\"\n").start().await;
    ada.hears("echo 109").await;
    double.all_confirmed().await;

    let expected: Vec<_> = (0..110).map(|n| format!("echo {n}")).collect();
    assert_eq!(double.bot_texts(ada.chat()), expected);
}

/// D1, E1, E6: an update that Telegram delivers again, because the process died before it confirmed it, is not answered
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_update_that_comes_again_is_not_answered_again() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");
    // The first call returns at once; the second is open when she writes.
    double.until_called("getUpdates", 2).await;
    double.fault(Fault::late(Duration::from_hours(1)).on("getUpdates").forever());

    ada.says("hello");
    ada.hears("Hello.").await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    gateway.kill();
    assert_eq!(double.inspect(|view| view.pending_updates()), 1, "the update must not be confirmed");
    double.clear_faults();
    gateway.restart().await;
    double.all_confirmed().await;
    ada.says("again");
    double.until("both are answered", |view| (view.bot_texts(ada.chat()).len() >= 2).then_some(())).await;

    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    assert_eq!(double.bot_texts(ada.chat()).len(), 2);
}

/// D4, Q12: with `backlog = "ask"` the chat is asked once about what was said while the gateway was down, also over `kill -9`. A
/// press acts once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_said_long_before_the_start_is_asked_about() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::replying("Hello.").await;
    let (ada, bob) = (double.person("Ada"), double.person("Bob"));
    for person in [&ada, &bob] {
        person.says("hello");
        person.says("are you there?");
    }

    let mut gateway = between(&double, &agent).config("[queue]\nbacklog = \"ask\"\n").own_calendar().prepare();
    gateway.set_calendar_offset(2 * 3600);
    gateway.restart().await;
    let about = |message: &VisibleMessage| message.ours && message.text.starts_with("I was away.");
    let question = ada.finds("the question", about).await;
    let other = bob.finds("the question", about).await;
    gateway.kill();
    gateway.restart().await;
    assert!(agent.calls().is_empty());
    ada.presses(question.id, 0);
    ada.presses(question.id, 0);
    bob.presses(other.id, 1);
    ada.hears("Hello.").await;
    bob.hears("I leave what was written while I was away unanswered.").await;

    gateway.until_settled().await;
    let picked = format!("{}\n\n✓ Answer it", question.text);
    // The kill may have come before the question's receipt was stored: then it was sent again, and says so.
    let told = |person: &Person| {
        let texts = double.bot_texts(person.chat()).into_iter();
        texts.filter(|text| !text.starts_with("(Sent again")).collect::<Vec<_>>()
    };
    assert_eq!(told(&ada), [&*picked, "I am answering it now.", "Hello."]);
    assert_eq!(told(&bob).len(), 2);
    assert_eq!(agent.calls().len(), 1);
}
