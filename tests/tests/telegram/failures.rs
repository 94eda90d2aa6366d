//! Calls that Telegram rejects, and calls whose result is unknown.

use rejoinder_telegram_double::{Fault, TelegramDouble};
use rejoinder_tests::{Collector, Gate, Gateway, ScriptedAgent, eventually};
use rstest::rstest;

use crate::{between, only_turn, telegram};

/// A bot whose first message is the answer, and no draft.
async fn without_drafts(double: &TelegramDouble, agent: &ScriptedAgent) -> Gateway {
    Gateway::builder().config(&telegram(double, "streaming = \"off\"")).config(&agent.section()).start().await
}

/// D7, I5: a message whose response was lost is sent again with a label, and counted in the metrics.
#[rstest]
#[case::the_answer_was_lost(Fault::lost_answer())]
#[case::an_error_after_it_was_done(Fault::error_after(502))]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unknown_message_is_sent_again_with_a_label(#[case] fault: Fault) {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = without_drafts(&double, &agent).await;
    let ada = double.person("Ada");

    double.fault(fault.on("sendMessage"));
    ada.says("hello");
    ada.finds("the copy", |message| message.ours && message.text.contains("Sent again")).await;

    let said = double.bot_texts(ada.chat());
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(said[0], "Hello.");
    assert!(said[1].ends_with("Hello."), "{said:?}");
    let turn = only_turn(&gateway);
    eventually("the explanation", async || gateway.explain(&turn).contains("unknown").then_some(())).await;
    let metrics = gateway.http().get(format!("{}/metrics", gateway.url())).send().await.unwrap().text().await.unwrap();
    assert!(
        metrics.lines().any(|line| line.contains("unknown") && line.contains("telegram.test") && !line.ends_with(" 0")),
        "{metrics}"
    );
    let labelled = "rejoinder_labelled_deliveries_total{channel=\"telegram.test\"} 1\n";
    eventually("the label is counted", async || gateway.metrics().await.contains(labelled).then_some(())).await;
}

/// An attempt that failed and the one that arrived are in the turn's trace, and nothing that anybody wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_attempt_is_in_the_trace() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let collector = Collector::start().await;
    let channel = telegram(&double, "streaming = \"off\"");
    let gateway =
        Gateway::builder().config(&channel).config(&agent.section()).config(&collector.section()).start().await;
    let ada = double.person("Ada");

    double.fault(Fault::too_many(1).on("sendMessage"));
    ada.says("a secret question");
    ada.hears("Hello.").await;
    eventually("the trace", async || (collector.named("send telegram.test").len() == 2).then_some(())).await;
    eventually("its end", async || (!collector.named("turn").is_empty()).then_some(())).await;

    let (turn, sent) = (&collector.named("turn")[0], collector.named("send telegram.test"));
    assert!(sent.iter().all(|span| span.trace == turn.trace && span.parent == turn.id), "{sent:?}");
    let results: Vec<_> = sent.iter().map(|span| span.attribute("rejoinder.attempt.result")).collect();
    assert_eq!(results, [Some("limited"), Some("delivered")]);
    assert!(turn.took >= 1_000_000_000, "the limit lasted for a second: {turn:?}");
    let all = format!("{:?}", collector.spans());
    assert!(!all.contains("secret") && !all.contains("Hello"), "{all}");
    assert_eq!(gateway.turns("settled").len(), 1);
}

/// B10, D6: a rejected message is sent again unchanged; one that may have arrived is sent again with a label.
#[rstest]
#[case::refused_for_now(Fault::too_many(1), "Hello.")]
#[case::the_connection_was_reset(Fault::reset(), "(Sent again, because it may not have arrived.)\n\nHello.")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_did_not_arrive_is_sent_again(#[case] fault: Fault, #[case] words: &str) {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = without_drafts(&double, &agent).await;
    let ada = double.person("Ada");

    double.fault(fault.on("sendMessage"));
    ada.says("hello");
    ada.hears(words).await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;

    assert_eq!(double.bot_texts(ada.chat()), [words]);
}

