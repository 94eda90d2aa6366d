//! Answers that take long.

use rejoinder_telegram_double::{Fault, TelegramDouble};
use rejoinder_tests::{Gate, Gateway, Script, ScriptedAgent, eventually};

use crate::{between, telegram};

const SOON: &str = "[guard]\nsoft_deadline = \"1s\"\nhard_deadline = \"4s\"\n";
const DEFERRAL: &str = "Still working on this.";

/// A10, B10: the deferral is edited into the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deferral_becomes_the_answer() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("At last.").waiting(&release)).await
    };
    let _gateway = between(&double, &agent).config("[guard]\nsoft_deadline = \"1s\"\n").start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    let deferral = ada.hears(DEFERRAL).await;
    release.release_one();
    let answer = ada.hears("At last.").await;

    assert_eq!(answer.id, deferral.id);
    assert_eq!(double.bot_texts(ada.chat()), ["At last."]);
}

/// A9, A10, G2: after both deadlines the deferral becomes the fallback, and the next message is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stall_becomes_the_fallback() {
    let double = TelegramDouble::start().await;
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::hangs().streaming("I am"),
        _ => Script::replies("The next one."),
    })
    .await;
    let _gateway = between(&double, &agent).config(SOON).start().await;
    let ada = double.person("Ada");

    ada.says("hello");
    ada.hears("Sorry, that took too long. Please try again.").await;
    ada.says("and now?");
    ada.hears("The next one.").await;

    assert_eq!(double.bot_texts(ada.chat()), ["Sorry, that took too long. Please try again.", "The next one."]);
}

/// B1: a turn that waits for another one gets one deferral at most, and then its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn everybody_in_line_is_told_and_answered() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => Script::replies("the first").waiting(&release),
            _ => Script::replies("the second"),
        })
        .await
    };
    let _gateway = between(&double, &agent).config("[guard]\nsoft_deadline = \"1s\"\n").start().await;
    let ada = double.person("Ada");

    ada.says("one");
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    ada.says("two");
    double
        .until("both are deferred", |view| {
            (view.bot_texts(ada.chat()).iter().filter(|text| *text == DEFERRAL).count() == 2).then_some(())
        })
        .await;
    release.release_one();
    ada.hears("the second").await;

    let mut said = double.bot_texts(ada.chat());
    said.sort();
    assert_eq!(said, ["the first", "the second"]);
}

/// An answer that cannot replace its deferral is sent as a new message, and holds up no other answer of the chat.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_cannot_be_edited_in_holds_up_no_other() {
    let release = Gate::default();
    let double = TelegramDouble::start().await;
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => Script::replies("the first").waiting(&release),
            _ => Script::replies("the second"),
        })
        .await
    };
    let gateway = Gateway::builder()
        .config(&telegram(&double, "streaming = \"off\""))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"1s\"\n")
        .start()
        .await;
    let ada = double.person("Ada");

    let question = ada.says("one");
    ada.hears(DEFERRAL).await;
    double.fault(Fault::error_before(500).on("editMessageText").forever());
    release.release_one();
    double.until_called("editMessageText", 3).await;
    ada.says("two");
    let copy = ada.finds("the first answer", |message| message.ours && message.text.ends_with("the first")).await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;
    double.until("the deferral is gone", |view| (view.bot_texts(ada.chat()).len() == 2).then_some(())).await;

    let said = double.bot_texts(ada.chat());
    assert!(said[0].ends_with("the second"), "{said:?}");
    assert!(said[1].contains("Sent again") && said[1].contains("belongs to an earlier message"), "{said:?}");
    assert_eq!(copy.reply_to, Some(question));
}
