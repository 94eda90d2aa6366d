//! Clocks that jump and time that passes: due work is done once, and without extra delay.

use rejoinder_tests::{Gate, Gateway, Reply, Script, ScriptedAgent, eventually};
use reqwest::StatusCode;

use crate::{TOKEN, hook};

/// G2: a deferral is due in two seconds, even if the wall clock is set back by an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_calendar_that_is_set_back_lets_nobody_wait() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, _| Script::replies("here it is").waiting(&release)).await
    };
    let gateway = Gateway::builder()
        .own_calendar()
        .config(&hook("wait = \"5m\""))
        .config(&agent.section())
        .config("[guard]\nsoft_deadline = \"2s\"\n")
        .start()
        .await;
    let hook = gateway.hook("test", TOKEN);

    let asked = tokio::spawn({
        let hook = hook.clone();
        async move { hook.ask("hello").await }
    });
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    gateway.set_calendar_offset(-3600);
    let deferred = asked.await.unwrap();
    release.release_one();

    assert_eq!((deferred.status, deferred.state()), (StatusCode::ACCEPTED, "deferred"));
    assert_eq!(hook.until_settled(&deferred.turn()).await.text(), "here it is");
    assert!(gateway.log().contains("set back"), "the log does not report the jump:\n{}", gateway.log());
}

/// G2, G5: a machine without a battery clock gets the time while an agent works: the run goes on, and the next turn is
/// answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_calendar_that_is_set_forward_ends_no_run() {
    let release = Gate::default();
    let agent = {
        let release = release.clone();
        ScriptedAgent::start(move |_, number| match number {
            0 => Script::replies("here it is").waiting(&release),
            _ => Script::replies("the next one"),
        })
        .await
    };
    let gateway = Gateway::builder().own_calendar().config(&hook("")).config(&agent.section()).start().await;
    let hook = gateway.hook("test", TOKEN);

    let asked = Reply::of(hook.message_in("desk", "hello").header("Prefer", "wait=0")).await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    gateway.set_calendar_offset(365 * 24 * 3600);
    // Its soft deadline has passed by the calendar: the deferral shows that the jump was noticed.
    eventually("the deferral", async || (hook.result(&asked.turn(), 0).await.state() == "deferred").then_some(()))
        .await;
    release.release_one();
    let next = Reply::of(hook.message_in("desk", "and now?")).await;

    assert_eq!(hook.until_settled(&asked.turn()).await.text(), "here it is");
    assert_eq!((next.state(), next.text()), ("answered", "the next one"));
}

/// A9, A10, G2: an agent does not answer for ten (accelerated) minutes: one deferral, then the fallback.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ten_minutes_without_an_answer_end_in_a_deferral_and_a_fallback() {
    let agent = ScriptedAgent::start(|_, _| Script::replies("never").waiting(&Gate::default())).await;
    let gateway = Gateway::builder()
        .time_passes_faster(60)
        .config(&hook(""))
        .config(&agent.section_with("first_token_timeout = \"1h\""))
        .start()
        .await;
    let hook = gateway.hook("test", TOKEN);

    let asked = Reply::of(hook.message_in("desk", "hello").header("Prefer", "wait=0")).await;
    eventually("the deferral", async || (hook.result(&asked.turn(), 0).await.state() == "deferred").then_some(()))
        .await;
    let result = hook.until_settled(&asked.turn()).await;

    assert_eq!((result.state(), result.text()), ("answered", "Sorry, that took too long. Please try again."));
    assert!(gateway.explain(&result.turn()).contains("hard deadline"), "{}", gateway.explain(&result.turn()));
}
