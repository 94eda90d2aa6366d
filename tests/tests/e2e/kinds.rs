//! Each kind of agent, when it writes too much or breaks off.

use rejoinder_tests::{AgentKind, Gateway, Script, ScriptedAgent};
use rstest::rstest;

use crate::{TOKEN, hook};

const FAILED: &str = "Sorry, that did not work. Please try again.";
const CUT_OFF: &str = "\n\nThe rest of this answer could not be sent.";
const MIB: usize = 1 << 20;

/// The most memory that a flood of 100 MiB may take, in KiB.
const FLOOD_TAKES: u64 = 64 << 10;

/// C5: of 100 MiB a person gets the beginning, with a word that the end is missing. A task that would go on is canceled.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flood_ends_in_one_answer_and_takes_little_memory(
    #[values(
        AgentKind::Openai,
        AgentKind::Responses,
        AgentKind::Anthropic,
        AgentKind::Http,
        AgentKind::Command,
        AgentKind::Acp,
        AgentKind::A2a,
        AgentKind::Pull,
        AgentKind::Cascade
    )]
    kind: AgentKind,
) {
    let agent = ScriptedAgent::start(|_, number| match number {
        0 => Script::replies("calm"),
        _ => (0..100).fold(Script::hangs(), |script, _| script.streaming(&"x".repeat(MIB))),
    })
    .await
    .of_kind(kind);
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    let _worker = agent.worker(&gateway);
    let hook = gateway.hook("test", TOKEN);
    assert_eq!(hook.ask("hello").await.text(), "calm");
    let before = gateway.peak_memory();

    let flooded = hook.ask("flood").await;

    assert_eq!(flooded.state(), "answered");
    let text = flooded.text();
    let is_cut = text.starts_with("xxx") && text.ends_with(CUT_OFF) && text.len() < MIB + 200;
    assert!(is_cut, "{} bytes, which begin with {}", text.len(), &text[..text.len().min(100)]);
    let takes = gateway.peak_memory() - before;
    assert!(takes < FLOOD_TAKES, "{takes} KiB");
    agent.until_task_is_canceled().await;
    gateway.until_settled().await;
}

/// B8: no half of an answer is taken for one, wherever it is cut off.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_breaks_off_in_the_middle_of_a_line_is_one_fallback(
    #[values(
        AgentKind::Openai,
        AgentKind::Responses,
        AgentKind::Anthropic,
        AgentKind::Http,
        AgentKind::Command,
        AgentKind::Acp,
        AgentKind::A2a,
        AgentKind::Pull,
        AgentKind::Cascade
    )]
    kind: AgentKind,
) {
    let agent = ScriptedAgent::start(|_, _| Script::fails("of an answer").streaming("Half ")).await.of_kind(kind);
    // No other worker gets the turn.
    let keys = if kind == AgentKind::Pull { "lease = \"1s\"\nmax_leases = 1" } else { "" };
    let gateway = Gateway::builder().config(&hook("")).config(&agent.section_with(keys)).start().await;
    let _worker = agent.worker(&gateway);

    let reply = gateway.hook("test", TOKEN).ask("hello").await;

    assert_eq!((reply.state(), reply.text()), ("answered", FAILED));
    assert_eq!(agent.calls().len(), 1);
}
