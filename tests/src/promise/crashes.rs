//! The process ends at a named step of a turn, as with `kill -9`: design §9, as a table.

use std::sync::{Arc, Mutex};

use super::{Pace, Platform, SentMessage, WHOLE, texts, wait_for_text};
use crate::{AgentKind, Gate, Gateway, Script, ScriptedAgent};

/// No deferral, and a turn that several crashes interrupt is not given up: neither is the subject here.
pub(super) const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\nmax_runs = 10\n";
pub(super) const QUIET: &str = "streaming = \"off\"";
const STREAMING: &str = "streaming = \"edit\"";
const FAILED: &str = "Sorry, I could not finish that. Please try again.";

/// A step at which the process ends.
#[derive(Clone, Copy)]
pub(super) struct CrashStep {
    pub(super) point: &'static str,
    /// How often the agent may be called for the turn; less often if its [work goes on](ScriptedAgent::most_calls).
    pub(super) runs: usize,
    /// Whether the answer may have arrived without the gateway knowing.
    pub(super) may_have_arrived: bool,
}

pub(super) const fn step(point: &'static str, runs: usize) -> CrashStep {
    CrashStep { point, runs, may_have_arrived: false }
}

/// The steps of every turn, in order.
pub(super) const STEPS: [CrashStep; 8] = [
    // The event is received, but not committed.
    step("received:1", 1),
    // The event is committed, but not acknowledged to the platform.
    step("accepted:1", 1),
    step("run_started:1", 1),
    step("run_ended:1", 2),
    // The outcome is about to be claimed.
    step("before_commit:1", 2),
    // The claim is committed, in most cases with the beginning of its attempt, but not sent.
    step("after_commit:1", 1),
    // The attempt is stored, but not sent.
    step("attempt_started:1", 1),
    // The message is sent, but its receipt is not stored.
    CrashStep { point: "attempt_ended:1", runs: 1, may_have_arrived: true },
];

/// The steps of the first draft of a streamed answer.
const DRAFT_STEPS: [CrashStep; 4] = [
    CrashStep { point: "draft_claimed:1", runs: 2, may_have_arrived: true },
    CrashStep { point: "draft_attempt_started:1", runs: 2, may_have_arrived: true },
    CrashStep { point: "draft_attempt_ended:1", runs: 2, may_have_arrived: true },
    CrashStep { point: "draft_noted:1", runs: 2, may_have_arrived: true },
];

/// The process ends at each step of a turn in sequence: nothing is lost, and each question is answered once and completely.
pub async fn a_crash_at_any_step_loses_nothing_and_answers_once<P: Platform>(place: P::Place) {
    let agent = ScriptedAgent::replying(WHOLE).await;
    crash_at_each::<P>(&STEPS, place, QUIET, &agent, &Gates::default()).await;
}

/// As [`a_crash_at_any_step_loses_nothing_and_answers_once`] with a streamed answer: no draft is left beside it.
pub async fn a_crash_at_any_step_leaves_no_draft_behind<P: Platform>(place: P::Place) {
    let written = || WHOLE.split_inclusive(' ').fold(Script::replies(WHOLE), Script::streaming);
    let agent = ScriptedAgent::start(move |_, _| written()).await;
    crash_at_each::<P>(&STEPS, place, STREAMING, &agent, &Gates::default()).await;
}

/// The process ends at each step of the first draft: one message remains.
pub async fn a_crash_while_the_answer_grows_leaves_one<P: Platform>(pace: Pace, at: P::Place) {
    let gates = Gates::default();
    let agent = {
        let gates = gates.clone();
        ScriptedAgent::start(move |_, _| pace.script(&gates.gate())).await
    };
    crash_at_each::<P>(&DRAFT_STEPS, at, STREAMING, &agent, &gates).await;
}

/// As [`a_crash_at_any_step_leaves_no_draft_behind`] and [`a_crash_while_the_answer_grows_leaves_one`], with an agent of this
/// kind: no process of it outlives the gateway, and its worker and its task do.
pub async fn a_crash_at_any_step_with_an_agent_of<P: Platform>(kind: AgentKind) {
    let written = || WHOLE.split_inclusive(' ').fold(Script::replies(WHOLE), Script::streaming);
    let writes = ScriptedAgent::start(move |_, _| written()).await.of_kind(kind);
    let gates = Gates::default();
    let waits = {
        let gates = gates.clone();
        ScriptedAgent::start(move |_, _| Pace::Slow.script(&gates.gate())).await.of_kind(kind)
    };
    let (no_gates, place) = (Gates::default(), P::Place::default());
    tokio::join!(
        crash_at_each::<P>(&STEPS, place, STREAMING, &writes, &no_gates),
        crash_at_each::<P>(&DRAFT_STEPS, place, STREAMING, &waits, &gates),
    );
}

/// Holds the agent until the process has ended: a gate for each question.
#[derive(Clone, Default)]
struct Gates(Arc<Mutex<Gate>>);

impl Gates {
    fn gate(&self) -> Gate {
        self.0.lock().expect("never poisoned").clone()
    }

