//! Many conversations at once.

use std::time::Instant;

use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, eventually};

use crate::{last_message, telegram};

const CROWD: usize = 1000;

/// Everybody asks once; returns when each answer came, sorted.
async fn everybody_asks(double: &TelegramDouble, people: &[Person], question: &str) -> Vec<Instant> {
    for person in people {
        person.says(question);
    }
    let words = format!("echo {question}");
    let mut answered = Vec::new();
    for person in people {
        let answer = double
            .until("everybody is answered", |view| {
                view.visible(person.chat()).into_iter().find(|message| message.ours && message.text == words)
            })
            .await;
        answered.push(answer.at);
    }
    answered.sort();
    answered
}

/// B11, E4: a thousand conversations are all answered. One that floods is given no more turns than all others together, so
/// they wait at most twice as long, however fast the machine is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_in_one_conversation_is_no_flood_in_the_others() {
    let double = TelegramDouble::start().await;
    double.keep_calls(false);
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("echo {}", last_message(call)))).await;
    let gateway = Gateway::builder()
        .config(&telegram(&double, "streaming = \"off\""))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"off\"\n")
        // What remains when the operator allows the flood.
        .config("[limits]\nturns_per_minute = \"off\"\nwaiting_turns = \"off\"\n[queue]\ncap = 1000\n")
        .start()
        .await;
    let people: Vec<_> = (0..CROWD).map(|n| double.person(&format!("Person {n}"))).collect();
    let eve = double.person("Eve");

    for n in 0..CROWD {
        eve.says(&format!("flood {n}"));
    }
    let answered = everybody_asks(&double, &people, "beside the flood").await;
    // Her turns run one after another: they take longer than theirs.
    for n in (99..CROWD).step_by(100) {
        eve.hears(&format!("echo flood {n}")).await;
    }
    eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;

    assert_eq!(double.bot_texts(eve.chat()).len(), CROWD);
    let hers: Vec<_> = double.visible(eve.chat()).into_iter().filter(|message| message.ours).collect();
    let hers_until = |at: Instant| hers.iter().filter(|message| message.at <= at).count();
    // She wrote first.
    let before = hers_until(answered[0]);
    for (count, at) in answered.into_iter().enumerate().skip(CROWD / 10) {
        let hers = hers_until(at) - before;
        assert!(hers <= count, "{hers} turns of the flood were answered while {count} others were");
    }
}
