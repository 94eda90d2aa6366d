//! What an agent reads of a turn that the ladder handed to it.

use rejoinder_core::{
    AgentTurn, Cause, EventKind, Handoff, InboundEvent, Masker, Policy, Rung, TriedRun,
    conformance::scripted::{Fault, Script},
};
use rstest::rstest;

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, TestGateway, chat, policy, said, secs},
    texts::SILENT,
};

/// A gateway whose ladder hands a turn to `boss` for `cause`.
async fn handing_over(cause: Cause, main: Script) -> TestGateway {
    let ladder = policy().ladder.with(cause, vec![Rung::Handoff("boss".to_owned())]);
    let mut setup = GatewaySetup::new();
    setup.masker = Masker::new(["sk-12345678"]);
    setup
        .policy(Policy { max_runs: 1, max_deferrals: 1, ladder, ..policy() })
        .always(main)
        .agent("boss", |_| Script::replies("I can take that."))
        .start()
        .await
}

/// What the agent of the handoff was told.
fn told(gateway: &TestGateway) -> Handoff {
    let runs = gateway.agent("boss").runs();
    runs.last().expect("a run").turn.past.handoff.clone().expect("it is a handoff")
}

fn tried(end: &str, said: Option<&str>) -> TriedRun {
    TriedRun { agent: "main".into(), end: end.to_owned(), said: said.map(str::to_owned) }
}

/// A15.
#[rstest]
#[case::silent(Cause::Silent, Script::is_silent("not mine"), "not mine", tried("silent", Some("not mine")))]
#[case::empty(Cause::Silent, Script::replies(" "), "empty", tried("silent", None))]
#[case::error(Cause::Error, Script::fails("Ada wrote: help"), "the agent failed", tried("failed", None))]
#[case::status(Cause::Error, Script::refuses(429), "the agent failed: 429", tried("failed", None))]
#[case::panic(Cause::Error, Script::panics(), "the agent's runtime panicked", tried("failed", None))]
#[case::secret(
    Cause::Silent,
    Script::is_silent("it is sk-12345678"),
    "it is ••••",
    tried("silent", Some("it is ••••"))
)]
#[tokio::test]
async fn the_agent_of_a_handoff_is_told_why(
    #[case] cause: Cause,
    #[case] main: Script,
    #[case] why: &str,
    #[case] run: TriedRun,
) {
    let gateway = handing_over(cause, main).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(told(&gateway), Handoff { cause, why: why.to_owned(), tried: vec![run] });
    assert_eq!(gateway.agent("main").runs()[0].turn.past.handoff, None);
    gateway.at_rest().await;
}

#[tokio::test]
async fn the_agent_of_a_handoff_is_told_that_the_other_one_was_too_slow() {
    let gateway = handing_over(Cause::Timeout, Script::hangs()).await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HARD_DEADLINE + secs(3)).await;

    let why = "the run passed its hard deadline".to_owned();
    assert_eq!(told(&gateway), Handoff { cause: Cause::Timeout, why, tried: vec![tried("stopped", None)] });
    gateway.at_rest().await;
}

/// A5.
#[tokio::test]
async fn the_agent_of_a_handoff_is_told_what_the_platform_refused() {
    let gateway = handing_over(Cause::Refused, Script::replies("<b>broken")).await;
    gateway.platform.queue_fault(Fault::Refuse);

    gateway.receives(said(&chat("ada"), "hello")).await;

    let Handoff { cause, why, tried: runs } = told(&gateway);
    assert_eq!((cause, runs), (Cause::Refused, vec![tried("reply", Some("<b>broken"))]));
    assert!(!why.is_empty());
    gateway.at_rest().await;
}

#[tokio::test]
async fn the_agent_of_a_handoff_is_told_of_deferrals() {
    let gateway = handing_over(Cause::Timeout, Script::defers(Some("Soon."), secs(60))).await;

    gateway.receives(said(&chat("ada"), "later")).await;
    gateway.advance(secs(60)).await;

    let Handoff { cause, tried: runs, .. } = told(&gateway);
    assert_eq!((cause, &runs[0]), (Cause::Timeout, &tried("deferral", Some("Soon."))));
    gateway.at_rest().await;
}

/// There is nothing of it that could be given to an agent: the next rung is taken.
#[tokio::test]
async fn an_unreadable_message_is_handed_to_no_agent() {
    let rungs = vec![Rung::Handoff("boss".to_owned()), Rung::Say("silent".to_owned())];
    let gateway = GatewaySetup::new()
        .policy(Policy { ladder: policy().ladder.with(Cause::Unreadable, rungs), ..policy() })
        .always(Script::replies("Good morning."))
        .agent("boss", |_| Script::replies("I can take that."))
        .start()
        .await;

    gateway.receives(InboundEvent { kind: EventKind::Unreadable, ..said(&chat("ada"), "") }).await;

    assert_eq!((gateway.agent("main").steps(), gateway.agent("boss").steps()), (0, 0));
    assert_eq!(gateway.visible(&chat("ada")), [SILENT]);
    gateway.at_rest().await;
}

/// Its own runs are none of the runs before.
#[tokio::test]
async fn every_agent_of_a_chain_is_told_of_those_before_it() {
    let steps = ["second", "third"].map(|agent| Rung::Handoff(agent.to_owned()));
    let ladder = policy().ladder.with(Cause::Silent, steps.to_vec());
    let gateway = GatewaySetup::new()
        .policy(Policy { ladder, ..policy() })
        .always(Script::is_silent("not mine"))
        .agent("second", |_| Script::is_silent(&"é".repeat(2000)))
        .agent("third", |turn: &AgentTurn| match turn.attempt {
            1 => Script::defers(None, secs(60)),
            _ => Script::replies("done"),
        })
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(60)).await;

    let runs = gateway.agent("third").runs();
    let [first, again] = &runs[..] else { panic!("{} runs", runs.len()) };
    assert_eq!(first.turn.past.handoff, again.turn.past.handoff);
    let Handoff { cause, why, tried: runs } = first.turn.past.handoff.clone().expect("it is a handoff");
    assert_eq!((cause, &*why, runs.len()), (Cause::Silent, "not mine", 2));
    assert_eq!(runs[0], tried("silent", Some("not mine")));
    let said = runs[1].said.as_deref().expect("it said something");
    assert!(said.ends_with("é… [cut: 4000 bytes in all]") && said.len() < 2100, "{}", said.len());
    gateway.at_rest().await;
}
