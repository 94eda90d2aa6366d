//! Questions of agents, with choices.

use super::{Platform, wait_for_text};
use crate::{Call, Script, ScriptedAgent};

/// The questions: what is asked about, and the choices.
const QUESTIONS: [(&str, [&str; 2]); 2] = [("tea", ["Green", "Black"]), ("cake", ["Lemon", "Plum"])];

/// Asks what it is told to ask, and else says what the person said, and about which question.
fn asking(call: &Call) -> Script {
    let said = call.said();
    let question = |what: &str| format!("Which {what}?");
    if let Some((what, choices)) = QUESTIONS.iter().find(|(what, _)| said == format!("ask about {what}")) {
        return Script::asks(&question(what), choices);
    }
    let message = call.last_message();
    let quoted: Vec<_> =
        QUESTIONS.iter().map(|(what, _)| *what).filter(|what| message.contains(&question(what))).collect();
    Script::replies(&format!("{said} of {}", quoted.join(" and ")))
}

/// Two questions are open, and the process is killed. Each pick answers the question that it was made from, the older one's
/// first, and the second one after another kill.
pub async fn a_pick_answers_its_own_question_after_a_kill<P: Platform>(keys: &str) {
    let platform = P::new().await;
    let agent = ScriptedAgent::start(|call, _| asking(call)).await;
    let mut gateway = platform.gateway(keys).config(&agent.section()).start().await;
    let ada = platform.person().await;
    let mut asked = Vec::new();
    for (what, _) in QUESTIONS {
        platform.says(&ada, &format!("ask about {what}")).await;
        asked.push(wait_for_text(&platform, &ada, &format!("Which {what}?")).await);
    }

    for ((what, choices), question) in QUESTIONS.into_iter().zip(&asked) {
        gateway.until_settled().await;
        platform.until_acknowledged().await;
        gateway.kill();
        platform.after_crash().await;
        gateway.restart().await;
        platform.picks(&ada, question, choices[1]).await;
        wait_for_text(&platform, &ada, &format!("{} of {what}", choices[1])).await;
    }
    gateway.until_settled().await;

    assert_eq!(agent.calls().len(), 4, "each question and each pick once");
}
