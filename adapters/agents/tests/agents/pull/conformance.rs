//! The runtime suite on the `pull` runtime.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rejoinder_agents::PullSection;
use rejoinder_core::{
    AgentRuntime,
    conformance::runtime::{AgentDouble, Conduct},
};
use reqwest::StatusCode;
use serde_json::json;

use super::worker::{Held, Served};

/// How often a worker finds out whether its turn is still wanted.
const PACE: Duration = Duration::from_millis(20);

/// What the workers and the suite share.
#[derive(Default)]
struct Shared {
    conducts: Mutex<HashMap<u64, Conduct>>,
    given: Mutex<Vec<String>>,
    at_work: AtomicUsize,
}

/// An agent with a worker that works on as many turns at once as there are.
struct Double {
    served: Served,
    shared: Arc<Shared>,
}

async fn double() -> Double {
    // Of a worker that is gone, the turn has no other one.
    let section = PullSection { lease: Duration::from_secs(2), max_leases: 1, ..PullSection::default() };
    let (served, shared) = (Served::with(section).await, Arc::<Shared>::default());
    let worker = served.worker();
    tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            loop {
                let held = worker.next().await;
                shared.at_work.fetch_add(1, Ordering::SeqCst);
                shared.given.lock().unwrap().push(held.turn.to_string());
                let conduct = shared.conducts.lock().unwrap()[&held.turn["attempt"].as_u64().unwrap()].clone();
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    work(&held, conduct).await;
                    shared.at_work.fetch_sub(1, Ordering::SeqCst);
                });
            }
        }
    });
    Double { served, shared }
}

async fn work(held: &Held, conduct: Conduct) {
    let says = async |text: &str| held.report(json!([{ "text": text }])).await;
    match conduct {
        Conduct::Says(pieces) => {
            for piece in &pieces {
                if says(piece).await != StatusCode::OK {
                    return;
                }
            }
            held.answer(json!({ "reply": pieces.concat() })).await;
        }
        Conduct::Sends(text) => {
            if held.report(json!([{ "send": text }])).await == StatusCode::OK {
                held.answer(json!({ "end": true })).await;
            }
        }
        Conduct::Listens(first, _) => {
            held.answer(json!({ "reply": first })).await;
        }
        Conduct::Hangs(text) => {
            says(&text).await;
            while held.renew().await == StatusCode::OK {
                tokio::time::sleep(PACE).await;
            }
        }
        // It is gone.
        Conduct::Breaks(text) => drop(says(&text).await),
        Conduct::Panics => unreachable!("no worker makes it panic"),
    }
}

impl AgentDouble for Double {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::clone(&self.served.agent) as Arc<dyn AgentRuntime>
    }
    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        if conduct == Conduct::Panics {
            return false;
        }
        self.shared.conducts.lock().unwrap().insert(attempt.into(), conduct);
        true
    }
    fn at_work(&self) -> usize {
        self.shared.at_work.load(Ordering::SeqCst)
    }
    fn given(&self) -> Vec<String> {
        self.shared.given.lock().unwrap().clone()
    }
}

rejoinder_core::runtime_conformance!(double());
