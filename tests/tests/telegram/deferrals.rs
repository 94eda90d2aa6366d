//! Answers that take long.

use std::time::Duration;

use rejoinder_core::{Clock as _, SystemClock};
use rejoinder_telegram_double::{Fault, TelegramDouble};
use rejoinder_tests::{Gate, Gateway, Script, ScriptedAgent, TURN_STEPS, eventually};

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

/// An agent that defers its answer by two seconds, and then gives it.
async fn promising() -> ScriptedAgent {
    ScriptedAgent::start(|call, _| {
        if call.last_message().contains("reminder") {
            Script::replies("As promised.")
        } else {
            Script::defers(Some("Give me a moment."), Duration::from_secs(2))
        }
    })
    .await
}

/// H3. The agent is asked again with its own note, and the message with the note becomes the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agents_deferral_becomes_its_answer() {
    let (double, agent) = (TelegramDouble::start().await, promising().await);
    let _gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");

    ada.says("When does it rain?");
    let note = ada.hears("Give me a moment.").await;
    let answer = ada.hears("As promised.").await;

    assert_eq!((answer.id, double.bot_texts(ada.chat())), (note.id, vec!["As promised.".to_owned()]));
    let reminded = agent.calls()[1].last_message();
    assert!(reminded.contains("Give me a moment.") && reminded.contains("When does it rain?"), "{reminded}");
}

/// H3. The time comes while the gateway is down.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agents_deferral_is_kept_after_a_time_in_which_the_gateway_was_down() {
    let (double, agent) = (TelegramDouble::start().await, promising().await);
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");
    ada.says("When does it rain?");
    let note = ada.hears("Give me a moment.").await;
    eventually("the deferral is acknowledged", async || {
        let turns = gateway.open_turns();
        turns.iter().any(|turn| turn["status"] == "deferred").then_some(())
    })
    .await;
    let due = SystemClock.now() + Duration::from_secs(3);

    gateway.kill();
    eventually("the time has passed", async || (SystemClock.now() > due).then_some(())).await;
    gateway.restart().await;

    assert_eq!(ada.hears("As promised.").await.id, note.id);
    assert_eq!(double.bot_texts(ada.chat()), ["As promised."]);
}

/// H3, D1. `kill -9` at every step of the deferral and of the answer. Where the response of the platform may be lost, a copy of the
/// note, or of the answer, says that it is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_agents_deferral_is_kept_whatever_step_the_process_ends_at() {
    const OF_THE_ANSWER: [&str; 6] =
        ["run_started:2", "run_ended:2", "before_commit:2", "after_commit:2", "attempt_started:2", "attempt_ended:2"];
    let (double, agent) = (TelegramDouble::start().await, promising().await);
    let mut gateway = between(&double, &agent).start().await;
    let ada = double.person("Ada");
    gateway.stop().await;

    for step in TURN_STEPS.into_iter().chain(OF_THE_ANSWER) {
        let before = double.bot_texts(ada.chat()).len();
        let shown = || double.bot_texts(ada.chat()).split_off(before);
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        ada.says(step);
        gateway.until_crashed().await;
        gateway.restart().await;
        eventually(step, async || shown().iter().any(|text| text.contains("As promised.")).then_some(())).await;
        gateway.until_settled().await;
        gateway.stop().await;

        let plain = shown().iter().filter(|text| *text == "As promised.").count();
        let answers = shown().iter().filter(|text| text.contains("As promised.")).count();
        assert!(answers == 1 && plain <= 1 && shown().len() <= 2, "{step}: {:?}", shown());
    }
    assert_eq!(gateway.undeliverable(), 0);
}
