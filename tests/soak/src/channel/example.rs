//! An account on the example channel's chat server.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use rand::rngs::StdRng;
use rejoinder_example::server::{ChatServer, Fault, TOKEN};

use super::{Channel, NAME, Platform, Seen, one_of};

pub(super) struct Example {
    server: ChatServer,
    /// The ids of messages that were not acknowledged when they were last looked at.
    waiting: Mutex<Vec<String>>,
    count: AtomicUsize,
}

impl Example {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let server = ChatServer::start("127.0.0.1:0").await?;
        Ok(Self { server, waiting: Mutex::default(), count: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Channel for Example {
    fn platform(&self) -> Platform {
        Platform::Example
    }

    fn section(&self) -> String {
        let address = self.server.address();
        format!("[channels.example.{NAME}]\naddress = \"{address}\"\ntoken = \"{TOKEN}\"\ndm_policy = \"open\"\n")
    }

    async fn open(&self) -> String {
        format!("cleo{}", self.count.fetch_add(1, Ordering::Relaxed))
    }

    fn takes_commands(&self, _chat: &str) -> bool {
        true
    }

    async fn say(&self, chat: &str, _key: &str, text: &str) -> Option<String> {
        let id = self.server.writes(chat, chat, text);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|id| !self.server.is_acknowledged(id));
        waiting.push(id);
        None
    }

    async fn fail(&self, random: &mut StdRng) -> &'static str {
        let (fault, what) = match one_of(random, &[0, 1, 2, 3]) {
            0 => (Fault::Wait(one_of(random, &[1, 2])), "429"),
            1 => (Fault::Busy, "5xx, not executed"),
            2 => (Fault::LoseAnswer, "lost response"),
            _ => {
                self.server.disconnect();
                return "outage";
            }
        };
        self.server.fail_next(fault);
        what
    }

    async fn heal(&self) {
        self.server.reconnect();
    }

    fn unacknowledged(&self) -> usize {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|id| !self.server.is_acknowledged(id));
        waiting.len()
    }

    fn is_send(&self, line: &str) -> bool {
        line.starts_with("say ")
    }

    async fn seen(&self, chat: &str) -> Vec<Seen> {
        self.server.shown(chat).into_iter().map(Seen::Text).collect()
    }
}
