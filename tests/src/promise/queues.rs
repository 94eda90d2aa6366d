//! Messages that come while the agent works.

use super::{Platform, texts};
use crate::{Gateway, Script, ScriptedAgent, TURN_STEPS};

/// No deferral, and a turn that several crashes interrupt is not given up: neither is the subject here.
const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\nmax_runs = 10\n";

/// Three messages come at once, in a queue mode, and the process ends at each step: each message has its answer, once.
pub async fn what_comes_at_once_is_answered_once_in_a_queue<P: Platform>(mode: &str) {
    let platform = P::new().await;
    let agent = ScriptedAgent::start(|call, _| Script::replies(&format!("heard {}", call.last_message()))).await;
    let keys = format!("streaming = \"off\"\nqueue = \"{mode}\"");
    let mut gateway = platform.gateway(&keys).config(&agent.section()).config(PATIENT).start().await;
    let ada = platform.person().await;
    platform.says(&ada, "we meet").await;
    super::wait_for_text(&platform, &ada, "heard we meet").await;
    until_settled(&platform, &gateway).await;
    gateway.stop().await;

    for (number, step) in TURN_STEPS.iter().enumerate() {
        let before = platform.messages_of(&ada).await.len();
        gateway.spawn_crashing_at(step);
        gateway.until_ready().await;
        let tokens = ["a", "b", "c"].map(|letter| format!("{letter}{number}x"));
        for token in &tokens {
            platform.says(&ada, token).await;
        }
        gateway.until_crashed().await;
        platform.after_crash().await;
        gateway.restart().await;
        let about = format!("the answers in mode {mode} after a crash at {step}");
        let is_heard = |all: &[super::SentMessage], token: &str| all.iter().any(|it| it.text.contains(token));
        platform.until(&ada, &about, |all| tokens.iter().all(|token| is_heard(all, token)).then_some(())).await;
        until_settled(&platform, &gateway).await;
        gateway.stop().await;

        let answers = platform.messages_of(&ada).await.split_off(before);
        for token in &tokens {
            let heard = answers.iter().filter(|it| it.text.contains(token.as_str()));
            let plain = heard.clone().filter(|it| !it.is_copy()).count();
            let most = if P::SHOWS_ONCE { 1 } else { 2 };
            assert!(plain <= 1 && heard.count() <= most, "{token} after {step}: {:?}", texts(&answers));
        }
    }
    assert_eq!(gateway.undeliverable(), 0);
}

/// Waits until nothing is owed, and the platform knows which events were accepted.
async fn until_settled<P: Platform>(platform: &P, gateway: &Gateway) {
    gateway.until_settled().await;
    platform.until_acknowledged().await;
}