/// The operator cannot give it up as if the person could be told, and has the answer sent again: the person sees it once, and not the fallback.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dead_letter_is_sent_again_when_the_person_can_be_reached() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = without_drafts(&double, &agent).await;
    let ada = double.person("Ada");
    ada.says("hello");
    ada.hears("Hello.").await;
    ada.says("are you there?");
    ada.blocks();
    let dead = async || gateway.admin("dead-letters").await["items"].as_array().expect("a list").clone();
    let letter = eventually("it is a dead letter", async || dead().await.pop()).await;
    assert_eq!((letter["kind"].as_str(), letter["text"].as_str()), (Some("answer"), Some("Hello.")));
    assert!(letter["error"].as_str().is_some_and(|error| error.contains("blocked")), "{letter}");
    let list = gateway.output_of(&["dead-letters", "list"]);
    assert!(list.contains("Ada") && list.contains("Hello."), "{list}");
    let turn = letter["turn_id"].as_str().expect("an id");
    let given_up = gateway.run(&["turns", "cancel", turn]);
    let why = String::from_utf8_lossy(&given_up.stderr).into_owned();
    assert!(!given_up.status.success() && why.contains("dead letter") && why.contains("discard"), "{given_up:?}");
    let path = format!("turns/{turn}/cancel");
    let refused = gateway.admin_request(reqwest::Method::POST, &path, None).send().await.expect("it answers");
    assert_eq!(refused.status(), reqwest::StatusCode::CONFLICT);
    ada.unblocks();

    let id = letter["id"].as_str().expect("an id");
    let path = format!("dead-letters/{id}/retry");
    let accepted = gateway.admin_request(reqwest::Method::POST, &path, None).send().await.expect("it answers");
    assert_eq!(accepted.status(), reqwest::StatusCode::ACCEPTED);
    eventually("it is said", async || (double.bot_texts(ada.chat()).len() == 2).then_some(())).await;
    eventually("nothing is dead", async || dead().await.is_empty().then_some(())).await;

    assert_eq!(double.bot_texts(ada.chat()), ["Hello.", "Hello."]);
}

/// An edit is idempotent, so it is retried without a label.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_edit_that_was_lost_is_done_again() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| rejoinder_tests::Script::replies("At last.").waiting(&release)).await
    };
    let _gateway = between(&double, &agent).config("[guard]\nsoft_deadline = \"1s\"\n").start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    ada.hears("Still working on this.").await;
    double.fault(Fault::lost_answer().on("editMessageText"));
    release.release_one();
    ada.hears("At last.").await;
    double.until_called("editMessageText", 2).await;

    assert_eq!(double.bot_texts(ada.chat()), ["At last."]);
}

/// A18, D6, I2: nothing is retried for a person who blocked the bot, and the turn's record says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_refusal_for_good_is_not_tried_again() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    // The answer and the ladder's template are one attempt each; a draft would be another message.
    let quiet = crate::telegram(&double, "streaming = \"off\"");
    let gateway = rejoinder_tests::Gateway::builder().config(&quiet).config(&agent.section()).start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    ada.blocks();
    let explained = eventually("the turn is undeliverable", async || {
        let list = gateway.output_of(&["turns", "list", "--state", "undeliverable"]);
        list.contains("telegram").then(|| gateway.explain(&only_turn(&gateway)))
    })
    .await;

    assert!(explained.contains("blocked"), "{explained}");
    let sends = double.calls("sendMessage").len();
    assert!(sends <= 2, "a permanent error was tried {sends} times");
    assert!(double.bot_texts(ada.chat()).is_empty());
}

/// After a 401 the channel pauses and readiness reports it; with a valid token it continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_that_is_refused_is_named() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");
    let ready = async || gateway.http().get(format!("{}/readyz", gateway.url())).send().await.unwrap();

    double
        .fault(Fault::refuse(rejoinder_telegram_double::ApiError::new(401, "Unauthorized")).on("getUpdates").forever());
    double.disconnect();
    let said = eventually("the gateway is not ready", async || {
        let response = ready().await;
        if response.status().is_success() { None } else { Some(response.text().await.unwrap()) }
    })
    .await;
    double.clear_faults();
    ada.says("hello");
    ada.hears("Hello.").await;

    assert!(said.contains("telegram.test"), "{said}");
    assert!(!gateway.log().contains(double.token().split_once(':').unwrap().1), "the token is in the log");
    eventually("the gateway is ready again", async || ready().await.status().is_success().then_some(())).await;
}

/// E4: malformed updates and updates of an unknown kind block nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_poisonous_update_blocks_nobody() {
    let (double, agent) = (TelegramDouble::start().await, ScriptedAgent::replying("Hello.").await);
    let gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    double.update("message", &serde_json::json!({ "message_id": "not a number", "chat": [] }));
    double.update("a_kind_from_the_future", &serde_json::json!({ "anything": true }));
    ada.says("hello");
    ada.hears("Hello.").await;
    double.all_confirmed().await;

    assert_eq!(agent.calls().len(), 1);
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
}
