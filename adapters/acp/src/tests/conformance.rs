//! The runtime suite.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use parking_lot::Mutex;
use rejoinder_core::{
    AgentRuntime,
    conformance::runtime::{AgentDouble, Conduct},
};

use super::double::{Act, Double, says};
use crate::Acp;

/// What is said in the run of each attempt, and how many of its prompts came.
type Conducts = Arc<Mutex<HashMap<u64, (Conduct, usize)>>>;

struct Suite {
    double: Double,
    acp: Arc<Acp>,
    conducts: Conducts,
}

#[expect(clippy::unused_async, reason = "the suite awaits it")]
async fn double() -> Suite {
    let conducts = Conducts::default();
    let double = Double::new({
        let conducts = Arc::clone(&conducts);
        move |prompt| {
            let attempt = prompt["params"]["_meta"]["rejoinder"]["attempt"].as_u64().expect("a number");
            let mut conducts = conducts.lock();
            let (conduct, prompts) = conducts.get_mut(&attempt).expect("the suite says what happens in each run");
            *prompts += 1;
            match conduct {
                Conduct::Says(pieces) => pieces.iter().map(|piece| says(piece)).collect(),
                Conduct::Listens(first, second) => vec![says(if *prompts == 1 { first } else { second })],
                Conduct::Hangs(text) => vec![says(text), Act::Hangs],
                Conduct::Breaks(text) => vec![says(text), Act::Dies],
                Conduct::Sends(_) | Conduct::Panics => unreachable!("it does neither"),
            }
        }
    });
    Suite { acp: double.runtime(), double, conducts }
}

impl AgentDouble for Suite {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::clone(&self.acp) as Arc<dyn AgentRuntime>
    }
    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        if matches!(conduct, Conduct::Sends(_) | Conduct::Panics) {
            return false;
        }
        self.conducts.lock().insert(attempt.into(), (conduct, 0));
        true
    }
    fn at_work(&self) -> usize {
        self.double.0.working.load(Ordering::SeqCst)
    }
    fn given(&self) -> Vec<String> {
        self.double.0.given.lock().iter().map(ToString::to_string).collect()
    }
}

rejoinder_core::runtime_conformance!(double());
