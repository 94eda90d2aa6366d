//! The runtime suite on the `openai` runtime.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use rejoinder_agents::OpenAi;
use rejoinder_core::{
    AgentRuntime,
    conformance::runtime::{AgentDouble, Conduct},
};
use serde_json::json;

use crate::double::{Answer, Piece, ReceivedRequest, Server, text_chunk};

/// What is said in the run of each attempt, and how many of its requests were answered.
type Conducts = Arc<Mutex<HashMap<u32, (Conduct, usize)>>>;

struct Double {
    server: Server,
    agent: Arc<OpenAi>,
    conducts: Conducts,
}

async fn double() -> Double {
    let conducts = Conducts::default();
    let server = Server::directed({
        let conducts = Arc::clone(&conducts);
        move |request| answer(&conducts, request)
    })
    .await;
    Double { agent: Arc::new(server.agent()), server, conducts }
}

fn answer(conducts: &Conducts, request: &ReceivedRequest) -> Answer {
    let attempt = request.headers["x-rejoinder-attempt"].to_str().expect("digits").parse().expect("a number");
    let mut conducts = conducts.lock().expect("not poisoned");
    let (conduct, answered) = conducts.get_mut(&attempt).expect("the suite says what happens in each run");
    *answered += 1;
    match conduct {
        Conduct::Says(pieces) => Answer::says(&pieces.iter().map(String::as_str).collect::<Vec<_>>()),
        Conduct::Sends(text) => Answer::calls("", &[("send", json!({ "text": text }))]),
        Conduct::Listens(first, second) => Answer::says(&[if *answered == 1 { first } else { second }]),
        Conduct::Hangs(text) => Answer::stream([text_chunk(text), Piece::Stall]),
        Conduct::Breaks(text) => Answer::stream([text_chunk(text), Piece::Cut]),
        Conduct::Panics => unreachable!("no answer makes it panic"),
    }
}

impl AgentDouble for Double {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::clone(&self.agent) as Arc<dyn AgentRuntime>
    }
    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        if conduct == Conduct::Panics {
            return false;
        }
        self.conducts.lock().expect("not poisoned").insert(attempt, (conduct, 0));
        true
    }
    fn at_work(&self) -> usize {
        self.server.at_work()
    }
    fn given(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.body.to_string()).collect()
    }
}

rejoinder_core::runtime_conformance!(double());
