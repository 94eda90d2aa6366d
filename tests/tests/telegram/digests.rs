//! A digest on Telegram: what is open, and the buttons below it, over the end of the process at each step.

use std::time::Duration;

use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, TURN_STEPS, eventually};

use crate::telegram;

/// An agent that puts off what it is asked for, for a day, and then has it.
async fn puts_off() -> ScriptedAgent {
    ScriptedAgent::start(|call, _| {
        if call.last_message().contains("reminder") {
            Script::replies("Here it is.")
        } else if call.said().contains("later") {
            Script::defers(Some("Soon."), Duration::from_hours(20))
        } else {
            Script::replies("Hello.")
        }
    })
    .await
}

async fn met(double: &TelegramDouble, agent: &ScriptedAgent) -> (Gateway, Person) {
    let grace = double.person("Grace");
    let owner = format!("[people.Grace]\nrole = \"owner\"\nidentities = [\"telegram.test/{}\"]\n", grace.id());
    let channel = telegram(double, "");
    let gateway = Gateway::builder().config(&channel).config(&owner).config(&agent.section()).start().await;
    grace.says("hello");
    grace.hears("Hello.").await;
    let _ =
        gateway.output_of(&["schedule", "add", "--cron", "0 8 1 1 *", "--to", "Grace", "--digest", "--name", "digest"]);
    (gateway, grace)
}

/// The ids of the messages that list what is open.
fn digests(double: &TelegramDouble, grace: &Person) -> Vec<i64> {
    let messages = double.visible(grace.chat()).into_iter();
    messages.filter(|it| it.ours && it.text.starts_with("Open: 1")).map(|it| it.id).collect()
}

/// J4. Whatever step the process ends at, a press is done once, and its answer is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_pressed_is_done_once_whatever_step_the_process_ends_at() {
    let (double, agent) = (TelegramDouble::start().await, puts_off().await);
    let (mut gateway, grace) = met(&double, &agent).await;

    for (done, step) in TURN_STEPS.into_iter().enumerate() {
        grace.says("later");
        grace.hears("Soon.").await;
        let _ = gateway.output_of(&["schedule", "run", "digest"]);
        let listed = eventually("the digest", async || digests(&double, &grace).get(done).copied()).await;
        double.all_confirmed().await;
        gateway.stop().await;

        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        grace.presses(listed, "Answer A");
        gateway.until_crashed().await;
        gateway.restart().await;
        let answers = || double.bot_texts(grace.chat()).iter().filter(|text| text.contains("Here it is.")).count();
        eventually(&format!("the answer after {step}"), async || (answers() > done).then_some(())).await;
        gateway.until_settled().await;

        assert_eq!(answers(), done + 1, "{step}: {:?}", double.bot_texts(grace.chat()));
        let audit = gateway.admin("audit?limit=200").await;
        let hurried = audit["items"].as_array().into_iter().flatten().filter(|it| it["action"] == "hurry").count();
        assert_eq!(hurried, done + 1, "{step}: {audit}");
    }
    assert_eq!(gateway.undeliverable(), 0);
}
