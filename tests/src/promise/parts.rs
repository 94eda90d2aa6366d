//! Answers that are split into several messages.

use super::{Calls, Platform, Said, Trouble, finds, words};
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

/// The parts of the answer in `said`, oldest first, each with whether it carries the label of a copy.
fn parts(said: &[Said]) -> Vec<(usize, bool)> {
    let part = |it: &Said| (1..=PARTS).find(|part| it.words.contains(&name(*part))).map(|part| (part, it.is_copy()));
    said.iter().filter_map(part).collect()
}

/// Of a six-part answer, the response to one part is lost and the connection of another is reset. All parts are shown in
/// order, and each once except for labelled copies.
pub async fn every_part_of_a_long_answer_is_seen<P: Platform>(keys: &str) {
    let (platform, agent) = (P::new().await, agent::<P>().await);
    let gateway = between(&platform, &agent, keys).start().await;
    let ada = platform.person().await;

    platform.fails(Calls::Sending("Part 3."), Trouble::Lost, Some(1)).await;
    platform.fails(Calls::Sending("Part 5."), Trouble::Reset, Some(1)).await;
    platform.says(&ada, "tell me all").await;
    agent.called(1).await;
    gateway.settles().await;

    let said = platform.hears(&ada).await;
    let mut seen: Vec<_> = parts(&said);
    assert_eq!(seen.len(), said.len(), "an unexpected message: {:#?}", words(&said));
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

    let trouble = match end {
        End::Refused => Trouble::Refused,
        End::GivenUp => Trouble::Reset,
    };
    platform.fails(Calls::Sending("Part 5."), trouble, None).await;
    platform.says(&ada, "tell me all").await;
    finds(&platform, &ada, "Part 4.").await;
    gateway.settles().await;
    // The notice may be sent when nothing is owed any more, so `settles` does not wait for it.
    let said = eventually("the notice that the rest could not be sent", async || {
        let said = platform.hears(&ada).await;
        let is_part = |it: &Said| !parts(std::slice::from_ref(it)).is_empty();
        said.last().is_some_and(|last| !is_part(last)).then_some(said)
    })
    .await;

    assert_eq!(parts(&said), [(1, false), (2, false), (3, false), (4, false)], "{:#?}", words(&said));
    assert_eq!(said.len(), 5, "not exactly one notice: {:#?}", words(&said));
}
