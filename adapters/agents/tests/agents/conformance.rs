//! The runtime suite on the runtimes with a model, and on a cascade in which one answers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use rejoinder_agents::{Cascade, CascadeMember, Order};
use rejoinder_core::{
    AgentError, AgentName, AgentRuntime, AgentTurn, Outcome, RunEvents, Runtimes, Usage,
    conformance::runtime::{AgentDouble, Conduct},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    claude,
    double::{Answer, Piece, ReceivedRequest, Server, text_chunk},
    gpt,
};

/// How a server answers in the protocol of a kind.
#[derive(Clone, Copy)]
struct Protocol {
    agent: fn(&Server) -> Arc<dyn AgentRuntime>,
    says: fn(&[&str]) -> Answer,
    calls: fn(&str, &[(&str, Value)]) -> Answer,
    /// An answer that begins with this text, and goes on with the piece.
    begins: fn(&str, Piece) -> Answer,
}

const OPENAI: Protocol = Protocol {
    agent: |server| Arc::new(server.agent()),
    says: Answer::says,
    calls: Answer::calls,
    begins: |text, then| Answer::stream([text_chunk(text), then]),
};

const ANTHROPIC: Protocol = Protocol {
    agent: |server| Arc::new(claude::agent(server)),
    says: claude::says,
    calls: claude::calls,
    begins: |text, then| Answer::stream([claude::start(), claude::text(0, text), then]),
};

const RESPONSES: Protocol = Protocol {
    agent: |server| Arc::new(gpt::agent(server)),
    says: gpt::says,
    calls: gpt::calls,
    begins: |text, then| Answer::stream([gpt::text(0, text), then]),
};

/// What is said in the run of each attempt, and how many of its requests were answered.
type Conducts = Arc<Mutex<HashMap<u32, (Conduct, usize)>>>;

struct Double {
    server: Server,
    agent: Arc<dyn AgentRuntime>,
    conducts: Conducts,
}

async fn double(protocol: Protocol) -> Double {
    let conducts = Conducts::default();
    let server = Server::directed({
        let conducts = Arc::clone(&conducts);
        move |request| answer(protocol, &conducts, request)
    })
    .await;
    Double { agent: (protocol.agent)(&server), server, conducts }
}

fn answer(protocol: Protocol, conducts: &Conducts, request: &ReceivedRequest) -> Answer {
    let attempt = request.headers["x-rejoinder-attempt"].to_str().expect("digits").parse().expect("a number");
    let mut conducts = conducts.lock().expect("not poisoned");
    let (conduct, answered) = conducts.get_mut(&attempt).expect("the suite says what happens in each run");
    *answered += 1;
    match conduct {
        Conduct::Says(pieces) => (protocol.says)(&pieces.iter().map(String::as_str).collect::<Vec<_>>()),
        Conduct::Sends(text) => (protocol.calls)("", &[("send", json!({ "text": text }))]),
        Conduct::Listens(first, second) => (protocol.says)(&[if *answered == 1 { first } else { second }]),
        Conduct::Hangs(text) => (protocol.begins)(text, Piece::Stall),
        Conduct::Breaks(text) => (protocol.begins)(text, Piece::Cut),
        Conduct::Panics => unreachable!("no answer makes it panic"),
    }
}

impl AgentDouble for Double {
    fn runtime(&self) -> Arc<dyn AgentRuntime> {
        Arc::clone(&self.agent)
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

mod openai {
    rejoinder_core::runtime_conformance!(super::double(super::OPENAI));
}

mod anthropic {
    rejoinder_core::runtime_conformance!(super::double(super::ANTHROPIC));
}

mod openai_responses {
    rejoinder_core::runtime_conformance!(super::double(super::RESPONSES));
}

mod of_a_cascade {
    use super::*;

    /// A member that fails before it has shown anything.
    struct Broken;

    #[async_trait]
    impl AgentRuntime for Broken {
        fn describe(&self) -> String {
            "broken".to_owned()
        }
        async fn run(&self, _: AgentTurn, events: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
            events.usage(Usage { input_tokens: 1, output_tokens: 1 }).await;
            events.text("\n").await;
            Err(AgentError::Unreachable("it is broken".to_owned()))
        }
    }

    struct CascadeDouble {
        second: Double,
        cascade: Arc<Cascade>,
        _runtimes: Arc<Runtimes>,
    }

    async fn cascade() -> CascadeDouble {
        let second = double(OPENAI).await;
        let members: [(AgentName, Arc<dyn AgentRuntime>); 2] =
            [("broken".into(), Arc::new(Broken)), ("good".into(), second.runtime())];
        let described = members.iter().map(|(name, _)| CascadeMember {
            name: Arc::clone(name),
            models: Vec::new(),
            price: None,
            shows_activity: true,
        });
        let described = described.collect();
        let runtimes = Arc::new(Runtimes::from(HashMap::from(members)));
        let cascade = Cascade::new("both".into(), described, Order::Listed, Arc::downgrade(&runtimes));
        CascadeDouble { second, cascade: Arc::new(cascade), _runtimes: runtimes }
    }

    impl AgentDouble for CascadeDouble {
        fn runtime(&self) -> Arc<dyn AgentRuntime> {
            Arc::clone(&self.cascade) as Arc<dyn AgentRuntime>
        }
        fn conduct(&self, attempt: u32, conduct: Conduct) -> bool {
            self.second.conduct(attempt, conduct)
        }
        fn at_work(&self) -> usize {
            self.second.at_work()
        }
        fn given(&self) -> Vec<String> {
            self.second.given()
        }
    }

    rejoinder_core::runtime_conformance!(cascade());
}
