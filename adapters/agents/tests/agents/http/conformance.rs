//! The runtime suite on the `http` runtime.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use rejoinder_agents::Http;
use rejoinder_core::{
    AgentRuntime,
    conformance::runtime::{AgentDouble, Conduct},
};
use serde_json::json;

use super::{LINES, agent, object, section};
use crate::double::{Answer, Piece, ReceivedRequest, Server};

type Conducts = Arc<Mutex<HashMap<u64, Conduct>>>;

struct Double {
    server: Server,
    agent: Arc<Http>,
    conducts: Conducts,
}

async fn double() -> Double {
    let conducts = Conducts::default();
    let server = Server::directed({
        let conducts = Arc::clone(&conducts);
        move |request| answer(&conducts, request)
    })
    .await;
    Double { agent: Arc::new(agent(section(&server))), server, conducts }
}

fn answer(conducts: &Conducts, request: &ReceivedRequest) -> Answer {
    let attempt = request.body["attempt"].as_u64().expect("a number");
    let text = |text: &String| object(&json!({ "text": text }));
    let end = object(&json!({ "end": true }));
    let pieces = match &conducts.lock().expect("not poisoned")[&attempt] {
        Conduct::Says(pieces) => pieces.iter().map(text).chain([end]).collect(),
        Conduct::Sends(said) => vec![object(&json!({ "send": said })), end],
        Conduct::Listens(first, _) => vec![text(first), end],
        Conduct::Hangs(said) => vec![text(said), Piece::Stall],
        Conduct::Breaks(said) => vec![text(said), Piece::Cut],
        Conduct::Panics => unreachable!("no answer makes it panic"),
    };
    Answer::of(LINES, pieces)
}

impl AgentDouble for Double {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::clone(&self.agent) as Arc<dyn AgentRuntime>
    }

    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        if conduct == Conduct::Panics {
            return false;
        }
        self.conducts.lock().expect("not poisoned").insert(attempt.into(), conduct);
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
