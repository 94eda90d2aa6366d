//! Each kind of agent on a platform: `kill -9` at every step, and a cascade that breaks off.

use rejoinder_telegram_double::TelegramDouble;
use rejoinder_tests::{AgentKind, Gateway, Script, ScriptedAgent, promise};
use rstest::rstest;

use crate::{promise::Telegram, telegram};

const FAILED: &str = "Sorry, I could not finish that. Please try again.";

/// B13, D1: design §9, with the kinds that the other tests of crashes have no agent of.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_at_any_step_with_an_agent_of(
    #[values(
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
    promise::a_crash_at_any_step_with_an_agent_of::<Telegram>(kind).await;
}

/// B13, C5: the first member dies in the middle of its answer, of which the person sees a draft or nothing.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cascade_that_breaks_off_ends_in_one_message(#[values("edit", "off")] streaming: &str) {
    let double = TelegramDouble::start().await;
    let dying = ScriptedAgent::start(|_, _| Script::fails("gone").streaming("Half an answer")).await;
    let other = ScriptedAgent::replying("The other half.").await;
    let as_member = |agent: &ScriptedAgent, name: &str| agent.section().replace("main", name);
    let gateway = Gateway::builder()
        .config(&telegram(&double, &format!("streaming = \"{streaming}\"")))
        .config(&as_member(&dying, "first"))
        .config(&as_member(&other, "second"))
        .config("[agents.main]\nkind = \"cascade\"\nmembers = [\"first\", \"second\"]\n")
        .config("[routing]\ndefault_agent = \"main\"\n")
        .start()
        .await;
    let ada = double.person("Ada");

    ada.says("hello");
    gateway.until_settled().await;
    double
        .until("the fallback", |view| view.visible(ada.chat()).iter().any(|it| it.text == FAILED).then_some(()))
        .await;

    let ours: Vec<_> = ada.sees().into_iter().filter(|message| message.ours).map(|message| message.text).collect();
    assert_eq!(ours, [FAILED]);
    assert_eq!((dying.calls().len(), other.calls().len()), (1, 0));
}
