//! `kill -9` at every step, however updates come in: nothing is lost, nobody is answered twice; only where a
//! response may have been lost is there a second message, and it says so.

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{Gateway, GatewayBuilder, Script, ScriptedAgent, eventually};
use rstest::rstest;

use crate::telegram;

#[derive(Clone, Copy, Debug)]
enum Mode {
    Polling,
    Webhook,
}

/// A gateway that updates reach in this way, to be started. Its answers come whole: what a crash leaves of one that grows
/// is shown in `promise.rs`.
fn reached_by(mode: Mode, double: &TelegramDouble, agent: &ScriptedAgent) -> Gateway {
    let builder = |keys: &str, port: Option<u16>| -> GatewayBuilder {
        let keys = &format!("streaming = \"off\"\n{keys}");
        let mut builder = Gateway::builder();
        if let Some(port) = port {
            builder = builder.port(port);
        }
        // A turn that was in the agent's hands at three crashes would be given up: it is not what is looked at here.
        builder.config(&telegram(double, keys)).config(&agent.section()).config("[guard]\nmax_runs = 10\n")
    };
    match mode {
        Mode::Polling => builder("", None).prepare(),
        Mode::Webhook => {
            let port = Gateway::free_port();
            let keys = format!(
                "mode = \"webhook\"\n[channels.telegram.test.webhook]\nurl = \"http://127.0.0.1:{port}/telegram/test\""
            );
            builder(&keys, Some(port)).prepare()
        }
    }
}

/// D1, D7, E1, E3, E8: design §9.
#[rstest]
#[case::received_before_the_commit("received:1", 1, 1)]
#[case::committed_before_it_is_confirmed("accepted:1", 1, 1)]
#[case::the_agent_is_about_to_run("run_started:1", 1, 1)]
#[case::the_agent_has_run("run_ended:1", 2, 1)]
#[case::the_outcome_is_about_to_be_claimed("before_commit:1", 2, 1)]
#[case::claimed_and_not_sent("after_commit:1", 1, 1)]
#[case::about_to_be_sent("attempt_started:1", 1, 1)]
#[case::sent_and_not_written_down("attempt_ended:1", 1, 2)]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_loses_nothing_and_answers_once(
    #[case] point: &str,
    #[case] most_runs: usize,
    #[case] most_messages: usize,
    #[values(Mode::Polling, Mode::Webhook)] mode: Mode,
) {
    let double = TelegramDouble::start().await;
    double.webhook_pauses(std::time::Duration::from_millis(50), std::time::Duration::from_millis(500));
    let agent = ScriptedAgent::replying("Hello.").await;
    let mut gateway = reached_by(mode, &double, &agent);
    let ada = double.person("Ada");

    gateway.spawn(&[("REJOINDER_CRASH_AT", point)]);
    gateway.is_ready().await;
    ada.says("hello");
    gateway.has_crashed().await;
    gateway.restart().await;
    ada.finds("the answer", |message| message.ours && message.text.ends_with("Hello.")).await;
    double.all_confirmed().await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;

    let said = double.said(ada.chat());
    assert!(said.len() <= most_messages, "{said:?}");
    // At most one of them is not labelled.
    assert!(said.iter().filter(|text| *text == "Hello.").count() <= 1, "{said:?}");
    assert!(agent.calls().len() <= most_runs, "the agent ran {} times", agent.calls().len());
}

/// D1: part k of n: it goes on at the part that was not sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_between_two_parts_sends_no_part_twice() {
    let double = TelegramDouble::start().await;
    let paragraphs: Vec<_> = (0..30).map(|n| format!("Paragraph {n}. {}", "word ".repeat(80))).collect();
    let agent = ScriptedAgent::replying(&paragraphs.join("\n\n")).await;
    let mut gateway =
        Gateway::builder().config(&telegram(&double, "streaming = \"off\"")).config(&agent.section()).prepare();
    let ada = double.person("Ada");

    gateway.spawn(&[("REJOINDER_CRASH_AT", "attempt_started:2")]);
    gateway.is_ready().await;
    ada.says("tell me all");
    gateway.has_crashed().await;
    gateway.restart().await;
    ada.finds("the end", |message| message.ours && message.text.contains("Paragraph 29.")).await;

    let said = double.said(ada.chat()).join("\n");
    for n in 0..30 {
        assert_eq!(said.matches(&format!("Paragraph {n}.")).count(), 1, "paragraph {n}");
    }
}

/// D1, E1, E3: killed at random moments under load, again and again; every message is answered. Only an answer
/// that was cut off twice, as it was sent and as it was sent again, is held for the operator to see.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn killed_again_and_again_no_message_is_lost(#[values(Mode::Polling, Mode::Webhook)] mode: Mode) {
    let double = TelegramDouble::start().await;
    double.webhook_pauses(std::time::Duration::from_millis(50), std::time::Duration::from_millis(500));
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("echo {}", crate::told(call)))).await;
    let mut gateway = reached_by(mode, &double, &agent);
    gateway.restart().await;
    let people: Vec<_> = (0..10).map(|n| double.person(&format!("Person {n}"))).collect();

    for round in 0..5 {
        let before = agent.calls().len();
        for person in &people {
            for n in 0..3 {
                person.says(&format!("round {round} question {n}"));
            }
        }
        eventually("some are asked", async || (agent.calls().len() > before + 7).then_some(())).await;
        gateway.kill();
        gateway.restart().await;
    }
    for person in &people {
        person
            .finds("the last answer", |message| message.ours && message.text.ends_with("echo round 4 question 2"))
            .await;
    }
    double.all_confirmed().await;
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;

    let held = gateway.turns("undeliverable").len();
    let mut unanswered = 0;
    for person in &people {
        let said = double.said(person.chat());
        for round in 0..5 {
            for n in 0..3 {
                let words = format!("echo round {round} question {n}");
                let plain = said.iter().filter(|text| **text == words).count();
                let all = said.iter().filter(|text| text.ends_with(&words)).count();
                assert!(plain <= 1, "`{words}` was sent twice without a word: {said:#?}");
                unanswered += usize::from(all == 0);
            }
        }
    }
    // The double shows more than the gateway can know: one that is held may have arrived.
    assert!(unanswered <= held, "{unanswered} are unanswered, and only {held} are held");
    assert!(held < 30, "most of it is answered");
}
