//! Strangers are let in with a code.

use super::{Platform, WHOLE, texts, wait_for_text};
use crate::ScriptedAgent;

const LET_IN: &str = "You have been let in.";

/// A stranger is given one code, whatever they write. The request and the person outlive the process, and approving needs no
/// restart.
pub async fn a_stranger_is_let_in_with_their_code<P: Platform>(keys: &str) {
    let (platform, agent) = (P::new().await, ScriptedAgent::replying(WHOLE).await);
    let mut gateway = platform.gateway(keys).config(&agent.section()).start().await;
    let (eve, mallory) = (platform.person().await, platform.person().await);

    for number in 0..5 {
        platform.says(&eve, &format!("let me in {number}")).await;
    }
    let notice = wait_for_text(&platform, &eve, "code").await;
    let code = code_in(&notice.text);
    // Events arrive in order: once Mallory has a code, all of Eve's were received.
    platform.says(&mallory, "let me in").await;
    let other = code_in(&wait_for_text(&platform, &mallory, "code").await.text);
    platform.until_acknowledged().await;
    // Killed, it could send a notice again.
    gateway.stop().await;
    gateway.restart().await;

    let waiting = gateway.output_of(&["pairing", "list"]);
    assert!(waiting.contains(&code) && waiting.contains(&other), "{waiting}");
    assert!(!gateway.run(&["pairing", "approve", "AAAA-AAAA"]).status.success(), "there is no such code");
    let approved = gateway.output_of(&["pairing", "approve", &code.to_lowercase()]);
    assert!(approved.contains("is let in"), "{approved}");
    let declined = gateway.output_of(&["pairing", "decline", &other]);
    assert!(declined.contains("not let in"), "{declined}");
    wait_for_text(&platform, &eve, LET_IN).await;
    gateway.until_settled().await;
    gateway.stop().await;
    gateway.restart().await;
    platform.says(&eve, "hello").await;
    wait_for_text(&platform, &eve, WHOLE).await;
    platform.says(&mallory, "hello").await;
    platform.says(&eve, "hello again").await;
    agent.until_called(2).await;
    gateway.until_settled().await;

    let told = platform.messages_of(&eve).await;
    let told = texts(&told);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[1].starts_with(LET_IN) && told[2..] == [WHOLE, WHOLE], "{told:?}");
    assert_eq!(platform.messages_of(&mallory).await.len(), 1);
    let people = gateway.output_of(&["people", "list"]);
    assert_eq!(people.lines().count(), 2, "{people}");
}

/// The code in a notice: 8 letters and digits with a dash in the middle.
pub(super) fn code_in(notice: &str) -> String {
    let is_code = |word: &&str| {
        word.split_once('-').is_some_and(|halves| {
            let is_half = |half: &str| half.len() == 4 && half.chars().all(|it| matches!(it, 'A'..='Z' | '0'..='9'));
            is_half(halves.0) && is_half(halves.1)
        })
    };
    let words = notice.split(|char: char| !char.is_ascii_alphanumeric() && char != '-').find(is_code);
    words.unwrap_or_else(|| panic!("there is a code in {notice:?}")).to_owned()
}
