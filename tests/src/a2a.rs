//! An agent with the Agent2Agent protocol, on a server that we did not write.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{eventually, free_port, model_server::counterparts};

/// The agent of `tests/a2a/agent.mjs`, whose comment says what it answers.
#[derive(Debug)]
pub struct A2aServer {
    process: Child,
    port: u16,
    http: reqwest::Client,
}

impl A2aServer {
    /// Starts it with this binding, as a card calls it, and waits until it responds.
    ///
    /// # Panics
    /// If its packages are not installed: run the tests with `cargo xtask test`.
    pub async fn start(binding: &str, streams: bool) -> Self {
        let (port, installed) = (free_port(), counterparts());
        assert!(installed.join("node_modules/@a2a-js/sdk").exists(), "@a2a-js/sdk is missing: run `cargo xtask test`");
        let process = Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("a2a/agent.mjs"))
            .args([&*port.to_string(), binding, if streams { "streams" } else { "whole" }])
            .env("REJOINDER_COUNTERPARTS", installed)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("node starts");
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        let server = Self { process, port, http };
        eventually("the agent answers", async || server.http.get(server.at("/test/state")).send().await.ok().map(drop))
            .await;
        server
    }

    /// The configuration section of an agent `main` that it is, which gets the words of people alone.
    #[must_use]
    pub fn section(&self) -> String {
        format!("[agents.main]\nkind = \"a2a\"\nurl = \"{}\"\nintroduction = false\n", self.at("/"))
    }

    /// The number of tasks that it has begun.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn begun(&self) -> u64 {
        self.state().await["begun"].as_u64().expect("a number")
    }

    /// The number of tasks that were canceled.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn canceled(&self) -> u64 {
        self.state().await["canceled"].as_u64().expect("a number")
    }

    /// The contexts of all messages.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn contexts(&self) -> Vec<Value> {
        self.state().await["contexts"].as_array().expect("a list").clone()
    }

    /// It ends its slow tasks.
    ///
    /// # Panics
    /// If it does not respond.
    pub async fn release(&self) {
        self.http.post(self.at("/test/release")).send().await.expect("the agent responds");
    }

    async fn state(&self) -> Value {
        let response = self.http.get(self.at("/test/state")).send().await.expect("the agent responds");
        response.json().await.expect("JSON")
    }

    fn at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for A2aServer {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
