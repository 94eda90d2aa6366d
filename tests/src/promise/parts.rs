//! Answers that are split into several messages.

use super::{Calls, Failure, Platform, SentMessage, texts, wait_for_text};
use crate::{GatewayBuilder, ScriptedAgent, eventually};

/// How many messages the answer is split into.
const PARTS: usize = 6;

/// How the delivery of a part fails.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// The platform rejects the part permanently.
    Refused,
    /// The platform never acknowledges the part, until the gateway gives up.
    GivenUp,
}

fn name(part: usize) -> String {
    format!("Part {part}.")
}

async fn agent<P: Platform>() -> ScriptedAgent {
    let paragraph = |part| {
        let name = name(part);
        let filler = "word ".repeat((P::PARAGRAPH - name.len()) / 5);
        format!("{name} {}", filler.trim_end())
    };
    ScriptedAgent::replying(&(1..=PARTS).map(paragraph).collect::<Vec<_>>().join("\n\n")).await
}

fn between<P: Platform>(platform: &P, agent: &ScriptedAgent, keys: &str) -> GatewayBuilder {
    platform.gateway(keys).config(&agent.section()).config("[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n")
}

/// The parts of the answer in `messages`, oldest first, each with whether it carries the label of a copy.
fn parts(messages: &[SentMessage]) -> Vec<(usize, bool)> {
    let part =
        |it: &SentMessage| (1..=PARTS).find(|part| it.text.contains(&name(*part))).map(|part| (part, it.is_copy()));
    messages.iter().filter_map(part).collect()
}

/// Of a six-part answer, the response to one part is lost and the connection of another is reset. All parts are shown in
/// order, and each once except for labelled copies.
pub async fn every_part_of_a_long_answer_is_seen<P: Platform>(keys: &str) {
    let (platform, agent) = (P::new().await, agent::<P>().await);
    let gateway = between(&platform, &agent, keys).start().await;
    let ada = platform.person().await;

    platform.fail_calls(Calls::Sending("Part 3."), Failure::Lost, Some(1)).await;
    platform.fail_calls(Calls::Sending("Part 5."), Failure::Reset, Some(1)).await;
    platform.says(&ada, "tell me all").await;
    agent.until_called(1).await;
    gateway.until_settled().await;

    let messages = platform.messages_of(&ada).await;
    let mut seen: Vec<_> = parts(&messages);
    assert_eq!(seen.len(), messages.len(), "an unexpected message: {:#?}", texts(&messages));
    if !P::SHOWS_ONCE {
        // A lost part is shown twice, and its copy is labelled. A reset part may have arrived, so its label is ignored.
        assert_eq!(seen.iter().filter(|part| **part == (3, true)).count(), 1, "{seen:?}");
        seen.retain(|part| *part != (3, true));
        seen.iter_mut().filter(|part| part.0 == 5).for_each(|part| part.1 = false);
    }
    assert_eq!(seen, [(1, false), (2, false), (3, false), (4, false), (5, false), (6, false)]);
    assert_eq!(gateway.undeliverable(), 0);
}

/// The fifth part of a six-part answer fails: the person sees four parts and a notice that the rest could not be sent.
pub async fn what_stops_in_the_middle_says_so<P: Platform>(end: End, keys: &str) {
    let (platform, agent) = (P::new().await, agent::<P>().await);
    let gateway =
        between(&platform, &agent, keys).config("[outbox]\nlifetime = \"2s\"\nmin_attempts = 2\n").start().await;
    let ada = platform.person().await;

    let failure = match end {
        End::Refused => Failure::Refused,
        End::GivenUp => Failure::Reset,
    };
    platform.fail_calls(Calls::Sending("Part 5."), failure, None).await;
    platform.says(&ada, "tell me all").await;
    wait_for_text(&platform, &ada, "Part 4.").await;
    gateway.until_settled().await;
    // The notice may be sent when nothing is owed any more, so `until_settled` does not wait for it.
    let messages = eventually("the notice that the rest could not be sent", async || {
        let messages = platform.messages_of(&ada).await;
        let is_part = |it: &SentMessage| !parts(std::slice::from_ref(it)).is_empty();
        messages.last().is_some_and(|last| !is_part(last)).then_some(messages)
    })
    .await;

    assert_eq!(parts(&messages), [(1, false), (2, false), (3, false), (4, false)], "{:#?}", texts(&messages));
    assert_eq!(messages.len(), 5, "not exactly one notice: {:#?}", texts(&messages));
}