    /// Makes the agent wait at the next question.
    fn close(&self) {
        *self.0.lock().expect("never poisoned") = Gate::default();
    }
}

/// Asks a question for each step. The process ends at that step and is started again.
async fn crash_at_each<P: Platform>(
    steps: &[CrashStep],
    place: P::Place,
    keys: &str,
    agent: &ScriptedAgent,
    gates: &Gates,
) {
    let platform = P::at(place).await;
    let mut gateway = platform.gateway(keys).config(&agent.section()).config(PATIENT).prepare();
    let _worker = agent.worker(&gateway);
    gateway.restart().await;
    let ada = platform.person().await;
    // An exchange before the first crash, so that only questions pass the crash points afterwards.
    gates.gate().open();
    platform.says(&ada, "we meet").await;
    wait_for_text(&platform, &ada, WHOLE).await;
    until_settled_and_acknowledged(&platform, &gateway).await;
    gateway.stop().await;

    let mut wrong = Vec::new();
    for step in steps {
        let (before, runs) = (platform.messages_of(&ada).await.len(), agent.calls().len());
        gates.close();
        gateway.spawn_crashing_at(step.point);
        gateway.until_ready().await;
        platform.says(&ada, "hello").await;
        gateway.until_crashed().await;
        agent.until_processes_end().await;
        gates.gate().open();
        platform.after_crash().await;
        gateway.restart().await;
        let is_answered =
            |messages: &[SentMessage]| messages[before.min(messages.len())..].iter().any(|it| it.text.ends_with(WHOLE));
        let about = format!("the answer after a crash at {}", step.point);
        platform.until(&ada, &about, |messages| is_answered(messages).then_some(())).await;
        until_settled_and_acknowledged(&platform, &gateway).await;
        // It removes a draft beside its answer before it ends.
        gateway.stop().await;
        agent.until_processes_end().await;

        let messages = platform.messages_of(&ada).await.split_off(before);
        let runs = agent.calls().len() - runs;
        // A draft may have arrived at any step.
        let may_have_arrived = step.may_have_arrived || keys == STREAMING;
        let most = if may_have_arrived && !P::SHOWS_ONCE { 2 } else { 1 };
        let answered = super::check_answered_once::<P>(&messages, WHOLE);
        if answered.is_err() || messages.len() > most || runs > agent.most_calls(step.runs) {
            wrong.push(format!("{}: {:?}, and the agent ran {runs} times", step.point, texts(&messages)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(gateway.undeliverable(), 0);
}

/// Waits until nothing is owed, and the platform knows which events were accepted.
pub(super) async fn until_settled_and_acknowledged<P: Platform>(platform: &P, gateway: &Gateway) {
    gateway.until_settled().await;
    platform.until_acknowledged().await;
}

/// The process ends when the second part of an answer is about to be sent or has arrived: sending resumes there, and no
/// part is sent twice.
pub async fn a_crash_between_two_parts_sends_no_part_twice<P: Platform>(point: &str) {
    const PARTS: usize = 3;
    let paragraph = |part: usize| format!("Paragraph {part}. {}", "word ".repeat(P::PARAGRAPH / 5 - 3));
    let platform = P::new().await;
    let agent = ScriptedAgent::replying(&(1..=PARTS).map(paragraph).collect::<Vec<_>>().join("\n\n")).await;
    let mut gateway = platform.gateway(QUIET).config(&agent.section()).config(PATIENT).prepare();

    gateway.spawn_crashing_at(point);
    gateway.until_ready().await;
    let ada = platform.person().await;
    platform.says(&ada, "tell me all").await;
    gateway.until_crashed().await;
    gateway.restart().await;
    wait_for_text(&platform, &ada, &format!("Paragraph {PARTS}.")).await;
    until_settled_and_acknowledged(&platform, &gateway).await;

    let messages = platform.messages_of(&ada).await;
    assert_eq!(messages.len(), PARTS, "{:?}", texts(&messages));
    for (message, part) in messages.iter().zip(1..) {
        assert!(message.text.contains(&format!("Paragraph {part}.")), "{:?} is not part {part}", message.text);
    }
}

/// A turn that crashes the process every time is given up after `max_runs`, and answered with the fallback.
pub async fn a_poisonous_turn_is_quarantined_and_answered<P: Platform>() {
    let (platform, agent) = (P::new().await, ScriptedAgent::replying("never seen").await);
    let mut gateway = platform.gateway(QUIET).config(&agent.section()).prepare();

    gateway.spawn_crashing_at("run_started:1");
    gateway.until_ready().await;
    let ada = platform.person().await;
    platform.says(&ada, "poison").await;
    gateway.until_crashed().await;
    for _ in 0..2 {
        gateway.spawn_crashing_at("run_started:1");
        gateway.until_crashed().await;
    }
    gateway.restart().await;
    wait_for_text(&platform, &ada, FAILED).await;
    until_settled_and_acknowledged(&platform, &gateway).await;

    assert_eq!(texts(&platform.messages_of(&ada).await), [FAILED]);
    assert!(agent.calls().is_empty());
}
