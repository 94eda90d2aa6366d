//! The runtime suite.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use rejoinder_a2a::A2a;
use rejoinder_core::{
    AgentRuntime,
    conformance::runtime::{AgentDouble, Conduct},
};
use serde_json::json;

use crate::server::{Answer, HTTP_JSON, JSON_RPC, Piece, Received, Server, agent, says, task, task_event, text_event};

type Conducts = Arc<Mutex<HashMap<u64, Conduct>>>;

struct Double {
    server: Server,
    agent: Arc<A2a>,
    conducts: Conducts,
}

async fn double(binding: &'static str, streams: bool) -> Double {
    let conducts = Conducts::default();
    let director = {
        let conducts = Arc::clone(&conducts);
        move |request: &Received| answer(&conducts, request)
    };
    let server = Server::with(binding, streams, director).await;
    Double { agent: Arc::new(agent(server.section())), server, conducts }
}

fn answer(conducts: &Conducts, request: &Received) -> Answer {
    let streams = match request.method() {
        "SendStreamingMessage" => true,
        "SendMessage" => false,
        _ => return Answer::error(-32_001, "there is no such task"),
    };
    let attempt = request.message()["metadata"]["rejoinder"]["attempt"].as_u64().expect("a number");
    let begins = |text: &str, then| Answer::stream([task_event("WORKING"), text_event(text), then]);
    match conducts.lock().expect("not poisoned")[&attempt].clone() {
        Conduct::Says(pieces) if streams => says(&pieces.iter().map(String::as_str).collect::<Vec<_>>()),
        Conduct::Says(pieces) => Answer::result(&json!({ "task": task("COMPLETED", None, Some(&pieces.concat())) })),
        Conduct::Hangs(text) if streams => begins(&text, Piece::Stall),
        Conduct::Breaks(text) if streams => begins(&text, Piece::Cut),
        Conduct::Hangs(_) => Answer::of("application/json", vec![Piece::Stall]),
        Conduct::Breaks(text) => Answer::result(&json!({ "task": task("WORKING", None, Some(&text)) })),
        Conduct::Sends(_) | Conduct::Listens(..) | Conduct::Panics => unreachable!("the agent cannot do that"),
    }
}

impl AgentDouble for Double {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::clone(&self.agent) as Arc<dyn AgentRuntime>
    }

    fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
        if matches!(conduct, Conduct::Sends(_) | Conduct::Listens(..) | Conduct::Panics) {
            return false;
        }
        self.conducts.lock().expect("not poisoned").insert(attempt.into(), conduct);
        true
    }

    fn at_work(&self) -> usize {
        self.server.at_work()
    }

    fn given(&self) -> Vec<String> {
        let requests = ["SendMessage", "SendStreamingMessage"].map(|method| self.server.requests(method));
        requests.into_iter().flatten().map(|request| request.body.to_string()).collect()
    }
}

mod json_rpc {
    mod streaming {
        rejoinder_core::runtime_conformance!(super::super::double(super::super::JSON_RPC, true));
    }

    mod whole {
        rejoinder_core::runtime_conformance!(super::super::double(super::super::JSON_RPC, false));
    }
}

mod http_json {
    mod streaming {
        rejoinder_core::runtime_conformance!(super::super::double(super::super::HTTP_JSON, true));
    }

    mod whole {
        rejoinder_core::runtime_conformance!(super::super::double(super::super::HTTP_JSON, false));
    }
}
