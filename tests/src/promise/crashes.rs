//! The process ends at a named step of a turn, as with `kill -9`: design §9, as a table.

use std::sync::{Arc, Mutex};

use super::{Pace, Platform, Said, WHOLE, finds, words};
use crate::{Gate, Gateway, Script, ScriptedAgent};

/// The environment variable that names the crash point.
const CRASH_AT: &str = "REJOINDER_CRASH_AT";
/// No deferral, and a turn that several crashes interrupt is not given up: neither is the subject here.
const PATIENT: &str = "[guard]\nsoft_deadline = \"off\"\nhard_deadline = \"1h\"\nmax_runs = 10\n";
const QUIET: &str = "streaming = \"off\"";
const STREAMING: &str = "streaming = \"edit\"";
const FAILED: &str = "Sorry, I could not finish that. Please try again.";

/// A step at which the process ends.
struct Step {
    point: &'static str,
    /// How often the agent may be called for the turn.
    runs: usize,
    /// Whether the answer may have arrived without the gateway knowing.
    may_have_arrived: bool,
}

const fn step(point: &'static str, runs: usize) -> Step {
    Step { point, runs, may_have_arrived: false }
}

/// The steps of every turn, in order.
const STEPS: [Step; 8] = [
    // The event is received, but not committed.
    step("received:1", 1),
    // The event is committed, but not acknowledged to the platform.
    step("accepted:1", 1),
    step("run_started:1", 1),
    step("run_ended:1", 2),
    // The outcome is about to be claimed.
    step("before_commit:1", 2),
    // The claim is committed, but not sent.
    step("after_commit:1", 1),
    // The attempt is stored, but not sent.
    step("attempt_started:1", 1),
    // The message is sent, but its receipt is not stored.
    Step { point: "attempt_ended:1", runs: 1, may_have_arrived: true },
];

/// The steps of the first draft of a streamed answer.
const DRAFT_STEPS: [Step; 4] = [
    Step { point: "draft_claimed:1", runs: 2, may_have_arrived: true },
    Step { point: "draft_attempt_started:1", runs: 2, may_have_arrived: true },
    Step { point: "draft_attempt_ended:1", runs: 2, may_have_arrived: true },
    Step { point: "draft_noted:1", runs: 2, may_have_arrived: true },
];

/// The process ends at each step of a turn in sequence: nothing is lost, and each question is answered once and completely.
pub async fn a_crash_at_any_step_loses_nothing_and_answers_once<P: Platform>(place: P::Place) {
    let agent = ScriptedAgent::replying(WHOLE).await;
    goes_through::<P>(&STEPS, place, QUIET, &agent, &Gates::default()).await;
}

/// As [`a_crash_at_any_step_loses_nothing_and_answers_once`] with a streamed answer: no draft is left beside it.
pub async fn a_crash_at_any_step_leaves_no_draft_behind<P: Platform>(place: P::Place) {
    let written = || WHOLE.split_inclusive(' ').fold(Script::replies(WHOLE), Script::streaming);
    let agent = ScriptedAgent::start(move |_, _| written()).await;
    goes_through::<P>(&STEPS, place, STREAMING, &agent, &Gates::default()).await;
}

