//! Streamed answers: drafts are durable messages too.

use super::{BEGINNING, Calls, DEFERRAL, Failure, Platform, WHOLE, assert_answered_once, texts, wait_for_text};
use crate::{Gate, Gateway, GatewayBuilder, Script, ScriptedAgent, eventually};

/// The default.
const STREAMING: &str = "streaming = \"edit\"";
/// Sends a deferral after one second.
const SOON: &str = "[guard]\nsoft_deadline = \"1s\"\n";
const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\n";

/// How an agent writes its answer.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Completes at once: there may be no draft.
    AtOnce,
    /// Streams everything in one piece and completes when the gate opens: the first draft is the whole answer.
    Quick,
    /// Streams the beginning, and the rest when the gate opens.
    Slow,
}

impl Pace {
    pub(super) fn script(self, gate: &Gate) -> Script {
        let whole = Script::replies(WHOLE);
        match self {
            Self::AtOnce => whole,
            Self::Quick => whole.streaming(WHOLE).waiting(gate),
            Self::Slow => whole.streaming(BEGINNING).waiting(gate),
        }
    }

    async fn agent(self, gate: &Gate) -> ScriptedAgent {
        let gate = gate.clone();
        ScriptedAgent::start(move |_, _| self.script(&gate)).await
    }
}

/// An agent that replies in one piece when the gate opens.
async fn gated_agent(gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::start(move |_, _| Script::replies(WHOLE).waiting(&gate)).await
}

fn between<P: Platform>(platform: &P, agent: &ScriptedAgent, guard: &str) -> GatewayBuilder {
    platform.gateway(STREAMING).config(&agent.section()).config(guard)
}

/// Waits until the person is answered and nothing is owed, and checks that there is one answer.
async fn expect_one_answer<P: Platform>(platform: &P, person: &P::Person, mut gateway: Gateway) {
    wait_for_text(platform, person, WHOLE).await;
    gateway.until_settled().await;
    // It removes a draft beside its answer before it ends.
    gateway.stop().await;
    assert_answered_once::<P>(&platform.messages_of(person).await, WHOLE);
}

/// The response to the first draft is lost: one message remains.
pub async fn a_draft_whose_response_is_lost_leaves_one<P: Platform>(pace: Pace, at: P::Place) {
    let (platform, gate) = (P::at(at).await, Gate::default());
    let agent = pace.agent(&gate).await;
    let gateway = between(&platform, &agent, PATIENT).start().await;
    let ada = platform.person().await;

    platform.fail_calls(Calls::Sending(BEGINNING), Failure::Lost, Some(1)).await;
    platform.says(&ada, "hello").await;
    wait_for_text(&platform, &ada, BEGINNING).await;
    gate.open();

    expect_one_answer(&platform, &ada, gateway).await;
}

/// The process is killed when the first draft has arrived, but before it has the response: one message remains.
pub async fn a_process_killed_before_it_noted_its_draft_leaves_one<P: Platform>(pace: Pace, at: P::Place) {
    let (platform, gate) = (P::at(at).await, Gate::default());
    let agent = pace.agent(&gate).await;
    let mut gateway = between(&platform, &agent, PATIENT).start().await;
    let ada = platform.person().await;

    platform.fail_calls(Calls::Sending(BEGINNING), Failure::Silence, Some(1)).await;
    platform.says(&ada, "hello").await;
    wait_for_text(&platform, &ada, BEGINNING).await;
    gateway.kill();
    platform.clear_faults().await;
    gate.open();
    gateway.restart().await;

    expect_one_answer(&platform, &ada, gateway).await;
}

/// A deferral is shown when the agent begins to stream: its message is edited to the draft and then to the answer, and no
/// second message appears.
pub async fn a_deferral_grows_into_the_answer<P: Platform>(place: P::Place) {
    let (platform, begin, end) = (P::at(place).await, Gate::default(), Gate::default());
    let agent = {
        let (begin, end) = (begin.clone(), end.clone());
        ScriptedAgent::start(move |_, _| Script::replies(WHOLE).waiting(&begin).streaming(BEGINNING).waiting(&end))
            .await
    };
    let gateway = between(&platform, &agent, SOON).start().await;
    let ada = platform.person().await;

    platform.says(&ada, "hello").await;
    let deferral = wait_for_text(&platform, &ada, DEFERRAL).await;
    // The deferral's receipt is stored only after it was sent.
    let turn = gateway.only_turn();
    eventually("its receipt is stored", async || gateway.explain(&turn).contains(&deferral.id).then_some(())).await;
    begin.open();
    let draft = wait_for_text(&platform, &ada, BEGINNING).await;
    let meanwhile = platform.messages_of(&ada).await;
    end.open();
    let answer = wait_for_text(&platform, &ada, WHOLE).await;
    gateway.until_settled().await;

    assert_eq!(texts(&meanwhile).len(), 1, "a second message: {:#?}", texts(&meanwhile));
    assert_eq!((&draft.id, &answer.id), (&deferral.id, &deferral.id));
    assert_eq!(texts(&platform.messages_of(&ada).await), [WHOLE]);
}

/// The response to a deferral is lost: when the answer is sent, one message remains.
pub async fn a_deferral_whose_response_is_lost_leaves_one<P: Platform>() {
    let (platform, gate) = (P::new().await, Gate::default());
    let agent = gated_agent(&gate).await;
    let gateway = between(&platform, &agent, SOON).start().await;
    let ada = platform.person().await;

    platform.fail_calls(Calls::Sending(DEFERRAL), Failure::Lost, Some(1)).await;
    platform.says(&ada, "hello").await;
    wait_for_text(&platform, &ada, DEFERRAL).await;
    // Waits for the retried deferral to be acknowledged before the answer is ready.
    let turn = gateway.only_turn();
    eventually("a repeated send", async || gateway.explain(&turn).contains("acknowledged").then_some(())).await;
    gate.open();

    expect_one_answer(&platform, &ada, gateway).await;
}

/// The process is killed when the deferral has arrived, but before it has the response: when the answer is sent, one
/// message remains.
pub async fn a_process_killed_before_it_noted_its_deferral_leaves_one<P: Platform>() {
    let (platform, gate) = (P::new().await, Gate::default());
    let agent = gated_agent(&gate).await;
    let mut gateway = between(&platform, &agent, SOON).start().await;
    let ada = platform.person().await;

    platform.fail_calls(Calls::Sending(DEFERRAL), Failure::Silence, Some(1)).await;
    platform.says(&ada, "hello").await;
    wait_for_text(&platform, &ada, DEFERRAL).await;
    gateway.kill();
    platform.clear_faults().await;
    gateway.restart().await;
    let turn = gateway.only_turn();
    eventually("a repeated send", async || gateway.explain(&turn).contains("acknowledged").then_some(())).await;
    gate.open();

    expect_one_answer(&platform, &ada, gateway).await;
}
