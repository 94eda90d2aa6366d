//! Many conversations at once.

use std::time::{Duration, Instant};

use rejoinder_telegram_double::{Person, TelegramDouble};
use rejoinder_tests::{Gateway, Script, ScriptedAgent, eventually};

use crate::{last_message, telegram};

const CROWD: usize = 1000;

/// Everybody asks once; returns the median waiting time.
async fn everybody_asks(double: &TelegramDouble, people: &[Person], question: &str) -> Duration {
    let asked: Vec<_> = people
        .iter()
        .map(|person| {
            let at = Instant::now();
            person.says(question);
            at
        })
        .collect();
    let words = format!("echo {question}");
    let mut waits = Vec::new();
    for (person, asked) in people.iter().zip(asked) {
        let answer = double
            .until("everybody is answered", |view| {
                view.visible(person.chat()).into_iter().find(|message| message.ours && message.text == words)
            })
            .await;
        waits.push(answer.at.saturating_duration_since(asked));
    }
    waits.sort();
    waits[waits.len() / 2]
}

/// B11, E4: a thousand conversations are all answered; one that floods at most doubles the waiting time of the others.
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

    everybody_asks(&double, &people, "warm up").await;
    // Another program may have slowed one of them down.
    for flood in 1..=3 {
        let alone = everybody_asks(&double, &people, &format!("alone {flood}")).await;
        for n in 0..CROWD {
            eve.says(&format!("flood {flood} {n}"));
        }
        let beside = everybody_asks(&double, &people, &format!("beside flood {flood}")).await;
        eve.hears(&format!("echo flood {flood} {}", CROWD - 1)).await;
        eventually("nothing is owed", async || gateway.open_turns().is_empty().then_some(())).await;

        assert_eq!(double.bot_texts(eve.chat()).len(), CROWD * flood);
        println!("median wait: {alone:?} alone, {beside:?} beside a flood");
        if beside <= alone * 2 {
            return;
        }
    }
    panic!("the median wait was never at most twice as long beside a flood");
}
