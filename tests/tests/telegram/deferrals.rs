//! Answers that take long.

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gate, Script, ScriptedAgent, eventually};

use crate::between;

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
