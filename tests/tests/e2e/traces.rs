//! The traces of turns, as a collector gets them.

use rejoinder_tests::{CollectedSpan, Collector, Gate, Gateway, Reply, Script, ScriptedAgent, eventually};

use crate::{TOKEN, hook};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The gateway is killed while the agent runs, and the collector is away for a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_turn_is_one_trace_over_a_kill() {
    let (collector, never) = (Collector::start().await, Gate::default());
    let agent = ScriptedAgent::start(move |_, number| match number {
        0 => Script::replies("never").waiting(&never),
        _ => Script::replies("the answer"),
    })
    .await;
    let config = [hook(""), agent.section(), collector.section()].concat();
    let mut gateway = Gateway::builder().config(&config).start().await;
    let hook = gateway.hook("test", TOKEN);

    let call = hook.message("hello").header("traceparent", CALLER).header("tracestate", "vendor=1");
    let accepted = Reply::of(call.header("Prefer", "wait=0")).await;
    eventually("the agent runs", async || (agent.calls().len() == 1).then_some(())).await;
    collector.set_down(true);
    gateway.kill();
    gateway.restart().await;
    assert_eq!(hook.until_settled(&accepted.turn()).await.text(), "the answer");
    let log = "traces cannot be sent, trying again";
    eventually(log, async || gateway.log().contains(log).then_some(())).await;
    assert!(collector.spans().is_empty());
    collector.set_down(false);
    eventually("the trace", async || (!collector.spans().is_empty()).then_some(())).await;
    let second = hook.ask("on my own").await;
    eventually("both traces", async || (collector.named("turn").len() == 2).then_some(())).await;

    let [turn, own] = &collector.named("turn")[..] else { panic!("{:?}", collector.spans()) };
    assert_eq!((&*turn.trace, &*turn.parent), (&CALLER[3..35], &CALLER[36..52]));
    assert_eq!(turn.attribute("rejoinder.turn.id"), Some(&*accepted.turn()));
    assert_eq!((&*own.trace, &*own.parent), (&*second.turn().replace('-', ""), ""));
    assert_eq!(own.attribute("rejoinder.end"), Some("reply"));
    let is_of_first = |span: &CollectedSpan| span.trace == turn.trace && span.name != "wait";
    let of_first: Vec<_> = collector.spans().into_iter().filter(is_of_first).collect();
    let names: Vec<_> = of_first.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["turn", "intake", "invoke_agent main", "invoke_agent main"]);
    assert!(of_first[1..].iter().all(|span| span.parent == turn.id), "{of_first:?}");
    let ends: Vec<_> = of_first[2..].iter().map(|run| run.attribute("rejoinder.run.end")).collect();
    assert_eq!(ends, [Some("crashed"), Some("reply")]);
    // What the agent was told.
    let told: Vec<_> = agent.calls().iter().map(|call| call.trace.clone().unwrap_or_default()).collect();
    assert_eq!(told[0], format!("{}-{}-01", &CALLER[..35], of_first[2].id));
    assert_eq!(told[1], format!("{}-{}-01", &CALLER[..35], of_first[3].id));
    assert!(told[2].starts_with(&format!("00-{}-", own.trace)), "{told:?}");
}

/// Nothing is sent of a trace that the caller does not record, nor to an agent without a collector and a caller's trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_caller_may_say_that_nothing_is_recorded() {
    let (collector, agent) = (Collector::start().await, ScriptedAgent::echoing().await);
    let config = [hook(""), agent.section(), collector.section()].concat();
    let gateway = Gateway::builder().config(&config).start().await;
    let unrecorded = format!("{}00", &CALLER[..53]);

    Reply::of(gateway.hook("test", TOKEN).message("quietly").header("traceparent", &unrecorded)).await;
    Reply::of(gateway.hook("test", TOKEN).message("wrongly").header("traceparent", "rubbish")).await;
    eventually("the other", async || (!collector.named("turn").is_empty()).then_some(())).await;

    assert_eq!(collector.named("turn").len(), 1);
    assert!(collector.named("turn")[0].trace != CALLER[3..35]);
    assert_eq!(agent.calls()[0].trace.as_deref().map(|it| &it[53..]), Some("00"));
    let plain = Gateway::builder().config(&hook("")).config(&agent.section()).start().await;
    plain.hook("test", TOKEN).ask("hello").await;
    assert_eq!(agent.calls()[2].trace, None);
}
