//! How long runs take, as the metrics tell it.

use std::sync::{Arc, Mutex, PoisonError};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder,
};
use rejoinder_core::{AgentTurn, Farewell, PersonRole, conformance::scripted::Script, store::ApprovalFilter};

use crate::{
    approvals::person,
    gateway::{GatewaySetup, chat, operator, said, secs},
};

/// The seconds that runs took.
#[derive(Default)]
struct RunSeconds(Mutex<Vec<f64>>);

impl HistogramFn for RunSeconds {
    fn record(&self, value: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

/// Records the seconds of runs, and nothing else.
struct RunRecorder(Arc<RunSeconds>);

impl Recorder for RunRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() == "rejoinder_run_seconds" { Histogram::from_arc(Arc::clone(&self.0)) } else { Histogram::noop() }
    }
}

/// It is stopped in the moment of the decision, and does not hear it.
#[tokio::test]
async fn the_wait_of_a_run_for_an_approval_is_taken_off_once() {
    let seconds = Arc::new(RunSeconds::default());
    let recorder = RunRecorder(Arc::clone(&seconds));
    let _recorded = set_default_local_recorder(&recorder);
    let script = |_: &AgentTurn| Script::replies("paid").taking(secs(10)).asking_approval("pay", None);
    let mut setup = GatewaySetup::new().agent("main", script);
    setup.people = vec![person("Grace", PersonRole::Owner)];
    let gateway = setup.start().await;
    let turn = gateway.accepts(said(&chat("ada"), "pay")).await;
    gateway.advance(secs(60)).await;
    let [approval] = &gateway.store.approvals(ApprovalFilter::Latest, 10).await.expect("readable")[..] else {
        panic!("one waits")
    };

    let operations = gateway.engine().operations();
    operations.decide(approval.id, true, operator("yes")).await.expect("it is decided");
    gateway.life.hold(Some("approvals"));
    gateway.settle().await;
    operations.cancel(turn, Farewell::Silence, operator("a mistake")).await.expect("it is cancelled");
    gateway.life.hold(None);
    gateway.advance(secs(5)).await;

    let seconds = seconds.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(matches!(seconds[..], [took] if (10.0..15.0).contains(&took)), "{seconds:?}");
    gateway.at_rest().await;
}
