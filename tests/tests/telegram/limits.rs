//! Rate limits of the platform.

use std::time::Duration;

use rejoinder_telegram_double::{Fault, TelegramDouble};
use rejoinder_tests::{ScriptedAgent, eventually};

use crate::{between, telegram};

/// H4: a 429 blocks only its chat.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_limited_chat_holds_up_nobody_else() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let _gateway = between(&double, &agent).start().await;
    let (ada, bob) = (double.person("Ada"), double.person("Bob"));

    double.close_chat(ada.chat(), Duration::from_secs(4));
    ada.says("hello");
    double
        .until("Ada's answer is rate limited", |view| {
            view.calls("sendMessage").iter().any(|call| call.error().is_some()).then_some(())
        })
        .await;
    bob.says("hello");
    let to_bob = bob.hears("Hello.").await;
    let to_ada = ada.hears("Hello.").await;

    assert!(to_bob.at < to_ada.at);
    let refused = double.calls("sendMessage").iter().filter(|call| call.error().is_some()).count();
    assert_eq!(refused, 1, "it was retried before the limit was over");
}

/// H5: the end of a rate limit is stored, and a restarted process does not retry before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_block_survives_a_restart() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    double.close_chat(ada.chat(), Duration::from_secs(6));
    ada.says("hello");
    double
        .until("the answer is rate limited", |view| {
            view.calls("sendMessage").iter().any(|call| call.error().is_some()).then_some(())
        })
        .await;
    eventually("the turn is listed", async || {
        gateway.output_of(&["turns", "list", "--json"]).contains("id").then_some(())
    })
    .await;
    gateway.stop().await;
    gateway.restart().await;
    ada.hears("Hello.").await;

    let refused = double.calls("sendMessage").iter().filter(|call| call.error().is_some()).count();
    assert_eq!((refused, double.bot_texts(ada.chat()).len()), (1, 1));
}

/// The gateway's own pace stays within Telegram's documented limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_documented_pace_is_kept() {
    let double = TelegramDouble::start().await;
    double.limits(rejoinder_telegram_double::Limits::documented());
    let agent = ScriptedAgent::replying("Hello.").await;
    let section = telegram(&double, "streaming = \"off\"").replace("pace = \"server\"\n", "");
    let _gateway = rejoinder_tests::Gateway::builder().config(&section).config(&agent.section()).start().await;
    let ada = double.person("Ada");

    for n in 0..4 {
        ada.says(&format!("hello {n}"));
    }
    double.until("all are answered", |view| (view.bot_texts(ada.chat()).len() == 4).then_some(())).await;
}

/// After "can't parse entities" the message is sent once more as plain text.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_cannot_be_parsed_is_sent_plain() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("**Hello**, Ada.").await);
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    double.fault(
        Fault::refuse(rejoinder_telegram_double::ApiError::bad_request("can't parse entities: no end tag"))
            .on("sendMessage"),
    );
    ada.says("hello");
    let answer = ada.finds("the answer", |message| message.ours).await;

    assert!(answer.text.contains("Hello") && answer.entities.is_empty(), "{answer:#?}");
    assert_eq!(double.bot_texts(ada.chat()).len(), 1);
}
