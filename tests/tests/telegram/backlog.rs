//! Messages that were sent while the gateway was down.

use std::time::Duration;

use rejoinder_telegram_double::{Fault, TelegramDouble};
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

    let _gateway = between(&double, &agent).start().await;
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