/// The process ends at each step of the first draft: one message remains.
pub async fn a_crash_while_the_answer_grows_leaves_one<P: Platform>(pace: Pace, at: P::Place) {
    let gates = Gates::default();
    let agent = {
        let gates = gates.clone();
        ScriptedAgent::start(move |_, _| pace.script(&gates.gate())).await
    };
    goes_through::<P>(&DRAFT_STEPS, at, STREAMING, &agent, &gates).await;
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
async fn goes_through<P: Platform>(steps: &[Step], place: P::Place, keys: &str, agent: &ScriptedAgent, gates: &Gates) {
    let platform = P::at(place).await;
    let mut gateway = platform.gateway(keys).config(&agent.section()).config(PATIENT).start().await;
    let ada = platform.person().await;
    // An exchange before the first crash, so that only questions pass the crash points afterwards.
    gates.gate().opens();
    platform.says(&ada, "we meet").await;
    finds(&platform, &ada, WHOLE).await;
    rests(&platform, &gateway).await;

    let mut wrong = Vec::new();
    for step in steps {
        let (before, runs) = (platform.hears(&ada).await.len(), agent.calls().len());
        gateway.stop().await;
        gates.close();
        gateway.spawn(&[(CRASH_AT, step.point)]);
        gateway.is_ready().await;
        platform.says(&ada, "hello").await;
        gateway.has_crashed().await;
        gates.gate().opens();
        platform.has_crashed().await;
        gateway.restart().await;
        let is_answered = |said: &[Said]| said[before.min(said.len())..].iter().any(|it| it.words.ends_with(WHOLE));
        let about = format!("the answer after a crash at {}", step.point);
        platform.until(&ada, &about, |said| is_answered(said).then_some(())).await;
        rests(&platform, &gateway).await;

        let said = platform.hears(&ada).await.split_off(before);
        let runs = agent.calls().len() - runs;
        // A draft may have arrived at any step.
        let may_have_arrived = step.may_have_arrived || keys == STREAMING;
        let most = if may_have_arrived && !P::SHOWS_ONCE { 2 } else { 1 };
        let answered = super::is_answered_once::<P>(&said, WHOLE);
        if answered.is_err() || said.len() > most || runs > step.runs {
            wrong.push(format!("{}: {:?}, and the agent ran {runs} times", step.point, words(&said)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(gateway.undeliverable(), 0);
}

/// Waits until nothing is owed, and the platform knows which events were accepted.
async fn rests<P: Platform>(platform: &P, gateway: &Gateway) {
    gateway.settles().await;
    platform.is_acknowledged().await;
}

/// The process ends when the second part of an answer is about to be sent or has arrived: sending resumes there, and no
/// part is sent twice.
pub async fn a_crash_between_two_parts_sends_no_part_twice<P: Platform>(point: &str) {
    const PARTS: usize = 3;
    let paragraph = |part: usize| format!("Paragraph {part}. {}", "word ".repeat(P::PARAGRAPH / 5 - 3));
    let platform = P::new().await;
    let agent = ScriptedAgent::replying(&(1..=PARTS).map(paragraph).collect::<Vec<_>>().join("\n\n")).await;
    let mut gateway = platform.gateway(QUIET).config(&agent.section()).config(PATIENT).prepare();

    gateway.spawn(&[(CRASH_AT, point)]);
    gateway.is_ready().await;
    let ada = platform.person().await;
    platform.says(&ada, "tell me all").await;
    gateway.has_crashed().await;
    gateway.restart().await;
    finds(&platform, &ada, &format!("Paragraph {PARTS}.")).await;
    rests(&platform, &gateway).await;

    let said = platform.hears(&ada).await;
    assert_eq!(said.len(), PARTS, "{:?}", words(&said));
    for (said, part) in said.iter().zip(1..) {
        assert!(said.words.contains(&format!("Paragraph {part}.")), "{:?} is not part {part}", said.words);
    }
}

/// A turn that crashes the process every time is given up after `max_runs`, and answered with the fallback.
pub async fn a_poisonous_turn_is_quarantined_and_answered<P: Platform>() {
    let (platform, agent) = (P::new().await, ScriptedAgent::replying("never seen").await);
    let mut gateway = platform.gateway(QUIET).config(&agent.section()).prepare();

    gateway.spawn(&[(CRASH_AT, "run_started:1")]);
    gateway.is_ready().await;
    let ada = platform.person().await;
    platform.says(&ada, "poison").await;
    gateway.has_crashed().await;
    for _ in 0..2 {
        gateway.spawn(&[(CRASH_AT, "run_started:1")]);
        gateway.has_crashed().await;
    }
    gateway.restart().await;
    finds(&platform, &ada, FAILED).await;
    rests(&platform, &gateway).await;

    assert_eq!(words(&platform.hears(&ada).await), [FAILED]);
    assert!(agent.calls().is_empty());
}
