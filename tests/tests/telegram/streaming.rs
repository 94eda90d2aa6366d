//! Streamed answers.

use std::time::{Duration, Instant};

use rejoinder_telegram_double::{Fault, Limits, Rate, TelegramDouble};
use rejoinder_tests::{Gate, Gateway, ModelServer, Script, ScriptedAgent, eventually};
use rstest::rstest;

use crate::{between, telegram};

const STREAMED: &str = "one two three four five six seven eight nine ten";

/// B13: the final text is the whole answer, in one message, whatever was shown before.
#[rstest]
#[case::edits("edit")]
#[case::drafts("draft")]
#[case::off("off")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_streamed_ends_as_the_whole_answer(#[case] streaming: &str) {
    let (double, model) = (TelegramDouble::start().await, ModelServer::start().await);
    let section = telegram(&double, &format!("streaming = \"{streaming}\""));
    let _gateway = Gateway::builder().config(&section).config(&model.section()).start().await;
    let ada = double.person("Ada");

    ada.says("zebra-stream");
    let answer = ada.hears(STREAMED).await;

    assert_eq!(double.bot_texts(ada.chat()), [STREAMED]);
    let drafts = double.inspect(|view| view.past_drafts(ada.chat()).len());
    match streaming {
        "edit" => assert!(!answer.edits.is_empty() && drafts == 0),
        "draft" => assert!(answer.edits.is_empty() && drafts > 0),
        _ => assert!(answer.edits.is_empty() && drafts == 0),
    }
}

/// A4, B8, B13: the draft of a failed answer does not stay beside the fallback.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_of_nothing_is_taken_back() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, _| Script::hangs().streaming("I am")).await;
    let _gateway = Gateway::builder()
        .config(&telegram(&double, "streaming = \"edit\""))
        .config(&agent.section_with("idle_timeout = \"2s\""))
        .start()
        .await;
    let ada = double.person("Ada");

    ada.says("hello");
    ada.hears("I am").await;
    ada.hears("Sorry, I could not finish that. Please try again.").await;

    assert_eq!(double.bot_texts(ada.chat()), ["Sorry, I could not finish that. Please try again."]);
}

/// B13, D1: a draft that a process left behind is edited into the answer of the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_outlives_the_process_and_becomes_the_answer() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::hangs().streaming("I am"),
        _ => Script::replies("All of it."),
    })
    .await;
    let mut gateway =
        Gateway::builder().config(&telegram(&double, "streaming = \"edit\"")).config(&agent.section()).start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    ada.hears("I am").await;
    let notices = double.inspect(|view| view.typing(ada.chat()).len());
    // The draft's receipt is stored only after it was sent; the next typing notice shows that time has passed.
    double.until("another typing notice", |view| (view.typing(ada.chat()).len() > notices).then_some(())).await;
    gateway.kill();
    gateway.restart().await;
    ada.hears("All of it.").await;

    eventually("only the answer is left", async || (double.bot_texts(ada.chat()) == ["All of it."]).then_some(()))
        .await;
}

/// A4: while edits fail the complete answer is still sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_draft_that_cannot_be_edited_costs_nobody_the_answer() {
    let (double, model) = (TelegramDouble::start().await, ModelServer::start().await);
    let _gateway =
        Gateway::builder().config(&telegram(&double, "streaming = \"edit\"")).config(&model.section()).start().await;
    let ada = double.person("Ada");

    double.fault(Fault::error_before(502).on("editMessageText").times(2));
    ada.says("zebra-stream");
    ada.hears(STREAMED).await;

    eventually("only the answer is left", async || (double.bot_texts(ada.chat()) == [STREAMED]).then_some(())).await;
}

/// P3. Within Telegram's limits, short bursts allowed: the first word is seen at once, more of them each second, and no call is refused. The
/// next answer begins to grow as soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_grows_as_fast_as_telegram_allows() {
    let words: Vec<_> = (1..=30).map(|word| format!("{word} ")).collect();
    let whole = words.concat().trim().to_owned();
    let (double, reply) = (TelegramDouble::start().await, whole.clone());
    let rate = |count, seconds| Some(Rate { count, seconds });
    double.limits(Limits { chat: rate(3, 1.0), group: rate(20, 60.0), bot: rate(30, 1.0) });
    let agent = ScriptedAgent::start(move |_, _| {
        let shown = words.iter().take(29);
        shown.fold(Script::replies(&reply), |script, word| script.streaming(word).taking(Duration::from_millis(200)))
    })
    .await;
    let section = telegram(&double, "streaming = \"edit\"").replace("pace = \"server\"\n", "");
    let _gateway = Gateway::builder().config(&section).config(&agent.section()).start().await;
    let ada = double.person("Ada");

    let mut last = 0;
    for question in ["one", "two"] {
        let (asked, before) = (Instant::now(), double.calls("editMessageText").len());
        ada.says(question);
        let first = ada.finds("the first word", |message| message.ours && message.id > last).await;
        let took = first.at - asked;
        assert!(took < Duration::from_millis(700), "the first word of {question} came after {took:?}");
        ada.finds("the answer", |message| message.id == first.id && message.text == whole).await;
        let edits = double.calls("editMessageText").len() - before;
        assert!(edits >= 5, "{edits} edits in six seconds");
        last = first.id;
    }

    let calls = [double.calls("sendMessage"), double.calls("editMessageText")].concat();
    let refused: Vec<_> = calls.iter().filter_map(|call| call.error().filter(|error| error.code == 429)).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

/// A typing notice that hangs delays no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_typing_notice_that_hangs_delays_no_answer() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("Hello.").waiting(&release)).await
    };
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    double.fault(Fault::stall().on("sendChatAction").forever());
    ada.says("hello");
    double.until_called("sendChatAction", 1).await;
    let ready = Instant::now();
    release.release_one();
    ada.hears("Hello.").await;

    assert!(ready.elapsed() < Duration::from_secs(4), "the answer came after {:?}", ready.elapsed());
}
